"""The reports under bench/ that say how well contexts do, on a few questions each."""

from __future__ import annotations

import importlib
import json
import tarfile
from collections.abc import Callable
from io import BytesIO
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


def test_paraphrases_share_no_stem_and_are_two_even_halves(bench: Callable[[str], Any]) -> None:
    probes = bench("probes")
    lines = (BENCH / "data" / "paraphrases.jsonl").read_text(encoding="utf-8").splitlines()
    every = [json.loads(line) for line in lines]

    assert len(every) == len({each["id"] for each in every}) == len({each["memory"] for each in every}) == 156
    halves = [
        {each["area"]: each["half"] for each in every if each["half"] == half} for half in ("dev", "final")
    ]
    assert [len(areas) for areas in halves] == [6, 6]
    assert sum(each["half"] == "dev" for each in every) == 78

    # The check of each probe for shared stems is part of the report.
    report = probes.paraphrases("dev", {"words alone": None})
    assert report.splitlines()[0] == "78 questions of the dev half, 156 memories; recall@5 in per cent"
    assert report.splitlines()[-1].split()[2:4] == ["0.0", "0.0–0.0"]


def test_records_are_copied_from_archives_as_markdown(bench: Callable[[str], Any], tmp_path: Path) -> None:
    records = bench("records")
    texts = {
        "pack-1.0/docs/guide.rst": "Guide\n=====\n\nThe pond is 90 centimetres deep.\n\nDepth\n-----\n",
        "pack-1.0/CHANGES.md": "# 1.0\n\nThe hedge is cut in June.\n",
        "pack-1.0/pack.egg-info/notes.md": "Nothing.",
        "pack-1.0/setup.py": "pass",
    }
    archive = tmp_path / "pack-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            opened.addfile(member, BytesIO(text.encode()))

    records.extract(archive, tmp_path / "documents" / "pack")

    copied = {path.relative_to(tmp_path / "documents").as_posix() for path in tmp_path.rglob("*.md")}
    assert copied == {"pack/docs/guide.md", "pack/CHANGES.md"}
    guide = (tmp_path / "documents" / "pack" / "docs" / "guide.md").read_text(encoding="utf-8")
    assert [line for line in guide.splitlines() if line.startswith("#")] == ["# Guide", "## Depth"]

    questions = [
        {"id": "r1", "question": "How deep?", "answer": "90 centimetres", "document": "pack/docs/guide.md"},
        {"id": "r2", "question": "When?", "answer": "cut in May", "document": "pack/CHANGES.md"},
    ]
    assert records.unanswered(questions, tmp_path / "documents") == ["r2"]
    report = records.measured(questions[:1], tmp_path / "documents", "none", [300])
    assert [line.split()[1:] for line in records.table(report, [300]).splitlines()[1:3]] == [
        ["100.0"] * 2
    ] * 2


def test_the_questions_about_records_are_two_even_halves(bench: Callable[[str], Any]) -> None:
    records = bench("records")
    questions = [json.loads(line) for line in records.QUESTIONS.read_text(encoding="utf-8").splitlines()]

    assert len(questions) == len({each["id"] for each in questions}) == 100
    assert [sum(each["half"] == half for each in questions) for half in ("dev", "final")] == [50, 50]
    known = {name.rpartition("-")[0] for name in records.PACKAGES}
    assert {each["document"].partition("/")[0] for each in questions} <= known


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
