"""An encrypted store keeps the contract of every store, in a file and in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from germane.stores import EmbeddingIdentity, PostgresStore, SqliteStore
from germane.testing.contract import OpenStore
from support.contracts import TablesContract
from support.databases import ENCRYPTION_KEY


class TestEncryptedSqlite(TablesContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> SqliteStore:
            return SqliteStore(tmp_path / "agent.db", embedding=embedding, key=ENCRYPTION_KEY)

        return opened


class TestEncryptedPostgres(TablesContract):
    @pytest.fixture
    def open_store(self, postgres_encrypted_store: str) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> PostgresStore:
            return PostgresStore(postgres_encrypted_store, embedding=embedding, key=ENCRYPTION_KEY)

        return opened
