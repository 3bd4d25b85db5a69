"""A large agent's nearest vectors by its own index: as exact ones, wherever the index misses none."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

import germane
from germane.stores import EmbeddingIdentity, PostgresStore, index_vectors, migrate_store
from germane.stores.postgres.connection import PostgresConnection
from germane.stores.postgres.connections import PostgresConnections
from germane.stores.postgres.store import IndexedCosines, ServedCache, ServedCosines
from germane.stores.relational.cache import AgentCache
from germane.stores.relational.tables import span
from germane.testing.fakes import HashEmbedder

pytestmark = pytest.mark.long

COUNT = 600
EMBEDDER = HashEmbedder(dimension=16)


class AskingTheIndex(PostgresStore):
    """A store that asks an agent's index from the first memory on."""

    def _new_cache(self, agent: str) -> AgentCache:
        return ServedCache(agent, indexed_from=1)


@pytest.fixture(params=[0, 4], ids=["whole", "partitioned"])
def address(request: pytest.FixtureRequest, postgres_database: str) -> str:
    """The address of a store with one agent whose vectors have an index."""
    migrate_store(postgres_database, partitions=request.param)
    with germane.open(postgres_database, agent="ada", embedder=EMBEDDER) as engine:
        engine.remember_many(
            [
                {
                    "content": f"{number} {number % 7} tea {number % 31}",
                    "kind": "fact" if number % 50 else "decision",
                }
                for number in range(COUNT)
            ]
        )
    index_vectors(postgres_database, "ada")
    with psycopg.connect(postgres_database, autocommit=True) as raw:
        raw.execute("ANALYZE")
    return postgres_database


def loaded(connection: PostgresConnection) -> ServedCache:
    cache = ServedCache("ada", indexed_from=1)
    number, seq, *_ = connection.run("agent", {"name": "ada"}).fetchone() or (0, 0)
    cache.agent = number
    cache.catch_up(connection, seq)
    return cache


def vectors_of(text: str) -> NDArray[np.float32]:
    return np.asarray(EMBEDDER.embed([text])[0], dtype=np.float32)


def best(compared: ServedCosines, admitted: NDArray[np.bool_], limit: int) -> list[tuple[float, int]]:
    ordinals = compared.nearest(admitted, limit)
    cosines = compared.cosines(ordinals)
    return sorted(zip((-cosines).tolist(), ordinals.tolist(), strict=True))[:limit]


@pytest.mark.parametrize("limit", [1, 10, 60])
@pytest.mark.parametrize("share", [1, 2, 50])
def test_the_nearest_by_the_index_are_the_exact_ones(address: str, limit: int, share: int) -> None:
    connections = PostgresConnections(address)
    with connections.reading("ada") as connection:
        cache = loaded(connection)
        admitted = np.arange(cache.columns.used) % share == 0
        for text in ("3 tea", "tea and 4", "31 7 2", "nothing alike"):
            query = vectors_of(text)
            indexed, exact = (
                cache.compared(connection, query),
                ServedCosines(connection, cache.agent, cache.columns, query),
            )
            assert isinstance(indexed, IndexedCosines)
            assert best(indexed, admitted, limit) == best(exact, admitted, limit)
    connections.close()


def test_the_index_is_queried_and_nothing_else(address: str) -> None:
    connections = PostgresConnections(address)
    with connections.reading("ada") as connection:
        cache = loaded(connection)
        indexed = cache.compared(connection, vectors_of("3 tea"))
        indexed.nearest(np.ones(COUNT, dtype=np.bool_), 10)
        assert "similarities" not in vars(indexed)
        # One in a hundred is admitted, of which the index gives too few.
        indexed.nearest(np.arange(COUNT) % 100 == 0, 6)
        assert "similarities" in vars(indexed)
    connections.close()


def test_a_few_vectors_or_no_index_are_compared_exactly(address: str) -> None:
    connections = PostgresConnections(address)
    with connections.reading("ada") as connection:
        few = ServedCache("ada")
        number, seq, *_ = connection.run("agent", {"name": "ada"}).fetchone() or (0, 0)
        few.agent = number
        few.catch_up(connection, seq)
        assert not isinstance(few.compared(connection, vectors_of("tea")), IndexedCosines)
    index_vectors(address, "ada", remove=True)
    with connections.reading("ada") as connection:
        assert not isinstance(loaded(connection).compared(connection, vectors_of("tea")), IndexedCosines)
        assert connection.run("cache_vectors", span(number)).fetchone() is not None
    connections.close()


def test_answers_are_the_same(address: str) -> None:
    identity = EmbeddingIdentity(name=EMBEDDER.name, dimension=EMBEDDER.dimension)
    for question in ("3 tea", "Which tea has 30?"):
        answers = []
        for kind in (AskingTheIndex, PostgresStore):
            store = kind(address, embedding=identity)
            engine = germane.open(store, agent="ada", embedder=EMBEDDER)
            found = engine.recall(question, limit=20, kinds=["fact"])
            answers.append([(each.memory.id, each.score) for each in found])
            store.close()
        assert answers[0] == answers[1]
        assert len(answers[0]) == 20
