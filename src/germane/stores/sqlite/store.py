"""The store that a path opens: memories in one SQLite file, its schema, and its upkeep."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from germane.errors import InvalidInput, SchemaTooNew, StoreBusy, StoreError, StoreUnavailable
from germane.model.query import EmbeddingIdentity
from germane.model.text import REMOVED, USER_PREFIX
from germane.stores.relational.cache import MOST_CACHE_BYTES
from germane.stores.relational.checksums import ENCRYPTION
from germane.stores.relational.settings import (
    StoreKey,
    encrypting,
    reindex,
    set_setting,
    settle,
    store_key,
    stored_embedding,
)
from germane.stores.relational.store import RelationalStore
from germane.stores.relational.tables import POOL_SIZE, Connection, Connections, Purged, number_of
from germane.stores.sql import Migration, migrations, refuse_older, statements
from germane.stores.sqlite.connections import (
    MEMORY,
    Durability,
    SqliteConnection,
    SqliteConnections,
    is_busy,
    succeeds,
    translated,
    until,
)

if TYPE_CHECKING:
    from germane.ledger import DatabaseStatus, Erasure, Finding, Progress


class SqliteStore(RelationalStore):
    """A `Store` in one file, with every sub-store but notifications.

    Threads and processes may share it.

    `path` names the file, which is created when it is missing, or is ":memory:". `embedding` names
    the model whose vectors are stored; without it none can be. `durability="full"` keeps what was
    acknowledged through a loss of power, "relaxed" through a crash of the process only. `timeout`
    is how many seconds to wait for other writers before StoreBusy. `replace_embedding` allows the
    vectors of another model to be removed on opening; all memories then wait for new ones. At most
    `pool_size` readers stay open, and the caches of all agents take at most `cache_bytes`. A new file is
    encrypted by `key`, 32 bytes, which opens it again.

    Raises StoreUnavailable, SchemaTooNew, EmbedderMismatch or StoreBusy.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        embedding: EmbeddingIdentity | None = None,
        durability: Durability = "full",
        timeout: float = 30.0,
        read_only: bool = False,
        replace_embedding: bool = False,
        pool_size: int = POOL_SIZE,
        cache_bytes: int = MOST_CACHE_BYTES,
        key: bytes | None = None,
    ) -> None:
        self._file = ErasingConnections(
            path, durability=durability, timeout=timeout, read_only=read_only, pool_size=pool_size
        )
        super().__init__(encrypting(self._file, key), embedding=embedding, cache_bytes=cache_bytes)
        try:
            with translated(self._connections.location):
                prepare(self._file, key=store_key(self._connections))
                settle(self._connections, embedding=embedding, replace_embedding=replace_embedding)
            finish_erasure(self._file)
        except BaseException:
            self._connections.close()
            raise

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log into the file, and cut the log to no bytes.

        Also finishes what a purge had to leave undone. Nothing needs this in everyday use. Raises
        StoreBusy while a reader holds on to the log.
        """
        settle_log(self._file)

    @contextmanager
    def filling(self) -> Iterator[SqliteConnection]:
        """A write transaction that copies rows into the file as they are."""
        with self._file.writing() as connection:
            yield connection

    def _as_of(self, agent: str, point: Mapping[str, int]) -> SqliteStore:
        return copy_past(self._connections, agent, point, self._embedding)

    def _schema_version(self, connection: Connection) -> int:
        return version_of(cast("SqliteConnection", connection))

    def _damage(self, connection: Connection) -> tuple[Finding, ...]:

        return check_file(cast("SqliteConnection", connection))


# What an operator does to a whole file.

_TIMEOUT = 30.0

_AGENTS = """
SELECT count(*) FILTER (WHERE NOT gone AND NOT of_user), count(*) FILTER (WHERE of_user),
    count(*) FILTER (WHERE gone), coalesce(sum(memories), 0)
FROM (SELECT memories, name GLOB ? AS gone, name GLOB ? AS of_user FROM agents)
"""

_BEYOND = (
    "Backups and exports hold it, and so do snapshots of the disk and free blocks of one that writes copies.",
)


class SqliteOperations:
    """The operations on a store in a file."""

    def __init__(self, path: str | Path, *, key: bytes | None = None) -> None:
        self._path, self._key = path, key

    def status(self) -> DatabaseStatus:
        """How the file is doing. Raises StoreUnavailable for what is no store, and SchemaTooNew."""
        from germane.ledger import DatabaseStatus  # noqa: PLC0415 - For operators alone.

        with self._opened(read_only=True) as connections, connections.reading() as connection:
            check_ours(connection, connections.location)
            version = version_of(connection)
            agents, users, removing, memories, settings = 0, 0, 0, 0, {}
            if version:
                prefixes = (f"{REMOVED}*", f"{USER_PREFIX}*")
                agents, users, removing, memories = connection.execute(_AGENTS, prefixes).fetchone()
                settings = dict(connection.run("settings").fetchall())
            return DatabaseStatus(
                location=connections.location,
                engine=f"SQLite {sqlite3.sqlite_version}",
                schema_version=version,
                newest_version=VERSION,
                pending=tuple(each.name for each in migrations("sqlite") if each.number > version),
                agents=agents,
                users=users,
                memories=memories,
                bytes=connections.size(),
                embedding=stored_embedding(settings),
                due=int(OWED in settings),
                removing=removing,
                encrypted=ENCRYPTION in settings,
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
        SqliteStore(self._path, key=self._key).close()
        return missing

    def reindex(self, progress: Progress) -> None:
        """Make the index of the words anew from the texts, and rebuild every index of the file."""
        with closing(SqliteStore(self._path, key=self._key)) as store:
            with store.filling() as connection:
                connection.execute("REINDEX")
            store.doing(reindex)
        progress(1, 1)

    def vacuum(self, progress: Progress) -> None:
        """Rewrite the file from what is stored in it. Raises StoreBusy while others write or hold its log."""
        SqliteStore(self._path, key=self._key).close()
        with self._opened() as connections:
            connections.rewrite()
            if not connections.truncate_log(timeout=_TIMEOUT):
                raise StoreBusy(
                    f"The file {connections.location} is rewritten, but a reader has used its log for "
                    f"{_TIMEOUT:g} s. Close the reader, and run it again to cut the log."
                )
        progress(1, 1)

    def erase(self, progress: Progress) -> Erasure:
        """Rewrite the file if a purge couldn't, and cut its log. Raises StoreBusy or StoreUnavailable."""
        from germane.ledger import Erasure  # noqa: PLC0415 - For operators alone.

        with closing(SqliteStore(self._path, key=self._key)) as store:
            store.checkpoint()
        progress(1, 1)
        return Erasure(tables=(), left=_BEYOND)

    def _opened(self, *, read_only: bool = False) -> closing[ErasingConnections]:
        return closing(
            ErasingConnections(self._path, durability="full", timeout=_TIMEOUT, read_only=read_only)
        )


# Brings a file to the schema that this version knows, and makes sure that it is a store at all.

APPLICATION = 0x6765726D
"""In the file's header, as the bytes `germ`: another program's database is not taken for a store."""

_STEPS = migrations("sqlite")

VERSION = _STEPS[-1].number


def prepare(
    connections: SqliteConnections, steps: Sequence[Migration] = _STEPS, *, key: StoreKey | None = None
) -> None:
    """Create the schema in a new file by all steps, or apply the steps that an older one lacks.

    A new file is encrypted by `key`, if there is one.

    Several processes may do this at once. Raises StoreUnavailable for a database of another
    program and for one older than the first step, and SchemaTooNew.
    """
    newest = steps[-1].number
    if connections.read_only:
        with connections.reading() as connection:
            check_ours(connection, connections.location, newest)
            found = version_of(connection)
        if found < newest:
            raise StoreUnavailable(
                f"The store {connections.location} has schema version {found}, this germane needs {newest}. "
                "Open it once without read_only=True, or let `germane db migrate` open it: "
                "then it is brought up to date."
            )
        return
    if not connections.in_memory:
        with connections.alone(), connections.reading() as connection:
            check_ours(connection, connections.location, newest)
            if version_of(connection) == newest:
                return
    with connections.writing() as connection:
        # Another process may have been first.
        check_ours(connection, connections.location, newest)
        if not version_of(connection):
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            for migration in steps:
                _apply(connection, migration)
            if key is not None:
                key.begin(connection)
    for migration in steps:
        with connections.writing() as connection:
            if version_of(connection) < migration.number:
                _apply(connection, migration)


def version_of(connection: SqliteConnection) -> int:
    """The schema version of a file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _apply(connection: SqliteConnection, migration: Migration) -> None:
    for each in statements(migration.script):
        connection.execute(each)
    connection.run("record_migration", {"number": migration.number, "name": migration.name})
    connection.execute(f"PRAGMA user_version = {migration.number}")


def check_ours(connection: SqliteConnection, location: str, newest: int = VERSION) -> None:
    """Raise StoreUnavailable for a database of another program or an old schema, and SchemaTooNew."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION and (application or tables):
        raise StoreUnavailable(
            f"The file {location} is a SQLite database of another program. Choose another path for the store."
        )
    found = version_of(connection)
    if found > newest:
        raise SchemaTooNew(found=found, supported=newest, location=location)
    refuse_older("sqlite", found, location)


# After a purge: leaves nothing in a file or its log of what is gone, now or when that can be done.

OWED: Final = "owes_erasure"
"""The setting of a file that has to be rewritten."""

# A file up to this size is rewritten by way of memory, a larger one by way of a temporary file.
_REWRITTEN_IN_MEMORY = 256 << 20


class ErasingConnections(SqliteConnections):
    """Connections to a file in which nothing is left of what was purged."""

    def note_purge(
        self,
        connection: Connection,
        what: Purged = "memories",  # noqa: ARG002 - A file is rewritten whole.
    ) -> None:
        """Note that the file has to be rewritten, so that the next process to open it can do it."""
        connection.run("blank_replies")
        set_setting(connection, OWED, "1")

    def rewrite(self) -> None:
        """Rewrite the whole file from what is stored, so that nothing else is left in its pages.

        secure_delete zeroes what is deleted, but not the copies that stay behind in unused parts
        of pages when SQLite moves rows from page to page.
        """
        with self.alone() as connection:
            in_memory = self.size() <= _REWRITTEN_IN_MEMORY
            connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
            try:
                if not until(self._deadline(), lambda: succeeds(connection, "VACUUM")):
                    raise StoreBusy("Other processes wrote for longer than the timeout.")
            finally:
                connection.execute("PRAGMA temp_store = MEMORY")

    def truncate_log(self, *, timeout: float) -> bool:
        """Move the whole write-ahead log into the file and cut it to no bytes; False if readers hold it."""
        if self.in_memory:
            return True
        with self.alone() as connection:
            return until(time.monotonic() + timeout, lambda: _truncate(connection))

    def erase(self) -> None:
        """Leave nothing in the file or its log of what was purged; the store remembers until it is done.

        Raises StoreBusy or StoreUnavailable where that can't be done now.
        """
        try:
            self.rewrite()
            done = self.truncate_log(timeout=self.timeout)
        except StoreError as error:
            raise type(error)(
                "The purge is done, but copies of its text may be left in unused parts of the file "
                f"{self.location}, for it couldn't be rewritten: {error} "
                "Call checkpoint(), or open the store again, to finish."
            ) from error
        if not done:
            raise StoreBusy(
                "The purge is done, but its text is still in the write-ahead log of "
                f"{self.location}: a reader has used it for "
                f"{self.timeout:g} s. Close the reader, then call checkpoint() or open the "
                "store again to finish."
            )
        with self.writing() as connection:
            connection.run("remove_setting", {"name": OWED})


def _truncate(connection: SqliteConnection) -> bool:
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if is_busy(error):
            return False
        raise


def finish_erasure(connections: ErasingConnections) -> None:
    """Do what a purge had to leave undone, if that can be done now."""
    if connections.read_only:
        return
    if _owes(connections):
        # The purge has raised it to its caller; a later process can't act on it.
        with suppress(StoreBusy):
            connections.erase()


def settle_log(connections: ErasingConnections) -> None:
    """Move the log into the file, and finish what a purge had to leave undone.

    Raises StoreBusy while a reader holds on to the log.
    """
    if _owes(connections):
        connections.erase()
    elif not connections.truncate_log(timeout=connections.timeout):
        raise StoreBusy(
            f"A reader has used the log of {connections.location} for "
            f"{connections.timeout:g} s. Close the reader, and call checkpoint again."
        )


def _owes(connections: SqliteConnections) -> bool:
    with connections.reading() as connection:
        return OWED in dict(connection.run("settings").fetchall())


# Looks for damage of a file and says what mends it.

_RESTORE = "Restore the file from a backup, or export what can be read and import it into a new store."
_REINSERT = "Export the agent's memories and import them into a new store."


def check_file(connection: SqliteConnection) -> tuple[Finding, ...]:
    """Damage of the file itself: pages, indexes and rows that don't agree."""
    from germane.ledger import Finding  # noqa: PLC0415 - Few processes check.

    try:
        messages = [text for (text,) in connection.execute("PRAGMA integrity_check(20)") if text != "ok"]
        strangers = connection.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.DatabaseError as error:
        messages, strangers = [str(error)], []
    found = [Finding(code="damaged-file", text=each, remedy=_RESTORE) for each in messages]
    found += [
        Finding(code="orphan", text=f"Row {row} of {table} has no memory.", remedy=_REINSERT)
        for table, row, *_ in strangers[:20]
    ]
    return tuple(found)


# Copies an agent's memories into an empty store as they were at a point, as far as that can be known.
#
# What is known: which memories were there, which were heads, at which stage they stood, which had vectors,
# what was used. What isn't: when something was repeated, what was forgotten before it was restored, and
# what was purged. So nobody may take a copy for the store as it was without a proof of his own.

_TABLES: Final = {
    "agents": "past_agents",
    "memories": "past_memories",
    "texts": "past_texts",
    "tags": "past_tags",
    "places": "past_places",
    "lex": "past_lex",
    "vectors": "past_vectors",
    "unembedded": "past_unembedded",
    "shown": "past_shown",
    "outcomes": "past_outcomes",
    "lives": "past_lives",
    "settings": "past_settings",
}
_ROWS_AT_ONCE: Final = 2000


def copy_past(
    connections: Connections, name: str, point: Mapping[str, int], embedding: EmbeddingIdentity | None
) -> SqliteStore:
    """A store in memory with one agent's memories as they were at a point, as far as that can be known."""
    copy = SqliteStore(MEMORY, embedding=embedding)
    with connections.reading(name) as source, copy.filling() as target:
        _fill(source, target, number_of(source, name), point)
    return copy


def _fill(source: Connection, target: SqliteConnection, agent: int, point: Mapping[str, int]) -> None:
    from germane.stores.relational.ledger import last_of  # noqa: PLC0415 - Few processes look at the past.

    values = {**point, "agent": agent, "last": last_of(agent, point)}
    for table, query in _TABLES.items():
        rows = source.run(query, values)
        names = [each[0] for each in rows.description]
        marks = ", ".join("?" * len(names))
        columns = ", ".join(names)
        statement = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"
        while some := rows.fetchmany(_ROWS_AT_ONCE):
            target.executemany(statement, some)
    _undo(source, target, values)
    target.run("set_point", values)


def _undo(source: Connection, target: SqliteConnection, values: Mapping[str, int]) -> None:
    """Take back what happened to the memories after the point."""
    agent = values["agent"]
    stages = dict(source.run("stages_then", values).fetchall())
    for num, ended in source.run("superseded_since", values).fetchall():
        target.run("be_head", {"agent": agent, "num": num, "ended": int(ended)})
    for num, stood in source.run("moved_since", values).fetchall():
        target.run("be_at", {"agent": agent, "num": num, "status": stood, "stage": None})
    for num, stage in stages.items():
        target.run("be_at", {"agent": agent, "num": num, "status": None, "stage": stage})
    for num, uses in source.run("uses_since", values).fetchall():
        target.run("unuse", {"agent": agent, "num": num, "uses": uses})
