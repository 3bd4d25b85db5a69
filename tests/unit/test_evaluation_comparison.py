"""Pairs, intervals over whole conversations, and floors."""

from __future__ import annotations

import pytest

from germane import InvalidInput
from germane.evaluation import Answer, EvaluationFigures, Floor, Report, Result, check_floors
from germane.evaluation.result import bootstrap_interval, differences

NOTHING = EvaluationFigures(
    questions=0,
    evidence=0,
    found=0,
    evidence_recall=0.84,
    all_evidence=0.5,
    shown_recall=0.75,
    interval=(0.0, 0.0),
    recall_at={},
    mrr=0.0,
)


def result(name: str, held: list[int], *, corpora: list[int], halves: list[int]) -> Result:
    answers = tuple(
        Answer(
            number=number,
            corpus=corpus,
            half=half,
            category=1,
            evidence=2,
            contained=count,
            shown=count,
            tokens=90,
            seconds=0.001,
            recall_at={},
            reciprocal=0.0,
        )
        for number, (count, corpus, half) in enumerate(zip(held, corpora, halves, strict=True), 1)
    )
    return Result(
        retriever=name,
        budget=1000,
        overall=NOTHING,
        categories={},
        halves=(NOTHING, NOTHING),
        tokens=90,
        fill=0.9,
        over_budget=0,
        p50_ms=1,
        p95_ms=1,
        answers=answers,
    )


def test_a_difference_is_of_pairs_and_signed_for_the_second() -> None:
    corpora, halves = [0, 0, 1, 1], [0, 0, 1, 1]
    first = result("a", [2, 1, 0, 1], corpora=corpora, halves=halves)
    second = result("b", [1, 2, 2, 1], corpora=corpora, halves=halves)
    (found,) = differences([first], [second], seed=1)
    assert (found.first, found.second, found.budget, found.questions) == ("a", "b", 1000, 4)
    assert found.evidence_recall == pytest.approx(0.25)  # -0.5, +0.5, +1.0 and 0, by question.
    assert found.all_evidence == pytest.approx(0.25)
    assert found.halves == (0.0, 0.5)
    assert (found.wins, found.losses) == (2, 1)
    assert found.interval[0] <= 0.25 <= found.interval[1]
    assert not found.is_significant
    (turned,) = differences([second], [first], seed=1)
    assert turned.evidence_recall == pytest.approx(-0.25)


def test_a_gain_in_every_question_is_no_chance() -> None:
    one = result("a", [0] * 8, corpora=[0] * 8, halves=[0] * 8)
    other = result("b", [1] * 8, corpora=[0] * 8, halves=[0] * 8)
    (found,) = differences([one], [other], seed=1)
    assert found.is_significant
    assert found.interval == (0.5, 0.5)
    assert found.interval_over_conversations is None
    assert found.halves == (0.5, None)


def test_different_questions_are_no_pairs() -> None:
    one = result("a", [0, 1], corpora=[0, 0], halves=[0, 0])
    other = result("b", [0], corpora=[0], halves=[0])
    with pytest.raises(ValueError, match="zip"):
        differences([one], [other], seed=1)


def test_whole_conversations_are_drawn_together() -> None:
    # All the spread is between the conversations, so single questions would hide it.
    values, clusters = [1.0] * 50 + [0.0] * 50, [3] * 50 + [7] * 50
    assert bootstrap_interval(values, clusters=clusters, seed=1) == (0.0, 1.0)


def test_a_larger_conversation_weighs_more() -> None:
    clusters = [0, 1, 1, 1]
    interval = bootstrap_interval([1.0] + [0.0] * 3, clusters=clusters, seed=1, resamples=500)
    assert interval == (0.0, 1.0)
    assert bootstrap_interval([0.5] * 4, clusters=clusters, seed=1) == (0.5, 0.5)


REPORT = Report(
    results=(result("a", [1], corpora=[0], halves=[0]),),
    conversations=("one",),
    turns=1,
    questions=1,
    without_evidence=0,
    adversarial=0,
    counter="o200k",
    seed=1,
)


def test_a_floor_is_passed_at_its_height_and_missed_above_it() -> None:
    floors = [
        Floor.parse("1_000=0.84", gauge="evidence_recall", name="--min-recall"),
        Floor.parse("1000=0.51", gauge="all_evidence", name="--min-all"),
    ]
    passed, missed = check_floors(REPORT, floors, retriever="a")
    assert (passed.passed, missed.passed) == (True, False)
    assert str(missed) == (
        "MISSED: all evidence of a at 1000 tokens is 50.0 %, and at least 51.0 % is required."
    )


@pytest.mark.parametrize("text", ["1000", "1000=", "=0.5", "1000=84", "1000=-0.1", "1000=nan", "k=0.5"])
def test_what_is_no_floor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--min-recall"):
        Floor.parse(text, gauge="evidence_recall", name="--min-recall")


def test_a_floor_at_a_budget_that_was_not_measured_is_refused() -> None:
    floor = Floor(gauge="evidence_recall", budget=2000, least=0.5)
    with pytest.raises(InvalidInput, match=r"2000.*--budgets"):
        check_floors(REPORT, [floor], retriever="a")


def test_two_of_a_report_are_compared_by_name() -> None:
    assert [each.evidence_recall for each in REPORT.comparing("a", "a").comparisons] == [0.0]
    with pytest.raises(KeyError, match="moon"):
        REPORT.comparing("a", "moon")
