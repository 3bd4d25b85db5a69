"""A PostgreSQL database as a store of memories.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from germane.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
