"""A store whose tables were made ready for a cluster keeps the contract, in a pretended cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from germane.stores import distribute_store, migrate_store
from germane.testing.contract import OpenStore
from support.cluster import opener_of, pretend
from support.contracts import TablesContract
from support.postgres_server import Server


@pytest.fixture(scope="module")
def pretended(postgres_server: Server) -> Iterator[str]:
    database = postgres_server.fresh()
    url = postgres_server.url(database)
    migrate_store(url)
    pretend(url)
    distribute_store(url)
    yield url
    postgres_server.drop(database)


class TestPretendedCluster(TablesContract):
    @pytest.fixture
    def open_store(self, pretended: str) -> Iterator[OpenStore]:
        yield from opener_of(pretended)
