"""What a store promises of use: counted once for each context, and stored as an example if that is wanted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from germane import Memory
from germane.errors import InvalidInput, NotFound
from germane.ranking import Example
from germane.stores import Insert, Purge, RecordUse
from germane.testing.fakes import START, make_id, make_memory
from support.stores import TablesStore

__all__ = ["LearningContract"]

AGENT = "tester"
LATER = START + timedelta(days=1)
CONTEXT, OTHER_CONTEXT = "0a" * 16, "0b" * 16
PARTS = {"lexical": 0.5, "window": 0.25}


def judged(memory: Memory, context: str = CONTEXT, *, used: bool = True, days: int = 1) -> RecordUse:
    """That a memory was used in a context, or not."""
    at = START + timedelta(days=days)
    return RecordUse(memory_id=memory.id, context=context, used=used, at=at, parts=PARTS)


def stored(store: TablesStore, *texts: str, agent: str = AGENT) -> list[Memory]:
    """New memories of an agent."""
    memories = [make_memory(text, agent=agent) for text in texts]
    store.apply(agent, [Insert(memory=each) for each in memories])
    return memories


class LearningContract:
    """Counting uses, which every store does, and keeping examples, which a `FeedbackStore` does."""

    def test_a_use_is_counted_once_for_its_context(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        once = memory.evolve(access_count=1, accessed_at=LATER)
        assert [each.created for each in store.apply(AGENT, [judged(memory), judged(memory)])] == [
            True,
            False,
        ]
        (again,) = store.apply(AGENT, [judged(memory, days=2)])
        assert (again.memory, again.created) == (once, False)
        (other,) = store.apply(AGENT, [judged(memory, OTHER_CONTEXT, days=3)])
        assert other.memory == memory.evolve(access_count=2, accessed_at=START + timedelta(days=3))
        assert store.get(AGENT, [memory.id]) == (other.memory,)

    def test_what_was_ignored_is_not_counted_until_it_was_used(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        (ignored,) = store.apply(AGENT, [judged(memory, used=False)])
        assert (ignored.memory, ignored.created) == (memory, False)
        (used,) = store.apply(AGENT, [judged(memory)])
        assert used.created
        (still,) = store.apply(AGENT, [judged(memory, used=False)])
        assert still.memory == used.memory

    def test_an_earlier_use_reported_later_moves_no_time_back(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        store.apply(AGENT, [judged(memory, days=5)])
        (applied,) = store.apply(AGENT, [judged(memory, OTHER_CONTEXT, days=1)])
        assert applied.memory == memory.evolve(access_count=2, accessed_at=START + timedelta(days=5))

    @pytest.mark.parametrize("context", ["", "no key", "0a" * 15, "0a" * 17])
    def test_a_context_is_named_by_its_key(self, store: TablesStore, context: str) -> None:
        (memory,) = stored(store, "one")
        with pytest.raises(InvalidInput, match="32"):
            store.apply(AGENT, [judged(memory, context)])

    def test_uses_of_unknown_memories_are_refused_with_all_that_came_along(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        (theirs,) = stored(store, "theirs", agent="other")
        for unknown in (theirs, make_memory("nowhere", id=make_id("nowhere"))):
            with pytest.raises(NotFound):
                store.apply(AGENT, [judged(memory), judged(unknown)])
        assert store.get(AGENT, [memory.id]) == (memory,)
        assert store.get("other", [theirs.id]) == (theirs,)

    def test_learning_is_off_until_it_is_switched_on(self, store: TablesStore) -> None:
        learns = store.feedback
        (memory,) = stored(store, "one")
        assert not learns.learning(AGENT, None).on
        store.apply(AGENT, [judged(memory)])
        assert [each.parts for each in learns.examples(AGENT)] == [{}]
        assert learns.learning(AGENT, on=True).on
        assert learns.learning(AGENT, None).on
        assert not learns.learning("other", None).on
        assert not learns.learning("nobody", None).on
        assert not learns.learning(AGENT, on=False).on

    def test_showings_are_stored_without_learning_and_become_examples_with_it(
        self, store: TablesStore
    ) -> None:
        learns = store.feedback
        one, two = sorted(stored(store, "one", "two"), key=lambda each: each.id)
        judgements = [judged(one), judged(two, used=False)]
        store.apply(AGENT, judgements)
        stamp = learns.learning(AGENT, None).stamp
        store.apply(AGENT, judgements)
        assert learns.learning(AGENT, None).stamp == stamp
        assert [(each.memory_id, each.used, each.parts) for each in learns.examples(AGENT)] == [
            (one.id, True, {}),
            (two.id, False, {}),
        ]
        learns.learning(AGENT, on=True)
        store.apply(AGENT, judgements)
        assert [each.parts for each in learns.examples(AGENT)] == [PARTS, PARTS]
        learns.learning(AGENT, on=False)
        store.apply(AGENT, [judged(two)])
        assert [(each.used, each.parts) for each in learns.examples(AGENT)] == [(True, PARTS), (True, PARTS)]
        store.apply(AGENT, [judged(one, OTHER_CONTEXT)])
        assert learns.reset(AGENT) == 2
        assert learns.examples(AGENT) == ()

    def test_examples_come_by_context_and_memory_and_each_once(self, store: TablesStore) -> None:
        learns = store.feedback
        learns.learning(AGENT, on=True)
        one, two = sorted(stored(store, "one", "two"), key=lambda each: each.id)
        for _ in range(2):
            store.apply(AGENT, [judged(two, OTHER_CONTEXT), judged(two, used=False), judged(one)])
        assert learns.examples(AGENT) == (
            Example(context=CONTEXT, memory_id=one.id, used=True, parts=PARTS),
            Example(context=CONTEXT, memory_id=two.id, used=False, parts=PARTS),
            Example(context=OTHER_CONTEXT, memory_id=two.id, used=True, parts=PARTS),
        )
        store.apply(AGENT, [judged(two)])
        assert [each.used for each in learns.examples(AGENT)] == [True, True, True]

    def test_the_stamp_moves_with_the_examples_and_only_then(self, store: TablesStore) -> None:
        learns = store.feedback
        learns.learning(AGENT, on=True)
        one, two = stored(store, "one", "two")
        stamps = [learns.learning(AGENT, None).stamp]
        store.apply(AGENT, [judged(one)])
        stamps.append(learns.learning(AGENT, None).stamp)
        store.apply(AGENT, [judged(two, used=False)])
        stamps.append(learns.learning(AGENT, None).stamp)
        store.apply(AGENT, [judged(two, used=False)])
        stored(store, "three")
        assert learns.learning(AGENT, None).stamp == stamps[-1]
        store.apply(AGENT, [Purge(memory_id=two.id, at=LATER)])
        stamps.append(learns.learning(AGENT, None).stamp)
        learns.reset(AGENT)
        stamps.append(learns.learning(AGENT, None).stamp)
        assert len(set(stamps)) == len(stamps)

    def test_a_purge_takes_the_examples_of_its_memory(self, store: TablesStore) -> None:
        learns = store.feedback
        learns.learning(AGENT, on=True)
        one, two = stored(store, "one", "two")
        store.apply(AGENT, [judged(one), judged(two, used=False)])
        store.apply(AGENT, [Purge(memory_id=one.id, at=LATER)])
        assert [each.memory_id for each in learns.examples(AGENT)] == [two.id]

    def test_agents_learn_apart(self, store: TablesStore) -> None:
        learns = store.feedback
        for agent in (AGENT, "other"):
            learns.learning(agent, on=True)
        (mine,), (theirs,) = stored(store, "one"), stored(store, "one", agent="other")
        store.apply(AGENT, [judged(mine)])
        store.apply("other", [judged(theirs, used=False)])
        assert [each.used for each in learns.examples(AGENT)] == [True]
        assert [each.used for each in learns.examples("other")] == [False]
        assert learns.reset("other") == 1
        assert (len(learns.examples(AGENT)), learns.examples("other")) == (1, ())

    def test_unlearning_leaves_uses_counted(self, store: TablesStore) -> None:
        learns = store.feedback
        learns.learning(AGENT, on=True)
        one, two = stored(store, "one", "two")
        store.apply(AGENT, [judged(one), judged(two, used=False)])
        assert learns.reset(AGENT) == 2
        assert (learns.examples(AGENT), learns.reset(AGENT), learns.reset("nobody")) == (
            (),
            0,
            0,
        )
        (again,) = store.apply(AGENT, [judged(one)])
        assert not again.created
        assert again.memory == one.evolve(access_count=1, accessed_at=LATER)

    def test_parts_that_are_no_numbers_are_refused(self, store: TablesStore) -> None:
        learns = store.feedback
        learns.learning(AGENT, on=True)
        (memory,) = stored(store, "one")
        broken = RecordUse(
            memory_id=memory.id, context=CONTEXT, used=True, at=LATER, parts={"lexical": float("nan")}
        )
        with pytest.raises(InvalidInput, match="lexical"):
            store.apply(AGENT, [broken])
        assert store.get(AGENT, [memory.id]) == (memory,)
