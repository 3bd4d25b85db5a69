"""PostgreSQL's SQL on a real server: every statement can be planned, and the plans are those meant."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from germane import GLOBAL, Filter, TimeRange
from germane.stores import migrate_store
from germane.testing.fakes import START
from support.postgres_rows import fill, multiply
from support.postgres_schema import (
    APPLICATION_ROLE,
    DISTRIBUTED,
    PARTITIONS,
    as_store,
    explaining,
    filtered_query,
    install,
    named_queries,
    numbered,
    plan_of,
    script,
)
from support.postgres_server import Server

# A function does it, and says what it did.
ANSWERED = {"add_agent", "purge_memory", "insert_assembled"}
TYPES = {
    "bigint",
    "bigint[]",
    "smallint",
    "integer",
    "text",
    "bytea",
    "double precision",
    "boolean",
    "halfvec",
    "void",
}
EVERYTHING = Filter(
    kinds=("a", "b"),
    tags=("a", "b"),
    scopes=(GLOBAL, GLOBAL),
    applies_to=(GLOBAL,),
    subject="s",
    when=TimeRange(since=START, until=START.replace(year=2030)),
    min_importance=1.0,
    pinned=True,
    embedded=True,
)
PLANNED = sorted(
    each for each in named_queries() if not each.startswith("where_") and "index_vectors" not in each
)
CONDITIONAL = [each for each in PLANNED if "{filter}" in named_queries()[each]]

Connection = psycopg.Connection[tuple[Any, ...]]


def is_partitioned(connection: Connection) -> bool:
    return bool(
        connection.execute(b"SELECT FROM pg_class WHERE relname = 'lex' AND relkind = 'p'").fetchall()
    )


def prepared(connection: Connection, text: str) -> tuple[list[str], list[str]]:
    """The types of the placeholders and of the columns of a statement, after it was planned."""
    connection.execute(f"PREPARE one AS {numbered(text)}".encode(), prepare=False)
    [(given, found)] = connection.execute(
        b"SELECT parameter_types::text[], result_types::text[] FROM pg_prepared_statements WHERE name = 'one'"
    )
    nothing = f"({', '.join(['NULL'] * len(given))})" if given else ""
    connection.execute(f"EXPLAIN EXECUTE one {nothing}".encode(), prepare=False)
    connection.execute(b"DEALLOCATE one")
    return given, found or []


@cache
def sqlite_file() -> str:
    """A file with the schema, for all tests of this process."""
    path = Path(tempfile.mkdtemp(), "agent.db")
    migrate_store(path)
    return str(path)


_SIZES = {"id": 16, "context": 16, "sha256": 32}


def columns_in_sqlite(name: str) -> int:
    connected = sqlite3.connect(sqlite_file())
    text = named_queries("sqlite")[name].replace("{filter}", "")
    names: dict[str, Any] = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    if "json_each(:nums)" in text:
        names |= {"nums": "[]"}
    # Values of these columns are bytes of one length.
    names |= {each: b"x" * size for each, size in _SIZES.items() if each in names}
    found = connected.execute(text, (1,) * text.count("?") if "?" in text else names).description
    connected.close()
    return len(found or ())


@pytest.mark.parametrize("name", PLANNED)
def test_every_query_can_be_planned(postgres_owner: Connection, name: str) -> None:
    _, found = prepared(postgres_owner, named_queries()[name])
    assert set(found) <= TYPES


@pytest.mark.parametrize("name", sorted(set(PLANNED) & set(named_queries("sqlite")) - ANSWERED))
def test_a_query_has_as_many_columns_as_in_sqlite(postgres_owner: Connection, name: str) -> None:
    text = named_queries()[name]
    if re.match("INSERT|UPDATE|DELETE", text) and "RETURNING" not in text:
        assert prepared(postgres_owner, text)[1] == []
    else:
        assert len(prepared(postgres_owner, text)[1]) == columns_in_sqlite(name)


@pytest.mark.parametrize("name", CONDITIONAL)
@pytest.mark.parametrize("embedded", [True, False])
def test_every_condition_can_be_planned(postgres_owner: Connection, name: str, embedded: bool) -> None:
    text, values = filtered_query(name, EVERYTHING, ["p"])
    other, more = filtered_query(name, Filter(embedded=embedded), [])
    parameters = {"agent": 1, "nums": "[1]", "above": 0, "below": 9, "limit": -1}
    parameters |= {"edge_id": None, "edge_time": None, "edge_importance": None}
    assert postgres_owner.execute(text.encode(), values | parameters).fetchall() == []
    assert postgres_owner.execute(other.encode(), more | parameters).fetchall() == []


def test_tables_are_partitioned_as_marked(postgres_owner: Connection) -> None:
    partitioned = {
        name for (name,) in postgres_owner.execute(b"SELECT relname FROM pg_class WHERE relkind = 'p'")
    }
    assert partitioned == (set(DISTRIBUTED) if is_partitioned(postgres_owner) else set())
    rows = postgres_owner.execute(
        b"SELECT count(*) FROM pg_inherits JOIN pg_class ON inhrelid = oid WHERE relkind = 'r'"
    )
    assert rows.fetchall() == [(PARTITIONS * len(partitioned),)]


KEYS = """
SELECT conrelid::regclass::text, confrelid::regclass::text, substring(pg_get_constraintdef(oid) FROM 'ON .*')
FROM pg_constraint
WHERE contype = 'f' AND confrelid <> ALL (ARRAY['agents'::regclass, 'spaces'::regclass])
"""
STORAGE = """
SELECT relname, relkind::text, reloptions::text FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
"""


@pytest.mark.parametrize("postgres_schema", ["partitioned"], indirect=True)
def test_rows_refer_to_the_partition_of_their_own_number(
    postgres_owner: Connection, postgres_server: Server
) -> None:
    found = set(postgres_owner.execute(KEYS.encode()))
    database = postgres_server.fresh()
    install(postgres_server.url(database))
    whole = postgres_server.run(KEYS, database=database)
    postgres_server.drop(database)
    assert len(whole) > len(DISTRIBUTED) // 2
    numbers = range(PARTITIONS)
    assert found == {(f"{one}_{n}", f"{other}_{n}", how) for one, other, how in whole for n in numbers}


def test_the_script_of_the_partitions_may_run_again(postgres_owner: Connection) -> None:
    count = PARTITIONS if is_partitioned(postgres_owner) else 0
    again = script("partitions.sql").replace("{partitions}", str(count))
    listings = (KEYS.encode(), STORAGE.encode())
    before = [sorted(postgres_owner.execute(each), key=repr) for each in listings]
    postgres_owner.execute(again.encode(), prepare=False)
    assert [sorted(postgres_owner.execute(each), key=repr) for each in listings] == before


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("records", {"nums": "[1]"}),
        ("block_rows", {"above": 0, "below": 9, "short": 9, "limit": -1}),
        ("memory_blocks", {"above": 0, "below": 9}),
        ("nums_by_head", {"hashes": '["h"]'}),
        ("changes", {"seq": 0}),
        ("similarities", {"asked": "[1,0,0,0,0,0,0,0]"}),
        ("life_events", {"since": 0, "nums": None, "limit": -1}),
        ("set_status", {"status": "active", "updated_at": 1, "num": 1}),
        ("remove_held", {"working_set": 1, "num": 1}),
    ],
)
@pytest.mark.parametrize("postgres_schema", ["partitioned"], indirect=True)
def test_an_agents_statement_looks_into_one_partition(
    postgres_owner: Connection, name: str, values: dict[str, Any]
) -> None:
    agent = fill(postgres_owner, "one")
    plan = plan_of(postgres_owner, named_queries()[name], {**values, "agent": agent})
    assert len(set(re.findall(r" on \w+?_(\d+)\b", plan))) == 1, plan
    assert "Append" not in plan


def nested_plans(connection: Connection, text: str, values: dict[str, Any]) -> str:
    """The plans of all that a statement ran, also inside functions."""
    heard = explaining(connection)
    connection.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    connection.execute(text.encode(), values, prepare=False).fetchall()
    return "\n".join(heard)


def with_words(connection: Connection, agent: int, *, count: int) -> dict[int, dict[int, int]]:
    """Store forward records of random terms for an agent; returns how often each term occurs in each."""
    random = np.random.default_rng(agent)
    stored: dict[int, dict[int, int]] = {}
    for seq in range(2, count + 2):
        hashes = np.unique(random.integers(0, 400, 12).astype(np.uint32) * np.uint32(10_000_019))
        often = random.integers(1, 255, hashes.size).astype(np.uint8)
        stored[(agent << 40) + seq] = dict(zip(hashes.tolist(), often.tolist(), strict=True))
    connection.execute(b"SET LOCAL session_replication_role = replica")  # They have no memories.
    as_store(connection).many(
        "insert_lex",
        [
            (num, agent, sum(terms.values()), _packed(terms, "<u4"), bytes(terms.values()))
            for num, terms in stored.items()
        ],
    )
    return stored


def _packed(terms: dict[int, int], kind: str) -> bytes:
    return np.array(list(terms), dtype=kind).tobytes()


def test_postings_are_the_forward_records_that_match(postgres_owner: Connection) -> None:
    agent = fill(postgres_owner, "one")
    stored = with_words(postgres_owner, agent, count=50)
    with_words(postgres_owner, fill(postgres_owner, "two"), count=50)
    known = sorted({term for has in stored.values() for term in has})
    terms = {*known[:8], 400 * 10_000_019 % (1 << 32)}  # No record has the last.
    postgres_owner.execute(b"SELECT enter('one')")
    values = {"agent": agent, "keys": json.dumps([(agent << 32) + each for each in sorted(terms)])}
    [(_, _, nums, lengths, counts, hashes, frequencies)] = as_store(postgres_owner).run("postings_of", values)
    expected = {num: has for num, has in sorted(stored.items()) if terms & set(has)}
    assert 1 < len(expected) < len(stored)
    assert np.frombuffer(nums, ">i8").tolist() == list(expected)
    assert np.frombuffer(lengths, ">i4").tolist() == [sum(each.values()) for each in expected.values()]
    assert np.frombuffer(counts, ">i4").tolist() == [len(each) for each in expected.values()]
    assert np.frombuffer(hashes, "<u4").tolist() == [term for each in expected.values() for term in each]
    assert list(frequencies) == [often for each in expected.values() for often in each.values()]


def test_postings_of_no_terms_are_nothing(postgres_owner: Connection) -> None:
    agent = fill(postgres_owner, "one")
    postgres_owner.execute(b"SELECT enter('one')")
    for keys in ("[]", f"[{(agent << 32) + 999}]"):
        rows = as_store(postgres_owner).run("postings_of", {"agent": agent, "keys": keys})
        assert rows.fetchall() == [(0, 0, *[None] * 5)]


def test_postings_are_found_by_the_index_of_keys_alone(postgres_owner: Connection) -> None:
    """Also by a role that isn't the owner, whose own statements a policy keeps from that index."""
    agents = [fill(postgres_owner, name) for name in ("one", "two")]
    for agent in agents:
        with_words(postgres_owner, agent, count=1000)
    # What waits to go into an index has a planner think that reading it takes long; a vacuum puts it there.
    postgres_owner.execute(
        b"SELECT gin_clean_pending_list(pg_class.oid) FROM pg_class JOIN pg_am ON relam = pg_am.oid"
        b" WHERE amname = 'gin' AND relkind = 'i' AND relname LIKE 'lex%'"
    )
    postgres_owner.execute(b"ANALYZE lex")
    postgres_owner.execute(b"SELECT enter('two')")
    # So few rows are read fastest one by one.
    postgres_owner.execute(b"SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
    agent = agents[1]
    values = {"agent": agent, "keys": json.dumps([(agent << 32) + each * 10_000_019 for each in (3, 5)])}
    heard = nested_plans(postgres_owner, named_queries()["postings_of"], values)
    scans = re.findall(r"Scan on (lex\w*)", heard)
    if is_partitioned(postgres_owner):
        assert [each for each in scans if each.endswith("_keys_idx")], heard
        assert len({re.findall(r"\d", each)[0] for each in scans}) == 1
    else:
        assert scans == ["lex", "lex_by_key"], heard


def as_application(connection: Connection, name: str) -> int:
    """An agent with some thousand rows, entered by a role that isn't the owner; returns its number."""
    agent = multiply(connection, name)
    connection.execute(b"SELECT enter(%s)", (name,))
    connection.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    return agent


@pytest.mark.parametrize(
    ("name", "values", "condition"),
    [
        ("num", {"id": b"x" * 16, "version": 0}, "id ="),
        ("nums_by_head", {"hashes": '["h"]'}, "content_hash ="),
        ("records", {"nums": "[1]"}, "num = num"),
        ("changes", {"seq": 1 << 60}, "seq >"),
        ("cache_columns", {"above": 1 << 60, "below": 1 << 61}, "num >"),
        ("places", {}, "place >"),
    ],
)
def test_policies_leave_the_indexes_to_an_application(
    postgres_owner: Connection, name: str, values: dict[str, Any], condition: str
) -> None:
    """A condition that isn't known to keep secrets would be checked row by row, after the policy."""
    agent = as_application(postgres_owner, "one")
    plan = plan_of(postgres_owner, named_queries()[name], {**values, "agent": agent}, verbose=True)
    conditions = re.sub(r"\b\w+\.", "", "\n".join(re.findall(r"Index Cond: (.*)", plan)))
    assert condition in conditions, plan


def test_a_filter_by_tags_uses_their_index_under_a_policy(postgres_owner: Connection) -> None:
    agent = as_application(postgres_owner, "one")
    postgres_owner.execute(b"SET LOCAL enable_seqscan = off")  # So few rows are read fastest one by one.
    text, values = filtered_query("admitted", Filter(tags=("t1", "t2")))
    plan = plan_of(postgres_owner, text, values | {"agent": agent, "above": 0, "below": 1 << 62})
    conditions = re.sub(r"\w+\.", "", "\n".join(re.findall(r"Index Cond: (.*)", plan)))
    assert re.search(r"tag = ", conditions), plan
    assert re.search(r"tag > .*tag < ", conditions), plan


def test_a_filter_by_a_short_id_uses_its_index_under_a_policy(postgres_owner: Connection) -> None:
    agent = as_application(postgres_owner, "one")
    postgres_owner.execute(b"SET LOCAL enable_seqscan = off")  # So few rows are read fastest one by one.
    text, values = filtered_query("find_newest", Filter(short_id="0" * 8))
    edge = {"edge_id": None, "edge_time": None, "edge_importance": None}
    plan = plan_of(postgres_owner, text, values | edge | {"agent": agent, "limit": -1})
    assert re.search(r"Index Cond: .*short_id = ", plan), plan


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a plan that read a table with rows of agents."""
    reads = node["Node Type"] not in ("ModifyTable", "Bitmap Heap Scan")  # It has an index scan in it.
    if reads and node.get("Relation Name") in (*DISTRIBUTED, "space_events"):
        yield node
    for each in node.get("Plans", ()):
        yield from scans(each)


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
def test_every_query_finds_the_rows_of_its_agent_by_an_index(postgres_owner: Connection) -> None:
    multiply(postgres_owner, "one")
    # So few rows are read fastest one by one, and a plan for any values has to have the conditions.
    for setting in ("enable_seqscan = off", "plan_cache_mode = force_generic_plan"):
        postgres_owner.execute(f"SET LOCAL {setting}".encode())
    without = set()
    for name in PLANNED:
        text = named_queries()[name]
        if "CONCURRENTLY" in text:
            continue
        postgres_owner.execute(f"PREPARE one AS {numbered(text)}".encode(), prepare=False)
        ((given,),) = postgres_owner.execute(
            b"SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'one'"
        )
        nothing = f"({', '.join(['NULL'] * given)})" if given else ""
        explain = f"EXPLAIN (FORMAT JSON) EXECUTE one {nothing}".encode()
        (([plan],),) = postgres_owner.execute(explain, prepare=False).fetchall()
        if any("Index Cond" not in each for each in scans(plan["Plan"])):
            without.add(name)
        postgres_owner.execute(b"DEALLOCATE one", prepare=False)
    assert without == {"agents"}  # It lists all.
