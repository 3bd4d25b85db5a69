"""PostgreSQL keeps the contract of every store."""

from __future__ import annotations

import pytest

from germane.stores import EmbeddingIdentity, PostgresStore
from germane.testing.contract import OpenStore
from support.contracts import TablesContract


class TestPostgres(TablesContract):
    @pytest.fixture
    def open_store(self, postgres_store: str) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> PostgresStore:
            return PostgresStore(postgres_store, embedding=embedding)

        return opened
