"""Questions of one's own: about a store that is there, and probes that bring their memories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import EmbedderMismatch, InvalidInput
from germane.errors import UnreadableSource
from germane.evaluation import Configuration, LossStage, Records, Stored, evaluate, losses
from germane.testing.fakes import HashEmbedder
from house.source import ROOT
from integration import small_dialogues as dialogues

LEXICAL = Configuration(embedder="none")
RELEVANCE = Configuration(plan="relevance")


def lines(folder: Path, several: Sequence[Mapping[str, Any] | str]) -> Path:
    path = folder / "questions.jsonl"
    written = [each if isinstance(each, str) else json.dumps(each) for each in several]
    path.write_text("\n".join(written) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Eight memories: two of one source, one long, one forgotten."""
    database = tmp_path_factory.mktemp("store") / "agent.db"
    long = "The migration plan of the ledger. " + "It moves one table after another to the new cluster. " * 60
    with germane.open(database, agent="a") as engine:
        engine.remember("Redis was measured and rejected for the cache.", kind="decision", source="adr/1")
        engine.remember("The office plants are watered on Fridays.", source="notes.md")
        engine.remember("The printer jams when the paper is damp.", source="notes.md")
        engine.remember("# Heading\nThe gateway listens on port 7443.", source="ports.md")
        engine.remember(long, kind="fact", source="ledger.md")
        engine.remember_many(["The lift is out of order.", "Lunch is at noon."])
        gone = engine.remember("The intern's name was Quentin.", source="people.md")
        engine.forget(gone.id)
    return Stored(database=database, agent="a")


def id_of(stored: Stored, question: str) -> str:
    with germane.open(stored.database, agent=stored.agent, read_only=True) as engine:
        return engine.recall(question)[0].id


QUESTIONS: list[dict[str, Any]] = [
    {"question": "What about Redis for the cache?", "evidence": ["adr/1"], "category": "why"},
    {"question": "When does the printer jam?", "evidence": "notes.md", "category": "how"},
    {"question": "Which port does the gateway listen on?", "evidence": ["ports.md"], "category": "how"},
    {"question": "What was the name of the intern?", "evidence": ["people.md"], "category": "how"},
    {"question": "Who wrote the constitution?", "evidence": ["nowhere.md", "adr/1"], "category": "why"},
    {"question": "Nobody knows?"},
]


def test_questions_about_a_store_are_found_by_source_and_by_id(stored: Stored, tmp_path: Path) -> None:
    named = {
        "question": "How do the office plants live?",
        "evidence": [id_of(stored, "office plants")],
        "category": "how",
    }
    path = lines(tmp_path, [*QUESTIONS, named])
    report = evaluate(path, budgets=[200], retrievers=[LEXICAL, "bm25"], stored=stored)
    assert (report.conversations, report.turns, report.questions, report.without_evidence) == ((), 7, 6, 1)
    assert report.evidence.missing == ("questions.jsonl:5: nowhere.md",)
    result = report.result("lexical", 200)
    assert {name: each.questions for name, each in result.categories.items()} == {"how": 4, "why": 2}
    contained = {answer.number: answer.contained for answer in result.answers}
    # The forgotten one is not shown and what is stored nowhere can't be: both count as missed.
    assert (contained[1], contained[2], contained[3], contained[4], contained[6]) == (1, 1, 1, 0, 1)
    assert result.answers[4].evidence == 2
    assert report.result("bm25", 200).overall.evidence_recall > 0.5
    assert "7 memories" in report.to_text()


def test_a_store_is_queried_with_the_vectors_that_it_has(tmp_path: Path) -> None:
    database = tmp_path / "vectors.db"
    embedder = HashEmbedder(dimension=16)
    with germane.open(database, agent="a", embedder=embedder) as engine:
        engine.remember("The kettle is in the kitchen.", source="kitchen")
    path = lines(tmp_path, [{"question": "Where is the kettle?", "evidence": "kitchen"}])
    options = {"budgets": [100], "retrievers": ["germane"], "stored": Stored(database=database, agent="a")}
    assert evaluate(path, embedder=embedder, **options).results[0].overall.evidence_recall == 1.0  # type: ignore[arg-type]  # The same words twice.
    with pytest.raises(EmbedderMismatch):
        evaluate(path, embedder=HashEmbedder(dimension=8), **options)  # type: ignore[arg-type]  # As above.


def test_nothing_is_written_to_the_store(stored: Stored, tmp_path: Path) -> None:
    before = Path(stored.database).read_bytes()
    evaluate(lines(tmp_path, QUESTIONS), budgets=[200], retrievers=["germane"], stored=stored)
    assert Path(stored.database).read_bytes() == before


def test_each_stage_names_what_it_lost(stored: Stored, tmp_path: Path) -> None:
    ledger = {"question": "What is the migration plan of the ledger?", "evidence": ["ledger.md"]}
    path = lines(tmp_path, [*QUESTIONS, ledger])
    found = losses(path, budget=30, configuration=LEXICAL, stored=stored)
    stages = {each.number: [piece.stage for piece in each.lost] for each in found.questions}
    assert stages[3] == []
    assert stages[4] == [LossStage.NOT_ADMITTED]
    assert LossStage.NOT_STORED in stages[5]
    assert stages[6] == [LossStage.OUTRANKED]
    (piece,) = found.questions[5].lost
    assert (piece.rank, piece.ranks["lexical"]) == (1, 1)
    assert piece.short_by > 0
    assert sum(piece.parts.values()) == pytest.approx(piece.score)
    assert sum(found.by_stage.values()) == sum(len(each.lost) for each in found.questions)
    shorter = Configuration(embedder="none", plan="layered")
    cut = losses(path, budget=400, question="migration", configuration=shorter, stored=stored)
    assert [piece.stage for piece in cut.questions[0].lost] == [LossStage.CUT]


def test_what_the_gate_dropped_is_named_so(stored: Stored, tmp_path: Path) -> None:
    options = {
        "question": "Which gateway port listens for encrypted traffic beyond the cache?",
        "evidence": ["adr/1", "ports.md"],
    }
    path = lines(tmp_path, [options])
    gated = losses(
        path, budget=300, configuration=Configuration(embedder="none", plan="layered"), stored=stored
    )
    assert [(one.evidence, one.stage) for one in gated.questions[0].lost] == [("adr/1", LossStage.GATED)]


def test_what_no_signal_finds_is_named_with_its_places(tmp_path: Path) -> None:
    database = tmp_path / "many.db"
    with germane.open(database, agent="a") as engine:
        engine.remember_many([f"Apple harvest report, orchard number {number}." for number in range(450)])
        engine.remember_many([f"Meeting room {number} is booked." for number in range(500)])
        engine.remember("Fruit prices. " + "An unrelated word follows. " * 20 + "One apple.", source="late")
    path = lines(tmp_path, [{"question": "How was the apple harvest in the orchard?", "evidence": ["late"]}])
    found = losses(
        path, budget=500, configuration=LEXICAL, stored=Stored(database=database, agent="a")
    ).questions[0]
    (piece,) = found.lost
    assert piece.stage is LossStage.NOT_GATHERED
    assert piece.ranks == {"lexical": 451}
    assert piece.rank is None
    assert "gather" in piece.remedy


def test_the_worst_questions_come_first(stored: Stored, tmp_path: Path) -> None:
    found = losses(lines(tmp_path, QUESTIONS), budget=60, configuration=LEXICAL, stored=stored)
    assert [each.number for each in found.worst(1).questions] == [5]
    assert all(each.lost for each in found.worst(100).questions)


@pytest.mark.parametrize(("question", "number"), [("3", 3), ("PORT does", 3), (QUESTIONS[0]["question"], 1)])
def test_a_question_is_named_by_number_or_words(
    stored: Stored, tmp_path: Path, question: str, number: int
) -> None:
    path = lines(tmp_path, QUESTIONS)
    (found,) = losses(path, budget=60, question=question, configuration=LEXICAL, stored=stored).questions
    assert found.number == number


@pytest.mark.parametrize("question", ["99", "moonshine", "wh", " "])
def test_a_question_that_is_none_or_several_is_refused(stored: Stored, tmp_path: Path, question: str) -> None:
    with pytest.raises(InvalidInput, match="number"):
        losses(lines(tmp_path, QUESTIONS), budget=60, question=question, stored=stored)


BOILER = """# 1. Heat the cellar by gas

Status: accepted · 2026-03-01

## Context

The cellar is damp, and the pipes froze twice.

## Decision

- A gas boiler heats the cellar. It was cheaper by 400 euros a year than
  the heat pump that was measured beside it.
- The chimney is swept in March.

## Consequences

Nobody may close the vent.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A decision record and a page, each one memory."""
    records = tmp_path / "records"
    records.mkdir()
    (records / "0001-boiler.md").write_text(BOILER, encoding="utf-8")
    pages = "# Garden\n\nThe hedge is cut in June.\n\n## Pond\n\nThe pond has a depth of 90 centimetres.\n"
    (records / "garden.md").write_text(pages, encoding="utf-8")
    return records


def test_records_are_imported_and_queried(folder: Path, tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [
        {
            "question": "What heats the cellar?",
            "evidence": ["0001-boiler.md"],
            "answer": "400 euros a year than the heat pump",
        },
        {"question": "How deep is the pond?", "evidence": ["records/garden.md"]},
        {"question": "When is the hedge cut?", "answer": ["cut in June", "cut in May"]},
    ]
    path = lines(tmp_path, options)
    report = evaluate(
        path, budgets=[1000], retrievers=["germane", "plan=relevance", "bm25"], records=Records(source=folder)
    )
    assert (report.turns, report.questions) == (2, 3)
    assert report.evidence.missing == ("questions.jsonl:3: cut in May",)
    for name in ("plan=relevance", "bm25"):
        result = report.result(name, 1000)
        assert [(each.contained, each.evidence) for each in result.answers] == [(1, 1), (1, 1), (1, 2)]
        assert [(each.phrases_contained, each.phrases) for each in result.answers] == [(1, 1), (0, 0), (1, 2)]
        assert result.overall.answer_recall == 0.75
    assert "answer" in report.to_text()


def test_a_record_that_is_shortened_is_shown_and_not_whole(folder: Path, tmp_path: Path) -> None:
    (folder / "0001-boiler.md").write_text(BOILER + "Nobody may close the door. " * 40, encoding="utf-8")
    path = lines(tmp_path, [{"question": "What heats the cellar?", "evidence": ["records/0001-boiler.md"]}])
    summarized = Configuration(plan="layered_strict")
    result = evaluate(path, budgets=[8000], retrievers=[summarized], records=Records(source=folder))
    figures = result.results[0].overall
    assert (figures.evidence_recall, figures.shown_recall) == (0.0, 1.0)


def test_lines_of_records_are_evidence_by_their_number(tmp_path: Path) -> None:
    memory = tmp_path / "memory.jsonl"
    contents = ["Ana signs the invoices.", "Ben waters the plants.", "Ben waters the plants.", "Cleo drives."]
    memory.write_text("\n".join(json.dumps({"content": each, "kind": "fact"}) for each in contents))
    options: list[dict[str, Any]] = [
        {"question": "Who waters the plants?", "expect": [3]},
        {"question": "Who drives?", "expect": 4},
        {"question": "Who sings?", "expect": [9]},
    ]
    records = Records(source=memory, now=datetime(2026, 5, 1, tzinfo=UTC))
    report = evaluate(
        lines(tmp_path, options), budgets=[300], retrievers=["germane", "bm25"], records=records
    )
    assert report.turns == 3
    assert report.evidence.missing == ("questions.jsonl:3: line 9",)
    for result in report.results:
        assert [each.contained for each in result.answers] == [1, 1, 0]


def test_losses_name_records(folder: Path, tmp_path: Path) -> None:
    path = lines(tmp_path, [{"question": "How deep is the pond?", "evidence": ["garden.md", "moon.md"]}])
    found = losses(path, budget=1, configuration=RELEVANCE, records=Records(source=folder))
    assert {piece.evidence: piece.stage for piece in found.questions[0].lost} == {
        "garden.md": LossStage.OUTRANKED,
        "moon.md": LossStage.NOT_STORED,
    }


@pytest.mark.parametrize("expect", [["one"], True, {"line": 1}])
def test_an_expected_line_is_a_number(tmp_path: Path, expect: object) -> None:
    path = lines(tmp_path, [{"question": "Who?", "expect": expect}])
    memory = tmp_path / "memory.jsonl"
    memory.write_text('{"content": "Ana signs the invoices."}')
    with pytest.raises(UnreadableSource, match="expect"):
        evaluate(path, retrievers=["bm25"], records=Records(source=memory))


def test_records_and_conversations_do_not_mix(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="records"):
        evaluate(dialogues.write(tmp_path), records=Records(source=folder))


@pytest.mark.parametrize(("name", "folder"), [("decisions", "docs/decisions"), ("docs", "docs")])
def test_every_question_about_this_project_has_its_answer_there(name: str, folder: str) -> None:
    records = Records(source=ROOT / folder)
    report = evaluate(
        ROOT / "bench" / "data" / f"{name}.jsonl", budgets=[10_000], retrievers=["bm25"], records=records
    )
    assert report.questions > 10
    assert report.evidence.missing == ()
    assert (report.results[0].overall.answer_recall or 0.0) > 0.8


PROBES = [
    {
        "question": "Does he have a dog?",
        "memory": "Tom adopted a dog in March.",
        "near": ["Anna sings."],
        "half": "open",
    },
    {"question": "Where is the key?", "memory": "The key hangs in the shed.", "near": [], "half": "held"},
]


def test_probes_bring_their_memories_and_their_halves(tmp_path: Path) -> None:
    report = evaluate(lines(tmp_path, PROBES), budgets=[100], retrievers=["germane", "bm25"])
    assert (report.turns, report.questions) == (3, 2)
    result = report.result("germane", 100)
    assert (result.overall.evidence_recall, result.overall.mrr) == (1.0, 1.0)
    assert [half.questions for half in result.halves] == [1, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON"),
        ({"evidence": ["x"]}, '"question"'),
        ({"question": "a?", "evidence": [{"a": 1}]}, '"evidence"'),
        ({"question": "a?", "memory": 3}, '"memory"'),
        ({"question": "a?", "memory": "b", "near": "c", "half": 1, "evidence": []}, ""),
    ],
)
def test_a_line_that_can_not_be_read_is_named(
    stored: Stored, tmp_path: Path, line: dict[str, Any] | str, message: str
) -> None:
    path = lines(tmp_path, [line])
    if message:
        with pytest.raises(UnreadableSource, match=f"line 1: .*{message}"):
            evaluate(path, budgets=[100], retrievers=["bm25"], stored=stored)
    else:
        assert evaluate(path, budgets=[100], retrievers=["bm25"]).turns == 2


def test_questions_need_a_store_that_is_there(tmp_path: Path) -> None:
    path = lines(tmp_path, QUESTIONS)
    with pytest.raises(InvalidInput, match="--db"):
        evaluate(path, retrievers=["germane"])
    with pytest.raises(InvalidInput, match=r"nowhere\.db"):
        evaluate(path, retrievers=["germane"], stored=Stored(database=tmp_path / "nowhere.db", agent="a"))
    with pytest.raises(InvalidInput, match="conversations"):
        evaluate(path, conversations=["one"])


def test_an_ablation_leaves_out_each_part_that_was_seen(tmp_path: Path) -> None:
    path = dialogues.write(tmp_path)
    report = evaluate(path, budgets=[40, 400], retrievers=["germane", "recency"], ablate=True)
    left_out = [each.second for each in report.ablation if each.budget == 40]
    assert {"without=lexical", "without=window", "without=session", "without=grouping"} <= set(left_out)
    assert left_out[-1] == "lexical"
    assert all(each.first == "germane" and each.questions == 5 for each in report.ablation)
    assert [each.evidence_recall for each in report.ablation if each.budget == 400] == [0.0] * len(left_out)
    with pytest.raises(InvalidInput, match="recency"):
        evaluate(path, budgets=[40], retrievers=["recency"], ablate=True)


def test_configurations_are_measured_beside_each_other(tmp_path: Path) -> None:
    path = dialogues.write(tmp_path)
    texts = ["germane", "lexical", "without=window+without=session", "plan=layered"]
    report = evaluate(path, budgets=[300], retrievers=texts)
    assert [each.retriever for each in report.results] == [
        "germane",
        "lexical",
        "without=window+without=session",
        "plan=layered",
    ]
    assert all(each.over_budget == 0 for each in report.results)
    assert report.comparing("germane", "lexical").comparisons[0].questions == 5


@pytest.mark.parametrize("name", ["chroma", "lancedb-fts", "lancedb-hybrid"])
def test_a_peer_finds_what_is_requested_where_it_is_installed(name: str, tmp_path: Path) -> None:
    pytest.importorskip({"chroma": "chromadb"}.get(name, "lancedb"))
    report = evaluate(dialogues.write(tmp_path), budgets=[400], retrievers=[name])
    assert report.results[0].overall.evidence_recall > 0.5
