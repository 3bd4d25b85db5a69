"""What an operator does to a whole database, including the erasure of purged bytes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from psycopg import errors

from germane.errors import GermaneError, StoreBusy, StoreUnavailable
from germane.ledger import DatabaseStatus, Erasure, Progress, RepairReport, VectorIndex
from germane.model.text import REMOVED, USER_PREFIX
from germane.stores.postgres import servers, store
from germane.stores.postgres.connection import Raw
from germane.stores.postgres.connections import PostgresConnections, TransientFailure, retrying
from germane.stores.postgres.pool import location_of
from germane.stores.postgres.store import VERSION, PostgresStore, checked_version, grant, migrate
from germane.stores.relational.checksums import ENCRYPTION
from germane.stores.relational.repair import repair
from germane.stores.relational.settings import encrypting, reindex, store_key, stored_embedding
from germane.stores.sql import migrations

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
SELECT count(*) FILTER (WHERE NOT starts_with(name, %(removed)s) AND NOT starts_with(name, %(user)s)),
       count(*) FILTER (WHERE starts_with(name, %(user)s)),
       count(*) FILTER (WHERE starts_with(name, %(removed)s)),
       CASE WHEN row_security_active('states') THEN NULL
            ELSE (SELECT coalesce(sum(memories), 0)::bigint FROM states) END
FROM agents
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

    def __init__(self, address: str, *, patience: float = 30.0, key: bytes | None = None) -> None:
        """`patience` is how many seconds to wait for what others hold on to while something is erased."""
        self._address, self._key = address, key
        self._patience = patience

    def status(self) -> DatabaseStatus:
        """How the database is doing. Raises SchemaTooNew where this version can't use it."""
        with self._opened(read_only=True) as connections, connections.reading() as connection:
            raw = connection.raw
            version = checked_version(connection)
            number, standby, replicas, partitions, size = raw.execute(_SERVER).fetchall()[0]
            extensions = tuple(raw.execute(_EXTENSIONS).fetchall())
            agents, users, removing, settings = 0, 0, 0, {}
            memories: int | None = 0
            owed: int | None = 0
            is_spread = False
            indexes: tuple[VectorIndex, ...] = ()
            if version:
                settings = dict(connection.run("settings").fetchall())
                if is_spread := servers.is_distributed(raw):
                    size += servers.bytes_spread(raw)
                    agents, users, removing, memories = servers.counted(raw)
                else:
                    prefixes = {"removed": REMOVED, "user": USER_PREFIX}
                    agents, users, removing, memories = raw.execute(_AGENTS, prefixes).fetchall()[0]
                    indexes = tuple(map(_index, raw.execute(_INDEXES).fetchall()))
                # A user who may see one agent at a time sees no notes.
                owed = None if memories is None else due(raw)
            return DatabaseStatus(
                location=connections.location,
                engine=f"PostgreSQL {number}",
                schema_version=version,
                newest_version=VERSION,
                pending=tuple(each.name for each in migrations("postgres") if each.number > version),
                agents=agents,
                users=users,
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
                encrypted=ENCRYPTION in settings,
            )

    def migrate(self, *, partitions: int, role: str | None) -> tuple[str, ...]:
        """Make or update the schema, and let a role use it. Raises what `schema.migrate` and `grant` do."""
        with self._opened() as connections:
            key = store_key(encrypting(connections, self._key))
            applied = migrate(connections, partitions=partitions, key=key)
            if role is not None:
                grant(connections, role)
        # An application may not reindex all agents after a change of tokenizer; the owner does it here.
        PostgresStore(self._address, key=self._key).close()
        return applied

    def reindex(self, progress: Progress) -> None:
        """Make the index of the words anew from the texts, and rebuild every index.

        Nobody has to wait for the second; writers wait for the first, a second for each 10,000 memories. What
        an interrupted call left half built is removed first.
        """
        PostgresStore(self._address, key=self._key).close()
        with self._alone() as raw:
            tables = _tables(raw)
            with closing(PostgresStore(self._address, key=self._key)) as found:
                found.doing(reindex)
            for (left,) in raw.execute(_LEFTOVERS, (list(tables),)).fetchall():
                raw.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {left}".encode())
            for number, table in enumerate(tables, start=1):
                raw.execute(f"REINDEX TABLE CONCURRENTLY {table}".encode())
                progress(number, len(tables))

    def repair(self, now: datetime) -> RepairReport:
        """Make derived data anew where it is damaged, and set damaged memories and messages aside."""
        with closing(PostgresStore(self._address, key=self._key)) as found:
            return found.doing(partial(repair, now=now))

    def vacuum(self, progress: Progress) -> None:
        """Make the space of deleted rows usable again, and renew the planner's statistics, table by table."""
        with self._alone() as raw:
            tables = _tables(raw)
            for number, table in enumerate(tables, start=1):
                raw.execute(f"VACUUM (ANALYZE) {table}".encode())
                progress(number, len(tables))

    def erase(self, progress: Progress) -> Erasure:
        """Rewrite the tables whose files may hold bytes of what was purged.

        Who needs such a table waits until it is done. Raises StoreBusy where somebody doesn't let go of what
        was purged, or of a table.
        """
        PostgresStore(self._address, key=self._key).close()
        with self._alone() as raw:
            _tables(raw)
            servers.require_one_server(raw, location_of(self._address), "erase")
            return erase(raw, progress, patience=self._patience)

    def index(self, agent: str, progress: Progress) -> int:
        """Give an agent's vectors an index, unless they have one; how many vectors there are."""
        with self._alone() as raw:
            _tables(raw)
            servers.require_one_server(raw, location_of(self._address), "index the vectors of one agent")
            with self._watching(raw.info.backend_pid, progress):
                return store.index_agent(raw, agent)

    def unindex(self, agent: str) -> int:
        """Take the index away again; how many vectors there are."""
        with self._alone() as raw:
            _tables(raw)
            return store.unindex_agent(raw, agent)

    def distribute(self, progress: Progress) -> tuple[str, ...]:
        """Spread the tables over a Citus cluster; which of them weren't yet."""
        with self._alone() as raw:
            _tables(raw)
            return servers.distribute(raw, location_of(self._address), progress)

    def _opened(self, *, read_only: bool = False) -> closing[PostgresConnections]:
        return closing(PostgresConnections(self._address, read_only=read_only))

    @contextmanager
    def _watching(self, process: int, progress: Progress) -> Iterator[None]:
        """Tell how many blocks of the table are in the index that a server's process builds meanwhile."""
        done = Event()

        def watch() -> None:
            # Whatever keeps from looking keeps nothing from being built.
            with suppress(GermaneError, TransientFailure), self._opened(read_only=True) as connections:
                while not done.wait(_SECONDS_BETWEEN_LOOKS):
                    with connections.reading() as connection:
                        found = connection.raw.execute(_PROGRESS, (process,)).fetchone()
                    if found is not None and found[1]:
                        progress(min(found), found[1])

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
            # A connection that waits here would block the building of an index.
            if not raw.execute(b"SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchall()[0][0]:
                raise StoreBusy(
                    f"Another process is at work on the tables of {connections.location}. Wait for it to "
                    "end, and try again."
                )
            raw.execute(b"SET lock_timeout = 0")
            yield raw


def _tables(raw: Raw) -> tuple[str, ...]:
    names = [table for table, _ in servers.steps()] + ["commits", "erasures", "replies"]
    found = raw.execute(_TABLES, (names,)).fetchall()
    if not all(owned for _, owned in found):
        raise StoreUnavailable(
            f"The user {raw.info.user!r} doesn't own the tables. Use the address of the user who does."
        )
    return tuple(table for table, _ in found)


def _index(row: Sequence[Any]) -> VectorIndex:
    agent, vectors, size, valid = row
    return VectorIndex(agent=agent, vectors=vectors, bytes=size, valid=valid)


# Erasure after purges: rewrites the tables whose files may hold the bytes of deleted rows.
#
# A purge deletes rows and leaves a note in `erasures`. The server overwrites such rows some day; only a
# table that is rewritten (VACUUM FULL) has none of their bytes left.

_DUE: Final = b"SELECT count(DISTINCT agent) FROM erasures"

_NOTED: Final = b"""
SELECT agent, what, noted::text, (
    SELECT part FROM generate_series(0, parts - 1) AS part
    WHERE satisfies_hash_partition('states'::regclass, parts::integer, part::integer, agent)
) AS part
FROM erasures CROSS JOIN (
    SELECT count(*) AS parts FROM pg_inherits WHERE inhparent = 'states'::regclass
) AS made
ORDER BY part, agent, what
"""

_ERASED: Final = b"DELETE FROM erasures WHERE agent = %s AND what = %s AND noted::text = %s"

# The tables whose rows a purge takes along, by the keys that refer to those that it deletes.
_REACHED: Final = b"""
WITH RECURSIVE reached AS (
    SELECT to_regclass(name)::oid AS oid FROM unnest(%s::text[]) AS name
    UNION SELECT conrelid FROM pg_constraint JOIN reached ON confrelid = reached.oid WHERE contype = 'f'
)
SELECT pg_class.oid::regclass::text FROM reached JOIN pg_class USING (oid)
WHERE relkind = 'r' ORDER BY pg_class.oid
"""

_ROOTS: Final[Mapping[str, tuple[str, ...]]] = {
    "memories": ("memories", "assemblies", "learning_runs"),
    "ledger": ("assemblies",),
    "conversations": ("conversations", "learning_runs"),
}

# Tables that hold names, or answers that may quote anything, and aren't partitioned by agent.
_NAMES: Final = ("agents", "data_keys", "replies", "space_events")

# Who might still look at what was deleted: the server keeps it for them, even in a table that is written
# anew. It keeps nothing for a vacuum, which looks at its own table alone. Ages are compared, since these
# numbers of transactions go round; one that wasn't given yet comes from a restored database and says nothing.
_OLD: Final = b"""
WITH noted AS (
    SELECT least(max(noted::numeric), pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1) AS number
    FROM unnest(%s::text[]) AS noted
), holders AS (
    SELECT format('process %%s (%%s)', pid, concat_ws(' of ', nullif(application_name, ''), usename)),
           greatest(age(backend_xid), age(backend_xmin))
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (datid IS NULL OR datname = current_database())
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
    UNION ALL SELECT format('prepared transaction %%s', gid), age(transaction)
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL SELECT format('replication slot %%s', slot_name), greatest(age(xmin), age(catalog_xmin))
    FROM pg_replication_slots
)
SELECT who FROM holders AS holders (who, age), noted
WHERE age >= age((number %% 4294967296)::bigint::text::xid)
"""

# A lock request on a table in use blocks every later reader of it, so no wait is long.
_LOCK_WAIT: Final = b"SET lock_timeout = '500ms'"
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class _Note(NamedTuple):
    agent: int
    what: str
    noted: str
    part: int | None


def due(raw: Raw) -> int:
    """Of how many agents something was purged that isn't erased yet; 0 before the migration that notes it."""
    return int(raw.execute(_DUE).fetchall()[0][0]) if raw.execute(_KEEPS_NOTES).fetchall()[0][0] else 0


def erase(raw: Raw, progress: Progress, *, patience: float) -> Erasure:
    """Rewrite the tables that purges have noted, partition by partition, and remove the notes.

    What is purged meanwhile keeps its note. A call that was interrupted is made up for by the next.
    Raises StoreBusy where somebody doesn't let go within `patience` seconds.
    """
    notes = [_Note(*row) for row in raw.execute(_NOTED).fetchall()]
    raw.execute(_LOCK_WAIT)
    work = _ErasureRun(raw, progress, patience, _steps(raw, notes))
    if notes:
        work.wait_for_old([each.noted for each in notes])
    for _, some in groupby(notes, key=lambda each: each.part):
        group = tuple(some)
        work.rewrite(_erasable_tables(raw, group))
        for each in group:
            raw.execute(_ERASED, each[:3])
    return Erasure(tables=tuple(work.done), left=remains(raw, work.left))


def _steps(raw: Raw, notes: Sequence[_Note]) -> int:
    """How many steps there are: each table once, and the statistics and the log with each partition."""
    groups = [tuple(some) for _, some in groupby(notes, key=lambda each: each.part)]
    return len({table for group in groups for table in _erasable_tables(raw, group)}) + 2 * len(groups)


def _erasable_tables(raw: Raw, notes: Sequence[_Note]) -> tuple[str, ...]:
    """The tables that hold what was purged, all notes being about agents of one partition."""
    kinds = {each.what for each in notes}
    end = "" if notes[0].part is None else f"_{notes[0].part}"
    if "agent" in kinds:
        partitions = [f"{table}{end}" for table, step in servers.steps() if "'agent'" in step]
        return tuple(sorted({*partitions, *_NAMES}))
    roots = [f"{table}{end}" for kind in sorted(kinds) for table in _ROOTS[kind]] + ["replies"]
    return tuple(table for (table,) in raw.execute(_REACHED, (roots,)).fetchall())


@dataclass(slots=True)
class _ErasureRun:
    """One call's work. `done` are the rewritten tables, `left` what couldn't be done."""

    raw: Raw
    progress: Progress
    patience: float
    steps: int
    step: int = 0
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def rewrite(self, tables: Sequence[str]) -> None:
        """Leave nothing of what was purged in these tables, the statistics of them, and the log."""
        wanted = [table for table in tables if table not in self.done]
        for table in wanted:
            self._patiently(f"VACUUM (FULL, ANALYZE) {table}", table)
            self.done.append(table)
            self._advance()
        self._renew_statistics(wanted)
        self._advance()
        self.left += switch_log(self.raw)
        self._advance()

    def wait_for_old(self, noted: Sequence[str]) -> None:
        """Wait for transactions that may still read what these transactions deleted."""
        for pause in self._pauses():
            holders = [who for (who,) in self.raw.execute(_OLD, (list(noted),)).fetchall()]
            if not holders:
                return
            if pause is None:
                raise StoreBusy(
                    "The server stores what was purged as long as somebody might look at it who began "
                    f"before: {', '.join(holders)}. Let them end their transactions, and run it again."
                )
            time.sleep(pause)

    def _renew_statistics(self, tables: Sequence[str]) -> None:
        """Leave nothing in the planner's statistics either, where values of the tables are quoted."""
        # Somebody made statistics of these parents of partitions, which quote all partitions.
        parents = [parent for (parent,) in self.raw.execute(_STORED, (list(tables),)).fetchall()]
        for parent in parents:
            self._patiently(f"ANALYZE {parent}", parent)
        self.left += clear_statistics(self.raw, [*tables, *parents])
        # The former statistics, too, are visible to transactions that began before.
        self.wait_for_old([self.raw.execute(b"SELECT pg_current_xact_id()::text").fetchall()[0][0]])
        before = statistics_file(self.raw)
        # A user who may not do it is warned, and nothing else happens.
        self._patiently(f"VACUUM FULL {STATISTICS}", STATISTICS)
        if statistics_file(self.raw) == before:
            self.left.append(STATISTICS_LEFT)

    def _patiently(self, statement: str, table: str) -> None:
        for pause in self._pauses():
            try:
                self.raw.execute(statement.encode())
            except errors.LockNotAvailable as error:
                if pause is None:
                    raise StoreBusy(
                        f"The table {table} was in use all the time, and nobody may use it while it is "
                        "written anew. What was done before stays done; run it again when less is going on."
                    ) from error
                time.sleep(pause)
            else:
                return

    def _pauses(self) -> Iterator[float | None]:
        """How long to wait before each further attempt; None says that this one is the last."""
        end = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while time.monotonic() < end:
            yield pause * random.uniform(0.5, 1.5)  # noqa: S311 - no secret.
            pause = min(2 * pause, _LONGEST_PAUSE)
        yield None

    def _advance(self) -> None:
        self.step += 1
        self.progress(self.step, self.steps)


# Where the bytes of what was purged may be besides its tables: the planner's statistics, and the log.

# The statistics keep some of the values of each column, those of a parent too where somebody analyzed it. Of
# a table without rows they aren't renewed.
_STORED: Final = b"""
SELECT DISTINCT parents.oid::regclass::text
FROM pg_inherits JOIN pg_class AS parents ON parents.oid = inhparent
    JOIN pg_stats ON tablename = parents.relname AND schemaname = parents.relnamespace::regnamespace::text
WHERE inhrelid = ANY (%s::text[]::regclass[]) AND inherited
"""

_STALE: Final = b"""
FROM pg_stats JOIN pg_class ON relname = tablename AND relnamespace::regnamespace::text = schemaname
WHERE pg_class.oid = ANY (%s::text[]::regclass[])
"""

_CLEAR: Final = b"SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited)" + _STALE
_CLEARS_SINCE: Final = 180_000  # Before, only a superuser can.
_CLEAR_BY_HAND: Final = b"DELETE FROM pg_statistic WHERE starelid = ANY (%s::text[]::regclass[])"

STATISTICS: Final = "pg_catalog.pg_statistic"
"""The table of the planner's statistics."""

_FILE: Final = b"SELECT pg_relation_filenode('pg_catalog.pg_statistic'::regclass)"

_SURROUNDINGS: Final = b"""
SELECT current_setting('wal_recycle') = 'on',
       current_setting('archive_mode') <> 'off',
       EXISTS (SELECT FROM pg_stat_replication) OR EXISTS (SELECT FROM pg_replication_slots)
"""

STATISTICS_LEFT: Final = (
    "The planner's statistics may quote what was purged, and this user may not write them anew. Let a "
    "superuser run VACUUM FULL pg_statistic in this database."
)
"""The remark where the statistics can't be rewritten."""

_EMPTY_LEFT: Final = (
    "The planner's statistics of tables without rows may quote what was purged, and this user may not clear "
    "them. Let a superuser delete their rows of pg_statistic, and run VACUUM FULL pg_statistic."
)
_LOG_LEFT: Final = (
    "The write-ahead log wasn't closed, since this user may not do that. Let a superuser run SELECT "
    "pg_switch_wal(); CHECKPOINT;"
)
_RECYCLED: Final = (
    "The server uses closed segments of its write-ahead log again, and until then they hold what they held. "
    "With wal_recycle = off it removes them instead."
)
_ARCHIVED: Final = "The archive of the write-ahead log holds it until its files expire."
_REPLICATED: Final = (
    "Replicas write the tables anew as this server did; their logs, and the segments stored for them here, "
    "hold it until they are recycled."
)
_ALWAYS: Final = (
    "Backups and dumps hold it, and so do snapshots of the disk, free blocks of one that writes copies, and "
    "server logs that quote parameters."
)


def clear_statistics(raw: Raw, tables: Sequence[str]) -> tuple[str, ...]:
    """Remove the statistics of those of these tables that have no rows; what couldn't be done."""
    empty = [each for each in tables if not raw.execute(f"SELECT FROM {each} LIMIT 1".encode()).fetchall()]
    return () if _cleared(raw, empty) else (_EMPTY_LEFT,)


def statistics_file(raw: Raw) -> int:
    """The number of the file that the statistics are in, which changes when they are rewritten."""
    return int(raw.execute(_FILE).fetchall()[0][0])


def switch_log(raw: Raw) -> tuple[str, ...]:
    """Close the current segment of the log, and let the server need none before it; what couldn't be done."""
    try:
        raw.execute(b"SELECT pg_switch_wal()")
        raw.execute(b"CHECKPOINT")
    except errors.InsufficientPrivilege:
        return (_LOG_LEFT,)
    return ()


def remains(raw: Raw, left: Sequence[str]) -> tuple[str, ...]:
    """Where bytes of what was purged may be left, after what couldn't be done: each with what helps."""
    recycles, archives, replicates = raw.execute(_SURROUNDINGS).fetchall()[0]
    remarks = (
        (recycles, _RECYCLED),
        (archives, _ARCHIVED),
        (replicates, _REPLICATED),
        (True, _ALWAYS),
    )
    return (*dict.fromkeys(left), *(text for holds, text in remarks if holds))


def _cleared(raw: Raw, tables: Sequence[str]) -> bool:
    """Whether there are no statistics of these tables any more."""
    if raw.execute(b"SELECT count(*)" + _STALE, (list(tables),)).fetchall() == [(0,)]:
        return True
    if raw.info.server_version >= _CLEARS_SINCE:
        raw.execute(_CLEAR, (list(tables),))
        return True
    try:
        raw.execute(_CLEAR_BY_HAND, (list(tables),))
    except errors.InsufficientPrivilege:
        return False
    return True
