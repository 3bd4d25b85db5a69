"""What a store promises of how work turned out with memories."""

from __future__ import annotations

from datetime import timedelta

import pytest

from germane import Memory
from germane.errors import InvalidInput, NotFound
from germane.ranking import OutcomeHistory, OutcomeRecord
from germane.stores import Insert, Purge, RecordOutcome
from germane.testing.fakes import START, make_id, make_memory
from support.stores import TablesStore

__all__ = ["ValidatingContract"]

AGENT = "tester"
CONTEXT, OTHER_CONTEXT = "0c" * 16, "0d" * 16
LATER = START + timedelta(days=1)


def outcome(
    memory: Memory, context: str = CONTEXT, *, worth: float = 1.0, weight: float = 0.5
) -> RecordOutcome:
    """That work turned out so with a memory."""
    return RecordOutcome(memory_id=memory.id, context=context, worth=worth, weight=weight, at=LATER)


def insert(store: TablesStore, *memories: Memory) -> None:
    """Store new memories of the agent."""
    store.apply(AGENT, [Insert(memory=each) for each in memories])


class ValidatingContract:
    """Outcomes: once for each context and memory, the latest stands, gone with a purge."""

    def test_an_outcome_counts_once_for_its_context_and_the_latest_stands(self, store: TablesStore) -> None:
        validates = store.feedback
        memory = make_memory("one")
        insert(store, memory)
        given = [outcome(memory), outcome(memory), outcome(memory, worth=0.0), outcome(memory, OTHER_CONTEXT)]
        assert [each.created for each in store.apply(AGENT, given)] == [True, False, True, True]
        evidence = validates.outcomes(AGENT)
        assert evidence is not None
        assert evidence.records == (
            OutcomeRecord(context=CONTEXT, memory_id=memory.id, worth=0.0, weight=0.5, at=LATER),
            OutcomeRecord(context=OTHER_CONTEXT, memory_id=memory.id, worth=1.0, weight=0.5, at=LATER),
        )
        assert store.get(AGENT, [memory.id]) == (memory,)

    def test_the_stamp_moves_with_what_is_known_and_only_then(self, store: TablesStore) -> None:
        validates = store.feedback
        assert validates.outcomes("nobody") == OutcomeHistory(stamp=0, records=())
        one, two = make_memory("one"), make_memory("two")
        insert(store, one, two)
        store.apply(AGENT, [outcome(one), outcome(two)])
        before = validates.outcomes(AGENT)
        assert before is not None
        store.apply(AGENT, [outcome(one)])
        insert(store, make_memory("three"))
        assert validates.outcomes(AGENT, known=before.stamp) is None
        store.apply(AGENT, [Purge(memory_id=one.id, at=LATER)])
        after = validates.outcomes(AGENT, known=before.stamp)
        assert after is not None
        assert [each.memory_id for each in after.records] == [two.id]

    def test_what_says_nothing_is_refused_with_all_that_came_along(self, store: TablesStore) -> None:
        validates = store.feedback
        memory = make_memory("one")
        insert(store, memory)
        unknown = make_memory("nowhere", id=make_id("nowhere"))
        for wrong in (outcome(memory, worth=2.0), outcome(memory, weight=0.0), outcome(memory, "no key")):
            with pytest.raises(InvalidInput):
                store.apply(AGENT, [outcome(memory), wrong])
        with pytest.raises(NotFound):
            store.apply(AGENT, [outcome(memory), outcome(unknown)])
        evidence = validates.outcomes(AGENT)
        assert evidence is not None
        assert evidence.records == ()

    def test_agents_are_distinguished(self, store: TablesStore) -> None:
        validates = store.feedback
        mine = make_memory("one")
        insert(store, mine)
        store.apply(AGENT, [outcome(mine)])
        other = validates.outcomes("other")
        assert other is not None
        assert other.records == ()
