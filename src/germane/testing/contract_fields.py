"""The part of the store contract on sessions, keys, validity and expiry; `StoreContract` has all parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

import germane
from germane.errors import InvalidInput, NotFound
from germane.model.change import Insert, Purge, Revise
from germane.model.memory import Status
from germane.model.query import Filter, Order, Query, Slice, TimeRange
from germane.protocols import Store
from germane.testing.contract_changes import AGENT, EVERY
from germane.testing.fakes import START, FixedClock, make_memory, make_revision

__all__ = ["FieldsContract"]

# ruff: noqa: S101 - a contract asserts.

LATER = START + timedelta(hours=1)
_WRITERS = 4
_ROUNDS = 5


class FieldsContract:
    """What a store promises of `session`, `key`, `valid_from`, `valid_until` and `expires_at`."""

    def test_the_fields_come_back_as_they_were_stored(self, store: Store) -> None:
        memory = make_memory(
            session="s-1", key="address", valid_from=START, valid_until=LATER, expires_at=LATER
        )
        store.apply(AGENT, [Insert(memory=memory)])
        assert store.get(AGENT, [memory.id]) == (memory,)

    def test_a_filter_asks_for_a_session_and_for_the_current_memory_of_a_key(self, store: Store) -> None:
        old = make_memory("Old street 1.", session="s-1", key="address")
        new = make_revision(old, "New street 2.", session="s-2", key="address")
        other = make_memory("Likes tea.", session="s-1")
        store.apply(AGENT, [Insert(memory=old), Insert(memory=other), Revise(memory=new)])
        assert _contents(store, Filter(session="s-1", statuses=tuple(Status))) == {old.content, other.content}
        assert _contents(store, Filter(session="s-2")) == {new.content}
        assert _contents(store, Filter(key="address", statuses=tuple(Status))) == {new.content}
        assert _contents(store, Filter(key="name")) == set()

    def test_a_key_has_one_current_memory(self, store: Store) -> None:
        first = make_memory("Old street 1.", key="address")
        second = make_memory("New street 2.", key="address")
        store.apply(AGENT, [Insert(memory=first)])
        with pytest.raises(InvalidInput, match="address"):
            store.apply(AGENT, [Insert(memory=second)])
        assert store.find(AGENT, EVERY) == (first,)
        store.apply("other", [Insert(memory=make_memory("Far away 3.", key="address", agent="other"))])
        store.apply(AGENT, [Purge(memory_id=first.id, at=LATER), Insert(memory=second)])
        assert store.find(AGENT, EVERY) == (second,)

    def test_what_has_expired_by_a_time_is_not_found(self, store: Store) -> None:
        short = make_memory("Short words.", expires_at=LATER)
        long = make_memory("Long words.", expires_at=LATER + timedelta(hours=1))
        ever = make_memory("More words.")
        store.apply(AGENT, [Insert(memory=short), Insert(memory=long), Insert(memory=ever)])
        before, after = LATER - timedelta(microseconds=1), LATER
        # In turn, so that nothing of one time is remembered for another.
        for _ in range(3):
            assert _contents(store, Filter(), now=before) == {short.content, long.content, ever.content}
            assert _contents(store, Filter(), now=after) == {long.content, ever.content}
            assert _contents(store, Filter(), now=after + timedelta(hours=1)) == {ever.content}
            assert _contents(store, Filter(), now=None) == {short.content, long.content, ever.content}
        assert _contents(store, Filter(expires_by=LATER)) == {short.content}

    def test_all_versions_expire_with_the_current_one(self, store: Store) -> None:
        old = make_memory("Old street 1.")
        store.apply(AGENT, [Insert(memory=old)])
        assert _contents(store, EVERY, now=LATER) == {old.content}
        store.apply(AGENT, [Revise(memory=make_revision(old, "New street 2.", expires_at=LATER))])
        assert _contents(store, EVERY, now=LATER) == set()
        versions = store.get(AGENT, [f"{old.id}@1", old.id])
        assert [each and each.expires_at for each in versions] == [LATER, LATER]

    def test_the_same_memory_again_expires_when_it_says_now(self, store: Store) -> None:
        memory = make_memory(expires_at=LATER)
        store.apply(AGENT, [Insert(memory=memory)])
        assert _contents(store, Filter(), now=LATER) == set()
        again = memory.evolve(expires_at=LATER + timedelta(hours=1))
        (applied,) = store.apply(AGENT, [Insert(memory=again)])
        assert applied.memory == memory.repeated(again)
        assert store.get(AGENT, [memory.id]) == (applied.memory,)
        assert _contents(store, Filter(), now=LATER) == {memory.content}

    def test_what_has_expired_is_new_when_it_is_stored_again(self, store: Store) -> None:
        memory = make_memory(expires_at=LATER, key="address")
        again = make_memory("Something else.", key="address", updated_at=LATER)
        for new in (again, again.evolve(expires_at=LATER + timedelta(hours=1))):
            store.apply(AGENT, [Insert(memory=memory)])
            (applied,) = store.apply(AGENT, [Insert(memory=new)])
            assert applied.created
            assert store.find(AGENT, EVERY) == (new,)
            store.apply(AGENT, [Purge(memory_id=new.id, at=LATER)])
        store.apply(AGENT, [Insert(memory=memory)])
        known = Insert(memory=memory.evolve(expires_at=None), at=LATER)
        (applied,) = store.apply(AGENT, [known])
        assert (applied.created, applied.memory) == (True, memory.evolve(expires_at=None))

    def test_a_later_version_ends_the_validity_of_the_one_before(self, store: Store) -> None:
        old = make_memory("Rome.", valid_from=START)
        store.apply(AGENT, [Insert(memory=old)])
        store.apply(AGENT, [Revise(memory=make_revision(old, "Oslo.", valid_from=LATER))])
        (before,) = store.get(AGENT, [f"{old.id}@1"])
        assert before is not None
        assert (before.valid_from, before.valid_until) == (START, LATER)

    def test_a_filter_asks_for_what_holds_at_a_time(self, store: Store) -> None:
        hours = [START + timedelta(hours=number) for number in range(4)]
        texts = {
            "always": (None, None),
            "first": (None, hours[1]),
            "middle": (hours[1], hours[2]),
            "last": (hours[2], None),
        }
        for text, (start, end) in texts.items():
            store.apply(AGENT, [Insert(memory=make_memory(text, valid_from=start, valid_until=end))])
        expected = ({"first"}, {"middle"}, {"last"}, {"last"})
        for hour, found in zip(hours, expected, strict=True):
            assert _contents(store, Filter(valid_at=hour)) == {"always"} | found
        during = TimeRange(since=hours[0], until=hours[2])
        assert _contents(store, Filter(valid_at=during)) == {"always", "first", "middle"}
        assert _contents(store, Filter(valid_at=TimeRange(since=hours[2]))) == {"always", "last"}
        with pytest.raises(InvalidInput, match="only an engine can read"):
            store.find(AGENT, Filter(valid_at="2026"))

    def test_a_version_that_ends_leaves_what_holds_now(self, store: Store) -> None:
        old = make_memory("Rome.", valid_from=START)
        every, now = replace(EVERY, valid_at=LATER), replace(EVERY, valid_at=START)
        store.apply(AGENT, [Insert(memory=old)])
        assert _contents(store, every) == {"Rome."}
        store.apply(AGENT, [Revise(memory=make_revision(old, "Oslo.", valid_from=LATER))])
        assert _contents(store, every) == {"Oslo."}
        assert _contents(store, now) == {"Rome."}

    def test_writers_of_one_key_never_make_two_current_memories(self, store: Store) -> None:
        def write(writer: int) -> None:
            clock = FixedClock(START + timedelta(seconds=writer), timedelta(minutes=1))
            # To close an engine would close the store.
            engine = germane.open(store, agent=AGENT, embedder=None, clock=clock)
            for number in range(_ROUNDS):
                engine.remember(f"Street {number} of writer {writer}.", key="address")

        with ThreadPoolExecutor(_WRITERS) as threads:
            list(threads.map(write, range(_WRITERS)))
        (head,) = store.find(AGENT, Filter())
        assert (head.key, head.version) == ("address", _WRITERS * _ROUNDS)
        names = [f"{head.id}@{number}" for number in range(1, head.version + 1)]
        stored = [each for each in store.get(AGENT, names) if each is not None]
        assert len({each.content for each in stored}) == _WRITERS * _ROUNDS

    def test_maintain_removes_what_has_expired(self, store: Store) -> None:
        clock = FixedClock(START)
        engine = germane.open(store, agent=AGENT, embedder=None, clock=clock)
        gone = engine.remember("A passing thing of the day.", ttl=60)
        engine.revise(gone.id, "A passing thing of tonight.")
        stays = engine.remember("A thing that stays.", ttl=timedelta(days=1))
        clock.advance(timedelta(seconds=60))
        with pytest.raises(NotFound):
            engine.get(gone.id)
        assert store.get(AGENT, [gone.id]) != (None,)
        with suppress(InvalidInput):  # Not every store keeps lives.
            assert engine.maintain().done == 1
            assert store.find(AGENT, EVERY) == (stays,)


def _contents(store: Store, where: Filter, *, now: datetime | None = None) -> set[str]:
    """What passes a filter by a time. A search finds the same."""
    listed = {memory.content for memory in store.find(AGENT, where, now=now)}
    found = store.search(AGENT, Query(filter=where, slices=(Slice(order=Order.NEWEST),), now=now))
    assert {each.memory.content for each in found.slices[0]} == listed
    assert found.admitted == len(listed)
    return listed
