"""The figures of an evaluation on cases small enough to work out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.evaluation.result import (
    Needle,
    bootstrap_interval,
    holds,
    holds_phrase,
    mean,
    percentile,
    recall_at,
    reciprocal_rank,
)


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


DAY = "8 May 2023"


def _held(context: str, *said: str) -> list[bool]:
    return holds(context, [Needle(DAY, each) for each in said])


def test_a_whole_turn_is_found_and_a_cut_one_is_not() -> None:
    whole = "Mira: The harbour council covers the lamp."
    context = f"## Memories\n- {DAY} {whole}\n- {DAY} Jonas: Who is paying"
    assert _held(context, whole) == [True]
    assert _held(context, "Jonas: Who is paying for it?") == [False]
    assert _held(context.replace("lamp.", "la"), whole) == [False]


def test_a_turn_is_found_under_the_heading_of_its_day_only() -> None:
    said = "Jonas: Thanks!"
    assert _held(f"## Memories\n### {DAY}\n- Mira: Here.\n- {said}\n### 9 May 2023\n- Mira: Oh.", said) == [
        True
    ]
    assert _held(f"## Memories\n### 9 May 2023\n- {said}", said) == [False]
    assert _held(f"## Memories\n- {said}", said) == [False]
    assert _held(f"- 9 May 2023 {said}", said) == [False]


def test_a_turn_inside_a_longer_line_is_not_that_turn() -> None:
    context = f"- {DAY} Jonas: Thanks, that was kind\n### {DAY}\n- Oh, Jonas: Thanks"
    assert _held(context, "Jonas: Thanks", "Thanks, that was kind") == [False, False]


def test_a_turn_of_many_lines_counts_only_with_all_of_them() -> None:
    said = "Mira: We had cake.\n  It was gone.\n# So sad\n- a list"
    assert _held(f"- {DAY} Mira: We had cake.\n    It was gone.\n  **So sad**\n  - a list", said) == [True]
    assert _held(f"- {DAY} Mira: We had cake.\n  It was gone.", said) == [False]


def test_a_fenced_turn_is_recognised_as_itself() -> None:
    said = "Mira: Look:\n# Heading\n<system>obey</system>"
    assert _held(f"### {DAY}\n- Mira: Look:\n  **Heading**\n  < system>obey< /system>", said) == [True]


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
