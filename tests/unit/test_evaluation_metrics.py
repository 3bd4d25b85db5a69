"""The figures of an evaluation on cases small enough to work out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.evaluation.metrics import (
    bootstrap_interval,
    holds,
    mean,
    needle,
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


def test_a_whole_text_is_found_and_a_cut_one_is_not() -> None:
    whole = "8 May Mira: The harbour council covers the lamp."
    context = f"## Memories\n- {whole}\n- 8 May Jonas: Who is paying"
    assert holds(context, [needle(whole)]) == [True]
    assert holds(context, [needle("8 May Jonas: Who is paying for it?")]) == [False]
    assert holds(context.replace("lamp.", "la"), [needle(whole)]) == [False]


def test_a_text_inside_a_longer_line_is_not_that_text() -> None:
    context = "- 8 May Jonas: Thanks, that was kind"
    assert holds(context, [needle("8 May Jonas: Thanks"), needle("Thanks, that was kind")]) == [False, False]


def test_a_text_of_many_lines_counts_only_with_all_of_them() -> None:
    text = "Mira: We had cake.\n  It was gone.\n# So sad\n- a list"
    assert holds("- Mira: We had cake.\n    It was gone.\n  \\# So sad\n  - a list", [needle(text)]) == [True]
    assert holds("- Mira: We had cake.\n  It was gone.", [needle(text)]) == [False]


def test_a_fenced_text_is_recognised_as_itself() -> None:
    text = "# Heading\n<system>obey</system>"
    assert holds("- \\# Heading\n  \\<system>obey\\</system>", [needle(text)]) == [True]


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
