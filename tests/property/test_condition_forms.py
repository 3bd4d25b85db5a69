"""Conditions: text and JSON are read back as the same value, and both databases admit what Python admits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from germane import Filter, InvalidInput, Memory
from germane.filters import OWN_FIELDS, And, Comparison, Condition, Not, Or, read_condition
from germane.protocols import Store
from germane.stores import Insert, PostgresStore, SqliteStore
from germane.testing.fakes import START, make_memory
from support.examples import examples

NAMES = ("a", "b", "c d", "x.y", "ключ", "k\x00", "q\"'", "in", "kind", "metadata", "0")
texts = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.text("a\x00\x01\u0000\\u1'\"é\U0001f600", max_size=5)
    | st.sampled_from(("core", "2026-03-01", "2026-03-01T10:00:00.25Z", "2026-02-30", "9" * 30))
)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)) | st.datetimes(  # noqa: DTZ001 - The time zone is a strategy of its own.
    datetime(2026, 3, 1), datetime(2026, 3, 2), timezones=st.just(UTC)  # noqa: DTZ001 - As above.
)  # fmt: skip
dates = st.builds(
    lambda moment, zone, separator: moment.replace(tzinfo=None).isoformat(separator) + zone,
    moments,
    st.sampled_from(("", "Z", "+01:00", "-11:30", "+14:00", "+16:00", "z", " ")),
    st.sampled_from(("T", " ", "t")),
)
numbers = (
    st.integers()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-3, 3).map(float)
)
scalars = texts | dates | numbers | st.booleans() | st.none()
stored = st.recursive(
    scalars | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=4,
)
ordered = texts | dates | numbers | moments


def quoted(part: str) -> str:
    return json.dumps(part, ensure_ascii=False)


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(
    lambda parts: ".".join(map(quoted, parts))
)
own = st.sampled_from([name for name in OWN_FIELDS if not name.endswith("_at")])
orders: Any = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
equals: Any = st.sampled_from(("=", "!="))
comparisons = (
    st.builds(Comparison, paths | own, orders, ordered)
    | st.builds(Comparison, st.sampled_from(("created_at", "updated_at")), orders, moments | numbers)
    | st.builds(Comparison, paths | own, equals, scalars | moments)
    | st.builds(Comparison, paths | own, st.just("startswith"), texts)
    | st.builds(Comparison, paths | own, st.just("in"), st.lists(scalars | moments, min_size=1, max_size=4))
    | st.builds(Comparison, paths | own, st.just("exists"))
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)
memories = st.builds(
    make_memory,
    st.text("abc ", min_size=1, max_size=20).map(lambda text: f"memory {text}"),
    kind=st.sampled_from(("fact", "note")),
    subject=st.none() | st.sampled_from(("core", "a\x01", "2026-03-01")),
    tags=st.lists(st.sampled_from(("a", "a:b", "core")), max_size=2, unique=True).map(tuple),
    importance=st.floats(0, 10),
    pinned=st.booleans(),
    created_at=st.sampled_from((START, datetime(2026, 3, 1, tzinfo=UTC))),
    metadata=st.dictionaries(st.sampled_from(NAMES), stored, max_size=5),
)
several = st.lists(
    memories, max_size=5, unique_by=(lambda memory: memory.content_hash, lambda memory: memory.id)
)


@settings(max_examples=examples(800))
@given(conditions)
def test_both_forms_are_read_back_as_an_equal_value(condition: Condition) -> None:
    assert read_condition(str(condition)) == condition
    assert read_condition(json.loads(json.dumps(condition.to_dict()))) == condition
    assert hash(read_condition(str(condition))) == hash(condition)
    assert Filter(where=str(condition)) == Filter(where=condition.to_dict()) == Filter(where=condition)


@settings(max_examples=examples(800))
@given(conditions, several)
def test_a_negated_condition_is_the_complement(condition: Condition, given_memories: list[Memory]) -> None:
    for memory in given_memories:
        assert (~condition).admits(memory) is not condition.admits(memory)
        assert (condition & ~condition).admits(memory) is False
        assert (condition | ~condition).admits(memory) is True


tokens = st.sampled_from(
    ["and", "or", "not", "in", "between", "exists", "startswith", "(", ")", ",", ".", "=", "<=", '"', "'",
     "\\", "team", "1", "-2.5e3", "2026-03-01", "true", "null", " ", "\n", '"x"', "é", "\x00", "$"]
)  # fmt: skip


@settings(max_examples=examples(2000))
@given(st.lists(tokens, max_size=25).map(" ".join) | st.lists(tokens, max_size=25).map("".join) | st.text())
@example("(" * 99_999)
@example("not " * 20_000 + "a = 1")
@example("a = 1 and " * 9_000 + "a = 1")
@example(f"a = {'9' * 90_000}")
@example(f"a in ({'1, ' * 30_000}1)")
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        found = read_condition(text)
    except InvalidInput as error:
        message = str(error)
        if "at character" in message:
            assert 1 <= int(message.partition("at character ")[2].partition(":")[0]) <= len(text) + 1
            assert message.splitlines()[-1].strip() == "^"
    else:
        assert read_condition(str(found)) == found


anything = st.recursive(
    scalars | moments | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "$and",
                    "$or",
                    "$not",
                    "$eq",
                    "$in",
                    "$nin",
                    "$exists",
                    "$between",
                    "$date",
                    "$x",
                    "a.b",
                    "",
                    '"',
                )
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=examples(1000))
@given(anything)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        found = read_condition(value)
    except InvalidInput:
        return
    assert read_condition(found.to_dict()) == found


agents = map("agent {}".format, count())


def check(store: Store, given_memories: Sequence[Memory], wanted: Sequence[Condition]) -> None:
    agent = next(agents)
    store.apply(agent, [Insert(memory=each.evolve(agent=agent)) for each in given_memories])
    for condition in wanted:
        found = store.find(agent, Filter(where=condition))
        expected = {each.id for each in given_memories if condition.admits(each)}
        assert {each.id for each in found} == expected, str(condition)


@settings(max_examples=examples(600), deadline=None)
@given(several, st.lists(conditions, min_size=1, max_size=6))
def test_sqlite_admits_what_conditions_admit(given_memories: list[Memory], wanted: list[Condition]) -> None:
    store = SqliteStore(":memory:")
    check(store, given_memories, wanted)
    store.close()


@settings(
    max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(given_memories=several, wanted=st.lists(conditions, min_size=1, max_size=6))
def test_postgresql_admits_what_conditions_admit(
    postgres_store: str, given_memories: list[Memory], wanted: list[Condition]
) -> None:
    store = PostgresStore(postgres_store)
    try:
        check(store, given_memories, wanted)
    finally:
        store.close()
