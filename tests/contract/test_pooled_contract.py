"""PostgreSQL keeps the contract of every store behind a pooler too, whenever that takes a connection back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from germane.stores import EmbeddingIdentity, PostgresStore
from germane.testing.contract import OpenStore
from support.contracts import TablesContract
from support.pooler import Mode, Pooler, no_pooler
from support.postgres_server import Server, database_of

pytestmark = pytest.mark.skipif(bool(no_pooler()), reason=no_pooler() or "It is.")


@pytest.fixture(scope="module", params=get_args(Mode))
def pooler(request: pytest.FixtureRequest, postgres_server: Server) -> Iterator[Pooler]:
    started = Pooler(postgres_server, request.param)
    yield started
    started.stop()


class TestPooled(TablesContract):
    @pytest.fixture
    def open_store(self, postgres_store: str, pooler: Pooler) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> PostgresStore:
            return PostgresStore(pooler.url(database_of(postgres_store)), embedding=embedding)

        return opened
