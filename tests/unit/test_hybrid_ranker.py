"""Signals on exact inputs, and HTM's relevance scorer: what is missing, and what is fused before."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Filter, Status
from germane.errors import InvalidInput
from germane.protocols import Candidate, Query
from germane.ranking import Fused
from germane.ranking.scores import hybrid, min_max, tag_likeness
from germane.ranking.signals import evidence, floored_semantic, shares
from germane.testing.fakes import START, make_memory

NOW = START + timedelta(days=60)


def make_candidate(name: str, *, hours: float = 0.0, signals: Any = None, **fields: Any) -> Candidate:
    memory = make_memory(name, id=name, created_at=NOW - timedelta(hours=hours), **fields)
    return Candidate(memory=memory, signals=signals or {})


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ({"a:b:c"}, {"a:b:c"}, 1.0),
        ({"a:b:c"}, {"a:b"}, 2 / 3),
        ({"a:b:c"}, {"a:b:d"}, 0.5),
        ({"a:b"}, {"a:c", "d"}, 0.25),
        ({"a"}, {"b"}, 0.0),
        ({"ab"}, {"a"}, 0.0),
        (set(), {"a"}, 0.0),
        (set(), set(), 0.0),
    ],
)
def test_tags_are_alike_by_what_stands_above_them_too(
    one: set[str], other: set[str], likeness: float
) -> None:
    assert tag_likeness(one, other) == tag_likeness(other, one) == pytest.approx(likeness)


def test_signals_run_from_the_least_to_the_greatest() -> None:
    assert min_max(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]
    assert min_max(np.array([0.3, 0.3])).tolist() == [1.0, 1.0]
    assert min_max(np.array([0.3])).tolist() == [0.3]
    assert min_max(np.array([])).tolist() == []


def test_a_strong_best_match_is_a_one() -> None:
    assert shares(np.array([12.0, 3.0, np.nan]), 12.0).tolist()[:2] == [1.0, 0.25]
    assert floored_semantic(0.8, top=0.8) == 1.0
    assert floored_semantic(0.2, top=0.8) == 0.25


def test_a_weak_best_match_is_not() -> None:
    assert shares(np.array([3.0]), 12.0).tolist() == [0.25]
    assert floored_semantic(0.1, top=0.1) == 0.25


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_nothing_in_common_counts_nothing(value: float) -> None:
    assert shares(np.array([value]), 0.0).tolist() == shares(np.array([value]), 1.0).tolist() == [0.0]
    assert floored_semantic(value, top=value) == 0.0


@pytest.mark.parametrize(
    ("share", "information", "expected"),
    [
        (0.0, 30.0, 0.0),
        (0.3, 20.0, 0.0),  # One common word of several, 6 nats.
        (0.5, 20.0, 0.5),  # Two, 10 nats.
        (0.5, 26.0, 1.0),  # A word that no table knows, 13 nats.
        (0.2, 100.0, 1.0),  # A small part of a long question says as much as all of a short one.
        (1.0, 5.0, 1.0),  # The only word of the question.
        (0.75, 6.0, 0.5),
    ],
)
def test_words_in_common_say_as_much_as_they_are_rare_or_all(
    share: float, information: float, expected: float
) -> None:
    assert evidence(np.array([share]), information).tolist() == pytest.approx([expected])


def test_the_score_weighs_four_signals() -> None:
    candidates = [
        make_candidate("best", hours=0, signals={"semantic": 0.8}, tags=("db:postgres",), access_count=8),
        make_candidate("half", hours=168, signals={"semantic": 0.6}, tags=("db",), access_count=2),
        make_candidate("least", hours=336, signals={"semantic": 0.4}, tags=("ui",), access_count=0),
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW, tags=["db:postgres"])
    assert [one.memory.id for one in ranked] == ["best", "half", "least"]
    assert ranked[0].parts == pytest.approx({"meaning": 5.0, "tags": 3.0, "recency": 1.0, "access": 1.0})
    # Of recencies 1, 1/2 and 1/4 the middle one is a third of the way; ln 3 is half of ln 9.
    assert ranked[1].parts == pytest.approx({"meaning": 2.5, "tags": 1.5, "recency": 1 / 3, "access": 0.5})
    assert [one.score for one in ranked] == pytest.approx([10.0, 2.5 + 1.5 + 1 / 3 + 0.5, 0.0], abs=1e-9)


def test_a_signal_of_one_candidate_alone_stays_as_it_is() -> None:
    alone = make_candidate("one", hours=168, signals={"semantic": 0.6}, tags=("a:b",), access_count=9)
    ranked = hybrid([alone], query=Query(filter=Filter(tags=("a",))), now=NOW)
    assert ranked[0].parts == pytest.approx(
        {"meaning": 3.0, "tags": 1.5, "recency": 0.5, "access": math.log(10) / 10}
    )


def test_equal_signals_count_whole_and_those_that_nobody_has_count_nothing() -> None:
    candidates = [
        make_candidate("a", signals={"semantic": 0.3}),
        make_candidate("b", signals={"semantic": 0.3}),
        make_candidate("c", signals={"semantic": 0.3, "lexical": 9.0}, tags=("db",)),
    ]
    ranked = {one.memory.id: one.parts for one in hybrid(candidates, query=Query(), now=NOW)}
    assert ranked["a"] == ranked["c"] == {"meaning": 5.0, "tags": 0.0, "recency": 1.0, "access": 1.0}
    unlike = [make_candidate(name, signals={"semantic": -0.1}, tags=("ui",)) for name in "ab"]
    for one in hybrid(unlike, query=Query(), now=NOW, tags=["db"]):
        assert one.parts == {"meaning": 0.0, "tags": 0.0, "recency": 1.0, "access": 1.0}


def test_a_memory_without_tags_shares_none_with_the_query() -> None:
    candidates = [
        make_candidate("same", tags=("db:postgres",)),
        make_candidate("above", tags=("db",)),
        make_candidate("none"),
        make_candidate("other", tags=("ui",)),
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW, tags=["db:postgres"])
    assert {one.memory.id: one.parts["tags"] for one in ranked} == {
        "same": 3.0,
        "above": 1.5,
        "none": 0.0,
        "other": 0.0,
    }


def test_a_memory_without_a_vector_ranks_by_its_words_and_never_above_what_is_near() -> None:
    candidates = [
        make_candidate("nearest", signals={"semantic": 0.8, "lexical": 8.0}),
        make_candidate("near", signals={"semantic": 0.6, "lexical": 0.0}),
        make_candidate("far", signals={"semantic": 0.2, "lexical": 0.0}),
        make_candidate("one word", signals={"lexical": 1.0}),
        make_candidate("silent", signals={"lexical": 0.0}),
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW)
    # It has an eighth of the words, and so an eighth of 0.8.
    assert [(one.memory.id, one.parts["meaning"]) for one in ranked] == [
        ("nearest", 5.0),
        ("near", pytest.approx(3.75)),
        ("far", pytest.approx(1.25)),
        ("one word", pytest.approx(0.625)),
        ("silent", 0.0),
    ]
    weak = hybrid(candidates[1:], query=Query(), now=NOW, lexical_bound=20.0)
    assert [one.memory.id for one in weak] == ["near", "far", "one word", "silent"]


def test_a_score_says_in_which_lists_a_memory_stands() -> None:
    candidates = [
        make_candidate("both", signals={"semantic": 0.8, "lexical": 1.0}),
        make_candidate("tagged", signals={"lexical": 3.0}, tags=("db",)),
        make_candidate("in none", signals={"lexical": 0.0}),
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW, tags=["db"])
    fused = {one.memory.id: one.fused for one in ranked}
    assert fused == {
        "both": Fused(score=1 / 61 + 1 / 62, sources={"meaning": 1 / 61, "lexical": 1 / 62}),
        "tagged": Fused(score=1 / 61 + 1 / 61, sources={"lexical": 1 / 61, "tags": 1 / 61}),
        "in none": Fused(score=0.0),
    }


def test_a_week_halves_recency_truly() -> None:
    ranked = hybrid([make_candidate("one", hours=336)], query=Query(), now=NOW)
    assert ranked[0].parts["recency"] == pytest.approx(0.25, abs=1e-12)
    faster = hybrid([make_candidate("one", hours=2)], query=Query(), now=NOW, half_life_hours=1)
    assert faster[0].parts["recency"] == pytest.approx(0.25, abs=1e-12)


def test_without_any_vector_the_words_take_their_place() -> None:
    candidates = [
        make_candidate("silent"),
        make_candidate("some", signals={"lexical": 3.0}),
        make_candidate("most", signals={"lexical": 12.0}),
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW)
    assert [(one.memory.id, one.parts["meaning"]) for one in ranked] == [
        ("most", 5.0),
        ("some", 1.25),
        ("silent", 0.0),
    ]


def test_the_best_by_fused_ranks_stay_and_break_ties() -> None:
    candidates = [
        make_candidate("by meaning", signals={"semantic": 0.9, "lexical": 1.0}),
        make_candidate("by words", signals={"semantic": 0.1, "lexical": 9.0}),
        make_candidate("by neither", signals={"semantic": 0.2, "lexical": 0.5}),
        make_candidate("by tags", signals={}, tags=("a",)),
    ]
    selected = hybrid(candidates, query=Query(), now=NOW, tags=["a"], keep=2)
    # First and second in two lists are 1/61 + 1/62; third and second, 1/63 + 1/61.
    assert {one.memory.id for one in selected} == {"by meaning", "by words"}
    tied = [make_candidate("a", signals={"lexical": 1.0}), make_candidate("b", signals={"semantic": 0.5})]
    assert [one.memory.id for one in hybrid(tied, query=Query(), now=NOW)] == ["b", "a"]


def test_what_a_newer_version_replaces_stays_below_it() -> None:
    new = make_candidate("new", signals={"semantic": 0.2})
    old = make_candidate("old", signals={"semantic": 0.9}, status=Status.SUPERSEDED, superseded_by="new")
    assert [one.memory.id for one in hybrid([old, new], query=Query(), now=NOW)] == ["new", "old"]


def test_what_can_not_be_ranked_is_refused() -> None:
    bad = make_candidate("one", signals={"semantic": math.nan})
    with pytest.raises(InvalidInput, match="semantic signal of memory 'one' is nan"):
        hybrid([bad], query=Query(), now=NOW)
    for half_life in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="half_life_hours="):
            hybrid([], query=Query(), now=NOW, half_life_hours=half_life)
    with pytest.raises(InvalidInput, match="keep=0"):
        hybrid([], query=Query(), now=NOW, keep=0)
    assert hybrid([], query=Query(), now=NOW) == ()


SIGNALS = st.dictionaries(
    st.sampled_from(["semantic", "lexical"]), st.floats(-1, 30, allow_nan=False), max_size=2
)


@given(
    st.lists(st.tuples(SIGNALS, st.floats(-9, 9999), st.integers(0, 9)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_scores_lie_between_nothing_and_ten_whatever_the_order(
    drawn: list[tuple[dict[str, float], float, int]], chance: Any
) -> None:
    candidates = [
        make_candidate(f"m{number:02}", signals=signals, hours=hours, access_count=count, tags=("a:b", "c"))
        for number, (signals, hours, count) in enumerate(drawn)
    ]
    ranked = hybrid(candidates, query=Query(), now=NOW, tags=["a"])
    assert all(0.0 <= one.score <= 10.0 + 1e-9 for one in ranked)
    assert all(math.fsum(one.parts.values()) == one.score for one in ranked)
    chance.shuffle(candidates)
    assert hybrid(candidates, query=Query(), now=NOW, tags=["a"]) == ranked
