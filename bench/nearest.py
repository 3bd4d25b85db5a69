"""The nearest vectors of one large agent in PostgreSQL: all compared, and by the agent's own index.

    python bench/nearest.py [--vectors 10000,50000,100000] [--questions 100] [--address URL]

The vectors are those of the bundled embedder for memories made up from a seed, and the questions are of the
same making. For each number of vectors it prints how long the 100 nearest take each way (p50 and p95), what
share of the exact 100 the index finds, and how long the index takes to build and how large it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from corpus import drafts, questions
from numpy.typing import NDArray

from germane.embedders import StaticEmbedder
from germane.retrieval.vectors import as_stored
from germane.stores import index_vectors, migrate_store, store_status
from germane.stores.postgres.connection import ADAPTERS, PostgresConnection
from germane.stores.postgres.connections import PostgresConnections
from germane.stores.postgres.store import IndexedCosines, ServedCache, ServedCosines

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.

_WANTED = 100
_SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "1GB", "max_wal_size": "4GB"}
_FEW = 5


def main() -> None:
    """Print a row for each number of vectors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", default="10000,50000,100000")
    parser.add_argument("--questions", type=int, default=100)
    given = parser.parse_args()
    embedder = StaticEmbedder()
    vectors = np.asarray(embedder.embed(questions(given.questions)), dtype=np.float32)
    server = Server(settings=_SETTINGS)
    try:
        server.create()
        server.start()
        for count in map(int, given.vectors.split(",")):
            address = server.url(server.fresh())
            migrate_store(address)
            _fill(address, embedder, count)
            print(_measured(address, vectors, count))
    finally:
        server.stop()


def _fill(address: str, embedder: StaticEmbedder, count: int) -> None:
    texts = [each.content for each in drafts(count, seed=1)]
    vectors = as_stored(np.asarray(embedder.embed(texts)))
    with psycopg.connect(address, context=ADAPTERS) as connection:
        connection.execute("SELECT add_agent('one')")
        connection.execute(
            "INSERT INTO settings VALUES ('embedding_name', 'static'), ('embedding_dimension', %s)",
            (str(embedder.dimension),),
        )
        connection.execute("SET LOCAL session_replication_role = replica")  # They have no memories.
        rows = [((1 << 40) + place, 1, each.tobytes(), None) for place, each in enumerate(vectors, start=1)]
        PostgresConnection(connection).many("insert_vector", rows)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE vectors")


def _measured(address: str, vectors: NDArray[np.float32], count: int) -> str:
    cache = ServedCache("one")
    cache.agent = 1
    cache.columns.append(
        [((1 << 40) + place, bytes(16), "note", 0, 1.0, None) for place in range(1, count + 1)]
    )
    connections = PostgresConnections(address)
    exact, all_times = _timed(connections, ServedCosines, cache, vectors)
    start = perf_counter()
    index_vectors(address, "one")
    built = perf_counter() - start
    (index,) = store_status(address).indexes
    found, times = _timed(connections, IndexedCosines, cache, vectors)
    connections.close()
    same = sum(len(one & other) for one, other in zip(exact, found, strict=True))
    return (
        f"{count:>8,} vectors: all compared {_figures(all_times)}; by the index {_figures(times)}, "
        f"{same / sum(map(len, exact)):.1%} of the same; built in {built:.0f} s, {index.bytes / 1e6:.0f} MB"
    )


def _timed(
    connections: PostgresConnections,
    how: type[ServedCosines],
    cache: ServedCache,
    vectors: NDArray[np.float32],
) -> tuple[list[set[int]], list[float]]:
    admitted = np.ones(cache.columns.used, dtype=np.bool_)
    found: list[set[int]] = []
    times: list[float] = []
    for vector in [*vectors[:_FEW], *vectors]:
        start = perf_counter()
        with connections.reading("one") as connection:
            near = how(connection, cache.agent, cache.columns, vector)
            ordinals = near.nearest(admitted, _WANTED)
            cosines: NDArray[Any] = near.cosines(ordinals)
        times.append(1000 * (perf_counter() - start))
        found.append(set(ordinals[np.argsort(-cosines, kind="stable")[:_WANTED]].tolist()))
    return found[_FEW:], times[_FEW:]


def _figures(times: list[float]) -> str:
    return f"{median(times):.1f} / {quantiles(times, n=20)[-1]:.1f} ms"


if __name__ == "__main__":
    main()
