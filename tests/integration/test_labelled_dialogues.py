"""The labelled dialogues of bench/data agree with themselves, and are scored by their labels."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from house.source import ROOT

BENCH = ROOT / "bench"
REASONS = {
    *("assistant", "example", "hypothetical", "injection", "joke", "other_view", "passing", "question"),
    *("quotation", "recalled", "retracted", "role_play", "sarcasm", "tool_result", "fiction", "plan_dropped"),
}


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the dialogues, which stands beside the other benchmarks."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("dialogues")


SIZES = {"dev": 4140, "test": 1168}
"""Dialogues of each set."""
CONTRADICTIONS = {"dev": 290, "test": 95}
UPDATES = {"dev": 800, "test": 225}
WITHOUT_FACTS = {"dev": 250, "test": 150}


@pytest.mark.parametrize("name", SIZES)
def test_each_label_stands_in_the_messages_it_names_or_the_question_before(labels: Any, name: str) -> None:
    every = labels.dialogues(name)

    assert len({each.id for each in every}) == len(every) == SIZES[name]
    for each in every:
        assert 1 <= len(each.messages) <= 12, each.id
        spoken = [message.text or message.results[0].text for message in each.messages]
        users = [message.own_text for message in each.messages if message.role == "user"]
        assert users, each.id
        for fact in each.facts:
            places = {place for number in fact.messages for place in (number - 2, number - 1) if place >= 0}
            cited = "\n".join(each.messages[place].text for place in sorted(places))
            assert labels.has(cited, fact.keys), (each.id, fact)
            assert {each.messages[number - 1].role for number in fact.messages} == {"user"}, each.id
            for old in filter(None, (fact.replaces, fact.contradicts)):
                assert any(labels.has(text, old) for text in (*each.known, *users)), (each.id, old)
        for keys, why in each.never:
            assert why in REASONS, (each.id, why)
            assert any(labels.has(text, keys) for text in spoken), (each.id, keys)


@pytest.mark.parametrize("name", SIZES)
def test_each_set_has_facts_updates_contradictions_and_dialogues_without_facts(
    labels: Any, name: str
) -> None:
    every = labels.dialogues(name)
    facts = [fact for each in every for fact in each.facts]

    assert len(facts) >= 250
    assert sum(bool(fact.replaces) for fact in facts) >= UPDATES[name]
    assert sum(bool(fact.contradicts) for fact in facts) >= CONTRADICTIONS[name]
    assert sum(not each.facts for each in every) >= WITHOUT_FACTS[name]
    assert len({why for each in every for _, why in each.never}) >= 10


LINE = {
    "id": "x1",
    "topic": "moving",
    "at": "2026-05-11",
    "known": ["Lives in Kyoto."],
    "messages": [
        ["user", "I moved to Osaka. If I were rich I'd live in Rome."],
        ["assistant", "Noted. You like rivers."],
        ["recalled", "The user prefers tea."],
        ["tool", "Lives in Nara."],
        ["user", "I prefer coffee until June 30. Nice weather today."],
    ],
    "facts": [
        {"keys": [["Osaka"]], "messages": [1], "replaces": [["Kyoto"]]},
        {
            "keys": [["coffee"], ["prefers", "likes"]],
            "messages": [5],
            "kinds": ["preference"],
            "valid_until": "2026-06-30",
        },
        {"keys": [["tea"], ["dislikes"]], "messages": [5], "contradicts": [["prefers tea"]]},
    ],
    "may": [[["weather"]]],
    "never": [{"keys": [["Rome"]], "why": "hypothetical"}],
    "stays": [[["Kyoto"]], [["Osaka"]]],
}


def test_a_learned_text_is_right_wrong_or_neither(labels: Any) -> None:
    dialogue = labels.dialogue_of(LINE)
    learned = [
        labels.Learned(content="The user moved to Osaka.", messages=(1,)),
        labels.Learned(content="The user likes Coffee.", messages=(1,), kind="fact"),
        labels.Learned(content="The weather is nice."),
        labels.Learned(content="The user lives in Rome, not in Osaka.", messages=(1,)),
        labels.Learned(content="The user likes rivers.", messages=(2,)),
        labels.Learned(content="Lives in Kyoto.", before=True, current=False),
    ]

    scored = labels.score(dialogue, learned)

    assert (scored.learned, scored.right, scored.wrong, scored.cited) == (5, 2, 2, 1)
    assert (scored.precision, scored.recall) == (0.5, pytest.approx(2 / 3))
    assert (scored.facts, scored.found, scored.missed) == (3, 2, ("x1 tea & dislikes",))
    assert (scored.typed, scored.fitting, scored.dates, scored.dated) == (1, 0, 1, 0)
    assert (scored.stay, scored.current) == (2, 1)
    assert (scored.traps, scored.sprung, scored.reasons) == (1, 1, {"hypothetical": 1, "not stated": 1})
    assert (scored.updates, scored.learned_updates, scored.revised) == (1, 1, 1)
    assert (scored.conflicts, scored.shown) == (1, 0)


def test_an_update_is_right_where_the_old_value_is_no_longer_current(labels: Any) -> None:
    dialogue = labels.dialogue_of(LINE)
    new = labels.Learned(content="The user moved to Osaka.", messages=(1,))
    old = labels.Learned(content="Lives in Kyoto.", before=True, current=True)
    both = labels.Learned(content="The user moved from Kyoto to Osaka.", messages=(1,))

    assert labels.score(dialogue, [new, old]).revised == 0
    assert labels.score(dialogue, [new]).revised == 1
    assert labels.score(dialogue, [both]).revised == 1
    assert labels.score(dialogue, [labels.Learned(content=new.content, current=False)]).revised == 0


def test_days_kinds_and_contradictions_are_counted_of_the_facts_that_were_learned(labels: Any) -> None:
    dialogue = labels.dialogue_of(LINE)
    learned = [
        labels.Learned(
            content="The user prefers coffee.", messages=(5,), kind="preference", days=("", "2026-06-30")
        ),
        labels.Learned(content="The user dislikes tea.", messages=(5,), contradicted=True),
    ]

    scored = labels.score(dialogue, learned)

    assert (scored.fitting, scored.dated, scored.cited, scored.shown, scored.updates) == (1, 1, 2, 1, 1)


def test_scores_of_dialogues_add_up(labels: Any) -> None:
    dialogue = labels.dialogue_of(LINE)
    one = labels.score(dialogue, [labels.Learned(content="The user lives in Rome.")])
    two = labels.score(dialogue, [labels.Learned(content="The user moved to Osaka.", messages=(1,))])

    total = labels.summed([one, two])

    assert (total.dialogues, total.right, total.wrong, total.facts) == (2, 1, 1, 6)
    assert (total.dialogues_with_wrong, total.precision) == (1, 0.5)
    assert total.wrong_texts == (("x1", "hypothetical: The user lives in Rome."),)
    assert labels.score(labels.dialogue_of({**LINE, "facts": []}), []).recall == 1.0


def test_context_from_memory_and_results_of_tools_are_no_words_of_the_user(labels: Any) -> None:
    messages = labels.dialogue_of(json.loads(json.dumps(LINE))).messages

    assert [message.role.value for message in messages] == ["user", "assistant", "user", "tool", "user"]
    assert [message.own_text for message in messages][2:4] == ["", ""]
    assert messages[3].results[0].text == "Lives in Nara."
    assert [message.id for message in messages] == ["1", "2", "3", "4", "5"]
