"""One SQLite file as a store of memories.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from germane.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
