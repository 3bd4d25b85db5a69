"""PostgreSQL's SQL on a real server: every statement can be planned, and the plans are those that were meant."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from germane.model.query import Filter, TimeRange
from germane.model.scope import GLOBAL
from germane.stores.postgres.connection import ADAPTERS, PostgresConnection
from germane.stores.relational.filtering import filtered
from germane.stores.sql import queries, schema, statements
from germane.testing.builders import START
from support.postgres_rows import fill
from support.postgres_schema import APPLICATION_ROLE, DISTRIBUTED, install, migrate, numbered
from support.postgres_server import Server

PARTITIONS = 4
DIMENSION = 8  # As in the rows of `fill`.

# A function does it, and says what it did.
ANSWERED = {"add_agent", "purge_memory", "insert_assembled"}
TYPES = {"bigint", "smallint", "integer", "text", "bytea", "double precision", "boolean", "halfvec", "void"}
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
    each for each in queries("postgres") if not each.startswith("where_") and "index_vectors" not in each
)
CONDITIONAL = [each for each in PLANNED if "{filter}" in queries("postgres")[each]]

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["whole", "partitioned"])
def address(request: pytest.FixtureRequest, postgres_server: Server) -> Iterator[str]:
    """A database with the schema, in one piece and in partitions."""
    partitions = PARTITIONS if request.param == "partitioned" else 0
    database = postgres_server.fresh()
    install(postgres_server.url(database), partitions=partitions)
    yield postgres_server.url(database)
    postgres_server.drop(database)


@pytest.fixture
def connection(address: str) -> Iterator[Connection]:
    """A connection as the owner, in a transaction that is rolled back."""
    with psycopg.connect(address, context=ADAPTERS) as connected:
        yield connected
        connected.rollback()


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


def plan_of(connection: Connection, text: str, values: dict[str, Any]) -> str:
    rows = connection.execute(f"EXPLAIN (COSTS OFF, VERBOSE) {text}".encode(), values, prepare=False)
    return "\n".join(line for (line,) in rows)


def columns_in_sqlite(name: str) -> int:
    connected = sqlite3.connect(":memory:")
    for statement in statements(schema("sqlite")):
        connected.execute(statement)
    text = queries("sqlite")[name].replace("{filter}", "")
    names = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    if "json_each(:nums)" in text:
        names |= {"nums": "[]"}
    found = connected.execute(text, (1,) * text.count("?") if "?" in text else names).description
    connected.close()
    return len(found or ())


@pytest.mark.parametrize("name", PLANNED)
def test_every_query_can_be_planned(connection: Connection, name: str) -> None:
    _, found = prepared(connection, queries("postgres")[name])
    assert set(found) <= TYPES


@pytest.mark.parametrize("name", sorted(set(PLANNED) & set(queries("sqlite")) - ANSWERED))
def test_a_query_has_as_many_columns_as_in_sqlite(connection: Connection, name: str) -> None:
    text = queries("postgres")[name]
    if re.match("INSERT|UPDATE|DELETE", text):
        assert prepared(connection, text)[1] == []
    else:
        assert len(prepared(connection, text)[1]) == columns_in_sqlite(name)


@pytest.mark.parametrize("name", CONDITIONAL)
@pytest.mark.parametrize("embedded", [True, False])
def test_every_condition_can_be_planned(connection: Connection, name: str, embedded: bool) -> None:
    text, values = filtered("postgres", name, EVERYTHING, ["p"])
    other, more = filtered("postgres", name, Filter(embedded=embedded), [])
    asked = {"agent": 1, "nums": "[1]", "above": 0, "below": 9, "limit": -1}
    asked |= {"edge_id": None, "edge_time": None, "edge_importance": None}
    assert connection.execute(text.encode(), values | asked).fetchall() == []
    assert connection.execute(other.encode(), more | asked).fetchall() == []


def test_the_migrations_make_the_schema(postgres_server: Server) -> None:
    dumps = []
    for make in (install, migrate):
        database = postgres_server.fresh()
        make(postgres_server.url(database))
        dump = postgres_server.tool("pg_dump", "--schema-only", postgres_server.url(database))
        dumps.append(re.sub(r"(?m)^(--|\\).*$", "", dump))
        postgres_server.drop(database)
    assert "CREATE TABLE public.memories" in dumps[0]
    assert dumps[0] == dumps[1]


def test_tables_are_partitioned_as_marked(connection: Connection) -> None:
    parted = {name for (name,) in connection.execute(b"SELECT relname FROM pg_class WHERE relkind = 'p'")}
    assert parted == (set(DISTRIBUTED) if is_partitioned(connection) else set())
    rows = connection.execute(
        b"SELECT count(*) FROM pg_inherits JOIN pg_class ON inhrelid = oid WHERE relkind = 'r'"
    )
    assert rows.fetchall() == [(PARTITIONS * len(parted),)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("records", {"nums": "[1]"}),
        ("cache_rows", {"above": 0, "below": 9}),
        ("nums_by_head", {"hashes": '["h"]'}),
        ("changes", {"seq": 0}),
        ("similarities", {"asked": "[1,0,0,0,0,0,0,0]"}),
        ("life_events", {"since": 0, "nums": None, "limit": -1}),
        ("set_status", {"status": "active", "updated_at": 1, "num": 1}),
        ("remove_held", {"working_set": 1, "num": 1}),
    ],
)
def test_an_agents_statement_looks_into_one_partition(
    connection: Connection, name: str, values: dict[str, Any]
) -> None:
    if not is_partitioned(connection):
        pytest.skip("The tables are in one piece here.")
    agent = fill(connection, "one")
    plan = plan_of(connection, queries("postgres")[name], {**values, "agent": agent})
    assert len(set(re.findall(r" on \w+?_(\d+)\b", plan))) == 1, plan
    assert "Append" not in plan


def nested_plans(connection: Connection, text: str, values: dict[str, Any]) -> str:
    """The plans of all that a statement ran, also inside functions."""
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    connection.execute(b"LOAD 'auto_explain'")
    for name, value in {
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
        "client_min_messages": "log",
    }.items():
        connection.execute(b"SELECT set_config(%s, %s, true)", (name, value))
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
    PostgresConnection(connection).many(
        "insert_lex",
        [
            (num, agent, sum(terms.values()), _packed(terms, "<u4"), bytes(terms.values()))
            for num, terms in stored.items()
        ],
    )
    return stored


def _packed(terms: dict[int, int], kind: str) -> bytes:
    return np.array(list(terms), dtype=kind).tobytes()


def test_postings_are_those_of_the_forward_records(connection: Connection) -> None:
    agent = fill(connection, "one")
    stored = with_words(connection, agent, count=50)
    terms = [int(np.uint32(each) * np.uint32(10_000_019)) for each in (3, 5, 8, 400)]
    connection.execute(b"SELECT enter('one')")
    values = {"agent": agent, "keys": json.dumps([(agent << 32) + each for each in terms])}
    _, _, nums, lengths, counts, hashes, frequencies = (
        connection.cursor(binary=True)
        .execute(queries("postgres")["postings_of"].encode(), values)
        .fetchall()[0]
    )
    expected = {num: has for num, has in stored.items() if set(terms) & set(has)}
    assert len(expected) > 1
    assert np.frombuffer(nums, ">i8").tolist() == sorted(expected)
    assert np.frombuffer(lengths, ">i4").tolist() == [
        sum(expected[each].values()) for each in sorted(expected)
    ]
    assert np.frombuffer(counts, ">i4").tolist() == [len(expected[each]) for each in sorted(expected)]
    together = [pair for each in sorted(expected) for pair in sorted(expected[each].items())]
    found = zip(np.frombuffer(hashes, "<u4").tolist(), np.frombuffer(frequencies, np.uint8).tolist(), strict=True)
    assert list(found) == together


def test_postings_of_no_terms_are_nothing(connection: Connection) -> None:
    agent = fill(connection, "one")
    connection.execute(b"SELECT enter('one')")
    for keys in ("[]", f"[{(agent << 32) + 999}]"):
        rows = connection.execute(queries("postgres")["postings_of"].encode(), {"agent": agent, "keys": keys})
        assert rows.fetchall() == [(0, 0, None, None, None, None, None)]


def test_postings_are_found_by_the_index_of_keys_alone(connection: Connection) -> None:
    """Also by a role that isn't the owner, whose own statements a policy keeps from that index."""
    for name in ("one", "two"):
        agent = fill(connection, name)
        with_words(connection, agent, count=1000)
    connection.execute(b"ANALYZE lex")
    connection.execute(b"SELECT enter('two')")
    connection.execute(b"SET LOCAL enable_seqscan = off")  # So few rows are read fastest one by one.
    values = {"agent": agent, "keys": json.dumps([(agent << 32) + each * 10_000_019 for each in (3, 5)])}
    heard = nested_plans(connection, queries("postgres")["postings_of"], values)
    scans = re.findall(r"Scan on (lex\w*)", heard)
    if is_partitioned(connection):
        assert [each for each in scans if each.endswith("_keys_idx")], heard
        assert len({re.findall(r"\d", each)[0] for each in scans}) == 1
    else:
        assert scans == ["lex", "lex_by_key"], heard


def with_vectors(connection: Connection, agent: int, *, count: int) -> NDArray[np.float32]:
    """Store random vectors for an agent; returns them as they are stored, by num."""
    random = np.random.default_rng(agent)
    given = random.standard_normal((count, DIMENSION))
    packed = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype("<f2")
    connection.execute(b"SET LOCAL session_replication_role = replica")  # They have no memories.
    connection.execute(b"DELETE FROM vectors WHERE agent = %s", (agent,))
    rows = [((agent << 40) + place, agent, each.tobytes()) for place, each in enumerate(packed)]
    PostgresConnection(connection).many("insert_vector", rows)
    return packed.astype(np.float32)


def table_of(connection: Connection, agent: int) -> str:
    """The table that an agent's vectors lie in."""
    [(table,)] = connection.execute(
        b"SELECT DISTINCT tableoid::regclass::text FROM vectors WHERE agent = %s", (agent,)
    )
    return str(table)


def by_index(name: str, **marks: object) -> str:
    text = queries("postgres")[name]
    for mark, value in marks.items():
        text = text.replace(f"{{{mark}}}", str(value))
    return text


def written(vector: NDArray[np.float32]) -> str:
    return json.dumps(vector.tolist())


def test_vectors_come_as_they_were_given(connection: Connection) -> None:
    agent = fill(connection, "one")
    given = with_vectors(connection, agent, count=20)
    asked = {"agent": agent, "above": (agent << 40) - 1, "below": (agent + 1) << 40}
    rows = PostgresConnection(connection).run("cache_vectors", asked).fetchall()
    assert [num - (agent << 40) for num, _ in rows] == list(range(20))
    assert np.array_equal(np.array([np.frombuffer(each, "<f2") for _, each in rows]), given)


def test_similarities_are_the_inner_products(connection: Connection) -> None:
    agent = fill(connection, "one")
    given = with_vectors(connection, agent, count=200)
    with_vectors(connection, fill(connection, "two"), count=5)
    asked = np.random.default_rng(0).standard_normal(DIMENSION).astype(np.float32)
    values = {"agent": agent, "asked": written(asked)}
    [(nums, products)] = PostgresConnection(connection).run("similarities", values)
    assert (np.frombuffer(nums, ">i8") - (agent << 40)).tolist() == list(range(200))
    assert np.allclose(np.frombuffer(products, ">f4"), given @ asked, atol=1e-5)


def test_an_agents_index_finds_the_nearest_of_that_agent_alone(connection: Connection) -> None:
    agents = [fill(connection, name) for name in ("one", "two", "three")]
    stored = {each: with_vectors(connection, each, count=2000) for each in agents}
    agent = agents[1]
    marks = {"agent": agent, "dimension": DIMENSION}
    built = by_index("index_vectors", table=table_of(connection, agent), **marks)
    # Outside a transaction it would block nobody, and it couldn't be rolled back.
    connection.execute(built.replace("CONCURRENTLY", "").encode())
    connection.execute(b"ANALYZE vectors")
    connection.execute(b"SELECT enter('two')")
    assert PostgresConnection(connection).run("indexed_vectors", {"agent": agent}).fetchall() == [(True,)]
    connection.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    found = same = 0
    for seed in range(20):
        asked = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        values = {"agent": agent, "asked": written(asked), "limit": 10}
        plan = plan_of(connection, by_index("nearest_by_index", **marks), values)
        assert f"Index Scan using vectors_of_{agent} on" in plan
        rows = connection.execute(by_index("nearest_by_index", **marks).encode(), values).fetchall()
        assert [product for _, product in rows] == sorted((product for _, product in rows), reverse=True)
        exact = np.argsort(-(stored[agent] @ asked), kind="stable")[:10]
        nums = {num - (agent << 40) for num, _ in rows}
        same += len(nums & set(exact.tolist()))
        found += len(nums)
        assert "vectors_of" not in plan_of(connection, queries("postgres")["similarities"], values)
    assert found == 200
    assert same / found > 0.9


def test_an_index_of_an_agent_can_be_taken_away(address: str) -> None:
    with psycopg.connect(address, context=ADAPTERS, autocommit=True) as connected:
        fill(connected, "lasting")
        [(agent,)] = connected.execute(b"SELECT number_of('lasting')").fetchall()
        marks = {"agent": agent, "dimension": DIMENSION, "table": table_of(connected, agent)}
        ours = PostgresConnection(connected)
        assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == []
        for _ in range(2):
            connected.execute(by_index("index_vectors", **marks).encode())
            assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == [(True,)]
        for _ in range(2):
            connected.execute(by_index("unindex_vectors", **marks).encode())
            assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == []


def many_rows(connection: Connection, name: str) -> int:
    """An agent with some thousand memories, tags, places and changes, as its application sees them."""
    agent = fill(connection, name)
    connection.execute(b"SET LOCAL session_replication_role = replica")
    for table, columns in {
        "memories": "num, int8send(num) || int8send(num), 'fact', 'active', 'global', '', 5, 1, 'user', 0, num, num,"
        " int8send(num) || int8send(num), 1, num::text, 1, 0",
        "tags": "'t' || num % 500, num",
        "places": "'p' || num % 500, num",
        "changes": "num, num, 'insert'",
        "unembedded": "num",
        "shown": "int8send(num) || int8send(num), num, num, 1",
    }.items():
        names = {
            "memories": "num, id, kind, status, scope, scope_value, importance, confidence, trust, pinned,"
            " created_at, updated_at, chain, version, content_hash, seen_count, access_count",
            "tags": "tag, num",
            "places": "place, num",
            "changes": "seq, num, what",
            "unembedded": "num",
            "shown": "context, num, given, used",
        }[table]
        rows = f"SELECT {agent}, {columns} FROM generate_series({(agent << 40) + 2}, {(agent << 40) + 3000}) AS num"
        connection.execute(f"INSERT INTO {table} (agent, {names}) {rows}".encode())
        connection.execute(f"ANALYZE {table}".encode())
    connection.execute(b"SELECT enter(%s)", (name,))
    connection.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    return agent


@pytest.mark.parametrize(
    ("name", "values", "condition"),
    [
        ("num", {"id": b"x" * 16}, "id ="),
        ("nums_by_head", {"hashes": '["h"]'}, "content_hash ="),
        ("records", {"nums": "[1]"}, "num = asked"),
        ("changes", {"seq": 1 << 60}, "seq >"),
        ("cache_columns", {"above": 1 << 60, "below": 1 << 61}, "num >"),
        ("judgement", {"context": b"x" * 16, "num": 1}, "context ="),
        ("places", {}, "place >"),
    ],
)
def test_policies_leave_the_indexes_to_an_application(
    connection: Connection, name: str, values: dict[str, Any], condition: str
) -> None:
    """A condition that isn't known to keep secrets would be checked row by row, after the policy."""
    agent = many_rows(connection, "one")
    plan = plan_of(connection, queries("postgres")[name], {**values, "agent": agent})
    conditions = [re.sub(r"\b\w+\.(?!num\))", "", each) for each in re.findall(r"Index Cond: (.*)", plan)]
    assert any(condition in each for each in conditions), plan


def test_a_filter_by_tags_uses_their_index_under_a_policy(connection: Connection) -> None:
    agent = many_rows(connection, "one")
    text, values = filtered("postgres", "admitted", Filter(tags=("t1", "t2")))
    plan = plan_of(connection, text, values | {"agent": agent, "above": 0, "below": 1 << 62})
    conditions = re.sub(r"\w+\.", "", "\n".join(re.findall(r"Index Cond: (.*)", plan)))
    assert re.search(r"tag = ", conditions), plan
    assert re.search(r"tag > .*tag < ", conditions), plan
