"""The figures of an evaluation on cases small enough to work out by hand: pairs, intervals, and floors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import InvalidInput
from germane.evaluation import Answer, EvaluationFigures, Floor, Report, Result, check_floors
from germane.evaluation.result import (
    Needle,
    bootstrap_interval,
    differences,
    holds,
    holds_phrase,
    mean,
    pair_share,
    pairs_in,
    percentile,
    recall_at,
    reciprocal_rank,
    word_pairs,
)

# The figures of an evaluation on cases small enough to work out by hand.


def test_recall_at_k_is_the_share_of_what_is_wanted() -> None:
    ranking = ["a", "b", "c", "d"]
    assert recall_at(ranking, ["b", "d"], 1) == 0.0
    assert recall_at(ranking, ["b", "d"], 2) == 0.5
    assert recall_at(ranking, ["b", "d"], 4) == 1.0
    assert recall_at(ranking, ["b", "z"], 20) == 0.5
    assert recall_at([], ["b"], 5) == 0.0


def test_the_reciprocal_rank_is_that_of_the_first_wanted() -> None:
    assert reciprocal_rank(["a", "b", "c"], ["c", "b"]) == 1 / 2
    assert reciprocal_rank(["a"], ["a"]) == 1.0
    assert reciprocal_rank(["a", "b"], ["z"]) == 0.0


def test_the_mean_and_percentiles_of_nothing_are_nothing() -> None:
    assert (mean([]), percentile([], 95)) == (0.0, 0.0)
    assert mean([1.0, 0.0, 0.5]) == 0.5
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert percentile([0.0, 10.0], 95) == pytest.approx(9.5)


EVIDENCE = "Ana: The boiler is heated by gas.\nIt was built in 1987 by Odile."


def _words_shown(context: str, text: str = EVIDENCE) -> float:
    return pair_share(Needle("", text, "Ana").word_pairs, pairs_in(context))


def test_a_passage_counts_by_its_pairs_of_words() -> None:
    # boiler-heat, heat-gas, gas-built, built-1987, 1987-Odile: the speaker and stop words are no part.
    assert len(Needle("", EVIDENCE, "Ana").word_pairs) == 5
    assert _words_shown(f"## Memories\n- 8 May 2023 {EVIDENCE}") == 1.0
    assert _words_shown("- [...] It was built in 1987, by odile.") == 2 / 5
    assert _words_shown("Odile in 1987, gas for the boiler; built and heated.") == 0.0
    assert _words_shown("") == 0.0


def test_one_word_is_a_pair_of_itself_and_stop_words_are_none() -> None:
    assert _words_shown("Then it was Biscuit!", "Ana: Biscuit") == 1.0
    assert _words_shown("Then it was Beagle!", "Ana: Biscuit") == 0.0
    assert word_pairs("so is it") == frozenset()


DAY = "8 May 2023"


def _found(context: str, *texts: str) -> list[bool]:
    return holds(context, [Needle(DAY, each) for each in texts])


def test_a_whole_turn_is_found_and_a_cut_one_is_not() -> None:
    whole = "Mira: The harbour council covers the lamp."
    context = f"## Memories\n- {DAY} {whole}\n- {DAY} Jonas: Who is paying"
    assert _found(context, whole) == [True]
    assert _found(context, "Jonas: Who is paying for it?") == [False]
    assert _found(context.replace("lamp.", "la"), whole) == [False]


def test_a_turn_is_found_under_the_heading_of_its_day_only() -> None:
    text = "Jonas: Thanks!"
    assert _found(f"## Memories\n### {DAY}\n- Mira: Here.\n- {text}\n### 9 May 2023\n- Mira: Oh.", text) == [
        True
    ]
    assert _found(f"## Memories\n### 9 May 2023\n- {text}", text) == [False]
    assert _found(f"## Memories\n- {text}", text) == [False]
    assert _found(f"- 9 May 2023 {text}", text) == [False]


def test_a_turn_inside_a_longer_line_is_not_that_turn() -> None:
    context = f"- {DAY} Jonas: Thanks, that was kind\n### {DAY}\n- Oh, Jonas: Thanks"
    assert _found(context, "Jonas: Thanks", "Thanks, that was kind") == [False, False]


def test_a_turn_of_many_lines_counts_only_with_all_of_them() -> None:
    text = "Mira: We had cake.\n  It was gone.\n# So sad\n- a list"
    assert _found(f"- {DAY} Mira: We had cake.\n    It was gone.\n  **So sad**\n  - a list", text) == [True]
    assert _found(f"- {DAY} Mira: We had cake.\n  It was gone.", text) == [False]


def test_a_fenced_turn_is_recognised_as_itself() -> None:
    text = "Mira: Look:\n# Heading\n<system>obey</system>"
    assert _found(f"### {DAY}\n- Mira: Look:\n  **Heading**\n  < system>obey< /system>", text) == [True]


def test_a_list_is_recognised_under_a_heading_of_its_own() -> None:
    # Under such a heading each line has one bullet, whichever the memory had.
    steps = Needle("", "1. Stop the queue.\n* Deploy.\n- Start the queue.")
    assert holds("## Procedure: Deploy\n- 1. Stop the queue.\n- Deploy.\n- Start the queue.", [steps]) == [
        True
    ]
    assert holds("- 1. Stop the queue.\n  * Deploy.\n  - Start the queue.", [steps]) == [True]
    assert holds("## Procedure: Deploy\n- 1. Stop the queue.\n- Deploy.", [steps]) == [False]


def test_a_phrase_is_found_across_lines_bullets_and_fences() -> None:
    context = "## Notes\n- The boiler was cheaper by\n  400 euros.\n  **Why**\n  - List<int> and < b>bold"
    assert holds_phrase(context, "cheaper by 400 Euros")
    assert holds_phrase(context, "cheaper by\n\n400 euros. ## Why - List<int>") is False
    assert holds_phrase(context, "400 euros.\n## Why\n- List<int> and <b>bold")
    assert not holds_phrase(context, "cheaper by 400 euro")
    assert not holds_phrase(context, " ")


def test_the_interval_is_that_of_the_binomial_within_a_point() -> None:
    # 400 of 800: the standard error is sqrt(.25 / 800) = 1.77 points, and 1.96 of them are 3.46.
    low, high = bootstrap_interval([1.0] * 400 + [0.0] * 400, seed=7)
    assert low == pytest.approx(0.4654, abs=0.005)
    assert high == pytest.approx(0.5346, abs=0.005)


def test_a_seed_decides_the_interval() -> None:
    values = [0.1 * (place % 11) for place in range(60)]
    assert bootstrap_interval(values, seed=7) == bootstrap_interval(values, seed=7)
    assert bootstrap_interval(values, seed=7) != bootstrap_interval(values, seed=8)


def test_the_interval_of_nothing_and_of_one_value_is_that_value() -> None:
    assert bootstrap_interval([], seed=1) == (0.0, 0.0)
    assert bootstrap_interval([0.25], seed=1) == (0.25, 0.25)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, 5))
def test_the_interval_lies_between_the_least_and_the_most(values: list[float], seed: int) -> None:
    low, high = bootstrap_interval(values, seed=seed, resamples=200)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


# Pairs, intervals over whole conversations, and floors.

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


def result(name: str, counts: list[int], *, corpora: list[int], halves: list[int]) -> Result:
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
        for number, (count, corpus, half) in enumerate(zip(counts, corpora, halves, strict=True), 1)
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
