"""What a store promises that keeps working sets: what is held, what became of it, and whose it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import numpy as np
import pytest

from germane import Memory, Status
from germane.errors import InvalidInput, NotFound, NotInWorkingSet
from germane.protocols import Store
from germane.stores import Insert, Purge, RecordUse, Revise, SetStatus
from germane.stores.location import WORKING_SETS
from germane.testing.fakes import START, make_id, make_memory, make_revision, make_vector
from germane.working_sets import (
    DEFAULT_MAX_TOKENS,
    AddItem,
    Clear,
    Pin,
    RemoveItem,
    Resize,
    SetChange,
    StoredWorkingSet,
    Touch,
    WorkingSetEvent,
    WorkingSetEventKind,
)

__all__ = ["HoldingContract"]

AGENT = "tester"
NAME = "default"


def at(minutes: int) -> datetime:
    """So many minutes after the memories were stored."""
    return START + timedelta(minutes=minutes)


def stored(store: Store, *texts: str, agent: str = AGENT) -> list[Memory]:
    """New memories of an agent."""
    memories = [make_memory(text, agent=agent) for text in texts]
    store.apply(agent, [Insert(memory=each) for each in memories])
    return memories


def entered(store: Store, *texts: str, agent: str = AGENT) -> list[Memory]:
    """New memories of an agent that its set holds, entered a minute apart."""
    memories = stored(store, *texts, agent=agent)
    enters = [AddItem(memory_id=one.id, at=at(minute)) for minute, one in enumerate(memories)]
    WORKING_SETS.required(store).apply(agent, NAME, enters)
    return memories


def contents(working: StoredWorkingSet) -> list[str]:
    """What a set holds, the one touched longest ago first."""
    return [one.memory.content for one in working.items]


def kinds(moves: tuple[WorkingSetEvent, ...] | None) -> list[tuple[str, str | None]]:
    """What became of which memory."""
    return [(move.kind.value, move.memory_id) for move in moves or ()]


class HoldingContract:
    """What the sub-store `working_sets` does."""

    def test_a_set_that_nobody_made_is_empty(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        for owner in (AGENT, "nobody"):
            assert holds.get(owner, NAME) == StoredWorkingSet(name=NAME, max_tokens=DEFAULT_MAX_TOKENS)
            assert (holds.names(owner), holds.events(owner), holds.latest_event(owner)) == ((), (), 0)

    def test_what_enters_is_stored_with_its_times(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, two = stored(store, "one", "two words")
        moves = holds.apply(
            AGENT,
            NAME,
            [
                AddItem(memory_id=one.id, at=at(1)),
                AddItem(memory_id=two.id, at=at(2), pinned=True, recalled=True),
            ],
        )
        assert moves is not None
        assert moves[0] == WorkingSetEvent(
            number=1,
            working_set=NAME,
            kind=WorkingSetEventKind.ADD,
            memory_id=one.id,
            former_id=None,
            by=AGENT,
            at=at(1),
        )
        working = holds.get(AGENT, NAME)
        first, second = working.items
        assert (first.memory, first.entered_at, first.touched_at) == (one, at(1), at(1))
        assert (first.touches, first.pinned, first.recalled, first.tokens) == (0, False, False, 1)
        assert (second.pinned, second.recalled, second.tokens) == (True, True, 2)
        assert second.order > first.order
        assert working.moved == holds.latest_event(AGENT) == 2
        assert holds.names(AGENT) == (NAME,)

    def test_entering_again_touches_and_never_doubles(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, _ = entered(store, "one", "two")
        again = AddItem(memory_id=one.id, at=at(5), pinned=True)
        assert kinds(holds.apply(AGENT, NAME, [again])) == [("touch", one.id), ("pin", one.id)]
        working = holds.get(AGENT, NAME)
        assert contents(working) == ["two", "one"]
        last = working.items[-1]
        assert (last.entered_at, last.touched_at, last.touches, last.pinned) == (at(0), at(5), 1, True)
        holds.apply(AGENT, NAME, [AddItem(memory_id=one.id, at=at(6))])
        assert holds.get(AGENT, NAME).items[-1].pinned

    def test_a_clock_that_runs_backwards_moves_no_time_back(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, _ = entered(store, "one", "two")
        holds.apply(AGENT, NAME, [Touch(memory_id=one.id, at=at(-60))])
        working = holds.get(AGENT, NAME)
        assert contents(working) == ["two", "one"]
        assert working.items[-1].touched_at == at(0)

    def test_leaving_pinning_and_clearing(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, two, three = entered(store, "one", "two", "three")
        moves = holds.apply(
            AGENT,
            NAME,
            [
                Pin(memory_id=one.id, pinned=True, at=at(9)),
                Pin(memory_id=one.id, pinned=True, at=at(9)),
                RemoveItem(memory_id=two.id, at=at(9), evicted=True),
                Clear(at=at(9), keep_pinned=True),
            ],
        )
        assert kinds(moves) == [("pin", one.id), ("evict", two.id), ("clear", three.id)]
        assert contents(holds.get(AGENT, NAME)) == ["one"]
        moves = holds.apply(
            AGENT,
            NAME,
            [Pin(memory_id=one.id, pinned=False, at=at(10)), RemoveItem(memory_id=one.id, at=at(10))],
        )
        assert kinds(moves) == [("unpin", one.id), ("remove", one.id)]
        assert holds.get(AGENT, NAME).items == ()
        assert store.get(AGENT, [one.id, two.id, three.id]) == (one, two, three)

    @pytest.mark.parametrize("change", ["touch", "leave", "pin", "stranger", "unknown", "forgotten", "size"])
    def test_a_batch_that_fails_changes_nothing(self, store: Store, change: str) -> None:
        holds = WORKING_SETS.required(store)
        (one,) = entered(store, "one")
        (outside, gone) = stored(store, "outside", "gone")
        store.apply(AGENT, [SetStatus(memory_id=gone.id, status=Status.FORGOTTEN, at=at(1))])
        (stranger,) = stored(store, "theirs", agent="other")
        bad: dict[str, tuple[SetChange, type[Exception]]] = {
            "touch": (Touch(memory_id=outside.id, at=at(2)), NotInWorkingSet),
            "leave": (RemoveItem(memory_id=outside.id, at=at(2)), NotInWorkingSet),
            "pin": (Pin(memory_id="no id", pinned=True, at=at(2)), NotInWorkingSet),
            "stranger": (AddItem(memory_id=stranger.id, at=at(2)), NotFound),
            "unknown": (AddItem(memory_id=make_id("unknown"), at=at(2)), NotFound),
            "forgotten": (AddItem(memory_id=gone.id, at=at(2)), InvalidInput),
            "size": (Resize(max_tokens=-1, at=at(2)), InvalidInput),
        }
        before, moved = holds.get(AGENT, NAME), holds.latest_event(AGENT)
        with pytest.raises(bad[change][1]):
            holds.apply(AGENT, NAME, [Touch(memory_id=one.id, at=at(2)), bad[change][0]])
        assert (holds.get(AGENT, NAME), holds.latest_event(AGENT)) == (before, moved)

    def test_a_decision_on_what_is_past_is_not_done(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        (one,) = entered(store, "one")
        seen = holds.get(AGENT, NAME).moved
        assert holds.apply(AGENT, NAME, [Touch(memory_id=one.id, at=at(1))], seen=seen)
        before = holds.get(AGENT, NAME)
        assert holds.apply(AGENT, NAME, [RemoveItem(memory_id=one.id, at=at(2))], seen=seen) is None
        assert holds.get(AGENT, NAME) == before
        assert holds.apply(AGENT, "another", [AddItem(memory_id=one.id, at=at(2))], seen=0)
        assert holds.apply(AGENT, NAME, [RemoveItem(memory_id=one.id, at=at(2))], seen=before.moved)

    def test_sets_of_other_names_and_owners_are_apart(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        (mine,) = entered(store, "mine")
        (theirs,) = entered(store, "theirs", agent="other")
        holds.apply(AGENT, "plan", [Resize(max_tokens=50, at=at(1)), AddItem(memory_id=mine.id, at=at(1))])
        holds.apply(AGENT, NAME, [Clear(at=at(2))])
        assert contents(holds.get(AGENT, NAME)) == []
        assert contents(holds.get(AGENT, "plan")) == ["mine"]
        assert contents(holds.get("other", NAME)) == ["theirs"]
        assert (
            holds.get(AGENT, "plan").max_tokens,
            holds.get(AGENT, NAME).max_tokens,
        ) == (50, 128_000)
        assert holds.names(AGENT) == (NAME, "plan")
        assert {move.memory_id for move in holds.events("other")} == {theirs.id}

    def test_the_log_is_read_from_any_move_on(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, two = entered(store, "one", "two")
        holds.apply(AGENT, NAME, [RemoveItem(memory_id=one.id, at=at(3))], by="helper")
        assert kinds(holds.events(AGENT, since=1)) == [("add", two.id), ("remove", one.id)]
        assert [move.by for move in holds.events(AGENT, since=1)] == [AGENT, "helper"]
        assert [move.number for move in holds.events(AGENT, limit=2)] == [1, 2]
        assert holds.events(AGENT, since=3) == ()
        with pytest.raises(InvalidInput):
            holds.events(AGENT, limit=-1)

    def test_what_is_forgotten_leaves_every_set(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, two = entered(store, "one", "two")
        holds.apply(AGENT, "plan", [AddItem(memory_id=one.id, at=at(1))])
        since = holds.latest_event(AGENT)
        store.apply(AGENT, [SetStatus(memory_id=one.id, status=Status.FORGOTTEN, at=at(4))])
        assert (
            contents(holds.get(AGENT, NAME)),
            contents(holds.get(AGENT, "plan")),
        ) == (["two"], [])
        gone = holds.events(AGENT, since=since)
        assert [(move.working_set, move.kind, move.memory_id, move.at) for move in gone] == [
            (NAME, WorkingSetEventKind.FORGET, one.id, at(4)),
            ("plan", WorkingSetEventKind.FORGET, one.id, at(4)),
        ]
        store.apply(AGENT, [SetStatus(memory_id=one.id, status=Status.ACTIVE, at=at(5))])
        assert contents(holds.get(AGENT, NAME)) == ["two"]
        assert kinds(holds.events(AGENT, since=holds.latest_event(AGENT))) == []
        assert store.get(AGENT, [two.id]) == (two,)

    def test_what_is_purged_leaves_and_stays_in_the_log(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, _ = entered(store, "one", "two")
        store.apply(AGENT, [Purge(memory_id=one.id, at=at(4))])
        assert contents(holds.get(AGENT, NAME)) == ["two"]
        assert kinds(holds.events(AGENT))[-1] == ("purge", one.id)

    def test_a_revision_takes_the_place_of_what_it_revises(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, _ = entered(store, "one", "two")
        holds.apply(AGENT, NAME, [Pin(memory_id=one.id, pinned=True, at=at(2))])
        before = holds.get(AGENT, NAME).items[0]
        new = make_revision(one, "one and a half")
        store.apply(AGENT, [Revise(memory=new)])
        working = holds.get(AGENT, NAME)
        assert contents(working) == ["one and a half", "two"]
        assert working.items[0] == before.evolve(memory=new, tokens=4)
        (*_, move) = holds.events(AGENT)
        assert (move.kind, move.memory_id, move.former_id) == (
            WorkingSetEventKind.REVISE,
            one.id,
            one.version_id,
        )
        assert working.moved == move.number

    def test_an_old_version_enters_as_the_one_that_stands(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        (one,) = stored(store, "one")
        new = make_revision(one, "one and a half")
        store.apply(AGENT, [Revise(memory=new)])
        assert kinds(holds.apply(AGENT, NAME, [AddItem(memory_id=one.id, at=at(1))])) == [("add", new.id)]
        assert contents(holds.get(AGENT, NAME)) == ["one and a half"]

    def test_a_memory_of_a_set_is_seen_as_it_is_stored_now(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        one, _ = entered(store, "one", "two")
        assert holds.get(AGENT, NAME).items[0].memory.access_count == 0
        store.apply(AGENT, [RecordUse(memory_id=one.id, context="0a" * 16, used=True, at=at(3))])
        stored(store, "unrelated")
        working = holds.get(AGENT, NAME)
        assert working.items[0].memory == store.get(AGENT, [one.id])[0]
        assert working.items[0].memory.access_count == 1

    def test_reading_changes_nothing(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        entered(store, "one", "two")
        before = (holds.get(AGENT, NAME), holds.latest_event(AGENT))
        assert (holds.get(AGENT, NAME), holds.latest_event(AGENT)) == before
        assert holds.apply(AGENT, NAME, []) == ()
        assert holds.latest_event(AGENT) == before[1]

    def test_many_moves_at_once_are_all_noted_in_one_order(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        memories = stored(store, *(f"number {n}" for n in range(20)))

        def work(memory: Memory) -> None:
            for minute in range(5):
                holds.apply(AGENT, NAME, [AddItem(memory_id=memory.id, at=at(minute))])
                assert memory.id in {one.memory.id for one in holds.get(AGENT, NAME).items}
            if memory in memories[::2]:
                holds.apply(AGENT, NAME, [RemoveItem(memory_id=memory.id, at=at(6))])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, memories))
        moves = holds.events(AGENT)
        assert [move.number for move in moves] == list(range(1, 111))
        left = {one.memory.id: one for one in holds.get(AGENT, NAME).items}
        assert left.keys() == {memory.id for memory in memories[1::2]}
        last = {move.memory_id: move.number for move in moves}
        assert {one.order for one in left.values()} == {last[memory_id] for memory_id in left}
        assert {one.touches for one in left.values()} == {4}

    def test_features_are_those_of_the_index(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        near = make_memory("Redis keeps caches")
        vector = make_vector(1)
        store.apply(AGENT, [Insert(memory=near, vector=vector)])
        (bare,) = stored(store, "Postgres keeps tables")
        (theirs,) = stored(store, "Redis", agent="other")
        found = holds.features(AGENT, [bare.id, theirs.id, near.id, "no id"])
        assert [one is None for one in found] == [False, True, False, True]
        assert found[0] is not None
        assert found[2] is not None
        assert found[0].vector is None
        assert found[2].vector is not None
        assert np.allclose(found[2].vector, vector, atol=1e-3)
        common = set(found[0].hashes.tolist()) & set(found[2].hashes.tolist())
        assert len(common) == 1, "both keep something"
        assert found[2].hashes.tolist() == sorted(found[2].hashes.tolist())

    def test_names_are_names(self, store: Store) -> None:
        holds = WORKING_SETS.required(store)
        for owner, name in ((AGENT, ""), ("", NAME), (AGENT, "x" * 2000)):
            with pytest.raises(InvalidInput):
                holds.apply(owner, name, [Clear(at=at(0))])
