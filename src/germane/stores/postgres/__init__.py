"""A PostgreSQL database as a store of memories."""

from __future__ import annotations

from germane.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
