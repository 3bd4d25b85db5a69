"""The fixtures that hand a test a database of its own in a real PostgreSQL; `conftest.py` registers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.postgres_server import Server, missing

__all__ = ["postgres_database", "postgres_server", "postgres_store", "postgres_store_database"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The server of this worker. A test that kills it starts it again before it ends."""
    why = missing()
    if why:
        pytest.skip(why)
    server = Server()
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()


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
    from germane.stores.postgres.connections import Connections  # noqa: PLC0415 - The driver may be missing.
    from germane.stores.postgres.schema import migrate  # noqa: PLC0415 - As above.

    connections = Connections(url)
    migrate(connections)
    connections.close()


@pytest.fixture
def postgres_store(postgres_server: Server) -> Iterator[str]:
    """The address of a store without any agent: one database for all tests of a worker, emptied after each.

    A database of its own for each test would take longer than most tests do.
    """
    database = postgres_server.kept("germane_kept", prepared=_migrate)
    yield postgres_server.url(database)
    postgres_server.run("TRUNCATE agents, settings CASCADE", database=database)
