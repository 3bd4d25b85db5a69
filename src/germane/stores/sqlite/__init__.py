"""One SQLite file as a store of memories."""

from __future__ import annotations

from germane.stores.sqlite.store import SqliteStore, copy_past

__all__ = ["SqliteStore", "copy_past"]
