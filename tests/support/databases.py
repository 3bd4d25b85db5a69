"""Stores of this version and of later ones, and the fixtures that give a test a database of its own.

`conftest.py` registers the fixtures.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import psycopg
import pytest

from germane.stores import migrate_store
from germane.stores.sql import Migration, migrations
from support.postgres_server import Server, missing

if TYPE_CHECKING:
    from germane.stores.postgres.connections import PostgresConnections

__all__ = [
    "ENCRYPTION_KEY",
    "Connections",
    "connections_to",
    "later_step",
    "migrated_database",
    "migrated_file",
    "oldest_version",
    "postgres_database",
    "postgres_encrypted_store",
    "postgres_owner",
    "postgres_schema",
    "postgres_server",
    "postgres_store",
    "postgres_store_database",
    "running",
    "sql_at",
    "step_names",
    "store",
    "version",
]

Connections: TypeAlias = "PostgresConnections"
"""The connections of a store to its server."""

Dialect = Literal["postgres", "sqlite"]


def running(**settings: str) -> Iterator[Server]:
    """A server with these settings, which runs until it is done with; skips where none can be had."""
    why = missing()
    if why:
        pytest.skip(why)
    server = Server(settings=settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The server of this worker. A test that kills it starts it again before it ends."""
    yield from running()


@pytest.fixture
def postgres_database(postgres_server: Server) -> Iterator[str]:
    """The address of an empty database with the extension for vectors, gone after the test."""
    database = postgres_server.fresh()
    yield postgres_server.url(database)
    postgres_server.drop(database)


@pytest.fixture
def postgres_store_database(postgres_server: Server) -> Iterator[str]:
    """The same with the schema of a store in it."""
    database = postgres_server.fresh("germane_store", prepared=_migrate)
    yield postgres_server.url(database)
    postgres_server.drop(database)


def _migrate(url: str) -> None:
    migrate_store(url)


def connections_to(address: str, *, timeout: float = 30.0, replica: str | None = None) -> PostgresConnections:
    """The connections that a store to this address would use."""
    from germane.stores.postgres.connections import PostgresConnections  # noqa: PLC0415 - The driver may be missing.

    return PostgresConnections(address, timeout=timeout, replica=replica)


@pytest.fixture
def postgres_store(postgres_server: Server) -> Iterator[str]:
    """The address of a store without any agent: one database for all tests of a worker, emptied after each.

    A database of its own for each test would take longer than most tests do.
    """
    database = postgres_server.prepared_database("germane_kept", prepared=_migrate)
    yield postgres_server.url(database)
    postgres_server.run("TRUNCATE agents, settings, erasures, replies CASCADE", database=database)


ENCRYPTION_KEY = bytes(range(32))


@pytest.fixture
def postgres_encrypted_store(postgres_server: Server) -> Iterator[str]:
    """The same of an encrypted store, whose key is ENCRYPTION_KEY."""
    database = postgres_server.prepared_database("germane_encrypted", prepared=_migrate_encrypted)
    yield postgres_server.url(database)
    postgres_server.run(
        "TRUNCATE agents, erasures, replies CASCADE",
        "DELETE FROM settings WHERE name <> 'encryption'",
        database=database,
    )


def _migrate_encrypted(url: str) -> None:
    migrate_store(url, key=ENCRYPTION_KEY)


@pytest.fixture(scope="module", params=["whole", "partitioned"])
def postgres_schema(request: pytest.FixtureRequest, postgres_server: Server) -> Iterator[str]:
    """The address of a database with the schema as the scripts make it: in one piece, and in partitions."""
    from support.postgres_schema import PARTITIONS, install  # noqa: PLC0415 - The driver may be missing.

    database = postgres_server.fresh()
    install(postgres_server.url(database), partitions=PARTITIONS if request.param == "partitioned" else 0)
    yield postgres_server.url(database)
    postgres_server.drop(database)


@pytest.fixture
def postgres_owner(postgres_schema: str) -> Iterator[Any]:
    """A connection to it as the owner of the tables, in a transaction that is rolled back."""
    from support.postgres_schema import connected  # noqa: PLC0415 - The driver may be missing.

    with connected(postgres_schema) as connection:
        yield connection
        connection.rollback()


def version(dialect: Dialect) -> int:
    """The version of the schema that this package makes."""
    return migrations(dialect)[-1].number


def oldest_version(dialect: Dialect) -> int:
    """The oldest version of the schema that this package can bring up to date."""
    return migrations(dialect)[0].number


def step_names(dialect: Dialect) -> list[str]:
    """The names of all steps of this package, in order."""
    return [each.name for each in migrations(dialect)]


def later_step(dialect: Dialect, number: int, name: str, script: str) -> Migration:
    """A step so many versions after those of this package; the first has number 1."""
    number += version(dialect)
    return Migration(number=number, name=f"{number:04}_{name}.sql", script=script)


def versions(dialect: Dialect) -> tuple[int, ...]:
    """The versions of the schema that a store may have."""
    return tuple(each.number for each in migrations(dialect))


def migrated_file(path: Path, *later: Migration, read_only: bool = False, until: int | None = None) -> int:
    """The version of a file after these steps, or after those of this package up to `until`."""
    from germane.stores.sqlite import connections as files  # noqa: PLC0415 - Few tests need it.
    from germane.stores.sqlite import store as sqlite  # noqa: PLC0415 - As above.

    with closing(
        files.SqliteConnections(str(path), durability="full", timeout=5, read_only=read_only)
    ) as connections:
        sqlite.prepare(connections, (*_steps("sqlite", until), *later))
        with connections.reading() as connection:
            return sqlite.version_of(connection)


def migrated_database(
    address: str, *later: Migration, partitions: int = 0, until: int | None = None
) -> tuple[str, ...]:
    """The names of the steps that were applied to a database, of this package those up to `until`."""
    from germane.stores.postgres.store import migrate  # noqa: PLC0415 - The driver may be missing.

    with closing(connections_to(address)) as connections:
        return migrate(connections, partitions=partitions, steps=(*_steps("postgres", until), *later))


def _steps(dialect: Dialect, until: int | None) -> list[Migration]:
    return [each for each in migrations(dialect) if until is None or each.number <= until]


@pytest.fixture(params=["file", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made, in a file and on a server: nothing is there yet."""
    if request.param == "file":
        return str(tmp_path / "agent.db")
    return str(request.getfixturevalue("postgres_store"))


def sql_at(store: str, statement: str) -> list[tuple[Any, ...]]:
    """What a statement finds or does behind germane's back."""
    if store.startswith("postgresql:"):
        with psycopg.connect(store, autocommit=True) as raw:
            found = raw.execute(statement.encode())
            return found.fetchall() if found.description else []
    with closing(sqlite3.connect(store, isolation_level=None)) as file:
        file.execute("PRAGMA foreign_keys = ON")
        return file.execute(statement).fetchall()
