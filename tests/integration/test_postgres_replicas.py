"""Reading from a real standby: never behind what this process has written or seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event

import pytest

import germane
from germane.stores import PostgresStore, store_status
from germane.working_sets import WorkingSetEvent
from support.databases import Connections, connections_to
from support.pooler import Pooler, no_pooler
from support.postgres_server import Server, database_of

pytestmark = pytest.mark.long

_PATIENCE = 20


@pytest.fixture(scope="module")
def standby(postgres_server: Server) -> Iterator[Server]:
    """A streaming standby of the worker's server, whose replay a test may stop for a while."""
    server = Server()
    try:
        server.own()
        postgres_server.tool(
            "pg_basebackup",
            "-h",
            str(postgres_server.folder),
            "-U",
            "postgres",
            "-D",
            str(server.data),
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module", params=["straight", "pooled"])
def way(request: pytest.FixtureRequest, standby: Server) -> Iterator[Server | Pooler]:
    """The standby itself, or a pooler before it."""
    if request.param == "straight":
        yield standby
        return
    if no_pooler():
        pytest.skip(no_pooler())
    # Who waits for a server that is gone gets an error from the pooler: in two minutes, unless that is set.
    pooler = Pooler(standby, "transaction", server_login_retry="0.1", query_wait_timeout="1")
    yield pooler
    pooler.stop()


@pytest.fixture
def pair(
    standby: Server, way: Server | Pooler, postgres_store_database: str
) -> Iterator[tuple[Connections, str]]:
    """Connections that read from the standby, and the database's address there."""
    there = way.url(database_of(postgres_store_database))
    _until(lambda: _exists(standby, database_of(postgres_store_database)))
    with ExitStack() as opened:
        connections = connections_to(postgres_store_database, timeout=20, replica=there)
        opened.callback(connections.close)
        opened.callback(lambda: standby.run("SELECT pg_wal_replay_resume()"))
        yield connections, there


def _exists(standby: Server, database: str) -> bool:
    return bool(standby.run(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"))


def _until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def _write(connections: Connections, agent: str) -> None:
    with connections.writing(agent) as connection:
        connection.run("add_agent", {"name": agent})


def _read(connections: Connections) -> tuple[bool, int]:
    """Whether a standby answered, and how many agents it knows."""
    with connections.reading() as connection:
        (row,) = connection.raw.execute("SELECT pg_is_in_recovery(), count(*) FROM agents").fetchall()
    return bool(row[0]), int(row[1])


def test_reads_go_to_the_standby_and_writes_to_the_primary(pair: tuple[Connections, str]) -> None:
    connections, _ = pair
    assert _read(connections) == (True, 0)
    _write(connections, "newton")
    _until(lambda: _read(connections) == (True, 1))


def test_every_read_sees_what_was_written_before(pair: tuple[Connections, str]) -> None:
    connections, _ = pair
    for number in range(1, 40):
        _write(connections, f"agent-{number}")
        assert _read(connections)[1] == number


def test_a_standby_that_is_behind_is_passed_over_until_it_has_caught_up(
    standby: Server, pair: tuple[Connections, str]
) -> None:
    connections, _ = pair
    assert _read(connections) == (True, 0)
    standby.run("SELECT pg_wal_replay_pause()")
    assert _read(connections) == (True, 0)  # Who has seen nothing newer misses nothing there.
    _write(connections, "newton")
    assert [_read(connections) for _ in range(3)] == [(False, 1)] * 3
    standby.run("SELECT pg_wal_replay_resume()")
    _until(lambda: _read(connections) == (True, 1))


def test_what_was_seen_once_is_not_missing_later(standby: Server, pair: tuple[Connections, str]) -> None:
    connections, _ = pair
    other = connections_to(connections._primary._target)
    _until(lambda: _read(connections) == (True, 0))
    standby.run("SELECT pg_wal_replay_pause()")
    _write(other, "hooke")
    assert _read(connections) == (True, 0)
    connections._replica.rest()  # type: ignore[union-attr]  # It has one.
    assert _read(connections) == (False, 1)
    connections._replica._rests_until = 0  # type: ignore[union-attr]  # As above.
    assert _read(connections) == (False, 1)
    other.close()


def test_without_its_standby_the_primary_answers(standby: Server, pair: tuple[Connections, str]) -> None:
    connections, _ = pair
    _write(connections, "newton")
    _until(lambda: _read(connections) == (True, 1))
    standby.kill()
    try:
        assert _read(connections) == (False, 1)
        _write(connections, "hooke")
        assert _read(connections) == (False, 2)
    finally:
        standby.start()
    connections._replica._rests_until = 0  # type: ignore[union-attr]  # It has one.
    _until(lambda: _read(connections) == (True, 2))


def test_a_primary_is_no_standby(postgres_store_database: str) -> None:
    connections = connections_to(postgres_store_database, replica=postgres_store_database)
    assert _read(connections) == (False, 0)
    connections.close()


def test_who_is_woken_reads_what_woke_him_though_the_standby_is_behind(
    standby: Server, pair: tuple[Connections, str], postgres_store_database: str
) -> None:
    _, there = pair
    events: list[WorkingSetEvent] = []
    heard = Event()

    def tell(move: WorkingSetEvent) -> None:
        events.append(move)
        heard.set()

    with ExitStack() as opened:
        stores = (
            PostgresStore(postgres_store_database),
            PostgresStore(postgres_store_database, replica=there),
        )
        other, one = (
            opened.enter_context(germane.open(store, agent="newton", embedder=None, counter="estimate"))
            for store in stores
        )
        memory = other.remember("one")
        opened.enter_context(one.working_set().follow(tell, after=0, every=3600))
        standby.run("SELECT pg_wal_replay_pause()")
        other.working_set().add(memory)
        assert heard.wait(_PATIENCE)
    assert [move.kind.value for move in events] == ["add"]


def test_the_status_tells_a_standby_from_its_primary(
    pair: tuple[Connections, str], postgres_store_database: str
) -> None:
    _, there = pair
    primary, standby = store_status(postgres_store_database), store_status(there)

    assert (primary.standby, primary.replicas) == (False, 1)
    assert (standby.standby, standby.replicas) == (True, 0)
    assert (standby.schema_version, standby.agents) == (primary.schema_version, primary.agents)


def test_an_engine_reads_its_own_writes_from_a_replica(standby: Server, postgres_store_database: str) -> None:
    there = standby.url(database_of(postgres_store_database))
    _until(lambda: _exists(standby, database_of(postgres_store_database)))
    with germane.open(postgres_store_database, replica=there, agent="ada") as engine:
        for number in range(5):
            memory = engine.remember(f"Case {number} was closed.")
            assert engine.recall("case closed", limit=10)[0].memory.agent == "ada"
            assert engine.memories()[0] == memory
