"""A store whose tables are spread over a cluster keeps the contract, in a pretended one and in a real one.

The real one is at GERMANE_CITUS_URL: an empty database of a Citus coordinator, which tests fill and empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

import germane
from germane.model.stats import EmbeddingIdentity
from germane.stores.postgres import PostgresStore
from germane.stores.postgres.distributing import steps
from germane.testing.contract import OpenStore, StoreContract
from support.cluster import pretend
from support.postgres_server import Server

CITUS = os.environ.get("GERMANE_CITUS_URL", "")


@pytest.fixture(scope="module")
def pretended(postgres_server: Server) -> Iterator[str]:
    database = postgres_server.fresh()
    url = postgres_server.url(database)
    germane.migrate_store(url)
    pretend(url)
    germane.distribute_store(url)
    yield url
    postgres_server.drop(database)


@pytest.fixture(scope="module")
def cluster() -> str:
    germane.migrate_store(CITUS)
    germane.distribute_store(CITUS)
    assert germane.store_status(CITUS).distributed
    return CITUS


def _opener(url: str) -> Iterator[OpenStore]:
    def opened(embedding: EmbeddingIdentity | None) -> PostgresStore:
        return PostgresStore(url, embedding=embedding)

    yield opened
    # A cluster truncates no table that others refer to from everywhere.
    with psycopg.connect(url) as raw:
        for table in reversed([each for each, _ in steps() if each not in ("migrations", "settings")]):
            raw.execute(f"DELETE FROM {table}".encode())
        raw.execute(b"DELETE FROM settings WHERE name <> 'serves'")


class TestPretendedCluster(StoreContract):
    @pytest.fixture
    def open_store(self, pretended: str) -> Iterator[OpenStore]:
        yield from _opener(pretended)


@pytest.mark.skipif(not CITUS, reason="GERMANE_CITUS_URL names no database of a Citus coordinator.")
class TestCluster(StoreContract):
    @pytest.fixture
    def open_store(self, cluster: str) -> Iterator[OpenStore]:
        yield from _opener(cluster)
