"""What one process writes wakes others at once, and nobody sleeps through a broken connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event

import pytest

import germane
from germane import Engine
from germane.spaces import SpaceEvent, SpaceEventKind
from germane.stores.postgres.connections import PostgresConnections
from germane.working_sets import WorkingSetEvent
from support.postgres_server import Server, database_of

_PATIENCE = 20


@pytest.fixture
def pair(postgres_store_database: str) -> Iterator[tuple[PostgresConnections, PostgresConnections]]:
    """Two processes' worth of connections."""
    with ExitStack() as opened:
        one, other = (PostgresConnections(postgres_store_database, timeout=20) for _ in range(2))
        opened.callback(one.close)
        opened.callback(other.close)
        yield one, other


def _write(connections: PostgresConnections, agent: str) -> None:
    with connections.writing(agent) as connection:
        connection.run("add_agent", {"name": agent})


def _listener(connections: PostgresConnections, agent: str) -> Event:
    """An event that is set whenever the agent's listener is woken, once it hears."""
    woken = Event()
    connections.awake(agent, woken.set)
    assert woken.wait(_PATIENCE)  # Everybody is woken when listening begins.
    woken.clear()
    return woken


def test_a_write_wakes_who_listens_for_its_agent(
    pair: tuple[PostgresConnections, PostgresConnections],
) -> None:
    one, other = pair
    woken = _listener(one, "newton")
    assert one.hears
    _write(other, "newton")
    assert woken.wait(_PATIENCE)


def test_what_is_written_is_there_when_the_call_comes(
    pair: tuple[PostgresConnections, PostgresConnections],
) -> None:
    one, other = pair
    seen: list[int] = []
    done = Event()

    def look() -> None:
        with one.reading("newton") as connection:
            seen.append(len(connection.raw.execute("SELECT FROM agents").fetchall()))
        if seen[-1]:
            done.set()

    one.awake("newton", look)
    _write(other, "newton")
    assert done.wait(_PATIENCE)


def test_another_agents_write_wakes_nobody(pair: tuple[PostgresConnections, PostgresConnections]) -> None:
    one, other = pair
    newton, hooke = _listener(one, "newton"), _listener(one, "hooke")
    _write(other, "hooke")
    assert hooke.wait(_PATIENCE)
    assert not newton.is_set()


def test_what_is_rolled_back_wakes_nobody(pair: tuple[PostgresConnections, PostgresConnections]) -> None:
    one, other = pair
    newton, hooke = _listener(one, "newton"), _listener(one, "hooke")
    with pytest.raises(ZeroDivisionError), other.writing("newton"):
        raise ZeroDivisionError
    _write(other, "hooke")
    assert hooke.wait(_PATIENCE)
    assert not newton.is_set()


def test_after_a_broken_connection_everybody_is_woken(
    postgres_server: Server, pair: tuple[PostgresConnections, PostgresConnections]
) -> None:
    one, other = pair
    newton, hooke = _listener(one, "newton"), _listener(one, "hooke")
    postgres_server.restart()
    assert newton.wait(_PATIENCE)
    assert hooke.wait(_PATIENCE)
    newton.clear()
    _write(other, "newton")
    assert newton.wait(_PATIENCE)


def test_who_no_longer_listens_costs_no_connection(
    postgres_server: Server,
    postgres_store_database: str,
    pair: tuple[PostgresConnections, PostgresConnections],
) -> None:
    one, _ = pair
    woken = Event()
    removes = [one.awake("newton", woken.set), one.awake("newton", woken.set)]
    assert woken.wait(_PATIENCE)
    listeners = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT place::text, NULL%'"
        f" AND datname = '{database_of(postgres_store_database)}'"
    )
    assert postgres_server.run(listeners) == [(1,)]
    for each in removes:
        each()
    ended = Event()
    for _ in range(400):
        if postgres_server.run(listeners) == [(0,)]:
            break
        ended.wait(0.05)
    assert postgres_server.run(listeners) == [(0,)]


def test_closing_wakes_who_waits(pair: tuple[PostgresConnections, PostgresConnections]) -> None:
    one, _ = pair
    woken = _listener(one, "newton")
    one.close()
    assert woken.is_set()


def _opened(url: str, agent: str) -> Engine:
    return germane.open(url, agent=agent, embedder=None, counter="estimate")


def test_who_follows_a_working_set_hears_of_another_process_at_once(postgres_store_database: str) -> None:
    told: list[WorkingSetEvent] = []
    heard = Event()

    def tell(move: WorkingSetEvent) -> None:
        told.append(move)
        heard.set()

    with (
        _opened(postgres_store_database, "newton") as one,
        _opened(postgres_store_database, "newton") as other,
    ):
        memory = other.remember("one")
        # So seldom would it look by itself that the test would not live to see it.
        with one.working_set().follow(tell, after=0, every=3600):
            other.working_set().add(memory)
            assert heard.wait(_PATIENCE)
    assert [move.kind.value for move in told] == ["add"]


def test_who_follows_a_space_hears_of_members_on_other_machines(postgres_store_database: str) -> None:
    told: list[SpaceEvent] = []
    heard = Event()

    def tell(event: SpaceEvent) -> None:
        told.append(event)
        if event.what is SpaceEventKind.REMEMBER:
            heard.set()

    with (
        _opened(postgres_store_database, "newton") as one,
        _opened(postgres_store_database, "hooke") as other,
    ):
        space = one.space("lab", create=True, admits="write")
        with space.follow(tell, every=3600):
            shared = other.space("lab")
            shared.join(rights="write")
            shared.remember("a prism parts light")
            assert heard.wait(_PATIENCE)
    assert [event.what.value for event in told] == ["join", "remember"]
    assert {event.by for event in told} == {"hooke"}
