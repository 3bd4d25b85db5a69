"""What an operator does to a whole file.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from germane.errors import InvalidInput, StoreBusy
from germane.model.database import DatabaseStatus, Erasure, Tell
from germane.model.names import REMOVED
from germane.stores.relational.settings import stored_embedding
from germane.stores.sql import migrations
from germane.stores.sqlite.connections import Connections
from germane.stores.sqlite.erasing import OWED
from germane.stores.sqlite.schema import VERSION, check_ours, version_of
from germane.stores.sqlite.store import SqliteStore

__all__ = ["SqliteOperations"]

_TIMEOUT = 30.0

_AGENTS = """
SELECT count(*) FILTER (WHERE NOT gone), count(*) FILTER (WHERE gone), coalesce(sum(memories), 0)
FROM (SELECT memories, name GLOB ? AS gone FROM agents)
"""

_BEYOND = (
    "Backups and exports hold it, and so do snapshots of the disk and free blocks of one that writes copies.",
)


class SqliteOperations:
    """The operations on a store in a file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def status(self) -> DatabaseStatus:
        """How the file is doing. Raises StoreUnavailable for what is no store, and SchemaTooNew."""
        with self._opened(read_only=True) as connections, connections.reading() as connection:
            check_ours(connection, connections.location)
            version = version_of(connection)
            agents, removing, memories, settings = 0, 0, 0, {}
            if version:
                agents, removing, memories = connection.execute(_AGENTS, (f"{REMOVED}*",)).fetchone()
                settings = dict(connection.run("settings").fetchall())
            return DatabaseStatus(
                location=connections.location,
                engine=f"SQLite {sqlite3.sqlite_version}",
                schema_version=version,
                newest_version=VERSION,
                pending=tuple(each.name for each in migrations("sqlite") if each.number > version),
                agents=agents,
                memories=memories,
                bytes=connections.size(),
                embedding=stored_embedding(settings),
                due=int(OWED in settings),
                removing=removing,
            )

    def migrate(self, *, partitions: int, role: str | None) -> tuple[str, ...]:
        """Make the file if it isn't there, or bring it up to date; the migrations that it lacked.

        Raises InvalidInput for partitions or a role, which a file doesn't have.
        """
        if partitions or role is not None:
            raise InvalidInput(
                f"{self._path} is a file, which has neither partitions nor roles. "
                "Leave both out, or name a PostgreSQL database."
            )
        missing = tuple(each.name for each in migrations("sqlite"))
        if Path(self._path).exists():
            missing = self.status().pending
        SqliteStore(self._path).close()
        return missing

    def reindex(self, tell: Tell) -> None:
        """Index the words anew if the tokenizer has changed since, and build every index of the file anew."""
        SqliteStore(self._path).close()
        with self._opened() as connections, connections.writing() as connection:
            connection.execute("REINDEX")
        tell(1, 1)

    def vacuum(self, tell: Tell) -> None:
        """Rewrite the file from what is stored in it. Raises StoreBusy while others write or hold its log."""
        SqliteStore(self._path).close()
        with self._opened() as connections:
            connections.rewrite()
            if not connections.truncate_log(timeout=_TIMEOUT):
                raise StoreBusy(
                    f"The file {connections.location} is rewritten, but a reader has held on to its log for "
                    f"{_TIMEOUT:g} s. Close the reader, and run it again to cut the log."
                )
        tell(1, 1)

    def erase(self, tell: Tell) -> Erasure:
        """Write the file anew if a purge couldn't, and cut its log. Raises StoreBusy or StoreUnavailable."""
        store = SqliteStore(self._path)
        try:
            store.checkpoint()
        finally:
            store.close()
        tell(1, 1)
        return Erasure(tables=(), left=_BEYOND)

    @contextmanager
    def _opened(self, *, read_only: bool = False) -> Iterator[Connections]:
        connections = Connections(self._path, durability="full", timeout=_TIMEOUT, read_only=read_only)
        try:
            yield connections
        finally:
            connections.close()
