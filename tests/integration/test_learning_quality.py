"""The report under bench/ on what is learned: of labelled dialogues, and in contexts."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from germane.extractors import RuleExtractor
from house.source import ROOT

DIALOGUE = {
    "id": "x1",
    "topic": "moving",
    "at": "2026-05-11",
    "known": ["The cleaning service comes on Tuesdays."],
    "messages": [
        ["user", "I live in Osaka. If I were rich I'd live in Rome."],
        ["assistant", "Noted."],
        ["user", "Cleaning is on Thursdays now. The sky looks grey over the hills."],
        ["assistant", "Noted."],
    ],
    "facts": [
        {"keys": [["Osaka"]], "messages": [1]},
        {"keys": [["Thursday"]], "messages": [3], "replaces": [["Tuesday"]]},
    ],
    "never": [{"keys": [["Rome"]], "why": "hypothetical"}],
}


@pytest.fixture
def quality(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The report, whose folder has the modules that it imports."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("learning_quality")


def test_rules_and_every_sentence_are_judged_by_the_labels(quality: Any) -> None:
    dialogue = importlib.import_module("dialogues").dialogue_of(DIALOGUE)

    rules = quality.judged(dialogue, RuleExtractor(), None)
    every = quality.judged(dialogue, quality.extractor_of("sentences"), None)

    assert (rules.right, rules.wrong, rules.found, rules.cited) == (2, 0, 2, 2)
    assert (rules.updates, rules.learned_updates, rules.revised) == (1, 1, 1)
    assert (every.found, every.sprung) == (2, 0)
    assert every.wrong > 0
    assert quality.as_json(rules)["precision"] == 1.0
    assert "wrong_texts" not in quality.as_json(rules)


def test_contexts_are_compared_from_facts_from_messages_and_from_both(
    quality: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [
        {"dia_id": "D1:1", "speaker": "User", "text": "I live in Osaka and my bird is called Plum."},
        {"dia_id": "D1:2", "speaker": "Assistant", "text": "A fine name for a bird."},
    ]
    question = {
        "question": "Where does the user live?",
        "answer": "Osaka",
        "evidence": ["D1:1"],
        "category": 1,
    }
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2026"}
    file = tmp_path / "small.json"
    file.write_text(json.dumps([{"sample_id": "s", "conversation": conversation, "qa": [question]}]))

    monkeypatch.setattr(
        sys, "argv", ["learning_quality", "--contexts", str(file), "--budgets", "300", "--json"]
    )
    quality.main()
    rows = json.loads(capsys.readouterr().out)

    assert [(row["way"], row["budget"], row["answers"]) for row in rows] == [
        ("facts", 300, 1.0),
        ("messages", 300, 1.0),
        ("both", 300, 1.0),
    ]
    assert all(row["facts"] > 0 and row["questions"] == 1 for row in rows)

    monkeypatch.setattr(sys, "argv", ["learning_quality", "--contexts", str(file), "--budgets", "300"])
    quality.main()
    shown = capsys.readouterr().out
    assert "300: answers" in shown
    assert shown.count("100.0%") == 6


def test_the_wrong_ones_of_the_test_set_are_not_listed(
    quality: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["learning_quality", "--set", "test", "--most", "3", "--wrong", "--lexical"]
    monkeypatch.setattr(sys, "argv", arguments)
    quality.main()
    shown = capsys.readouterr().out

    assert "precision" in shown
    assert "missed" not in shown


def test_weights_are_fitted_to_what_labels_call_facts(quality: Any) -> None:  # noqa: ARG001 - It adds bench/ to the path.
    weights = importlib.import_module("clause_weights")
    of = importlib.import_module("dialogues").dialogue_of
    found = list(weights.samples([of({**DIALOGUE, "id": f"a{place}"}) for place in range(4)]))
    others = list(weights.samples([of({**DIALOGUE, "id": "b1"})]))

    fitted = weights.fitted(found)

    assert fitted == weights.fitted(found)
    assert fitted["sentence"]["^ i"] > 0 > fitted["sentence"]["sky"]
    assert [row.author for row in others] == ["b"] * len(others)
    assert weights.left_out([*found, *others]).row_count == 2
