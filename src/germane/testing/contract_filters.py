"""What a store promises of conditions, and of sessions, keys, validity and expiry.

A condition admits exactly the memories of which it is true.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import germane
from germane.errors import InvalidInput, NotFound
from germane.filters import And, Comparison, Condition, Not, Or, read_condition
from germane.model.change import Insert, Purge, Revise
from germane.model.memory import Memory, Scope, Status, Trust
from germane.model.query import Filter, Order, Query, Slice, TimeRange
from germane.protocols import Store
from germane.testing.contract_changes import AGENT, EVERY
from germane.testing.fakes import START, FixedClock, make_memory, make_revision

# ruff: noqa: S101 - a contract asserts.

_VALUES: tuple[Any, ...] = (
    *(
        "core",
        "Core",
        "core team",
        "",
        "é",
        "e\u0301",
        "\U0001f600",
        "\uffff",
        "a\x00b",
        "a",
        "a\x01",
        "a\x00",
    ),
    *(r"a\u0000b", r"\u0001", 'it\'s "so"', "a\\b % _", "10", "9", "true", "null"),
    *(0, 1, -1, 1.0, 0.1, 0.5, 1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, 2**63, -(2**63)),
    *(-(2**63) - 1, float(2**63), 10**30, -(10**300), 1e16, 10**16 + 1, -0.0, True, False, None),
    *(
        "2026-03-01",
        "2026-02-30",
        "2024-02-29",
        "2026-03-01T00:00Z",
        "2026-03-01 01:00:00+01:00",
        "0000-01-01",
    ),
    *("2026-03-01T00:00:00.5", "2026-02-28T23:59:59.999999Z", "2026-03-01T24:00", "2026-03-01Z", "2026-3-1"),
    *("2026-03-01T00:00:00.", "2026-03-01T00:00:00.1234567", "2026-03-01T00:00+15:00", "2026-03-01\n"),
    *("2026-03-01T00:60", "2026-03-01\x00", "0001-01-01T00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("\u0662026-03-01", "2026-03-01T00:00:00-00:30", "2026-13-01", "2026-03-01-05:00", "2026-03-01T12"),
)
_STORED: tuple[Any, ...] = (*_VALUES, 10**400, -(10**400), [1, "core"], {"core": 1}, [], {})
_COMPARED: tuple[Any, ...] = (
    *_VALUES,
    *(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 0, 0, 0, 500_000, tzinfo=UTC), START),
    *(
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2026, 3, 1, 0, 30, tzinfo=UTC),
    ),
)


class ConditionsContract:
    """Conditions on metadata and on own fields."""

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("team = 'core'", {"one"}),
            ("team != 'core'", {"two", "three"}),
            ("not team = 'core'", {"two", "three"}),
            ("team exists and not team = 'core'", {"two"}),
            ("score >= 3", {"one"}),
            ("not score >= 3", {"two", "three"}),
            ("score < 3 or score >= 3", {"one", "two"}),
            ("score between 2 and 3", {"one", "two"}),
            ("score = 2 and score = 2.0", {"two"}),
            ("score in ('2', 3, null)", {"one"}),
            ("score not in (3)", {"two", "three"}),
            ("done = true", {"one"}),
            ("done = 1", {"two"}),
            ("done = null", {"three"}),
            ("done exists", {"one", "two", "three"}),
            ("due < 2026-03-01", {"one"}),
            ("due = 2026-03-01", {"two"}),
            ("due > 2026-03-01", set()),
            ("due >= 'soo'", {"three"}),
            ("ticket.owner.name = 'ann'", {"one"}),
            ("ticket.owner exists", {"one", "two"}),
            ("ticket.owner.name.x exists", set()),
            ('"ticket.owner" = 1', {"three"}),
            ('"it\'s \\"so\\"" = "a\\u0000b" and "k\\u0000" = 1', {"three"}),
            ('"it\'s \\"so\\"" = "a" or "k" = 1 or "k\\u0000" > 1', set()),
            ("(team = 'core' or score >= 2) and not (done = true or due < 2026-03-01)", {"two"}),
            ('kind = "note" and "kind" = "own"', {"two"}),
            ("labels = 'a' or labels.a = 1 or labels = 0", set()),
            ("labels exists", {"one"}),
            ("tag = 'a'", {"one", "two"}),
            ("tag != 'a'", {"three"}),
            ("tag startswith 'a:b'", {"one"}),
            ("subject exists", {"one"}),
            ("subject != 'storage'", {"two", "three"}),
            ("scope startswith 'task:'", {"three"}),
            ("created_at >= 2026-01-05T10:00", {"two", "three"}),
            ("pinned = true or importance > 4", {"two", "three"}),
            ("trust != 'external'", {"one", "two"}),
        ],
    )
    def test_what_conditions_mean(self, store: Store, where: str, expected: set[str]) -> None:
        later = START + timedelta(hours=1)
        owned = {"ticket": {"owner": {"name": "ann"}}, "labels": ["a"]}
        one = {"team": "core", "score": 3, "done": True, "due": "2026-02-28T23:59", **owned}
        two = {"team": "Core", "score": 2.0, "done": 1, "due": "2026-03-01T01:00+01:00", "kind": "own"}
        three = {
            "score": "3",
            "done": None,
            "due": "soon",
            "ticket.owner": 1,
            "k\x00": 1,
            'it\'s "so"': "a\x00b",
        }
        more = {"ticket": {"owner": "ann"}}
        memories = (
            make_memory("one", tags=("a:b",), subject="storage", metadata=one),
            make_memory(
                "two", kind="note", tags=("a", "c"), importance=5.0, metadata=two | more, created_at=later
            ),
            make_memory(
                "three",
                pinned=True,
                trust=Trust.EXTERNAL,
                scope=Scope(name="task", value="T-1"),
                metadata=three,
                created_at=later,
            ),
        )
        _insert(store, memories)
        condition = read_condition(where)
        assert {each.content for each in memories if condition.admits(each)} == expected
        assert {each.content for each in store.find(AGENT, Filter(where=where))} == expected
        results = store.search(AGENT, Query(filter=Filter(where=where)))
        assert {each.memory.content for each in results.slices[0]} == expected

    def test_values_of_all_types_compare_alike(self, store: Store) -> None:
        memories = [make_memory(str(number), metadata={"x": value}) for number, value in enumerate(_STORED)]
        _insert(store, memories)
        for value in _COMPARED:
            ordered = value is not None and not isinstance(value, bool)
            for operator in ("=", "<", "<=", ">", ">=") if ordered else ("=",):
                _check(store, memories, Comparison("x", operator, value))
            if isinstance(value, str):
                _check(store, memories, Comparison("x", "startswith", value))

    def test_the_largest_conditions_run(self, store: Store) -> None:
        path = ".".join("abcdefgh")
        metadata: Any = "2026-01-05T09:30"
        for name in reversed(path.split(".")):
            metadata = {name: metadata}
        memories = [
            make_memory("deep", metadata=metadata),
            make_memory("flat", metadata={"a": "1"}, tags=("5",)),
        ]
        _insert(store, memories)
        leaf: Condition = Comparison(path, "=", START)
        for level in range(6):
            other = Comparison("b", "<", 2)
            leaf = Or((other, Not(leaf))) if level % 2 else And((other, Not(leaf)))
        _check(store, memories, leaf)
        _check(store, memories, Or(tuple(Comparison(path, ">", number) for number in range(200))))
        for value in (START, "x\x00", 1):
            values = (*(value if isinstance(value, datetime) else f"{value}{n}" for n in range(499)), value)
            _check(store, memories, Or((Comparison("a", "in", values), Comparison("tag", "in", values))))


def _insert(store: Store, memories: tuple[Memory, ...] | list[Memory]) -> None:
    store.apply(AGENT, [Insert(memory=each) for each in memories])


def _check(store: Store, memories: tuple[Memory, ...] | list[Memory], condition: Condition) -> None:
    where = Filter(where=condition, statuses=())
    expected = {each.metadata.get("number", each.id): each for each in memories if condition.admits(each)}
    found = {each.metadata.get("number", each.id): each for each in store.find(AGENT, where)}
    assert found == expected, str(condition)


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

    def test_a_filter_asks_for_the_last_eight_digits_of_an_id(self, store: Store) -> None:
        first = make_memory("Old street 1.")
        other = make_memory("Likes tea.", id=f"0190aaaa-0000-7000-8000-0000{first.id[-8:]}")
        revised = make_revision(first, "New street 2.")
        store.apply(AGENT, [Insert(memory=first), Insert(memory=other), Insert(memory=make_memory("Rome."))])
        store.apply(AGENT, [Revise(memory=revised)])
        store.apply("other", [Insert(memory=make_memory("Far away 3.", id=first.id, agent="other"))])
        short = Filter(short_id=first.id[-8:])
        assert _contents(store, short) == {revised.content, other.content}
        assert _contents(store, replace(EVERY, short_id=first.id[-8:])) == {
            first.content,
            revised.content,
            other.content,
        }
        assert _contents(store, Filter(short_id="ffffffff")) == set()
        store.apply(AGENT, [Purge(memory_id=first.id, at=LATER)])
        assert _contents(store, short) == {other.content}

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
