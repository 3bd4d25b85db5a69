"""The whole of `evaluate` on a small data set of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import germane
from germane import InvalidInput
from germane.errors import UnreadableSource
from germane.evaluation import Corpus, Order, Reader, Report, curve, evaluate, plot, ranked_by
from germane.importers import conversation_drafts, read_locomo
from germane.testing.fakes import HashEmbedder
from integration import small_dialogues as dialogues

CHEAP = ("germane", "recency", "bm25")
ADVERSARIAL = 5
"""The category of the questions that the data set has no answer to."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dialogues.write(tmp_path_factory.mktemp("data"))


def oldest(corpus: Corpus) -> Order:
    """The turns of a conversation from its beginning, whatever the question."""
    return lambda _: range(len(corpus.ids))


OLDEST = ranked_by(oldest)


@pytest.fixture(scope="module")
def report(path: Path) -> Report:
    return evaluate(path, budgets=(40, 400), retrievers=CHEAP)


def test_every_retriever_answers_at_every_budget(report: Report) -> None:
    assert [(each.retriever, each.budget) for each in report.results] == [
        (name, budget) for name in CHEAP for budget in (40, 400)
    ]
    assert all(each.overall.questions == 5 for each in report.results)


def test_what_fits_holds_all_the_evidence_there_is(report: Report) -> None:
    # 400 tokens hold each whole conversation, so newest first finds everything.
    figures = report.result("recency", 400).overall
    assert (figures.evidence_recall, figures.all_evidence, figures.interval) == (1.0, 1.0, (1.0, 1.0))
    assert (figures.evidence, figures.found) == (6, 6)


def test_relevance_beats_recency_where_little_fits(path: Path, report: Report) -> None:
    small = evaluate(path, budgets=(40, 80), retrievers=["germane", "plan=relevance", "recency"])

    def recall(name: str, budget: int) -> float:
        return small.result(name, budget).overall.evidence_recall

    # In 40 tokens the default call has no space beside its frame.
    assert recall("plan=relevance", 40) > recall("recency", 40)
    assert recall("germane", 80) > recall("recency", 80)
    assert report.result("germane", 400).overall.mrr > report.result("recency", 400).overall.mrr


def test_no_context_is_over_budget_and_fill_is_its_share(report: Report) -> None:
    for each in report.results:
        assert each.over_budget == 0
        assert 0 < each.tokens <= each.budget
        assert each.fill == pytest.approx(each.tokens / each.budget)


def test_categories_and_halves_part_the_questions(report: Report) -> None:
    result = report.result("germane", 400)
    assert {name: each.questions for name, each in result.categories.items()} == {1: 2, 2: 2, 4: 1}
    assert [half.questions for half in result.halves] == [4, 1]


def test_the_data_are_accounted_for(report: Report) -> None:
    assert (report.conversations, report.turns, report.questions) == (("coast", "garden"), 10, 5)
    assert (report.adversarial, report.without_evidence) == (1, 1)
    assert report.evidence.repaired == ("coast: D2:2; D2:1", "coast: D2:03")
    assert report.evidence.unreadable == ("coast: nonsense",)
    assert report.evidence.missing == ("coast: D9:9",)


def test_two_runs_agree_but_for_the_time_they_took(path: Path, report: Report) -> None:
    again = evaluate(path, budgets=(400, 40, 40), retrievers=CHEAP)
    assert [each.overall for each in again.results] == [each.overall for each in report.results]
    assert [each.tokens for each in again.results] == [each.tokens for each in report.results]


class _Careless:
    """A reader whose contexts are longer than its budget."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.closed = False

    def recall(self, question: str, limit: int) -> Sequence[str]:
        assert question
        return self.corpus.ids[:limit]

    def assemble(self, question: str, budget: int) -> str:
        assert question
        return "word " * (budget + 1) if budget < 100 else "word " * 10

    def close(self) -> None:
        self.closed = True


def test_a_context_over_its_budget_is_noticed(path: Path) -> None:
    readers: list[_Careless] = []

    def careless(corpus: Corpus) -> Reader:
        readers.append(_Careless(corpus))
        return readers[-1]

    report = evaluate(path, budgets=(50, 200), retrievers={"careless": careless})
    assert [each.over_budget for each in report.results] == [5, 0]
    assert [each.overall.evidence_recall for each in report.results] == [0.0, 0.0]
    assert "careless" in report.to_text()
    assert [reader.closed for reader in readers] == [True, True]


def test_a_retriever_of_ones_own_is_an_order(path: Path) -> None:
    own = {"oldest": OLDEST}
    result = evaluate(path, budgets=[45], retrievers=own, conversations=["garden"]).results[0]
    assert (result.retriever, result.overall.evidence_recall, result.overall.mrr) == ("oldest", 1.0, 1.0)


def test_conversations_questions_and_progress_can_be_chosen(path: Path) -> None:
    steps: list[tuple[int, int]] = []
    report = evaluate(
        path,
        budgets=[100],
        retrievers=["recency"],
        conversations=["coast"],
        questions_limit=2,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert (report.conversations, report.questions, steps) == (("coast",), 2, [(1, 2), (2, 2)])


def test_an_embedder_takes_part(path: Path) -> None:
    embedder = HashEmbedder(dimension=32)
    report = evaluate(path, budgets=[400], retrievers=["germane"], embedder=embedder)
    assert report.results[0].overall.evidence_recall > 0.5


def test_all_that_can_run_here_takes_part_and_the_rest_says_why(path: Path) -> None:
    report = evaluate(path, budgets=[400], conversations=["garden"])
    ran = {each.retriever for each in report.results}
    with pytest.raises(InvalidInput) as refused:
        evaluate(path, retrievers=["nonsense"])
    named = re.search(r"Known retrievers: (.*?)\.", str(refused.value))
    assert named is not None
    assert ran | set(report.skipped) == set(named[1].split(", "))
    assert {"germane", "recency", "bm25"} <= ran
    assert "chroma" in report.skipped
    assert all(report.skipped.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": [0]}, "budget=0"),
        ({"budgets": []}, "0 budgets"),
        ({"retrievers": ["gemrane"]}, "gemrane"),
        ({"retrievers": ["chroma"]}, "chroma"),
        ({"conversations": ["moon"]}, "moon"),
        ({"conversations": []}, "0 questions"),
        ({"questions_limit": 0}, "questions_limit=0"),
    ],
)
def test_what_can_not_be_measured_is_refused(
    path: Path, arguments: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        evaluate(path, **arguments)  # type: ignore[arg-type]  # Wrong values are the point.


def test_a_file_of_another_layout_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(UnreadableSource, match="other"):
        evaluate(other)


def test_the_curve_is_a_well_formed_picture(report: Report, tmp_path: Path) -> None:
    plot(report, tmp_path / "curve.svg")
    root = ET.fromstring((tmp_path / "curve.svg").read_text(encoding="utf-8"))  # noqa: S314 - our own file.
    svg = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{svg}svg"
    assert len(root.findall(f".//{svg}polygon")) == len(CHEAP)
    assert len(root.findall(f".//{svg}circle")) == 2 * len(CHEAP)
    written = [text.text or "" for text in root.iter(f"{svg}text")]
    assert all(any(text.startswith(name) for text in written) for name in CHEAP)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{svg}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 <= float(text.attrib["y"]) <= height


def test_one_budget_and_odd_names_make_a_picture_too(path: Path) -> None:
    odd = {'a < b & "c"': OLDEST}
    root = ET.fromstring(curve(evaluate(path, budgets=[100], retrievers=odd)))  # noqa: S314 - our own text.
    assert any('a < b & "c"' in (each.text or "") for each in root.iter())


def test_the_default_is_measured_by_the_call_that_users_make(path: Path, report: Report) -> None:
    (conversation, _) = read_locomo(path)
    with germane.open(
        ":memory:", agent="check", clock=lambda: datetime(2023, 6, 3, 9, 10, tzinfo=UTC)
    ) as engine:
        engine.remember_many(list(conversation_drafts(conversation)))
        tokens = [
            engine.assemble(question.question, budget=400).tokens
            for question in conversation.questions
            if question.evidence and question.category != ADVERSARIAL
        ]
    measured = [each.tokens for each in report.result("germane", 400).answers if each.corpus == 0]
    assert measured == tokens


def test_plans_are_measured_beside_the_default(path: Path) -> None:
    report = evaluate(path, budgets=[60], retrievers=["germane", "plan=layered", "plan=layered_strict"])
    default, layered, exact = (each.answers for each in report.results)
    assert [each.tokens for each in default] == [each.tokens for each in layered]
    assert [each.tokens for each in default] != [each.tokens for each in exact]


def test_evidence_that_is_shortened_is_shown_and_not_whole(tmp_path: Path) -> None:
    long = "The boiler in the cellar was replaced. " + "It has a new valve on each of its pipes. " * 30
    turn = {"dia_id": "D1:1", "speaker": "Ana", "text": long}
    file = tmp_path / "long.json"
    file.write_text(
        json.dumps(
            [
                {
                    "sample_id": "long",
                    "conversation": {"session_1": [turn], "session_1_date_time": "1:56 pm on 8 May, 2023"},
                    "qa": [{"question": "What about the boiler?", "evidence": ["D1:1"], "category": 1}],
                }
            ]
        )
    )
    report = evaluate(file, budgets=[20, 300], retrievers=["germane", "plan=relevance"])
    figures = {(each.retriever, each.budget): each.overall for each in report.results}
    assert [figures["germane", budget].word_recall for budget in (20, 300)] == [0.0, 1.0]
    assert {key: (each.evidence_recall, each.shown_recall) for key, each in figures.items()} == {
        ("germane", 20): (0.0, 0.0),
        ("germane", 300): (0.0, 1.0),
        ("plan=relevance", 20): (0.0, 0.0),
        ("plan=relevance", 300): (0.0, 1.0),
    }
