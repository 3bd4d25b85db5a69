"""Conditions in filters, verbs, plans, the command line and the ledger, and what is refused."""

# ruff: noqa: E501 - The messages stand as users see them.

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

import germane
from commandline import run
from germane import Engine, Filter, InvalidInput, Plan, Section, Share
from germane.filters import (
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PARTS,
    MAX_VALUES,
    And,
    Comparison,
    Not,
    Or,
    read_condition,
)
from germane.testing.fakes import FixedClock, make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(name="engine")
def _engine(tmp_path: Path) -> Iterator[Engine]:
    with germane.open(tmp_path / "agent.db", clock=FixedClock(NOW), embedder=None) as engine:
        engine.remember("The cache is Redis.", kind="fact", metadata={"team": "core", "score": 3})
        engine.remember("The cache was Memcached.", kind="fact", metadata={"team": "core", "score": 1})
        engine.remember("The cache of the shop is Varnish.", kind="fact", metadata={"team": "shop"})
        yield engine


@pytest.mark.parametrize(
    "where",
    [
        "team = 'core' and score >= 3",
        {"team": "core", "score": {"$gte": 3}},
        Filter(where="team = 'core' and score >= 3"),
        Filter(metadata={"team": "core"}, where="score between 2 and 4"),
    ],
)
def test_every_verb_takes_a_condition(engine: Engine, where: Filter | str | Mapping[str, Any]) -> None:
    only = ["The cache is Redis."]
    assert [each.content for each in engine.memories(where)] == only
    assert engine.count(where) == 1
    assert engine.filter_warnings(where) == ()
    assert [each.memory.content for each in engine.recall("cache", where=where)] == only
    context = engine.assemble("cache", where=where)
    assert [item.memory.content for item in context.items] == only
    refreshed = engine.refresh(context, "which cache do we use?", where=where)
    assert [item.memory.content for item in refreshed.context.items] == only
    request = engine.request([{"role": "user", "content": "Which cache?"}], memory="relevance", where=where)
    assert request.memory is not None
    assert [item.memory.content for item in request.memory.items] == only


def test_a_section_filters_by_a_condition_within_that_of_the_call(engine: Engine) -> None:
    shares = {"heading": "## Cache", "share": Share(weight=1)}
    plan = Plan(name="own", sections=(Section(name="low", where=Filter(where="score < 2"), **shares),))  # type: ignore[arg-type]  # Of two types.
    texts = [item.memory.content for item in engine.assemble("cache", plan=plan).items]
    assert texts == ["The cache was Memcached."]
    assert engine.assemble("cache", plan=plan, where="score > 2").items == ()


def test_the_ledger_records_a_condition_and_replays_it(engine: Engine) -> None:
    context = engine.assemble("cache", where='score >= 3 and "kind" != "x"', record=True)
    (recorded,) = engine.ledger().list()
    assembly = engine.ledger().show(recorded.id)
    assert assembly.where == context.trace.where
    assert str(assembly.where.where) == 'score >= 3 and "kind" != "x"'
    assert engine.ledger().replay(recorded.id).same


@pytest.mark.usefixtures("engine")
def test_the_command_line_takes_a_condition(tmp_path: Path) -> None:
    for command in (("recall", "cache"), ("assemble", "cache"), ("memory", "list")):
        out = run(*command, "--where", 'team = "core" and score >= 3', db=tmp_path / "agent.db").out
        assert "Redis" in out
        assert "Memcached" not in out
        assert "Varnish" not in out
    ran = run("memory", "list", "--where", "team = core", db=tmp_path / "agent.db")
    assert ran.code == 2
    assert ran.err == snapshot("""\
germane: where can't be read at character 8: expected a text in quotes, a number, a date, true, false or null; found 'core'.
  team = core
         ^
""")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "team",
            snapshot("""\
where can't be read at character 5: expected =, !=, <, <=, >, >=, in, between, startswith or exists; found the end.
  team
      ^\
"""),
        ),
        (
            "team = core",
            snapshot("""\
where can't be read at character 8: expected a text in quotes, a number, a date, true, false or null; found 'core'.
  team = core
         ^\
"""),
        ),
        (
            "score >= 3 and (due < 2026-03-01",
            snapshot("""\
where can't be read at character 33: expected `and`, `or` or `)`; found the end.
  score >= 3 and (due < 2026-03-01
                                  ^\
"""),
        ),
        (
            "due < 2026-02-30",
            snapshot("""\
where can't be read at character 7: '2026-02-30' is no date of the years 1 to 9999. Write one such as 2026-03-01, 2026-03-01T12:00 or 2026-03-01T12:00:00.5+01:00.
  due < 2026-02-30
        ^\
"""),
        ),
        (
            "created_at >= 'soon'",
            snapshot("""\
where can't be read at character 1: 'soon' is no date of the years 1 to 9999. Write one such as 2026-03-01, 2026-03-01T12:00 or 2026-03-01T12:00:00.5+01:00.
  created_at >= 'soon'
  ^\
"""),
        ),
        (
            "score < true",
            snapshot("""\
where can't be read at character 1: score < true: true, false and null have no order.
  score < true
  ^\
"""),
        ),
        (
            "owner in ()",
            snapshot("""\
where can't be read at character 11: expected a text in quotes, a number, a date, true, false or null; found ')'.
  owner in ()
            ^\
"""),
        ),
        (
            "score between 1 or 2",
            snapshot("""\
where can't be read at character 17: expected `and` and the second value; found 'or'.
  score between 1 or 2
                  ^\
"""),
        ),
        (
            "name startswith 3",
            snapshot("""\
where can't be read at character 1: name startswith 3: the value has to be a text.
  name startswith 3
  ^\
"""),
        ),
        (
            "name = 'ann",
            snapshot("""\
where can't be read at character 8: expected a text that ends in a quote; found "'".
  name = 'ann
         ^\
"""),
        ),
        (
            "not in = 3",
            snapshot("""\
where can't be read at character 5: expected a field such as team or ticket.owner, in quotes if it is a word such as in; found 'in'.
  not in = 3
      ^\
"""),
        ),
        (
            "x = 1 # y",
            snapshot("""\
where can't be read at character 7: expected a field, operator or value; found '#'.
  x = 1 # y
        ^\
"""),
        ),
        (
            f"{'name = 1 and ' * 20}x == 1",
            snapshot("""\
where can't be read at character 264: expected a text in quotes, a number, a date, true, false or null; found '='.
  = 1 and name = 1 and name = 1 and name = 1 and x == 1
                                                    ^\
"""),
        ),
    ],
)
def test_an_error_shows_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_condition(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no condition"),
        ({"$or": []}, "one condition or more"),
        ({"$nor": [{"a": 1}]}, r"\$nor.*unknown"),
        ({"a": {"b": 1}}, "'ticket.owner'"),
        ({"a": ["b"]}, "can't be compared"),
        ({"a": {"$in": []}}, r"\$in"),
        ({"a": {"$date": "soon"}}, "no date"),
        ({"a": float("nan")}, "can't be compared"),
        ({"a": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001 - That is the point.
        ({"a.": 1}, "can't be read"),
        ({"a": "\ud800"}, "surrogate"),
        (5, "where=5 is int"),
        ("a = 1 or " * 200 + "a = 1", str(MAX_COMPARISONS)),
        (f"a in ({'1, ' * MAX_VALUES}1)", str(MAX_VALUES)),
        ("(" * (MAX_DEPTH + 1) + "a = 1" + ")" * (MAX_DEPTH + 1), str(MAX_DEPTH)),
        ("not " * (MAX_DEPTH + 1) + "a = 1", str(MAX_DEPTH)),
        ("a" * (MAX_LENGTH + 1), f"{MAX_LENGTH:,}"),
        (".".join("a" * (MAX_PARTS + 1)) + " = 1", str(MAX_PARTS)),
    ],
)
def test_what_is_no_condition_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Filter(where=given)


def test_nested_deeper_than_python_can_is_refused() -> None:
    nested: dict[str, Any] = {"a": 1}
    for _ in range(5000):
        nested = {"$not": nested}
    with pytest.raises(InvalidInput, match="nested deeper"):
        read_condition(nested)
    condition: Any = Comparison("a", "=", 1)
    for _ in range(MAX_DEPTH):
        condition = Not(condition)
    with pytest.raises(InvalidInput, match="nested deeper"):
        Not(condition)


def test_values_that_python_calls_equal_are_not() -> None:
    several = [Filter(where=Comparison("a", "=", value)) for value in (1, 1.0, True, "1", 0, False, None)]
    assert len(set(several)) == len(several)
    assert Filter(where="a = 1") == Filter(where={"a": 1})


def test_a_condition_is_written_in_one_way() -> None:
    assert str(read_condition("a=1 AND b NOT IN ('x') or not (c Between 1 and 2)")) == snapshot(
        '(a = 1 and not b in ("x")) or not (c >= 1 and c <= 2)'
    )
    assert str(read_condition({"my key.b": {"$nin": [1, None]}, "$not": {"kind": "x"}})) == snapshot(
        'not "my key".b in (1, null) and not kind = "x"'
    )
    assert str(read_condition("metadata.kind = 1 or 'kind' = 1")) == '"kind" = 1 or "kind" = 1'
    assert str(Comparison("due", ">", date(2026, 3, 1))) == "due > 2026-03-01"
    assert str(Comparison("due", ">", NOW)) == "due > 2026-11-21T12:00:00Z"
    assert Comparison("created_at", "<", "2026-03-01").value == datetime(2026, 3, 1, tzinfo=UTC)


def test_conditions_are_joined_by_operators() -> None:
    one, two = Comparison("a", "exists"), Comparison("b", "=", "x")
    assert (one & two, one | two, ~one) == (And((one, two)), Or((one, two)), Not(one))
    assert pickle.loads(pickle.dumps(one & ~two)) == one & ~two  # noqa: S301 - The test has made it.


def test_a_missing_field_and_another_type_are_false() -> None:
    memory = make_memory(metadata={"score": "high", "flag": True, "items": [1]})
    for text in ("score > 3", "score <= 3", "flag = 1", "items = 1", "other = null", "subject = null"):
        assert not read_condition(text).admits(memory)
        assert read_condition(f"not {text}").admits(memory)
