"""What use says of importance: shrunk, bounded, silent without evidence, and told in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.errors import InvalidInput
from germane.ranking import Example
from germane.ranking.eviction import (
    LEAST_FACTOR,
    MOST_FACTOR,
    LearnedImportance,
    importance_of,
    learn_importance,
)
from germane.testing.fakes import START, make_memory
from germane.working_sets import WorkingSetItem


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
    held = WorkingSetItem(memory=memory, entered_at=START, touched_at=START, order=1, tokens=1)
    learned = {memory.id: LearnedImportance(factor=2.0, showings=50, uses=40, expected=10.0)}
    assert importance_of(held, learned) == 6.0
    assert importance_of(held, {}) == 3.0
    assert importance_of(held.evolve(pinned=True), learned) == 3.0
    assert importance_of(held.evolve(memory=memory.evolve(pinned=True)), learned) == 3.0


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
