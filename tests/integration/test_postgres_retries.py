"""What becomes of a transaction when the server or the way to it breaks: it is stored once, or not."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

import psycopg
import pytest

from germane.errors import StoreBusy, StoreError, StoreUnavailable
from germane.stores.postgres.connections import ATTEMPTS, PostgresConnections, TransientFailure, retrying
from support.postgres_server import Server, database_of
from support.proxy import Broken, Way

pytestmark = pytest.mark.long


@retrying
class Notes:
    """The smallest store: each note is a row, so that one written twice shows."""

    def __init__(self, connections: PostgresConnections) -> None:
        self.connections = connections
        self.tried = 0

    def write(self, text: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.tried += 1
        with self.connections.writing() as connection:
            connection.send(b"INSERT INTO notes VALUES (%s)", (text,))
            meanwhile()
            connection.send(b"SELECT 1")

    def write_two(self, one: str, other: str, between: Callable[[], object]) -> None:
        self.tried += 1
        with self.connections.writing() as connection:
            connection.raw.execute("INSERT INTO notes VALUES (%s)", (one,))
        with self.connections.writing() as connection:
            connection.raw.execute("INSERT INTO notes VALUES (%s)", (other,))
            between()
            connection.raw.execute("SELECT 1")

    def read(self, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
        self.tried += 1
        with self.connections.reading() as connection:
            meanwhile()
            return [text for (text,) in connection.raw.execute("SELECT text FROM notes ORDER BY text")]

    def swap(self, first: int, second: int, between: Callable[[], object]) -> None:
        self.tried += 1
        with self.connections.writing() as connection:
            for number in (first, second):
                connection.raw.execute("UPDATE counts SET n = n + 1 WHERE number = %s", (number,))
                between()


@pytest.fixture
def way(postgres_server: Server) -> Iterator[Way]:
    opened = Way(postgres_server.folder)
    yield opened
    opened.close()


@pytest.fixture
def database(postgres_server: Server, postgres_store_database: str) -> str:
    name = database_of(postgres_store_database)
    postgres_server.run("CREATE TABLE notes (text text)", database=name)
    return name


@pytest.fixture
def notes(postgres_server: Server, database: str) -> Iterator[Notes]:
    connections = PostgresConnections(postgres_server.url(database), timeout=20)
    yield Notes(connections)
    connections.close()


@pytest.fixture
def by_way(way: Way, database: str) -> Iterator[Notes]:
    connections = PostgresConnections(way.url(database), timeout=20)
    yield Notes(connections)
    connections.close()


def _end_sessions(server: Server, database: str) -> None:
    server.run(
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        " AND pid <> pg_backend_pid()"
    )


def _once(action: Callable[[], object]) -> Callable[[], None]:
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act


def test_a_session_ended_inside_a_write_is_written_again(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    notes.write("kept", meanwhile=_once(lambda: _end_sessions(postgres_server, database)))
    assert notes.tried == 2
    assert notes.read() == ["kept"]


def test_a_session_ended_inside_a_read_is_read_again(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    notes.write("kept")
    notes.tried = 0
    assert notes.read(_once(lambda: _end_sessions(postgres_server, database))) == ["kept"]
    assert notes.tried == 2


def test_idle_connections_that_broke_are_passed_over(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    together = [Thread(target=notes.read, args=(lambda: time.sleep(0.1),)) for _ in range(5)]
    for each in together:
        each.start()
    for each in together:
        each.join()
    notes.tried = 0
    _end_sessions(postgres_server, database)
    assert notes.read() == []
    assert notes.tried == 1  # It was noticed before anything was done.


def test_a_write_passes_over_idle_connections_that_broke(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    together = [Thread(target=notes.read, args=(lambda: time.sleep(0.1),)) for _ in range(8)]
    for each in together:
        each.start()
    for each in together:
        each.join()
    _end_sessions(postgres_server, database)
    notes.write("kept")
    assert notes.read() == ["kept"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_stored_once(way: Way, by_way: Notes, when: Broken) -> None:
    by_way.write("first")
    by_way.tried = 0
    way.break_at(b"COMMIT\0", when)
    by_way.write("kept")
    assert way.broken == 1
    assert by_way.tried == (1 if when == "after" else 2)
    assert by_way.read() == ["first", "kept"]


def test_a_commit_that_still_goes_on_is_waited_for(
    postgres_server: Server, database: str, way: Way, by_way: Notes
) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        f" AND query LIKE 'INSERT INTO commits%' AND datname = '{database}'"
    )

    def until_requested() -> None:
        end = time.monotonic() + 20
        while postgres_server.run(waiting) != [(1,)] and time.monotonic() < end:
            time.sleep(0.01)
        answers.append(postgres_server.run(waiting))

    answers: list[object] = []
    way.break_at(b"COMMIT\0", "meanwhile", until_requested)
    by_way.write("kept")
    assert answers == [[(1,)]]
    assert by_way.tried == 1
    assert by_way.read() == ["kept"]


def test_after_a_crash_a_commit_is_looked_up_by_what_it_left(
    postgres_server: Server, way: Way, by_way: Notes
) -> None:
    way.break_at(b"COMMIT\0", "meanwhile", postgres_server.restart)
    by_way.write("kept")
    assert by_way.tried == 2  # The server went down before it heard of the commit.
    assert by_way.read() == ["kept"]


def test_what_follows_a_commit_is_not_repeated_from_before_it(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    with pytest.raises(StoreUnavailable, match="connection to the server was lost"):
        notes.write_two("one", "other", lambda: _end_sessions(postgres_server, database))
    assert notes.tried == 1
    assert notes.read() == ["one"]


def test_a_transaction_that_never_succeeds_is_given_up(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    with pytest.raises(StoreUnavailable, match="connection to the server was lost"):
        notes.write("never", meanwhile=lambda: _end_sessions(postgres_server, database))
    assert notes.tried == ATTEMPTS
    assert notes.read() == []


def test_of_two_that_wait_for_each_other_both_succeed(
    postgres_server: Server, database: str, notes: Notes
) -> None:
    postgres_server.run(
        "CREATE TABLE counts (number int, n int)",
        "INSERT INTO counts VALUES (1, 0), (2, 0)",
        database=database,
    )
    other = Thread(target=notes.swap, args=(2, 1, lambda: time.sleep(0.2)))
    other.start()
    notes.swap(1, 2, lambda: time.sleep(0.2))
    other.join()
    assert notes.tried > 2
    assert postgres_server.run("SELECT n FROM counts", database=database) == [(2,), (2,)]


def test_outside_a_store_the_reason_shows(postgres_server: Server, database: str, notes: Notes) -> None:
    read = Notes.read.__wrapped__  # type: ignore[attr-defined]  # The decorator leaves it there.
    with pytest.raises(TransientFailure) as raised:
        read(notes, lambda: _end_sessions(postgres_server, database))
    assert isinstance(raised.value.error, StoreUnavailable)


def test_old_tokens_are_swept_away(postgres_server: Server, database: str, notes: Notes) -> None:
    notes.write("one")
    postgres_server.run("UPDATE commits SET at = at - interval '1 hour'", database=database)
    notes.connections._swept -= 3600
    notes.write("other")
    assert postgres_server.run("SELECT count(*) FROM commits", database=database) == [(1,)]


def test_a_failed_statement_that_goes_unnoticed_never_passes_for_stored(notes: Notes) -> None:
    def swallow() -> None:
        with notes.connections.writing() as connection:
            connection.raw.execute("INSERT INTO notes VALUES ('lost')")
            with suppress(psycopg.Error):
                connection.raw.execute("SELECT 1 / 0")

    with pytest.raises(StoreError, match="failed unnoticed"):
        swallow()
    assert notes.read() == []


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
def test_writers_live_through_restarts_and_each_note_is_there_once(
    postgres_server: Server, database: str, notes: Notes, how: signal.Signals
) -> None:
    acknowledged: list[str] = []
    failed: list[BaseException] = []
    done: list[bool] = []

    def writer(name: int) -> None:
        number = 0
        while not done:
            number += 1
            try:
                notes.write(f"{name}-{number}")
            except StoreBusy as error:
                failed.append(error)
            except BaseException as error:
                failed.append(error)
                raise
            else:
                acknowledged.append(f"{name}-{number}")

    writers = [Thread(target=writer, args=(name,)) for name in range(8)]
    for each in writers:
        each.start()
    for _ in range(3):
        time.sleep(0.4)
        postgres_server.restart(how)
    time.sleep(0.4)
    done.append(True)
    for each in writers:
        each.join()
    stored = Counter(text for (text,) in postgres_server.run("SELECT text FROM notes", database=database))
    assert failed == []
    assert len(acknowledged) > 8
    assert stored == Counter(acknowledged)
