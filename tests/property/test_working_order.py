"""Whatever a working set holds: one total order of it, and no eviction that frees too little or too much."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from germane.protocols import Query
from germane.ranking import Decay
from germane.ranking.eviction import EvictionPolicy, evict
from germane.ranking.strategies import ItemFeatures, Strategy, arrange
from germane.testing.fakes import START, make_memory
from germane.working_sets import AgeBasis, WorkingSetItem

HOURS = st.integers(-50, 5000)


@st.composite
def working_sets(draw: st.DrawFn) -> list[WorkingSetItem]:
    """Up to twelve entries with many ties, some pinned, some from the future."""
    count = draw(st.integers(0, 12))
    return [
        WorkingSetItem(
            memory=make_memory(
                f"memory {number}",
                id=f"m{number:02}",
                created_at=START + timedelta(hours=draw(HOURS)),
                importance=float(draw(st.integers(0, 3))),
                access_count=draw(st.integers(0, 3)),
                pinned=draw(st.integers(0, 9)) == 0,
            ),
            entered_at=START + timedelta(hours=draw(HOURS)),
            touched_at=START + timedelta(hours=draw(HOURS)),
            order=draw(st.integers(0, 3)),
            tokens=draw(st.integers(0, 100)),
            touches=draw(st.integers(0, 3)),
            pinned=draw(st.integers(0, 5)) == 0,
        )
        for number in range(count)
    ]


strategies = st.builds(
    Strategy,
    name=st.sampled_from(["balanced", "recent", "important", "frequent", "clustered", "smart"]),
    base=st.sampled_from(["balanced", "recent"]),
    decay=st.builds(
        Decay,
        shape=st.sampled_from(["hyperbolic", "exponential", "none"]),
        hours=st.sampled_from([0.01, 1.0, 168.0]),
        basis=st.sampled_from(list(AgeBasis)),
    ),
    relevance=st.sampled_from([0.0, 0.5, 1.0]),
)
QUERIES = st.sampled_from([Query(), Query(text="Should we?"), Query(text="go on"), Query(text="Why?")])


@given(working_sets(), strategies, QUERIES, HOURS, st.booleans(), st.integers())
def test_the_order_is_total_and_does_not_depend_on_the_order_given(
    items: list[WorkingSetItem], strategy: Strategy, query: Query, hours: int, relevant: bool, seed: int
) -> None:
    now = START + timedelta(hours=hours)
    known = ItemFeatures(
        relevance={one.memory.id: one.tokens / 100 for one in items if one.tokens % 2} if relevant else None,
        terms={one.memory.id: {one.tokens % 3} for one in items},
    )
    arranged = arrange(items, strategy, now=now, query=query, known=known)
    assert sorted(one.memory.id for one in arranged.ranked) == [one.memory.id for one in items]
    if strategy.name != "clustered":
        scores = [one.score for one in arranged.ranked]
        assert scores == sorted(scores, reverse=True)
    shuffled = random.Random(seed).sample(items, len(items))  # noqa: S311 - a shuffle has to repeat.
    again = arrange(shuffled, strategy, now=now, query=query, known=known)
    assert list(again.ranked) == list(arranged.ranked)
    assert again.notes == arranged.notes


@given(working_sets(), st.integers(-5, 800), st.sampled_from(get_args(EvictionPolicy)), HOURS, st.integers())
def test_an_eviction_frees_enough_or_says_what_is_in_the_way(
    items: list[WorkingSetItem], needed: int, policy: str, hours: int, seed: int
) -> None:
    now = START + timedelta(hours=hours)
    eviction = evict(items, needed, now=now, policy=policy)
    assert not any(one.item.stays for one in eviction.evicted)
    assert eviction.freed == sum(one.item.tokens for one in eviction.evicted)
    assert eviction.freed + eviction.shortfall >= needed
    if eviction.evicted:
        assert eviction.freed - eviction.evicted[-1].freed < needed
    if eviction.shortfall:
        stay = {one.memory.id for one in items if one.stays and one.tokens}
        assert {one.memory.id for one in eviction.in_the_way} == stay
        assert len(eviction.evicted) == sum(1 for one in items if not one.stays and one.tokens)
    values = [one.value for one in eviction.evicted]
    assert values == sorted(values)
    shuffled = random.Random(seed).sample(items, len(items))  # noqa: S311 - a shuffle has to repeat.
    again = evict(shuffled, needed, now=now, policy=policy)
    assert [one.item for one in again.evicted] == [one.item for one in eviction.evicted]
