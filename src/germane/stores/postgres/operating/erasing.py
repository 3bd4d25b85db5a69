"""After purges: writes those tables anew in whose files the bytes of what is gone may be left.

Level: stores (imports errors and model). A purge deletes rows and leaves a note in `erasures`. The server
overwrites such rows some day; only a table that is written anew (VACUUM FULL) has none of their bytes left.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from psycopg import errors

from germane.errors import StoreBusy
from germane.model.database import Erasure, Tell
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.postgres.operating import distributing
from germane.stores.postgres.operating.residues import (
    STATISTICS,
    STATISTICS_LEFT,
    clear_statistics,
    kept_parents,
    remains,
    statistics_file,
    switch_log,
)

__all__ = ["due", "erase"]

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
    "memories": ("memories", "assemblies"),
    "ledger": ("assemblies",),
    "conversations": ("conversations",),
}

# What holds names, and isn't parted by agent.
_NAMES: Final = ("agents", "space_events")

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

# Whoever waits for a table that somebody reads makes everybody else wait behind, so no wait is long.
_LOCK_WAIT: Final = b"SET lock_timeout = '500ms'"
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class _Note(NamedTuple):
    agent: int
    what: str
    noted: str
    part: int | None


def due(raw: Raw) -> int:
    """Of how many agents something was purged that isn't erased yet."""
    return int(raw.execute(_DUE).fetchall()[0][0])


def erase(raw: Raw, tell: Tell, *, patience: float) -> Erasure:
    """Write the tables anew that purges have noted, partition by partition, and take the notes away.

    What is purged meanwhile keeps its note. A call that was interrupted is made up for by the next.
    Raises StoreBusy where somebody doesn't let go within `patience` seconds.
    """
    notes = [_Note(*row) for row in raw.execute(_NOTED).fetchall()]
    raw.execute(_LOCK_WAIT)
    work = _Work(raw, tell, patience, _steps(raw, notes))
    if notes:
        work.wait_for_old([each.noted for each in notes])
    for _, some in groupby(notes, key=lambda each: each.part):
        group = tuple(some)
        work.rewrite(_tables(raw, group))
        for each in group:
            raw.execute(_ERASED, each[:3])
    return Erasure(tables=tuple(work.done), left=remains(raw, work.left))


def _steps(raw: Raw, notes: Sequence[_Note]) -> int:
    """How many steps there are: each table once, and the statistics and the log with each partition."""
    groups = [tuple(some) for _, some in groupby(notes, key=lambda each: each.part)]
    return len({table for group in groups for table in _tables(raw, group)}) + 2 * len(groups)


def _tables(raw: Raw, notes: Sequence[_Note]) -> tuple[str, ...]:
    """The tables that hold what was purged, all notes being about agents of one partition."""
    kinds = {each.what for each in notes}
    end = "" if notes[0].part is None else f"_{notes[0].part}"
    if "agent" in kinds:
        parted = [f"{table}{end}" for table, step in distributing.steps() if "'agent'" in step]
        return tuple(sorted({*parted, *_NAMES}))
    roots = [f"{table}{end}" for kind in sorted(kinds) for table in _ROOTS[kind]]
    return tuple(table for (table,) in raw.execute(_REACHED, (roots,)).fetchall())


@dataclass(slots=True)
class _Work:
    """One call's work. `done` are the tables that are written anew, `left` what couldn't be done."""

    raw: Raw
    tell: Tell
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
        """Wait for whoever might still look at what these transactions deleted."""
        for pause in self._pauses():
            holders = [who for (who,) in self.raw.execute(_OLD, (list(noted),)).fetchall()]
            if not holders:
                return
            if pause is None:
                raise StoreBusy(
                    "What was purged is kept by the server as long as somebody might look at it who began "
                    f"before: {', '.join(holders)}. Let them end their transactions, and run it again."
                )
            time.sleep(pause)

    def _renew_statistics(self, tables: Sequence[str]) -> None:
        """Leave nothing in the planner's statistics either, where values of the tables are quoted."""
        parents = kept_parents(self.raw, tables)
        for parent in parents:
            self._patiently(f"ANALYZE {parent}", parent)
        self.left += clear_statistics(self.raw, [*tables, *parents])
        # What they said before is kept too for whoever began before.
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
        self.tell(self.step, self.steps)
