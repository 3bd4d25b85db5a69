"""What a store promises of conditions: it admits exactly the memories of which the condition is true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.filters import And, Comparison, Condition, Not, Or, read_condition
from germane.model.change import Insert
from germane.model.memory import Memory, Scope
from germane.model.query import Filter, Query
from germane.protocols import Store
from germane.testing.fakes import START, make_memory

# ruff: noqa: S101 - a contract asserts.

_AGENT = "tester"
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
                scope=Scope(name="task", value="T-1"),
                metadata=three,
                created_at=later,
            ),
        )
        _insert(store, memories)
        condition = read_condition(where)
        assert {each.content for each in memories if condition.admits(each)} == expected
        assert {each.content for each in store.find(_AGENT, Filter(where=where))} == expected
        results = store.search(_AGENT, Query(filter=Filter(where=where)))
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
    store.apply(_AGENT, [Insert(memory=each) for each in memories])


def _check(store: Store, memories: tuple[Memory, ...] | list[Memory], condition: Condition) -> None:
    where = Filter(where=condition, statuses=())
    expected = {each.metadata.get("number", each.id): each for each in memories if condition.admits(each)}
    found = {each.metadata.get("number", each.id): each for each in store.find(_AGENT, where)}
    assert found == expected, str(condition)
