"""Where the bytes of what was purged may be besides its tables: the planner's statistics, and the log.

Level: stores (imports nothing but its own room).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import errors

from germane.stores.postgres.connecting.connection import Raw

__all__ = [
    "STATISTICS",
    "STATISTICS_LEFT",
    "clear_statistics",
    "kept_parents",
    "remains",
    "statistics_file",
    "switch_log",
]

# The statistics keep some of the values of each column, those of a parent too where somebody analyzed it. Of
# a table without rows they aren't renewed.
_KEPT: Final = b"""
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
"""What is said where the statistics can't be written anew."""

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
    "Replicas write the tables anew as this server did; their logs, and the segments kept for them here, "
    "hold it until they are recycled."
)
_ALWAYS: Final = (
    "Backups and dumps hold it, and so do snapshots of the disk, free blocks of one that writes copies, and "
    "server logs that quote parameters."
)


def kept_parents(raw: Raw, tables: Sequence[str]) -> tuple[str, ...]:
    """The parents of these partitions of which somebody made statistics, which quote all partitions."""
    return tuple(parent for (parent,) in raw.execute(_KEPT, (list(tables),)).fetchall())


def clear_statistics(raw: Raw, tables: Sequence[str]) -> tuple[str, ...]:
    """Remove the statistics of those of these tables that have no rows; what couldn't be done."""
    empty = [each for each in tables if _is_empty(raw, each)]
    return () if _cleared(raw, empty) else (_EMPTY_LEFT,)


def statistics_file(raw: Raw) -> int:
    """The number of the file that the statistics are in, which is another one once they are written anew."""
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
    said = (
        (recycles, _RECYCLED),
        (archives, _ARCHIVED),
        (replicates, _REPLICATED),
        (True, _ALWAYS),
    )
    return (*dict.fromkeys(left), *(text for holds, text in said if holds))


def _is_empty(raw: Raw, table: str) -> bool:
    return not raw.execute(f"SELECT FROM {table} LIMIT 1".encode()).fetchall()


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
