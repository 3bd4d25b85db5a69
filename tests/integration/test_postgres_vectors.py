"""Vectors on a real PostgreSQL: compared exactly, or by an agent's own index, as the statement says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from support.postgres_rows import fill
from support.postgres_schema import APPLICATION_ROLE, as_store, connected, named_queries, plan_of

DIMENSION = 8  # As in the rows of `fill`.

Connection = psycopg.Connection[tuple[Any, ...]]


def with_vectors(connection: Connection, agent: int, *, count: int) -> NDArray[np.float32]:
    """Store random vectors for an agent; returns them as they are stored, by num."""
    random = np.random.default_rng(agent)
    given = random.standard_normal((count, DIMENSION))
    packed = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype("<f2")
    connection.execute(b"SET LOCAL session_replication_role = replica")  # They have no memories.
    connection.execute(b"DELETE FROM vectors WHERE agent = %s", (agent,))
    rows = [((agent << 40) + place, agent, each.tobytes(), None) for place, each in enumerate(packed)]
    as_store(connection).many("insert_vector", rows)
    stored: NDArray[np.float32] = packed.astype(np.float32)
    return stored


def table_of(connection: Connection, agent: int) -> str:
    """The table that an agent's vectors lie in."""
    [(table,)] = connection.execute(
        b"SELECT DISTINCT tableoid::regclass::text FROM vectors WHERE agent = %s", (agent,)
    )
    return str(table)


def by_index(name: str, **marks: object) -> str:
    text = named_queries()[name]
    for mark, value in marks.items():
        text = text.replace(f"{{{mark}}}", str(value))
    return text


def written(vector: NDArray[np.float32]) -> str:
    return json.dumps(vector.tolist())


def test_vectors_come_as_they_were_given(postgres_owner: Connection) -> None:
    agent = fill(postgres_owner, "one")
    given = with_vectors(postgres_owner, agent, count=20)
    query = {"agent": agent, "above": (agent << 40) - 1, "below": (agent + 1) << 40}
    rows = as_store(postgres_owner).run("cache_vectors", query).fetchall()
    assert [num - (agent << 40) for num, *_ in rows] == list(range(20))
    assert np.array_equal(np.array([np.frombuffer(each, "<f2") for _, each, _ in rows]), given)


def test_similarities_are_the_inner_products(postgres_owner: Connection) -> None:
    agent = fill(postgres_owner, "one")
    given = with_vectors(postgres_owner, agent, count=200)
    with_vectors(postgres_owner, fill(postgres_owner, "two"), count=5)
    query = np.random.default_rng(0).standard_normal(DIMENSION).astype(np.float32)
    values = {"agent": agent, "asked": written(query)}
    [(nums, products)] = as_store(postgres_owner).run("similarities", values)
    assert (np.frombuffer(nums, ">i8") - (agent << 40)).tolist() == list(range(200))
    assert np.allclose(np.frombuffer(products, ">f4"), given @ query, atol=1e-5)


def test_an_agents_index_finds_the_nearest_of_that_agent_alone(postgres_owner: Connection) -> None:
    agents = [fill(postgres_owner, name) for name in ("one", "two", "three")]
    stored = {each: with_vectors(postgres_owner, each, count=2000) for each in agents}
    agent = agents[1]
    marks = {"agent": agent, "dimension": DIMENSION}
    built = by_index("index_vectors", table=table_of(postgres_owner, agent), **marks)
    # Outside a transaction it would block nobody, and it couldn't be rolled back.
    postgres_owner.execute(built.replace("CONCURRENTLY", "").encode())
    postgres_owner.execute(b"ANALYZE vectors")
    postgres_owner.execute(b"SELECT enter('two')")
    assert as_store(postgres_owner).run("indexed_vectors", {"agent": agent}).fetchall() == [(True,)]
    postgres_owner.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    found = same = 0
    for seed in range(20):
        query = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        values = {"agent": agent, "asked": written(query), "limit": 10}
        plan = plan_of(postgres_owner, by_index("nearest_by_index", **marks), values)
        assert f"Index Scan using vectors_of_{agent} on" in plan
        rows = postgres_owner.execute(by_index("nearest_by_index", **marks).encode(), values).fetchall()
        assert [product for _, product in rows] == sorted((product for _, product in rows), reverse=True)
        exact = np.argsort(-(stored[agent] @ query), kind="stable")[:10]
        nums = {num - (agent << 40) for num, _ in rows}
        same += len(nums & set(exact.tolist()))
        found += len(nums)
        assert "vectors_of" not in plan_of(postgres_owner, named_queries()["similarities"], values)
    assert found == 200
    assert same / found > 0.9


def test_an_index_of_an_agent_can_be_taken_away(postgres_schema: str) -> None:
    with connected(postgres_schema, autocommit=True) as raw:
        fill(raw, "lasting")
        [(agent,)] = raw.execute(b"SELECT number_of('lasting')").fetchall()
        marks = {"agent": agent, "dimension": DIMENSION, "table": table_of(raw, agent)}
        ours = as_store(raw)
        assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == []
        for _ in range(2):
            raw.execute(by_index("index_vectors", **marks).encode())
            assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == [(True,)]
        for _ in range(2):
            raw.execute(by_index("unindex_vectors", **marks).encode())
            assert ours.run("indexed_vectors", {"agent": agent}).fetchall() == []
