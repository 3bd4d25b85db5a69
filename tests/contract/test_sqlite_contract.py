"""SQLite keeps the contract of every store, in a file and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from germane.stores import EmbeddingIdentity, SqliteStore
from germane.testing.contract import OpenStore
from support.contracts import TablesContract


class TestSqliteFile(TablesContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> SqliteStore:
            return SqliteStore(tmp_path / "agent.db", embedding=embedding)

        return opened


class TestSqliteMemory(TablesContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        def opened(embedding: EmbeddingIdentity | None) -> SqliteStore:
            return SqliteStore(":memory:", embedding=embedding)

        return opened
