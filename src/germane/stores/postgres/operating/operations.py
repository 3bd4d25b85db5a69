"""What an operator does to a whole database.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

from germane.errors import GermaneError, StoreBusy, StoreUnavailable
from germane.model.database import DatabaseStatus, Erasure, Tell, VectorIndex
from germane.model.names import REMOVED
from germane.stores.postgres.connecting.again import Again, retrying
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.postgres.connecting.connections import Connections
from germane.stores.postgres.connecting.pool import location_of
from germane.stores.postgres.operating import distributing, erasing, vector_indexes
from germane.stores.postgres.operating.schema import VERSION, checked_version, grant, migrate
from germane.stores.postgres.store import PostgresStore
from germane.stores.relational.settings import stored_embedding
from germane.stores.sql import migrations

__all__ = ["PostgresOperations"]

# Any number that others are unlikely to lock: the bytes `germano`.
_LOCK: Final = 0x6765726D616E6F

_SERVER: Final = b"""
SELECT split_part(current_setting('server_version'), ' ', 1), pg_is_in_recovery(),
       (SELECT count(*) FROM pg_stat_replication),
       (SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('states')),
       coalesce((SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                 WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'), 0)::bigint
"""

_EXTENSIONS: Final = (
    b"SELECT extname, extversion FROM pg_extension WHERE extname IN ('vector', 'citus') ORDER BY 1"
)

_AGENTS: Final = b"""
SELECT (SELECT count(*) FROM agents WHERE NOT starts_with(name, %(removed)s)),
       (SELECT count(*) FROM agents WHERE starts_with(name, %(removed)s)),
       CASE WHEN row_security_active('states') THEN NULL
            ELSE (SELECT coalesce(sum(memories), 0)::bigint FROM states) END
"""

# Not yet, where a migration is pending.
_KEEPS_NOTES: Final = b"SELECT to_regclass('erasures') IS NOT NULL"

_INDEXES: Final = rb"""
SELECT agents.name, (SELECT count(*) FROM vectors WHERE vectors.agent = agents.agent),
       pg_relation_size(pg_class.oid), indisvalid
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    JOIN agents ON relname = 'vectors_of_' || agents.agent::text
WHERE relnamespace = current_schema()::regnamespace ORDER BY agents.agent
"""

_SECONDS_BETWEEN_LOOKS: Final = 1.0

_PROGRESS: Final = b"SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index WHERE pid = %s"

# The tables that hold rows: those of the store, or their partitions.
_TABLES: Final = b"""
WITH roots AS (SELECT to_regclass(name) AS oid FROM unnest(%s::text[]) AS name)
SELECT oid::regclass::text, pg_has_role(relowner, 'USAGE') FROM pg_class
WHERE relkind = 'r' AND (
    oid IN (SELECT oid FROM roots)
    OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent IN (SELECT oid FROM roots))
)
ORDER BY oid
"""

# What an interrupted REINDEX CONCURRENTLY leaves behind.
_LEFTOVERS: Final = rb"""
SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relname ~ '_cc(new|old)\d*$' AND indrelid = ANY (%s::text[]::regclass[])
"""


@retrying
class PostgresOperations:
    """The operations on a store in a database; the address is that of the user who owns the tables."""

    def __init__(self, address: str, *, patience: float = 30.0) -> None:
        """`patience` is how many seconds to wait for what others hold on to while something is erased."""
        self._address = address
        self._patience = patience

    def status(self) -> DatabaseStatus:
        """How the database is doing. Raises SchemaTooNew where this version can't use it."""
        with self._opened(read_only=True) as connections, connections.reading() as connection:
            raw = connection.raw
            version = checked_version(connection)
            number, standby, replicas, partitions, size = raw.execute(_SERVER).fetchall()[0]
            extensions = tuple(raw.execute(_EXTENSIONS).fetchall())
            agents, removing, memories, settings = 0, 0, 0, {}
            owed: int | None = 0
            is_spread = False
            indexes: tuple[VectorIndex, ...] = ()
            if version:
                settings = dict(connection.run("settings").fetchall())
                if is_spread := distributing.is_distributed(raw):
                    size += distributing.bytes_spread(raw)
                    agents, removing, memories = distributing.counted(raw, REMOVED)
                else:
                    agents, removing, memories = raw.execute(_AGENTS, {"removed": REMOVED}).fetchall()[0]
                    indexes = tuple(map(_index, raw.execute(_INDEXES).fetchall()))
                owed = _due(raw, hidden=memories is None)
            return DatabaseStatus(
                location=connections.location,
                engine=f"PostgreSQL {number}",
                schema_version=version,
                newest_version=VERSION,
                pending=tuple(each.name for each in migrations("postgres") if each.number > version),
                agents=agents,
                memories=memories,
                bytes=size,
                embedding=stored_embedding(settings),
                extensions=extensions,
                partitions=partitions,
                replicas=replicas,
                standby=standby,
                distributed=is_spread,
                indexes=indexes,
                due=owed,
                removing=removing,
            )

    def migrate(self, *, partitions: int, role: str | None) -> tuple[str, ...]:
        """Make or update the schema, and let a role use it. Raises what `schema.migrate` and `grant` do."""
        with self._opened() as connections:
            applied = migrate(connections, partitions=partitions)
            if role is not None:
                grant(connections, role)
        # An application may not index all agents anew if the tokenizer changed; the owner does it here.
        PostgresStore(self._address).close()
        return applied

    def reindex(self, tell: Tell) -> None:
        """Index the words anew if the tokenizer has changed since, and build every index anew.

        Nobody has to wait for it. What an interrupted call left half built is removed first.
        """
        PostgresStore(self._address).close()
        with self._alone() as raw:
            tables = _tables(raw)
            for (left,) in raw.execute(_LEFTOVERS, (list(tables),)).fetchall():
                raw.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {left}".encode())
            for number, table in enumerate(tables, start=1):
                raw.execute(f"REINDEX TABLE CONCURRENTLY {table}".encode())
                tell(number, len(tables))

    def vacuum(self, tell: Tell) -> None:
        """Make the room of deleted rows usable again, and renew what the planner knows, table by table."""
        with self._alone() as raw:
            tables = _tables(raw)
            for number, table in enumerate(tables, start=1):
                raw.execute(f"VACUUM (ANALYZE) {table}".encode())
                tell(number, len(tables))

    def erase(self, tell: Tell) -> Erasure:
        """Write the tables anew in whose files bytes of what was purged may be left.

        Who needs such a table waits until it is done. Raises StoreBusy where somebody doesn't let go of what
        was purged, or of a table.
        """
        PostgresStore(self._address).close()
        with self._alone() as raw:
            _tables(raw)
            distributing.require_one_server(raw, location_of(self._address), "erase")
            return erasing.erase(raw, tell, patience=self._patience)

    def index(self, agent: str, tell: Tell) -> int:
        """Give an agent's vectors an index, unless they have one; how many vectors there are."""
        with self._alone() as raw:
            _tables(raw)
            distributing.require_one_server(raw, location_of(self._address), "index the vectors of one agent")
            with self._watching(raw.info.backend_pid, tell):
                return vector_indexes.index_agent(raw, agent)

    def unindex(self, agent: str) -> int:
        """Take the index away again; how many vectors there are."""
        with self._alone() as raw:
            _tables(raw)
            return vector_indexes.unindex_agent(raw, agent)

    def distribute(self, tell: Tell) -> tuple[str, ...]:
        """Spread the tables over a Citus cluster; which of them weren't yet."""
        with self._alone() as raw:
            _tables(raw)
            return distributing.distribute(raw, location_of(self._address), tell)

    @contextmanager
    def _opened(self, *, read_only: bool = False) -> Iterator[Connections]:
        connections = Connections(self._address, read_only=read_only)
        try:
            yield connections
        finally:
            connections.close()

    @contextmanager
    def _watching(self, process: int, tell: Tell) -> Iterator[None]:
        """Tell how many blocks of the table are in the index that a server's process builds meanwhile."""
        done = Event()

        def watch() -> None:
            # Whatever keeps from looking keeps nothing from being built.
            with suppress(GermaneError, Again), self._opened(read_only=True) as connections:
                while not done.wait(_SECONDS_BETWEEN_LOOKS):
                    with connections.reading() as connection:
                        found = connection.raw.execute(_PROGRESS, (process,)).fetchone()
                    if found is not None and found[1]:
                        tell(min(found), found[1])

        watching = Thread(target=watch, name="germane index", daemon=True)
        watching.start()
        try:
            yield
        finally:
            done.set()
            watching.join()

    @contextmanager
    def _alone(self) -> Iterator[Raw]:
        """The one connection that does such work, without limits of time. Raises StoreBusy beside another."""
        with self._opened() as connections, connections.alone() as connection:
            raw = connection.raw
            if not checked_version(connection):
                raise StoreUnavailable(
                    f"There is no store in {connections.location}. `germane db migrate` makes one."
                )
            # Whoever waits here would be waited for by what builds an index.
            if not raw.execute(b"SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchall()[0][0]:
                raise StoreBusy(
                    f"Another process is at work on the tables of {connections.location}. Wait for it to "
                    "end, and try again."
                )
            raw.execute(b"SET lock_timeout = 0")
            yield raw


def _tables(raw: Raw) -> tuple[str, ...]:
    names = [table for table, _ in distributing.steps()] + ["commits", "erasures"]
    found = raw.execute(_TABLES, (names,)).fetchall()
    if not all(owned for _, owned in found):
        raise StoreUnavailable(
            f"The user {raw.info.user!r} doesn't own the tables. Use the address of the user who does."
        )
    return tuple(table for table, _ in found)


def _due(raw: Raw, *, hidden: bool) -> int | None:
    """How many agents something is to be erased of; None where the user may see one agent at a time."""
    if hidden:
        return None
    return erasing.due(raw) if raw.execute(_KEEPS_NOTES).fetchall()[0][0] else 0


def _index(row: Sequence[Any]) -> VectorIndex:
    agent, vectors, size, valid = row
    return VectorIndex(agent=agent, vectors=vectors, bytes=size, valid=valid)
