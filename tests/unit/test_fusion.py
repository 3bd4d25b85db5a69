from __future__ import annotations

import math

import pytest

from germane.errors import InvalidInput
from germane.ranking.fusion import (
    evidence_of_words,
    floored_lexical,
    floored_semantic,
    reciprocal_rank_fusion,
)


def test_a_strong_best_match_is_a_one() -> None:
    assert floored_lexical(12.0, top=12.0, bound=9.0) == 1.0
    assert floored_lexical(3.0, top=12.0, bound=9.0) == 0.25
    assert floored_semantic(0.8, top=0.8) == 1.0
    assert floored_semantic(0.2, top=0.8) == 0.25


def test_a_weak_best_match_is_not() -> None:
    assert floored_lexical(3.0, top=3.0, bound=12.0) == 0.25
    assert floored_semantic(0.1, top=0.1) == 0.25


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_nothing_in_common_counts_nothing(value: float) -> None:
    assert floored_lexical(value, top=value, bound=0.0) == 0.0
    assert floored_semantic(value, top=value) == 0.0


@pytest.mark.parametrize(
    ("share", "information", "evidence"),
    [
        (0.0, 30.0, 0.0),
        (0.3, 20.0, 0.0),  # One common word of several, 6 nats.
        (0.5, 20.0, 0.5),  # Two, 10 nats.
        (0.5, 26.0, 1.0),  # A word that no table knows, 13 nats.
        (0.2, 100.0, 1.0),  # A small part of a long question says as much as all of a short one.
        (1.0, 5.0, 1.0),  # The only word that was asked for.
        (0.75, 6.0, 0.5),
    ],
)
def test_words_in_common_say_as_much_as_they_are_rare_or_all(
    share: float, information: float, evidence: float
) -> None:
    assert evidence_of_words(share, information) == pytest.approx(evidence)


def test_reciprocal_ranks_add_up() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "c"]])
    assert fused == {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62}
    assert max(fused, key=fused.__getitem__) == "b"


def test_rankings_can_weigh_differently() -> None:
    fused = reciprocal_rank_fusion([["a"], ["b"]], k=0, weights=[1.5, 1.0])
    assert fused == {"a": 1.5, "b": 1.0}
    assert reciprocal_rank_fusion([]) == {}


@pytest.mark.parametrize(
    ("rankings", "k", "weights", "message"),
    [
        ([["a", "a"]], 60, None, "names a key twice"),
        ([["a"]], -1, None, "k=-1"),
        ([["a"]], 60, [1.0, 2.0], "can't fuse 1 rankings"),
        ([["a"]], 60, [-1.0], "one weight of 0 or more"),
        ([["a"]], 60, [math.nan], "one weight of 0 or more"),
    ],
)
def test_what_can_not_be_fused_is_refused(
    rankings: list[list[str]], k: float, weights: list[float] | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        reciprocal_rank_fusion(rankings, k=k, weights=weights)
