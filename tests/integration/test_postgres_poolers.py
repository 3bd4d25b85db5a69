"""What a pooler before the server would break: seen, and done without, or refused in clear words."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from typing import Literal

import psycopg
import pytest

import germane
from germane import StoreUnavailable
from germane.stores import (
    distribute_store,
    erase_purged,
    index_vectors,
    migrate_store,
    reindex_store,
    remove_agent,
    vacuum_store,
)
from germane.stores.postgres.connections import PostgresConnections
from germane.stores.postgres.pool import Pool, is_between, keeps_statements
from germane.stores.postgres.servers import place_of
from germane.stores.postgres.store import migrate
from germane.stores.relational.tables import POOL_SIZE
from germane.working_sets import WorkingSetEvent
from support.pooler import Mode, Pooler, no_pooler
from support.postgres_server import Server, database_of
from support.renaming import Renaming

pytestmark = pytest.mark.long

_PATIENCE = 20


def _started(server: Server, mode: Mode | Literal["statement"], **settings: str) -> Iterator[Pooler]:
    if no_pooler():
        pytest.skip(no_pooler())
    pooler = Pooler(server, mode, **settings)
    try:
        yield pooler
    finally:
        pooler.stop()


@pytest.fixture(scope="module")
def strict(postgres_server: Server) -> Iterator[Pooler]:
    """One that refuses whatever begins with settings."""
    yield from _started(postgres_server, "transaction")


@pytest.fixture(scope="module")
def lax(postgres_server: Server) -> Iterator[Pooler]:
    """One that throws them away and says nothing, as its manual proposes."""
    yield from _started(postgres_server, "transaction", ignore_startup_parameters="options")


@pytest.fixture(params=["strict", "lax"])
def pooler(request: pytest.FixtureRequest) -> Pooler:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Pooler)
    return found


def _shown(connections: PostgresConnections, *names: str) -> list[str]:
    with connections.reading() as connection:
        return [connection.raw.execute(f"SHOW {name}".encode()).fetchall()[0][0] for name in names]


def test_the_settings_hold_in_every_transaction(pooler: Pooler, postgres_store: str) -> None:
    url = pooler.url(database_of(postgres_store))
    with closing(PostgresConnections(url, timeout=7, durability="relaxed")) as connections:
        limits = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        assert _shown(connections, *limits) == ["7s", "5min", "2min"]
        with connections.writing() as connection:
            assert connection.raw.execute("SHOW synchronous_commit").fetchall() == [("off",)]
            assert connection.raw.execute("SHOW lock_timeout").fetchall() == [("7s",)]


def test_what_the_address_sets_stands(pooler: Pooler, postgres_store: str) -> None:
    options = r"-cstatement_timeout=9s -c search_path=\ nowhere\ ,public --work-mem=5MB"
    url = pooler.url(database_of(postgres_store), options=options)
    with closing(PostgresConnections(url)) as connections:
        found = _shown(connections, "statement_timeout", "search_path", "work_mem")
    assert found == ["9s", "nowhere, public", "5MB"]


def test_what_is_no_setting_is_refused(pooler: Pooler, postgres_store: str) -> None:
    url = pooler.url(database_of(postgres_store), options="-e")
    with (
        closing(PostgresConnections(url)) as connections,
        pytest.raises(germane.InvalidInput, match="pooler"),
    ):
        _shown(connections, "work_mem")


def test_nothing_is_left_on_a_connection_that_others_get(pooler: Pooler, postgres_store: str) -> None:
    with germane.open(pooler.url(database_of(postgres_store)), agent="ada") as engine:
        engine.remember("The port is 5433")
        with psycopg.connect(pooler.url(database_of(postgres_store)), autocommit=True) as other:
            left = other.execute(
                "SELECT current_setting('germane.agent', true), current_setting('lock_timeout'), "
                "(SELECT count(*) FROM pg_prepared_statements)"
            ).fetchall()
    assert [(agent or "", *rest) for agent, *rest in left] == [("", "0", 0)]


def test_what_would_not_be_found_again_is_not_prepared(pooler: Pooler, postgres_store: str) -> None:
    """The other way round, a pooler that keeps statements names them itself, which this one doesn't."""
    with psycopg.connect(pooler.url(database_of(postgres_store)), autocommit=True) as raw:
        assert is_between(raw)
        assert not keeps_statements(raw)
    with psycopg.connect(postgres_store, autocommit=True) as raw:
        assert not is_between(raw)
    pool = Pool(pooler.url(database_of(postgres_store)), timeout=5)
    raw = pool.begin()
    assert (raw.prepare_threshold, pool.is_pooled) == (None, True)
    pool.give(raw)
    pool.close()
    direct = Pool(postgres_store, timeout=5)
    raw = direct.begin()
    assert (raw.prepare_threshold, direct.is_pooled) == (2, False)
    direct.give(raw)
    direct.close()


def test_more_threads_than_connections_work_side_by_side(pooler: Pooler, postgres_store: str) -> None:
    """Each statement runs often enough to be prepared, on whichever connection of the server's."""
    url = pooler.url(database_of(postgres_store))

    def work(number: int) -> list[str]:
        with germane.open(url, agent=f"agent-{number}", embedder=None) as engine:
            for turn in range(5):
                engine.remember(f"Number {number} said {turn}")
            return sorted(each.content for each in engine.recall(f"Number {number}", limit=5))

    with ThreadPoolExecutor(2 * POOL_SIZE) as threads:
        found = list(threads.map(work, range(2 * POOL_SIZE)))
    assert found == [[f"Number {each} said {turn}" for turn in range(5)] for each in range(2 * POOL_SIZE)]


def test_the_schema_is_made_once_by_many_and_no_lock_stays(pooler: Pooler, postgres_server: Server) -> None:
    database = postgres_server.fresh()

    def make(_: int) -> tuple[str, ...]:
        with closing(PostgresConnections(pooler.url(database))) as connections:
            return migrate(connections)

    with ThreadPoolExecutor(4) as threads:
        applied = [each for some in threads.map(make, range(4)) for each in some]
    assert applied[0] == "0007_baseline.sql"
    assert len(applied) == len(set(applied))
    assert postgres_server.run("SELECT FROM pg_locks WHERE locktype = 'advisory'") == []


def test_who_follows_is_not_woken_and_looks_by_itself(pooler: Pooler, postgres_store: str) -> None:
    url = pooler.url(database_of(postgres_store))
    with germane.open(url, agent="ada") as engine, germane.open(url, agent="ada") as other:
        seen: list[WorkingSetEvent] = []
        done = Event()

        def heard(move: WorkingSetEvent) -> None:
            seen.append(move)
            done.set()

        working = engine.working_set()
        with working.follow(heard, every=0.05):
            other.working_set().add(other.remember("Tea is ready"))
            assert done.wait(_PATIENCE)
    with closing(PostgresConnections(url)) as connections:
        woken = Event()
        connections.notifications.subscribe("ada", woken.set)
        thread = connections.notifications._thread
        assert thread is not None
        thread.join(_PATIENCE)
        assert not thread.is_alive()
        assert (connections.notifications.hears, woken.is_set()) == (False, False)


@pytest.mark.parametrize(
    "operate",
    [
        reindex_store,
        vacuum_store,
        erase_purged,
        distribute_store,
        partial(index_vectors, agent="ada"),
        partial(remove_agent, agent="ada", confirm=True),
    ],
)
def test_what_takes_a_session_names_the_pooler(pooler: Pooler, postgres_store: str, operate: object) -> None:
    assert callable(operate)
    with germane.open(postgres_store, agent="ada") as ada:
        ada.remember("Tea is ready")
        with pytest.raises(StoreUnavailable, match=r"PgBouncer, stands before the server.*own address"):
            operate(pooler.url(database_of(postgres_store)))
        assert ada.count() == 1


def test_a_role_of_applications_sees_its_own_agent_alone(
    strict: Pooler, postgres_store_database: str, postgres_server: Server
) -> None:
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    database = database_of(postgres_store_database)
    migrate_store(strict.url(database), role="app")
    url = strict.url(database, user="app")
    for name in ("ada", "bob"):
        with germane.open(url, agent=name) as engine:
            engine.remember(f"{name} likes tea")
    with germane.open(url, agent="ada") as engine:
        assert [each.content for each in engine.recall("tea")] == ["ada likes tea"]
    with closing(PostgresConnections(url)) as connections, connections.reading("bob") as connection:
        assert connection.raw.execute("SELECT content FROM texts").fetchall() == [("bob likes tea",)]
    with psycopg.connect(url) as raw:
        assert raw.execute("SELECT FROM texts").fetchall() == []


def test_a_server_that_restarts_behind_it_is_waited_for() -> None:
    server = Server()
    try:
        server.create()
        server.start()
        database = server.fresh()
        for pooler in _started(server, "transaction", server_login_retry="0.1"):
            with germane.open(pooler.url(database), agent="ada", embedder=None) as engine:
                engine.remember("Before")
                server.restart()
                engine.remember("After")
                assert sorted(each.content for each in engine.recall("before after")) == [
                    "After",
                    "Before",
                ]
    finally:
        server.stop()


def test_a_pooler_without_a_place_left_says_so(postgres_server: Server, postgres_store: str) -> None:
    for pooler in _started(postgres_server, "transaction", max_client_conn="1"):
        url = pooler.url(database_of(postgres_store))
        with psycopg.connect(url), pytest.raises(germane.StoreBusy, match="no more connections"):
            PostgresConnections(url, timeout=1).size()


def test_a_pooler_whose_server_is_gone_says_so() -> None:
    server = Server()
    try:
        server.create()
        server.start()
        for pooler in _started(server, "transaction", server_login_retry="0.1", query_wait_timeout="2"):
            server.kill()
            with pytest.raises(StoreUnavailable):
                PostgresConnections(pooler.url("postgres"), timeout=1).size()
    finally:
        server.stop()


def test_a_pooler_of_single_statements_is_refused_at_once(
    postgres_server: Server, postgres_store: str
) -> None:
    for pooler in _started(postgres_server, "statement"):
        url = pooler.url(database_of(postgres_store))
        with pytest.raises(StoreUnavailable, match="pool_mode to transaction or session"):
            PostgresConnections(url, timeout=3600).size()


def test_a_pooler_that_keeps_statements_is_given_them(postgres_server: Server, postgres_store: str) -> None:
    """As PgBouncer does from 1.21 on; this way does nothing else than to give them names of its own."""
    with closing(Renaming(postgres_server.folder)) as way:
        url = way.url(database_of(postgres_store))
        pool = Pool(url, timeout=5)
        raw = pool.begin()
        assert (pool.is_pooled, raw.prepare_threshold) == (True, 2)
        pool.give(raw)
        pool.close()
        before = way.renamed
        with germane.open(url, agent="ada", embedder=None) as engine:
            for number in range(9):
                engine.remember(f"Number {number}")
            assert len(engine.recall("number", limit=9)) == 9
        assert way.renamed > before


def test_places_in_the_log_compare_as_numbers() -> None:
    """A standby is read from once its place is that of the last write, with a pooler before it or without."""
    assert place_of("0/FF") < place_of("0/100") < place_of("1/0") < place_of("A/0") < place_of("10/0")
