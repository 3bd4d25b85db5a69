"""What a store promises of another's usage history: it is stored as it was, once, and counted nowhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from germane import Memory
from germane.errors import InvalidInput, NotFound
from germane.lifecycle import Cause, LifecycleEvent, LifecycleSignal, Stage
from germane.ranking import Example, OutcomeRecord
from germane.stores import ImportUsage, Insert, Purge, RecordOutcome, RecordUse
from germane.testing.fakes import START, make_id, make_memory
from support.stores import TablesStore

__all__ = ["AdoptingContract"]

AGENT = "tester"
CONTEXT = "0a" * 16
LATER = START + timedelta(days=1)
PARTS = {"lexical": 0.5, "window": 0.25}


def stored(store: TablesStore, *texts: str, agent: str = AGENT) -> list[Memory]:
    """New memories of an agent, which are facts."""
    memories = [make_memory(text, agent=agent, kind="fact") for text in texts]
    store.apply(agent, [Insert(memory=each) for each in memories])
    return memories


def showing(memory: Memory, *, used: bool = True, parts: dict[str, float] | None = None) -> Example:
    """That a memory was shown, and used or not."""
    return Example(context=CONTEXT, memory_id=memory.id, used=used, parts=PARTS if parts is None else parts)


def outcome(memory: Memory, worth: float = 1.0) -> OutcomeRecord:
    """That work turned out so."""
    return OutcomeRecord(context=CONTEXT, memory_id=memory.id, worth=worth, weight=1.0, at=LATER)


def event(memory: Memory, *, other: str | None = None) -> LifecycleEvent:
    """That a fact was confirmed."""
    return LifecycleEvent(
        number=7,
        memory_id=memory.id,
        sign=LifecycleSignal.CONFIRM,
        before=Stage.NEW,
        after=Stage.CONFIRMED,
        cause=Cause.REQUESTED,
        by=AGENT,
        at=LATER,
        other=other,
    )


class AdoptingContract:
    """Taking in what was gone through elsewhere, for stores that keep such things."""

    def test_an_adopted_showing_is_stored_and_counted_nowhere(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        assert [each.created for each in store.apply(AGENT, [ImportUsage(record=showing(memory))] * 2)] == [
            True,
            False,
        ]
        assert store.get(AGENT, [memory.id]) == (memory,)
        assert store.feedback.examples(AGENT) == (showing(memory),)
        stamp = store.feedback.learning(AGENT, None).stamp
        # The use is known now, so that it is counted by nobody who tells of it again.
        (events,) = store.apply(AGENT, [RecordUse(memory_id=memory.id, context=CONTEXT, used=True, at=LATER)])
        assert (events.created, events.memory) == (False, memory)
        assert store.feedback.learning(AGENT, None).stamp == stamp

    def test_adopted_showings_stay_as_far_apart(self, store: TablesStore) -> None:
        memories = stored(store, "one", "two", "three")
        store.apply(
            AGENT,
            [
                ImportUsage(record=showing(memory), number=later)
                for memory, later in zip(memories, (1, 40, 2), strict=True)
            ],
        )
        given = {one.memory_id: one.given for one in store.feedback.examples(AGENT)}
        first, second, third = (given[memory.id] for memory in memories)
        assert (second - first, third - second) == (40, 2)

    def test_a_showing_that_is_known_gains_what_was_not(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        changes = [
            ImportUsage(record=showing(memory, used=False, parts={})),
            ImportUsage(record=showing(memory, used=True, parts={})),
            ImportUsage(record=showing(memory, used=False)),
            ImportUsage(record=showing(memory, used=False, parts={"lexical": 0.1})),
        ]
        assert [each.created for each in store.apply(AGENT, changes)] == [True, True, True, False]
        assert store.feedback.examples(AGENT) == (showing(memory),)

    def test_an_adopted_outcome_moves_no_life_and_gives_way_to_what_is_known(
        self, store: TablesStore
    ) -> None:
        one, two = sorted(stored(store, "one", "two"), key=lambda each: each.id)
        store.apply(
            AGENT, [RecordOutcome(memory_id=two.id, context=CONTEXT, worth=0.0, weight=1.0, at=START)]
        )
        changes = [
            ImportUsage(record=outcome(one)),
            ImportUsage(record=outcome(two)),
            ImportUsage(record=outcome(one, worth=0.5)),
        ]
        assert [each.created for each in store.apply(AGENT, changes)] == [True, False, False]
        evidence = store.feedback.outcomes(AGENT)
        assert evidence is not None
        assert [(each.memory_id, each.worth) for each in evidence.records] == [(one.id, 1.0), (two.id, 0.0)]
        assert store.get(AGENT, [one.id]) == (one,)

    def test_adopted_events_are_reported_as_often_as_they_happened(self, store: TablesStore) -> None:
        one, two = stored(store, "one", "two")
        once = [
            ImportUsage(record=event(one, other=two.id)),
            ImportUsage(record=event(one, other=make_id("nowhere")), number=2),
        ]
        assert [each.created for each in store.apply(AGENT, once * 2)] == [True, True, False, False]
        events = store.lifecycle.events(AGENT, one.id)
        assert [(each.sign, each.by, each.at, each.other) for each in events] == [
            (LifecycleSignal.CONFIRM, AGENT, LATER, two.id),
            (LifecycleSignal.CONFIRM, AGENT, LATER, None),
        ]
        assert len({each.number for each in events}) == len(events)
        assert store.get(AGENT, [one.id]) == (one,)
        first, second = store.lifecycle.states(AGENT, [one.id, two.id])
        assert first == second

    def test_nothing_is_adopted_of_a_memory_that_is_not_the_agents(self, store: TablesStore) -> None:
        (mine,) = stored(store, "one")
        (theirs,) = stored(store, "theirs", agent="other")
        with pytest.raises(NotFound):
            store.apply(AGENT, [ImportUsage(record=showing(mine)), ImportUsage(record=showing(theirs))])
        broken = Example(context="no key", memory_id=mine.id, used=True, parts={})
        with pytest.raises(InvalidInput, match="32"):
            store.apply(AGENT, [ImportUsage(record=broken)])
        assert store.feedback.examples(AGENT) == ()

    def test_a_purge_takes_what_was_adopted(self, store: TablesStore) -> None:
        (memory,) = stored(store, "one")
        records = (showing(memory), outcome(memory), event(memory))
        store.apply(AGENT, [ImportUsage(record=each) for each in records])
        store.apply(AGENT, [Purge(memory_id=memory.id, at=LATER)])
        feedback = store.feedback
        evidence = feedback.outcomes(AGENT)
        assert evidence is not None
        assert (feedback.examples(AGENT), evidence.records) == ((), ())
        assert store.lifecycle.events(AGENT) == ()
