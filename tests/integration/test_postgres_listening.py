"""What one process writes wakes others at once, and nobody sleeps through a broken connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event

import pytest

import germane
from germane import Engine, Filter, NotFound, Status
from germane.spaces import SpaceEvent, SpaceEventKind
from germane.stores import Insert, PostgresStore, SetStatus
from germane.testing.fakes import START, make_id, make_memory
from germane.working_sets import WorkingSetEvent
from support.postgres_server import Server, database_of

_PATIENCE = 20


@pytest.fixture
def pair(postgres_store_database: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """A store opened as two processes would."""
    with ExitStack() as opened:
        one, other = (PostgresStore(postgres_store_database, timeout=20) for _ in range(2))
        opened.callback(one.close)
        opened.callback(other.close)
        yield one, other


def _write(store: PostgresStore, agent: str) -> None:
    store.apply(agent, [Insert(memory=make_memory("Tea is green.", agent=agent))])


def _listener(store: PostgresStore, agent: str) -> Event:
    """An event that is set whenever the agent's listener is woken, once it hears."""
    woken = Event()
    store.notifications.subscribe(agent, woken.set)
    assert woken.wait(_PATIENCE)  # Everybody is woken when listening begins.
    woken.clear()
    return woken


def test_a_write_wakes_who_listens_for_its_agent(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = pair
    woken = _listener(one, "newton")
    assert one.notifications.hears
    _write(other, "newton")
    assert woken.wait(_PATIENCE)


def test_what_is_written_is_there_when_the_call_comes(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = pair
    seen: list[int] = []
    done = Event()

    def look() -> None:
        seen.append(len(one.find("newton", Filter())))
        if seen[-1]:
            done.set()

    one.notifications.subscribe("newton", look)
    _write(other, "newton")
    assert done.wait(_PATIENCE)


def test_another_agents_write_wakes_nobody(pair: tuple[PostgresStore, PostgresStore]) -> None:
    one, other = pair
    newton, hooke = _listener(one, "newton"), _listener(one, "hooke")
    _write(other, "hooke")
    assert hooke.wait(_PATIENCE)
    assert not newton.is_set()


def test_what_is_rolled_back_wakes_nobody(pair: tuple[PostgresStore, PostgresStore]) -> None:
    one, other = pair
    newton, hooke = _listener(one, "newton"), _listener(one, "hooke")
    unknown = SetStatus(memory_id=make_id("unknown"), status=Status.FORGOTTEN, at=START)
    with pytest.raises(NotFound):
        other.apply("newton", [Insert(memory=make_memory("Never stored.", agent="newton")), unknown])
    _write(other, "hooke")
    assert hooke.wait(_PATIENCE)
    assert not newton.is_set()


def test_after_a_broken_connection_everybody_is_woken(
    postgres_server: Server, pair: tuple[PostgresStore, PostgresStore]
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
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    one, _ = pair
    woken = Event()
    removes = [one.notifications.subscribe("newton", woken.set) for _ in range(2)]
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


def test_closing_wakes_who_waits(pair: tuple[PostgresStore, PostgresStore]) -> None:
    one, _ = pair
    woken = _listener(one, "newton")
    one.close()
    assert woken.is_set()


def _opened(url: str, agent: str) -> Engine:
    return germane.open(url, agent=agent, embedder=None, counter="estimate")


def test_who_follows_a_working_set_hears_of_another_process_at_once(postgres_store_database: str) -> None:
    events: list[WorkingSetEvent] = []
    heard = Event()

    def tell(move: WorkingSetEvent) -> None:
        events.append(move)
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
    assert [move.kind.value for move in events] == ["add"]


def test_who_follows_a_space_hears_of_members_on_other_machines(postgres_store_database: str) -> None:
    events: list[SpaceEvent] = []
    heard = Event()

    def tell(event: SpaceEvent) -> None:
        events.append(event)
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
    assert [event.what.value for event in events] == ["join", "remember"]
    assert {event.by for event in events} == {"hooke"}
