"""An error of a server is reported in germane's words, names the remedy, and shows no password."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import psycopg
import pytest

from germane.errors import GermaneError, InvalidInput, SchemaTooNew, StoreBusy, StoreError, StoreUnavailable
from germane.stores.postgres.connection import translation
from germane.stores.postgres.connections import PostgresConnections, retrying
from germane.stores.postgres.pool import location_of
from germane.stores.postgres.store import VERSION, grant, migrate, prepare
from germane.stores.relational.tables import POOL_SIZE
from support.postgres_server import Server, database_of

_SECRET = "s3cr:t@%/word"  # noqa: S105 - of a role that only this test has.


@retrying
class Asking:
    """Runs any statement, as a store would."""

    def __init__(self, connections: PostgresConnections) -> None:
        self.connections = connections

    def read(self, statement: str) -> list[tuple[object, ...]]:
        with self.connections.reading() as connection:
            return connection.raw.execute(statement.encode()).fetchall()

    def write(self, statement: str, *values: object) -> None:
        with self.connections.writing() as connection:
            connection.raw.execute(statement.encode(), values)


def _opened(url: str, **how: object) -> PostgresConnections:
    connections = PostgresConnections(url, timeout=5, **how)  # type: ignore[arg-type]  # Each test gives what fits.
    try:
        prepare(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _refused(call: Callable[[], object], kind: type[GermaneError]) -> str:
    """The message of a call that fails; it never contains the password."""
    with pytest.raises(kind) as raised:
        call()
    shown = "".join(traceback.format_exception(raised.value))
    assert _SECRET not in shown
    assert "s3cr" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def asking(postgres_store_database: str) -> Iterator[Asking]:
    connections = PostgresConnections(postgres_store_database, timeout=5)
    yield Asking(connections)
    connections.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks everybody but its superuser for a password."""
    server = Server(settings={"max_connections": "12", "superuser_reserved_connections": "3"})
    try:
        server.create()
        rules = "local all postgres trust\nlocal all nobody reject\nlocal all all scram-sha-256\n"
        (server.data / "pg_hba.conf").write_text(rules, encoding="utf-8")
        server.start()
        server.run(f"CREATE ROLE app LOGIN PASSWORD '{_SECRET}'", "CREATE ROLE closed NOLOGIN PASSWORD 'x'")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module", autouse=True)
def _needed(postgres_server: Server) -> Server:
    return postgres_server


def test_the_right_password_opens_and_a_wrong_one_says_so(guarded: Server) -> None:
    database = guarded.fresh()
    guarded.run(f"GRANT ALL ON DATABASE {database} TO app")
    guarded.run("GRANT ALL ON SCHEMA public TO app", database=database)
    opened = _opened(guarded.url(database, user="app", password=_SECRET))
    assert _SECRET not in opened.location
    assert "app@" in opened.location
    opened.close()
    message = _refused(
        lambda: _opened(guarded.url(database, user="app", password=f"{_SECRET}!")), StoreUnavailable
    )
    assert "The password is wrong" in message
    message = _refused(lambda: _opened(guarded.url(database, user="app")), StoreUnavailable)
    assert "The password is wrong" in message


@pytest.mark.parametrize(
    ("user", "database", "remedy"),
    [
        ("nobody", "postgres", "pg_hba.conf"),
        ("stranger", "postgres", "The password is wrong"),  # The server doesn't tell who is unknown.
        ("postgres", "nowhere", "There is no such database"),
    ],
)
def test_who_is_not_let_in_reads_why(guarded: Server, user: str, database: str, remedy: str) -> None:
    url = guarded.url(database, user=user, password="" if user == "postgres" else _SECRET)
    assert remedy in _refused(lambda: _opened(url), StoreUnavailable)


def test_an_unknown_user_is_named(postgres_server: Server) -> None:
    message = _refused(lambda: _opened(postgres_server.url(user="stranger")), StoreUnavailable)
    assert "doesn't let this user in" in message
    assert "stranger" in message


@pytest.mark.parametrize("place", ["nowhere.invalid", "/nowhere", "127.0.0.1:1"])
def test_where_no_server_is_nobody_waits_long(place: str) -> None:
    host, _, port = place.partition(":")
    url = f"postgresql://app:{'s3cr'}@/agents?host={host}&port={port or 5432}"
    assert "No server answers there" in _refused(lambda: _opened(url), StoreUnavailable)


@pytest.mark.parametrize("url", [f"postgresql://app:{'s3cr'}@[host/x", "postgresql://h/d?s3cr=1", "s3cr x"])
def test_what_is_no_address_is_not_repeated(url: str) -> None:
    assert "can't be read" in _refused(lambda: PostgresConnections(url), InvalidInput)


def test_an_address_is_shown_without_its_password() -> None:
    assert (
        location_of("postgresql://app:s3cr@db.example:6432/agents")
        == "postgresql://app@db.example:6432/agents"
    )
    assert "s3cr" not in location_of("postgresql://db.example/agents?user=app&password=s3cr&sslpassword=s3cr")


def test_without_the_right_to_the_extension_the_remedy_is_named(postgres_server: Server) -> None:
    postgres_server.run("CREATE DATABASE bare", "CREATE ROLE lacking LOGIN")
    postgres_server.run("GRANT ALL ON SCHEMA public TO lacking", database="bare")
    message = _refused(lambda: _opened(postgres_server.url("bare", user="lacking")), StoreUnavailable)
    assert "CREATE EXTENSION vector" in message
    postgres_server.drop("bare")
    postgres_server.run("DROP ROLE lacking")


def test_a_server_without_the_extension_is_named(guarded: Server) -> None:
    guarded.run("CREATE DATABASE bare TEMPLATE template0")
    guarded.run("ALTER SYSTEM SET extension_control_path = '/nowhere'", "SELECT pg_reload_conf()")
    try:
        while guarded.run("SHOW extension_control_path") != [("/nowhere",)]:
            time.sleep(0.01)
        message = _refused(lambda: _opened(guarded.url("bare")), StoreUnavailable)
        assert "Install pgvector" in message
    finally:
        guarded.run("ALTER SYSTEM RESET extension_control_path", "SELECT pg_reload_conf()")
        guarded.drop("bare")


def test_a_missing_right_names_the_command_that_gives_it(
    postgres_server: Server, postgres_store_database: str
) -> None:
    postgres_server.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    url = postgres_server.url(database_of(postgres_store_database), user="reader")
    assert "germane db migrate --role" in _refused(lambda: _opened(url), StoreUnavailable)
    owner = PostgresConnections(postgres_store_database)
    grant(owner, "reader")
    owner.close()
    _opened(url).close()
    postgres_server.run("DROP OWNED BY reader", database=database_of(postgres_store_database))
    postgres_server.run("DROP ROLE reader")


def test_a_right_for_nobody_is_refused(asking: Asking) -> None:
    assert "has no role 'nobody'" in _refused(lambda: grant(asking.connections, "nobody"), StoreUnavailable)


def test_a_schema_newer_than_the_code_is_refused_unless_it_serves_it(
    postgres_server: Server, postgres_store_database: str
) -> None:
    name = database_of(postgres_store_database)
    newer = VERSION + 1
    postgres_server.run(f"INSERT INTO migrations VALUES ({newer}, 'later')", database=name)
    postgres_server.run(f"UPDATE settings SET value = '{newer}' WHERE name = 'serves'", database=name)
    assert "Upgrade germane" in _refused(lambda: _opened(postgres_store_database), SchemaTooNew)
    postgres_server.run(f"UPDATE settings SET value = '{VERSION}' WHERE name = 'serves'", database=name)
    _opened(postgres_store_database).close()


def test_other_programs_tables_are_left_alone(postgres_server: Server, postgres_database: str) -> None:
    name = database_of(postgres_database)
    postgres_server.run("CREATE TABLE migrations (version text)", database=name)
    assert "of another program" in _refused(lambda: _opened(postgres_database), StoreUnavailable)
    postgres_server.run("DROP TABLE migrations", "CREATE TABLE texts (mine int)", database=name)
    assert "of another program" in _refused(lambda: _opened(postgres_database), StoreUnavailable)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres_server.run(tables, database=name) == [(1,)]
    own = f"{postgres_database}&options=-csearch_path%3Dgermane,public"
    postgres_server.run("CREATE SCHEMA germane", database=name)
    _opened(own).close()


def test_a_full_pool_says_how_many_are_in_use(asking: Asking) -> None:
    connections = PostgresConnections(asking.connections._primary._target, timeout=0.3)
    full, done = Barrier(POOL_SIZE + 1), Barrier(POOL_SIZE + 1)

    def hold() -> None:
        with connections.reading():
            full.wait(20)
            done.wait(20)

    holders = [Thread(target=hold) for _ in range(POOL_SIZE)]
    for each in holders:
        each.start()
    full.wait(20)
    message = _refused(lambda: Asking(connections).read("SELECT 1"), StoreBusy)
    assert f"All {POOL_SIZE} connections" in message
    done.wait(20)
    for each in holders:
        each.join()
    assert Asking(connections).read("SELECT 1") == [(1,)]
    connections.close()


def test_a_full_server_says_so(guarded: Server) -> None:
    url = guarded.url(user="app", password=_SECRET)
    guarded.run("GRANT CONNECT ON DATABASE postgres TO app")
    taken = [psycopg.connect(url) for _ in range(9)]
    try:
        assert "no connection left" in _refused(lambda: _opened(url), StoreBusy)
    finally:
        for each in taken:
            each.close()


def test_a_cancelled_query_says_so(postgres_server: Server, asking: Asking) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: _refused(lambda: asking.read("SELECT pg_sleep(60)"), StoreBusy))
        while not running.done():
            postgres_server.run(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
            )
            time.sleep(0.05)
    assert "cancelled" in running.result()
    assert asking.read("SELECT 1") == [(1,)]


def test_who_waits_too_long_for_a_lock_is_reported(asking: Asking) -> None:
    waiting = PostgresConnections(
        asking.connections._primary._target + " options='-c lock_timeout=200'", timeout=5
    )
    with asking.connections.writing() as connection:
        connection.raw.execute("LOCK TABLE settings")
        message = _refused(lambda: Asking(waiting).write("LOCK TABLE settings"), StoreBusy)
    assert "longer than the timeout" in message
    waiting.close()


def test_a_server_that_goes_down_and_stays_down_is_named(postgres_server: Server, asking: Asking) -> None:
    connections = PostgresConnections(asking.connections._primary._target, timeout=1)
    assert Asking(connections).read("SELECT 1") == [(1,)]
    postgres_server.kill()
    try:
        assert "No server answers there" in _refused(
            lambda: Asking(connections).read("SELECT 1"), StoreUnavailable
        )
    finally:
        postgres_server.start()
    connections.close()


def test_only_reading_writes_nothing(postgres_store_database: str, asking: Asking) -> None:
    reader = Asking(_opened(postgres_store_database, read_only=True))
    assert reader.read("SELECT count(*) FROM agents") == [(0,)]
    assert "read_only=True" in _refused(
        lambda: reader.write("INSERT INTO agents (name) VALUES ('x')"), StoreUnavailable
    )
    # The server refuses as well, as a replica does.
    with (
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction) as raised,
        reader.connections._primary.connect() as raw,
    ):
        raw.execute("INSERT INTO agents (name) VALUES ('x')")
    assert "The server only reads" in str(translation(raised.value, "here"))
    reader.connections.close()
    empty = "SELECT count(*) FROM agents"
    assert asking.read(empty) == [(0,)]


def test_reading_what_has_no_schema_names_the_command(postgres_database: str) -> None:
    message = _refused(lambda: _opened(postgres_database, read_only=True), StoreUnavailable)
    assert "germane db migrate" in message


@pytest.mark.parametrize(
    ("statement", "value", "words"),
    [
        ("INSERT INTO agents (name) VALUES (%s)", "a\x00b", "NUL"),
        ("INSERT INTO agents (name) VALUES (%s)", "a\ud800b", "surrogate"),
        ("INSERT INTO agents (agent, name) VALUES (%s, 'x')", 2**63, "64 bits"),
        ("INSERT INTO agents (agent, name) VALUES (%s, 'x')", 2**24, "breaks a rule"),
        ("INSERT INTO agents (name) VALUES (%s)", "".join(map(chr, range(256, 9000))), "2,700 bytes"),
        ("SELECT %s::smallint", 2**40, "out of its range"),
    ],
)
def test_what_can_not_be_stored_says_why(asking: Asking, statement: str, value: object, words: str) -> None:
    assert words in _refused(lambda: asking.write(statement, value), InvalidInput)
    assert asking.read("SELECT count(*) FROM agents") == [(0,)]


def test_a_full_disk_is_named(asking: Asking) -> None:
    message = _refused(
        lambda: asking.write("DO $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$"),
        StoreUnavailable,
    )
    assert "disk is full" in message


def test_what_nobody_foresaw_keeps_its_code(asking: Asking) -> None:
    message = _refused(
        lambda: asking.write("DO $$ BEGIN RAISE 'odd' USING ERRCODE = 'ZZ123'; END $$"), StoreError
    )
    assert "ZZ123" in message


def test_a_closed_store_says_so_and_leaves_no_connection(
    postgres_server: Server, postgres_store_database: str
) -> None:
    asking = Asking(_opened(postgres_store_database))
    asking.connections.close()
    asking.connections.close()
    assert "is closed" in _refused(lambda: asking.read("SELECT 1"), StoreUnavailable)
    left = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database_of(postgres_store_database)}'"
    end = time.monotonic() + 20
    while postgres_server.run(left) != [(0,)] and time.monotonic() < end:
        time.sleep(0.01)
    assert postgres_server.run(left) == [(0,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork.")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_uses_connections_of_its_own(asking: Asking) -> None:
    (before,) = asking.read("SELECT pg_backend_pid()")
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=lambda: there.send(asking.read("SELECT pg_backend_pid()")))
    child.start()
    assert here.poll(60)
    (inside,) = here.recv()
    child.join(60)
    (after,) = asking.read("SELECT pg_backend_pid()")
    assert inside != before
    assert after == before


def test_many_open_an_empty_database_at_once(postgres_server: Server, postgres_database: str) -> None:
    def opened(_: int) -> tuple[str, ...]:
        connections = PostgresConnections(postgres_database)
        applied = migrate(connections)
        connections.close()
        return applied

    with ThreadPoolExecutor(6) as pool:
        applied = list(pool.map(opened, range(6)))
    recorded = postgres_server.run("SELECT number FROM migrations", database=database_of(postgres_database))
    assert sorted(map(len, applied)) == [0, 0, 0, 0, 0, len(recorded)]
    assert max(recorded) == (VERSION,)


def test_partitions_are_made_where_they_are_requested(
    postgres_server: Server, postgres_database: str
) -> None:
    connections = PostgresConnections(postgres_database)
    migrate(connections, partitions=3)
    assert migrate(connections) == ()
    parts = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'memories'::regclass"
    assert postgres_server.run(parts, database=database_of(postgres_database)) == [(3,)]
    assert "out of range" in _refused(lambda: migrate(connections, partitions=-1), InvalidInput)
    connections.close()


@pytest.mark.parametrize("wrong", [{"timeout": -1}, {"durability": "none"}])
def test_odd_settings_are_refused(wrong: dict[str, object]) -> None:
    _refused(lambda: PostgresConnections("postgresql://h/d", **wrong), InvalidInput)  # type: ignore[arg-type]  # That is the point.


def test_relaxed_durability_does_not_wait_for_the_disk(postgres_store_database: str) -> None:
    relaxed = Asking(PostgresConnections(postgres_store_database, durability="relaxed"))
    assert relaxed.read("SHOW synchronous_commit") == [("off",)]
    relaxed.connections.close()
