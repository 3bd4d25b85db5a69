"""One SQLite file as a store of memories."""

from __future__ import annotations

from germane.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
