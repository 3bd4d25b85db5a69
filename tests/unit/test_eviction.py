"""Who leaves a working set when it is too large, and importance that is learned from use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.errors import InvalidInput
from germane.ranking import Example
from germane.ranking.eviction import (
    LEAST_FACTOR,
    MOST_FACTOR,
    LearnedImportance,
    evict,
    importance_of,
    lacking,
    learn_importance,
)
from germane.ranking.strategies import ItemFeatures, Strategy, arrange
from germane.testing.fakes import START, make_memory
from germane.working_sets import AgeBasis, Eviction, WorkingSetItem

# Who leaves a working set: every assertion names which memory left.

NOW = START + timedelta(days=30)


def make_item(
    name: str, tokens: int, *, importance: float = 1.0, hours: float = 0.0, **fields: Any
) -> WorkingSetItem:
    """An entry whose id is its name, in the set for `hours`."""
    own: dict[str, Any] = {
        field: fields.pop(field) for field in ("order", "touches", "pinned") if field in fields
    }
    entered = NOW - timedelta(hours=hours)
    memory = make_memory(name, id=name, created_at=START, importance=importance, **fields)
    return WorkingSetItem(
        memory=memory, entered_at=entered, touched_at=entered, tokens=tokens, **({"order": 0} | own)
    )


def left(eviction: Eviction) -> list[str]:
    return [one.item.memory.id for one in eviction.evicted]


# The example of the decision record on eviction; its own walk-through stops before enough is freed.
RECORD = [
    make_item("architecture_decision", 3000, importance=10.0, hours=120),
    make_item("user_pref", 100, importance=8.0, hours=48),
    make_item("old_debug", 2000, importance=2.0, hours=72),
    make_item("random_chat", 1500, importance=1.0, hours=1),
]


def test_the_least_important_leave_until_enough_is_freed() -> None:
    eviction = evict(RECORD, 4500, now=NOW)
    assert left(eviction) == ["random_chat", "old_debug", "user_pref", "architecture_decision"]
    assert eviction.freed == 6600
    assert eviction.enough
    assert eviction.policy == "importance"
    assert [one.value for one in eviction.evicted] == [1.0, 2.0, 8.0, 10.0]


def test_nothing_leaves_beyond_the_shortfall() -> None:
    assert left(evict(RECORD, 1500, now=NOW)) == ["random_chat"]
    assert left(evict(RECORD, 1501, now=NOW)) == ["random_chat", "old_debug"]
    assert left(evict(RECORD, 0, now=NOW)) == []
    assert evict(RECORD, -5, now=NOW) == Eviction(policy="importance", needed=0)


def test_importance_comes_before_age_and_equals_leave_oldest_first() -> None:
    items = [
        make_item("young", 10, importance=1.0, hours=1),
        make_item("old", 10, importance=1.0, hours=2),
        make_item("older and dearer", 10, importance=2.0, hours=72),
    ]
    assert left(evict(items, 30, now=NOW)) == ["old", "young", "older and dearer"]


def test_of_equally_important_entries_the_less_accessed_leaves_before_the_older() -> None:
    items = [
        make_item("a hundred times", 10, importance=1.0, hours=9, touches=90, access_count=10),
        make_item("once, lately", 10, importance=1.0, hours=1, touches=1),
        make_item("once, long ago", 10, importance=1.0, hours=3, access_count=1),
        make_item("never, but dearer", 10, importance=2.0, hours=99),
    ]
    by_use = ["once, long ago", "once, lately", "a hundred times", "never, but dearer"]
    assert left(evict(items, 40, now=NOW)) == by_use
    by_age = ["a hundred times", "once, long ago", "once, lately", "never, but dearer"]
    assert left(evict(items, 40, now=NOW, policy="importance-age")) == by_age


def test_a_recalled_memory_is_as_old_as_its_stay_by_default() -> None:
    ancient = make_memory("ancient", id="ancient", created_at=START - timedelta(days=900))
    recalled = WorkingSetItem(
        memory=ancient, entered_at=NOW, touched_at=NOW, order=9, tokens=10, recalled=True
    )
    items = [recalled, make_item("here for long", 10, hours=5)]
    assert left(evict(items, 1, now=NOW)) == ["here for long"]
    assert left(evict(items, 1, now=NOW, basis=AgeBasis.CREATED)) == ["ancient"]


def test_pinned_entries_stay_and_are_named_where_they_are_in_the_way() -> None:
    items = [
        make_item("pinned here", 50, importance=0.0, pinned=True, order=2),
        make_item("free", 30, importance=9.0),
        make_item("remembered as pinned", 20, importance=0.0, order=1, metadata={}),
    ]
    items[2] = items[2].evolve(memory=items[2].memory.evolve(pinned=True))
    enough = evict(items, 30, now=NOW)
    assert left(enough) == ["free"]
    assert enough.in_the_way == ()
    eviction = evict(items, 60, now=NOW)
    assert left(eviction) == ["free"]
    assert (eviction.freed, eviction.shortfall, eviction.enough) == (30, 30, False)
    assert [one.memory.id for one in eviction.in_the_way] == ["remembered as pinned", "pinned here"]


def test_what_is_replaced_and_what_frees_nothing_stay() -> None:
    items = [make_item("replaced", 50), make_item("empty", 0), make_item("other", 40, importance=5.0)]
    eviction = evict(items, 60, now=NOW, keep={"replaced"})
    assert left(eviction) == ["other"]
    assert eviction.shortfall == 20


def test_lru_goes_by_the_order_of_access_whatever_the_clock_says() -> None:
    items = [
        make_item("accessed last", 10, importance=0.0, hours=99, order=3),
        make_item("accessed first", 10, importance=9.0, hours=-5, order=1),
        make_item("between", 10, order=2),
    ]
    assert left(evict(items, 30, now=NOW, policy="lru")) == ["accessed first", "between", "accessed last"]


def test_lfu_evicts_the_least_accessed_and_of_those_the_least_recent() -> None:
    items = [
        make_item("a hundred times", 10, touches=60, access_count=40, order=1),
        make_item("once, lately", 10, touches=1, order=3),
        make_item("once, long ago", 10, access_count=1, order=2),
    ]
    eviction = evict(items, 30, now=NOW, policy="lfu")
    assert left(eviction) == ["once, long ago", "once, lately", "a hundred times"]
    assert [one.value for one in eviction.evicted] == [1.0, 1.0, 100.0]


def test_frequency_weighs_importance_without_a_zero() -> None:
    items = [
        make_item("dear, never accessed", 10, importance=4.0),
        make_item("plain, often accessed", 10, importance=1.0, touches=10),
        make_item("plain, never accessed", 10, importance=1.0),
    ]
    eviction = evict(items, 30, now=NOW, policy="frequency-weighted")
    assert left(eviction) == ["plain, never accessed", "plain, often accessed", "dear, never accessed"]
    assert [one.value for one in eviction.evicted] == pytest.approx([1.0, 1 + math.log(11), 4.0], abs=1e-9)


def largest_first(one: WorkingSetItem, _: datetime) -> float:
    return -float(one.tokens)


def test_a_function_can_be_the_policy() -> None:
    eviction = evict(RECORD, 1, now=NOW, policy=largest_first)
    assert left(eviction) == ["architecture_decision"]
    assert eviction.policy == "largest_first"


@pytest.mark.parametrize("worth", [math.nan, math.inf])
def test_a_policy_that_returns_no_number_is_named_with_the_memory(worth: float) -> None:
    with pytest.raises(InvalidInput, match=f"'user_pref' the value {worth}.*Nothing was evicted"):
        evict([RECORD[1]], 1, now=NOW, policy=lambda *_: worth)


def test_a_policy_that_raises_is_named_with_the_memory() -> None:
    def failing(one: WorkingSetItem, _: datetime) -> float:
        return one.tokens / 0

    with pytest.raises(InvalidInput, match="failed for memory 'user_pref': ZeroDivisionError"):
        evict([RECORD[1]], 1, now=NOW, policy=failing)


@pytest.mark.parametrize("policy", ["fifo", "", "lru\0"])
def test_an_unknown_policy_is_an_error_even_for_an_empty_set(policy: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        evict([], 0, now=NOW, policy=policy)
    assert f"Unknown eviction policy: {policy!r}. Known policies: importance, lru" in str(refused.value)


def test_learned_importance_decides_who_leaves() -> None:
    items = [make_item("unused", 10, importance=3.0), make_item("unknown", 10, importance=2.0)]
    use = LearnedImportance(factor=0.5, showings=30, uses=0, expected=9.0)
    assert left(evict(items, 1, now=NOW)) == ["unknown"]
    assert left(evict(items, 1, now=NOW, learned={"unused": use})) == ["unused"]


@pytest.mark.parametrize(
    ("tokens", "replacing", "short"),
    [(500, None, 0), (501, None, 1), (5000, None, 4500), (1000, "random_chat", 0), (3500, "user_pref", 2900)],
)
def test_only_what_is_lacking_has_to_be_freed(tokens: int, replacing: str | None, short: int) -> None:
    assert lacking(RECORD, tokens=tokens, max_tokens=7100, replacing=replacing) == short


def test_what_is_longer_than_the_set_is_refused() -> None:
    with pytest.raises(InvalidInput, match="7101 tokens can't enter a working set of 7100"):
        lacking(RECORD, tokens=7101, max_tokens=7100)


@pytest.mark.parametrize("policy", ["importance", "lru", "lfu", "frequency-weighted", largest_first])
def test_a_clock_that_runs_backwards_changes_nothing(
    policy: str | Callable[[WorkingSetItem, datetime], float],
) -> None:
    past = START - timedelta(days=9000)
    assert left(evict(RECORD, 4000, now=past, policy=policy)) == left(
        evict(RECORD, 4000, now=NOW, policy=policy)
    )


# What use says of importance: shrunk, bounded, silent without evidence, and explained in words.


def shown(contexts: Iterable[Mapping[str, bool]]) -> list[Example]:
    """One context for each mapping of memory ids to whether they were used."""
    return [
        Example(context=f"c{number}", memory_id=memory_id, used=used, parts={})
        for number, context in enumerate(contexts)
        for memory_id, used in context.items()
    ]


def one_used_of(count: int) -> dict[str, bool]:
    return {"a": True} | {f"other{n}": False for n in range(count - 1)}


def test_what_was_used_more_than_others_counts_more() -> None:
    # Nine contexts that use a quarter of what they show, five of them this one: 5 uses of 2.25 expected.
    contexts = [one_used_of(4)] * 5 + [{"a": False, "b": True, "other0": False, "other1": False}] * 4
    learned = learn_importance(shown(contexts))["a"]
    assert learned == LearnedImportance(
        factor=round(1 + 9 / 19 * (5 / 2.25 - 1), 4), showings=9, uses=5, expected=2.25
    )
    assert learned.factor == 1.5789
    assert learned.of(3.0) == pytest.approx(4.7367)
    assert learned.explain(3.0) == "importance set 3.0, learned 4.7 from 9 showings"


def test_what_was_used_as_often_as_others_stays_as_it_is() -> None:
    contexts = [{"a": number % 2 == 0, "b": number % 2 == 1} for number in range(10)]
    assert {one.factor for one in learn_importance(shown(contexts)).values()} == {1.0}


def test_more_showings_are_believed_more() -> None:
    factors = [learn_importance(shown([one_used_of(4)] * count))["a"].factor for count in (2, 3, 5)]
    assert factors == [1.5, round(1 + 3 / 13 * 3, 4), 2.0]
    unused = [learn_importance(shown([one_used_of(4)] * count))["other0"].factor for count in (2, 10, 90)]
    assert unused == [round(1 - 2 / 12, 4), 0.5, 0.5]


def test_a_stronger_prior_moves_less() -> None:
    examples = shown([one_used_of(4)] * 4)
    factors = [learn_importance(examples, prior_showings=prior)["a"].factor for prior in (10, 100, 1e9)]
    assert factors == [round(1 + 4 / 14 * 3, 4), round(1 + 4 / 104 * 3, 4), 1.0]


@pytest.mark.parametrize(
    "contexts",
    [
        [],
        [one_used_of(4)],  # One showing says too little.
        [{"a": True, "b": True}] * 9,  # All was used.
        [{"a": False, "b": False}] * 9,  # Nothing was.
        [{"a": True}] * 9,  # Nothing stood beside it.
    ],
)
def test_without_evidence_nothing_is_learned(contexts: list[dict[str, bool]]) -> None:
    assert learn_importance(shown(contexts)) == {}


def test_an_importance_stays_within_its_range() -> None:
    most = LearnedImportance(factor=MOST_FACTOR, showings=99, uses=99, expected=20.0)
    assert most.of(8.0) == 10.0
    assert most.of(1.0) == 2.0
    assert most.of(0.0) == 0.0


def test_a_pinned_memory_keeps_the_importance_that_was_set() -> None:
    memory = make_memory("one", importance=3.0)
    items = WorkingSetItem(memory=memory, entered_at=START, touched_at=START, order=1, tokens=1)
    learned = {memory.id: LearnedImportance(factor=2.0, showings=50, uses=40, expected=10.0)}
    assert importance_of(items, learned) == 6.0
    assert importance_of(items, {}) == 3.0
    assert importance_of(items.evolve(pinned=True), learned) == 3.0
    assert importance_of(items.evolve(memory=memory.evolve(pinned=True)), learned) == 3.0


def test_the_order_of_examples_does_not_matter() -> None:
    examples = shown([one_used_of(2), {"a": False, "b": True, "c": True}])
    results = {tuple(sorted(map(str, learn_importance(each).items()))) for each in permutations(examples)}
    assert len(results) == 1


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.booleans(), min_size=1), max_size=30))
def test_any_use_is_bounded_and_adds_up(contexts: list[dict[str, bool]]) -> None:
    learned = learn_importance(shown(contexts))
    for memory_id, one in learned.items():
        assert LEAST_FACTOR <= one.factor <= MOST_FACTOR
        assert 0 <= one.uses <= one.showings <= sum(memory_id in context for context in contexts)
        assert (one.factor > 1) == (one.uses > one.expected) or one.factor == 1


@pytest.mark.parametrize("prior", [0.0, -1.0, float("nan")])
def test_a_prior_that_holds_nothing_is_refused(prior: float) -> None:
    with pytest.raises(InvalidInput, match="prior_showings="):
        learn_importance([], prior_showings=prior)


# The order of a working set: what no call can bring about, and importance that was learned to the digit.


@pytest.mark.parametrize("near", [-0.1, 1.5, math.nan])
def test_a_relevance_out_of_range_is_named_with_the_memory(near: float) -> None:
    items = [make_item("one", 10)]
    with pytest.raises(InvalidInput, match=r"one.*from 0 to 1"):
        arrange(items, Strategy(), now=NOW, known=ItemFeatures(relevance={"one": near}))


def test_equal_scores_fall_to_access_then_to_the_newer_then_to_the_smaller_id() -> None:
    def tied(name: str, order: int, hours: float) -> WorkingSetItem:
        entry = make_item(name, 10, order=order)
        return entry.evolve(memory=entry.memory.evolve(created_at=NOW - timedelta(hours=hours)))

    items = [tied("d", 1, 2), tied("b", 1, 1), tied("a", 1, 1), tied("c", 2, 3)]
    arranged = arrange(items, Strategy(name="important"), now=NOW)
    assert [one.memory.id for one in arranged.ranked] == ["c", "a", "b", "d"]


def test_learned_importance_counts_and_is_reported_but_never_for_what_is_pinned() -> None:
    items = [
        make_item("used", 10, importance=3.0),
        make_item("pinned", 10, importance=3.0, pinned=True),
        make_item("unknown", 10, importance=3.5),
    ]
    use = LearnedImportance(factor=1.4, showings=9, uses=5, expected=2.7)
    known = ItemFeatures(learned={one.memory.id: use for one in items[:2]})
    arranged = arrange(items, Strategy(name="important"), now=NOW, known=known)
    assert [one.memory.id for one in arranged.ranked] == ["used", "unknown", "pinned"]
    assert arranged.ranked[0].parts == pytest.approx(
        {"importance": 4.2, "importance_set": 3.0, "showings": 9.0}
    )
    assert arranged.ranked[2].parts == {"importance": 3.0}
    assert [note.text for note in arranged.notes] == [
        "The importance of 1 of 3 memories was learned from their use."
    ]
