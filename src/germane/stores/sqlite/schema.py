"""Brings a file to the schema that this version knows, and makes sure that it is a store at all.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.errors import SchemaTooNew, StoreUnavailable
from germane.stores.sql import Migration, migrations, refuse_older, statements
from germane.stores.sqlite.connection import SqliteConnection
from germane.stores.sqlite.connections import Connections

__all__ = ["APPLICATION", "VERSION", "check_ours", "prepare", "version_of"]

APPLICATION = 0x6765726D
"""In the file's header, as the bytes `germ`: another program's database is not taken for a store."""

_STEPS = migrations("sqlite")

VERSION = _STEPS[-1].number


def prepare(connections: Connections, steps: Sequence[Migration] = _STEPS) -> None:
    """Create the schema in a new file by all steps, or apply the steps that an older one lacks.

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
    _install(connections, steps)
    for migration in steps:
        with connections.writing() as connection:
            if version_of(connection) < migration.number:
                for each in statements(migration.script):
                    connection.execute(each)
                _record(connection, migration.number, migration.name)


def version_of(connection: SqliteConnection) -> int:
    """The schema version of a file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _install(connections: Connections, steps: Sequence[Migration]) -> None:
    with connections.writing() as connection:
        # Another process may have been first.
        check_ours(connection, connections.location, steps[-1].number)
        if version_of(connection):
            return
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for migration in steps:
            for each in statements(migration.script):
                connection.execute(each)
            _record(connection, migration.number, migration.name)


def _record(connection: SqliteConnection, number: int, name: str) -> None:
    connection.run("record_migration", {"number": number, "name": name})
    connection.execute(f"PRAGMA user_version = {number}")


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
