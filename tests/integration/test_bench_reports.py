"""The reports under bench/ that say how well contexts do, on a few questions each."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.evaluation import Configuration, Records
from germane.evaluation.material import read_material
from germane.tokens import get_counter
from house.source import ROOT

BENCH = ROOT / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of bench/, whose files import each other by name."""
    monkeypatch.syspath_prepend(str(BENCH))

    return importlib.import_module


def test_budgets_reports_what_a_larger_budget_loses(bench: Callable[[str], Any], tmp_path: Path) -> None:
    budgets = bench("budgets")
    memory, questions = tmp_path / "memory.jsonl", tmp_path / "questions.jsonl"
    short = "The boiler is in the cellar."
    long = "The boiler is heated by gas and was built in 1987. " + "Its valve is checked every spring. " * 12
    memory.write_text("\n".join(json.dumps({"content": each, "kind": "fact"}) for each in (short, long)))
    questions.write_text(json.dumps({"question": "What heats the boiler?", "expect": [2]}))
    material = read_material(
        questions,
        counter=get_counter("o200k"),
        embedder=None,
        stored=None,
        records=Records(source=memory),
    )

    default = budgets.measured(material, Configuration(embedder="none"), (60, 100, 400))
    whole = budgets.measured(material, Configuration(embedder="none", plan="relevance"), (30, 150, 400))

    assert [(step.budget, step.refused) for step in default] == [(60, False), (100, False), (400, False)]
    assert [(step.recall, step.whole, step.cut) for step in whole] == [(0.0, 1, 0), (1.0, 2, 0), (1.0, 2, 0)]
    assert sum(step.gone + step.shortened for step in whole) == 0
    text = budgets.report("boiler", whole, by_budget=True)
    assert "1 questions, 3 contexts" in text
    assert "falls      none" in text


def test_gate_counts_answers_noise_and_what_goes_unsaid(
    bench: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    gate = bench("gate")
    probe = {
        "id": "p1",
        "question": "Where is the boiler?",
        "memory": "The boiler is in the cellar.",
        "near": ["The chimney is red."],
    }
    unsaid = {
        "id": "u1",
        "question": "What should I cook?",
        "memory": "The user can't eat nuts.",
        "kind": "rule",
        "near": [],
    }

    gate.print_contexts([probe], [probe], [2], [300], None)
    gate.print_unsaid([unsaid], [probe], [2], [300], "relevance")

    contexts, found = capsys.readouterr().out.strip().split("\n\n")
    assert contexts.splitlines()[1].split()[:5] == ["2", "memories", "300", "0.0%", "0.0%"]
    assert [line.split()[-3:-1] for line in found.splitlines()[1:]] == [["100%", "100%"]] * 2


def test_what_goes_unsaid_is_of_every_kind_and_shares_no_word_with_its_question() -> None:
    lines = (BENCH / "data" / "unsaid.jsonl").read_text(encoding="utf-8").splitlines()
    probes = [json.loads(line) for line in lines]
    assert len({probe["id"] for probe in probes}) == len(probes) == 20
    assert {probe["kind"] for probe in probes} == {"fact", "preference", "rule", "person"}
    with germane.open(":memory:", agent="check", embedder=None) as engine:
        engine.remember_many([{"content": probe["memory"], "kind": probe["kind"]} for probe in probes])
        named = [probe["id"] for probe in probes if probe["memory"] in _found(engine, probe["question"])]
    # The people are named by their questions; nothing else is.
    assert set(named) <= {probe["id"] for probe in probes if probe["kind"] == "person"}


def _found(engine: germane.Engine, question: str) -> list[str]:
    return [one.content for one in engine.recall(question, limit=100, gate=False)]
