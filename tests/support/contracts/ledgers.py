"""What a store promises that keeps a ledger of assemblies: what it keeps, loses, and was like."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import pytest

from germane import Filter, Level, Memory, Outcome, Reason, Scope, Status, TimeRange
from germane.errors import InvalidInput, NotFound
from germane.ledger import Assembly, EmptyReason, LedgerEntry, MemoryChange, MemoryChangeKind
from germane.stores import Insert, Purge, RecordUse, Revise, SetStatus
from germane.testing.fakes import START, make_id, make_memory, make_revision
from support.stores import TablesStore

__all__ = ["RecordingContract", "make_assembly"]

AGENT = "tester"
KEY = "0c" * 16
_WHERE = Filter(
    kinds=("fact",),
    tags=("a:b",),
    scopes=(Scope(name="task", value="T-1"),),
    applies_to=(Scope(name="path", value="src/a.py"),),
    subject="storage",
    source="notes/a.md",
    metadata={"ticket": "T-1", "seats": 20, "paid": True},
    when=TimeRange(since=START, until=START + timedelta(days=1)),
    min_importance=2.0,
    pinned=False,
    embedded=True,
    statuses=(Status.ACTIVE, Status.ARCHIVED),
    without=(Outcome.FAILURE,),
)
"""Every field is another than it is by itself: what a ledger loses is seen."""
EVERYTHING = Filter(statuses=tuple(Status))


def make_assembly(
    name: str, memories: Sequence[Memory] = (), *, agent: str = AGENT, days: float = 0, key: str = KEY
) -> Assembly:
    """An assembly with an entry for each memory: the last one was left out, all others stood in it."""
    entries = tuple(
        LedgerEntry(
            memory_id=memory.id,
            kind=memory.kind,
            agent=memory.agent,
            section="facts",
            score=1.0 / (place + 1),
            parts={"lexical": 0.75, "semantic": 0.125},
            level=None if left_out else Level.SUMMARY,
            reason=Reason.OVER_BUDGET if left_out else None,
            tokens=12,
            short_by=3 if left_out else 0,
            pinned=not place,
        )
        for place, memory in enumerate(memories)
        for left_out in [len(memories) > 1 and memory is memories[-1]]
    )
    return Assembly(
        id=make_id(name),
        agent=agent,
        at=START + timedelta(days=days),
        question="What about the “cache”?",
        plan="layered",
        frame="task",
        budget=1000,
        counter="o200k",
        key=key,
        points={agent: {"seq": 1}},
        makers={"tokenizer": "1"},
        tokens=24,
        sha256=sha256(name.encode()).hexdigest(),
        candidates=len(entries),
        entries=entries,
        where=_WHERE,
        unkept=("scorer",),
        notes=("margin",),
        empty_reason=None if entries else EmptyReason.NOTHING_STORED,
        settled=False,
        cold=True,
        seconds=0.25,
    )


def added(store: TablesStore, *texts: str, agent: str = AGENT) -> list[Memory]:
    """New memories of an agent."""
    memories = [make_memory(text, agent=agent) for text in texts]
    store.apply(agent, [Insert(memory=each) for each in memories])
    return memories


def then(store: TablesStore, point: dict[str, int] | None = None) -> dict[str, Memory]:
    """What the store says that it held at a point, by id."""
    past = store.ledger.as_of(AGENT, store.ledger.point(AGENT) if point is None else point)
    try:
        return {memory.id: memory for memory in past.find(AGENT, EVERYTHING)}
    finally:
        past.close()


class RecordingContract:
    """Keeping assemblies, and looking back, which the sub-store `ledger` does."""

    def test_an_assembly_is_stored_as_it_was_recorded(self, store: TablesStore) -> None:
        ledger = store.ledger
        recorded = make_assembly("one", added(store, "one", "two", "three"))
        ledger.record(AGENT, recorded)
        assert ledger.get(AGENT, recorded.id) == recorded
        assert ledger.get("other", recorded.id) is None
        assert ledger.get(AGENT, make_id("nowhere")) is ledger.get(AGENT, "no id") is None
        with pytest.raises(InvalidInput, match="already"):
            ledger.record(AGENT, recorded)

    def test_assemblies_come_latest_first_a_page_at_a_time(self, store: TablesStore) -> None:
        ledger = store.ledger
        made = [make_assembly(f"number {number}", days=number) for number in range(4)]
        for each in made:
            ledger.record(AGENT, each)
        made.reverse()
        assert ledger.find(AGENT) == tuple(made)
        assert ledger.find(AGENT, limit=2) == tuple(made[:2])
        assert ledger.find(AGENT, limit=2, after=made[1].id) == tuple(made[2:])
        assert ledger.find(AGENT, since=made[1].at) == tuple(made[:2])
        assert ledger.find("nobody") == ()
        with pytest.raises(NotFound):
            ledger.find(AGENT, after=make_id("nowhere"))
        with pytest.raises(InvalidInput, match="negative"):
            ledger.find(AGENT, limit=-1)

    def test_feedback_shows_in_what_was_recorded(self, store: TablesStore) -> None:
        ledger = store.ledger
        one, two = added(store, "one", "two")
        recorded = make_assembly("one", [one, two])
        ledger.record(AGENT, recorded)
        store.apply(AGENT, [RecordUse(memory_id=one.id, context=KEY, used=True, at=START)])
        found = ledger.get(AGENT, recorded.id)
        assert found is not None
        assert [entry.used for entry in found.entries] == [True, None]

    def test_a_purge_takes_the_entries_and_the_hashes_of_what_stood_there(self, store: TablesStore) -> None:
        ledger = store.ledger
        one, two, three = added(store, "one", "two", "three")
        with_it, beside = make_assembly("in", [one, two, three]), make_assembly("beside", [two, three])
        left_out = make_assembly("out", [two, one])
        for each in (with_it, beside, left_out):
            ledger.record(AGENT, each)
        store.apply(AGENT, [Purge(memory_id=one.id, at=START)])
        found = [ledger.get(AGENT, each.id) for each in (with_it, beside, left_out)]
        assert [each and each.sha256 for each in found] == [None, beside.sha256, left_out.sha256]
        assert [each and each.purged for each in found] == [1, 0, 1]
        assert all(each and all(entry.memory_id != one.id for entry in each.entries) for each in found)

    def test_what_was_purged_before_it_was_recorded_leaves_no_hash(self, store: TablesStore) -> None:
        ledger = store.ledger
        one, two = added(store, "one", "two")
        store.apply(AGENT, [Purge(memory_id=one.id, at=START)])
        recorded = make_assembly("one", [one, two])
        ledger.record(AGENT, recorded)
        found = ledger.get(AGENT, recorded.id)
        assert found is not None
        assert (found.sha256, found.purged) == (None, 1)

    def test_the_point_moves_with_the_memories_of_its_agent_only(self, store: TablesStore) -> None:
        ledger = store.ledger
        before = ledger.point(AGENT)
        added(store, "theirs", agent="other")
        ledger.record(AGENT, make_assembly("one"))
        assert ledger.point(AGENT) == before
        added(store, "one")
        assert ledger.point(AGENT) != before

    def test_what_happened_since_is_reported(self, store: TablesStore) -> None:
        ledger = store.ledger
        old, forgotten, purged, calm = added(store, "old", "forgotten", "purged", "calm")
        point = ledger.point(AGENT)
        assert ledger.changes_since(AGENT, point) == ()
        (new,) = added(store, "new")
        revised = make_revision(old, "revised")
        store.apply(
            AGENT,
            [
                Revise(memory=revised),
                SetStatus(memory_id=forgotten.id, status=Status.FORGOTTEN, at=START),
                Purge(memory_id=purged.id, at=START),
            ],
        )
        changes = ledger.changes_since(AGENT, point)
        assert set(changes) == {
            MemoryChange(what=MemoryChangeKind.ADDED, memory_id=new.id),
            MemoryChange(what=MemoryChangeKind.ADDED, memory_id=revised.id),
            MemoryChange(what=MemoryChangeKind.REVISED, memory_id=old.version_id),
            MemoryChange(what=MemoryChangeKind.FORGOTTEN, memory_id=forgotten.id),
            MemoryChange(what=MemoryChangeKind.PURGED),
        }
        assert all(each.memory_id != calm.id for each in changes)

    def test_the_memories_of_a_point_are_as_they_were(self, store: TablesStore) -> None:
        ledger = store.ledger
        old, forgotten, calm = added(store, "old", "forgotten", "calm")
        point = dict(ledger.point(AGENT))
        was = {each.id: each for each in (old, forgotten, calm)}
        assert then(store) == was
        added(store, "new")
        added(store, "theirs", agent="other")
        revised = make_revision(old, "revised")
        store.apply(
            AGENT,
            [
                Revise(memory=revised),
                SetStatus(memory_id=forgotten.id, status=Status.FORGOTTEN, at=forgotten.updated_at),
            ],
        )
        found = then(store, point)
        assert found[calm.id] == calm
        stood = {each: (found[each].status, found[each].superseded_by) for each in found}
        assert stood == dict.fromkeys(was, (Status.ACTIVE, None))

    def test_a_look_back_leaves_the_store_as_it_is(self, store: TablesStore) -> None:
        ledger = store.ledger
        (one,) = added(store, "one")
        point = dict(ledger.point(AGENT))
        added(store, "two")
        past = ledger.as_of(AGENT, point)
        past.apply(AGENT, [Purge(memory_id=one.id, at=START)])
        past.close()
        assert len(store.find(AGENT, Filter())) == 2
