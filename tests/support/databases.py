"""The fixtures that hand a test a database of its own in a real PostgreSQL; `conftest.py` registers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.postgres_server import Server, missing

__all__ = ["postgres_database", "postgres_server"]


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
