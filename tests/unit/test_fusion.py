"""Rankings and scores of several lists as one: by reciprocal ranks, and on one scale."""

from __future__ import annotations

import math

import pytest

from germane.errors import InvalidInput
from germane.ranking import Fused, fuse_ranks, fuse_scores


def test_reciprocal_ranks_add_up_and_name_the_lists_that_a_key_stands_in() -> None:
    fused = fuse_ranks({"words": ["a", "b"], "vectors": ["b", "c"]})
    assert [(key, each.score, each.sources) for key, each in fused.items()] == [
        ("b", 1 / 62 + 1 / 61, {"words": 1 / 62, "vectors": 1 / 61}),
        ("a", 1 / 61, {"words": 1 / 61}),
        ("c", 1 / 62, {"vectors": 1 / 62}),
    ]


def test_rankings_can_weigh_differently() -> None:
    fused = fuse_ranks({"words": ["a"], "recency": ["b"]}, k=0, weights={"words": 1.5})
    assert {key: each.score for key, each in fused.items()} == {"a": 1.5, "b": 1.0}
    assert fuse_ranks({}) == {}
    # The weights and the scores of a design that ranks a conversation by words and by recency.
    fused = fuse_ranks({"words": "ABC", "recency": "CBA"}, weights={"words": 1.5, "recency": 1.0})
    assert {key: round(each.score, 6) for key, each in fused.items()} == {
        "A": 0.040463,
        "B": 0.040323,
        "C": 0.040203,
    }


def test_scores_are_fused_on_a_scale_from_nothing_to_one() -> None:
    fused = fuse_scores({"words": {"a": 8.0, "b": 2.0, "c": 0.0}, "vectors": {"b": 0.9, "c": -0.2}})
    assert [(key, each.score, each.sources) for key, each in fused.items()] == [
        ("b", 1.25, {"words": 0.25, "vectors": 1.0}),
        ("a", 1.0, {"words": 1.0}),
        ("c", 0.0, {}),
    ]


def test_a_floor_keeps_the_best_of_a_bad_lot_from_counting_whole() -> None:
    scores = {"words": {"a": 3.0}, "vectors": {"a": 0.1, "b": 0.8}}
    fused = fuse_scores(scores, floors={"words": 12.0, "vectors": 0.4}, weights={"vectors": 2.0})
    assert fused["a"].sources == {"words": 0.25, "vectors": 0.25}
    assert fused["b"].score == 2.0
    assert fuse_scores({}) == {}
    assert fuse_scores({"words": {}}) == {}


@pytest.mark.parametrize(
    ("rankings", "k", "weights", "message"),
    [
        ({"words": ["a", "a"]}, 60, None, "'words' lists a key twice"),
        ({"words": ["a"]}, -1, None, "k=-1"),
        ({"words": ["a"]}, math.nan, None, "k=nan"),
        ({"words": ["a"]}, 60, {"vectors": 1.0}, "weight 1.0 of 'vectors'"),
        ({"words": ["a"]}, 60, {"words": -1.0}, "weight -1.0 of 'words'"),
        ({"words": ["a"]}, 60, {"words": math.nan}, "weight nan of 'words'"),
    ],
)
def test_what_can_not_be_fused_is_refused(
    rankings: dict[str, list[str]], k: float, weights: dict[str, float] | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        fuse_ranks(rankings, k=k, weights=weights)


def test_scores_that_can_not_be_fused_are_refused() -> None:
    for bad in (math.nan, math.inf):
        with pytest.raises(InvalidInput, match=f"score {bad} of 'a' in 'words'"):
            fuse_scores({"words": {"a": bad}})
    with pytest.raises(InvalidInput, match=r"floor -1 of 'words'"):
        fuse_scores({"words": {"a": 1.0}}, floors={"words": -1})


def test_fusion_is_public() -> None:
    assert fuse_ranks({"one": ["a"]}) == {"a": Fused(score=1 / 61, sources={"one": 1 / 61})}
    assert fuse_scores({"one": {"a": 2.0}})["a"].score == 1.0
