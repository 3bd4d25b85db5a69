"""The fixtures that hand a test a database of its own in a real PostgreSQL; `conftest.py` registers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.postgres_server import Server, missing

__all__ = [
    "postgres_database",
    "postgres_owner",
    "postgres_schema",
    "postgres_server",
    "postgres_store",
    "postgres_store_database",
    "running",
]


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
    from germane.stores.postgres.connections import PostgresConnections  # noqa: PLC0415 - The driver may be missing.
    from germane.stores.postgres.store import migrate  # noqa: PLC0415 - As above.

    connections = PostgresConnections(url)
    migrate(connections)
    connections.close()


@pytest.fixture
def postgres_store(postgres_server: Server) -> Iterator[str]:
    """The address of a store without any agent: one database for all tests of a worker, emptied after each.

    A database of its own for each test would take longer than most tests do.
    """
    database = postgres_server.kept("germane_kept", prepared=_migrate)
    yield postgres_server.url(database)
    postgres_server.run("TRUNCATE agents, settings, erasures CASCADE", database=database)


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
    import psycopg  # noqa: PLC0415 - It may be missing.

    from germane.stores.postgres.connection import ADAPTERS  # noqa: PLC0415 - As above.

    with psycopg.connect(postgres_schema, context=ADAPTERS) as connection:
        yield connection
        connection.rollback()
