"""Connections to one SQLite file, and the transactions that run on them.

It knows connections, not queries about memories.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from traceback import clear_frames
from typing import Any, Final, Literal

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreError, StoreUnavailable, shown
from germane.forks import FileIdentity, Gate, check_unforked, renewed
from germane.stores.relational.tables import POOL_SIZE, Dialect, Why, damaged, storable
from germane.stores.sql import queries

Durability = Literal["full", "relaxed"]

MEMORY: Final = ":memory:"

_SYNCHRONOUS = {"full": "PRAGMA synchronous = FULL", "relaxed": "PRAGMA synchronous = NORMAL"}

# Without secure_delete a freed page keeps its bytes. Sorting in memory keeps texts out of temporary
# files. The log is cut back after a burst, so that it doesn't stay large for ever.
_SETTINGS = (
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA journal_size_limit = 67108864",
)

# What searches read is in arrays, so that a reader's pages are of use to few of the reads to come.
_OF_READER, _OF_WRITER = "PRAGMA cache_size = -4000", "PRAGMA cache_size = -16000"

_CREATING = renewed(Lock())

_FIRST_READ = "SELECT count(*) FROM sqlite_schema"


class SqliteConnections:
    """Opens what is needed and keeps it: any number of readers, one writer.

    Every transaction ends with its `with` block: committed, or rolled back when the block raised. Once the
    path names another file than was opened, or none, StoreUnavailable says so and none begins.
    A file in memory has one connection, which threads use in turns.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability,
        timeout: float,
        read_only: bool,
        pool_size: int = POOL_SIZE,
    ) -> None:
        if durability not in _SYNCHRONOUS:
            raise InvalidInput(f"durability={durability!r} is unknown. Use 'full' or 'relaxed'.")
        if not timeout >= 0:
            raise InvalidInput(f"timeout={timeout!r} is no time to wait. Use 0 or more seconds.")
        self.in_memory = str(path) == MEMORY
        self.location = MEMORY if self.in_memory else str(Path(path).absolute())
        self.read_only = read_only
        self.timeout = timeout
        self.acting = ""  # Who writes, where that isn't the agent whose memories they are.
        self._durability = durability
        self._closed = False
        self.gate = Gate(self.location, let_go=self._let_go, file=not self.in_memory)
        self._guard = Lock()
        self._memory_lock = RLock()
        self._presence = FileIdentity(self.location)
        self._turns = WriterQueue()
        self._readers: list[SqliteConnection] = []
        self._reading = 0
        self._pool_size = pool_size
        self._writer: SqliteConnection | None = None

    @contextmanager
    def reading(
        self,
        agent: str | None = None,  # noqa: ARG002 - A file doesn't keep agents apart.
        *,
        acting: str | None = None,  # noqa: ARG002 - As above.
    ) -> Iterator[SqliteConnection]:
        """A read transaction: everything read inside comes from one snapshot. Never waits for writers."""
        with self.gate, translated(self.location):
            self._check_usable()
            if self.in_memory:
                with self._memory_lock, _transaction(self._the_writer(), "BEGIN"):
                    yield self._the_writer()
                return
            connection = self._take_reader()
            try:
                self._presence.check()
                with _transaction(connection, "BEGIN"):
                    yield connection
            finally:
                self._give_reader(connection)

    @contextmanager
    def writing(
        self,
        agent: str | None = None,  # noqa: ARG002 - A file doesn't keep agents apart.
        *,
        acting: str | None = None,  # noqa: ARG002 - As above.
    ) -> Iterator[SqliteConnection]:
        """A write transaction, in turn with the other threads and processes that write.

        Raises StoreBusy when the turn hasn't come within the timeout.
        """
        with self.gate, translated(self.location), self._turn() as connection:
            with _transaction(connection, "BEGIN IMMEDIATE", turns=self._turns, deadline=self._deadline()):
                # Checked only now, since waiting for the other processes may have taken seconds.
                self._presence.check_to_write(lambda: _pages(connection))
                yield connection
            self._turns.ended()

    @contextmanager
    def alone(self) -> Iterator[SqliteConnection]:
        """The writing connection outside any transaction, for what can't run inside one."""
        with self.gate, translated(self.location), self._turn() as connection:
            self._presence.check()
            yield connection

    def size(self) -> int:
        """How many bytes the file and its log take; 0 in memory."""
        if self.in_memory:
            return 0
        found = 0
        for each in (self.location, f"{self.location}-wal"):
            with suppress(FileNotFoundError):
                found += Path(each).stat().st_size
        return found

    def connected(self) -> tuple[int, int | None]:
        """How many connections are open; a reader that finds none free opens another, without a limit."""
        with self._guard:
            return len(self._readers) + self._reading + (self._writer is not None), None

    def close(self) -> None:
        """Close every connection. What another thread is using just now is closed when it is done."""
        with self._guard:
            self._closed = True
            readers, self._readers = self._readers, []
        for each in readers:
            each.close()
        with suppress(StoreBusy):
            self._turns.take(self._deadline())
            try:
                with self._memory_lock:
                    if self._writer is not None:
                        self._writer.close()
                        self._writer = None
            finally:
                self._turns.give()

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"The store {self.location} is closed. Open it again.")

    def _let_go(self) -> None:
        """Close every connection before a fork: the next call opens others.

        SQLite forbids using one after a fork, and even one that a child opens itself would rely on locks
        that only its parent has, as long as the parent's are inherited.
        """
        if self.in_memory:
            return
        connections = [*self._readers, *([] if self._writer is None else [self._writer])]
        self._readers, self._writer = [], None
        for each in connections:
            with suppress(sqlite3.Error):
                each.close()
        self._presence.forget_log()

    def _deadline(self) -> float:
        return time.monotonic() + self.timeout

    @contextmanager
    def _turn(self) -> Iterator[SqliteConnection]:
        self._check_usable()
        if self.read_only:
            raise StoreUnavailable(
                f"The store {self.location} was opened with read_only=True, so nothing can be stored. "
                "Open it without."
            )
        self._turns.take(self._deadline())
        try:
            self._check_usable()
            if self.in_memory:
                with self._memory_lock:
                    yield self._the_writer()
            else:
                yield self._the_writer()
        finally:
            self._turns.give()

    def _the_writer(self) -> SqliteConnection:
        writer = self._writer
        if writer is None:
            self._check_usable()
            if self.in_memory:
                writer = _connect(MEMORY, timeout=0, settings=_SETTINGS)
            else:
                writer = self._open_writer()
            self._writer = writer
        return writer

    def _take_reader(self) -> SqliteConnection:
        with self._guard:
            self._reading += 1
            if self._readers:
                return self._readers.pop()
        try:
            return self._open_reader()
        except BaseException:
            with self._guard:
                self._reading -= 1
            raise

    def _give_reader(self, connection: SqliteConnection) -> None:
        with self._guard:
            self._reading -= 1
            if not self._closed and len(self._readers) < self._pool_size:
                self._readers.append(connection)
                return
        connection.close()

    def _open_writer(self) -> SqliteConnection:
        self._check_place()
        _create(self.location)
        uri = f"{Path(self.location).as_uri()}?mode=rwc"
        settings = (*_SETTINGS, _OF_WRITER, _SYNCHRONOUS[self._durability])
        connection = _connect(uri, timeout=self.timeout, settings=settings)
        try:
            self._presence.opened()
            self._use_log(connection)
            # From here on no waiting inside SQLite: its busy handler is unfair, so `WriterQueue` waits.
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> SqliteConnection:
        self._check_place()
        connection = self._connect_reader()
        try:
            self._presence.opened()
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_reader(self) -> SqliteConnection:
        uri = f"{Path(self.location).as_uri()}?mode={'ro' if self.read_only else 'rw'}"
        settings = (*_SETTINGS, _OF_READER)
        if not self.read_only:
            return _connect(uri, timeout=self.timeout, settings=settings)
        try:
            # Some of the settings read the file already, so they may be what fails.
            return _connect(uri, timeout=self.timeout, settings=(*settings, _FIRST_READ))
        except sqlite3.OperationalError:
            if Path(f"{self.location}-wal").exists():
                raise
        # Nobody has the file open and the folder can't take the files that sharing needs, so what is
        # on the disk is all there is.
        return _connect(f"{uri}&immutable=1", timeout=self.timeout, settings=settings)

    def _use_log(self, connection: SqliteConnection) -> None:
        # SQLite doesn't wait here when several processes open a new file at once.
        if not until(self._deadline(), lambda: succeeds(connection, "PRAGMA journal_mode = WAL")):
            raise StoreBusy(f"Other processes locked the store {self.location} for longer than the timeout.")
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            raise StoreUnavailable(
                f"The store {self.location} is on a file system that can't share memory between processes, "
                "which SQLite's write-ahead log needs. Put it on a local disk."
            )

    def _check_place(self) -> None:
        check_unforked(self.location)
        self._presence.check()
        place = Path(self.location)
        if place.is_dir():
            raise StoreUnavailable(f"{self.location} is a folder. Name a file in it, such as agent.db.")
        if not place.parent.is_dir():
            raise StoreUnavailable(
                f"The folder {place.parent} doesn't exist. Create it, or choose another path."
            )
        if self.read_only and not place.exists():
            raise StoreUnavailable(
                f"There is no store {self.location} to read. Open it without read_only=True."
            )


def _create(location: str) -> None:
    """Make a file that isn't there yet, for its owner alone; SQLite gives the log beside it the same mode."""
    # To close a file takes away the locks that this process has on it, so no other thread may open it yet.
    with _CREATING, suppress(OSError):
        os.close(os.open(os.path.realpath(location), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _pages(connection: SqliteConnection) -> tuple[int, int]:
    """How many pages a transaction sees, and the bytes of each."""
    (number,), (length,) = (
        connection.execute(f"PRAGMA page_{each}").fetchone() for each in ("count", "size")
    )
    return number, length


def _connect(target: str, *, timeout: float, settings: tuple[str, ...]) -> SqliteConnection:
    connection = sqlite3.connect(
        target,
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SqliteConnection,
    )
    try:
        for each in settings:
            connection.execute(each)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _transaction(
    connection: SqliteConnection, begin: str, *, turns: WriterQueue | None = None, deadline: float = 0.0
) -> Iterator[None]:
    if turns is None:
        connection.execute(begin)
    else:
        turns.begin(lambda: succeeds(connection, begin), deadline=deadline)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        # A full disk makes SQLite roll back by itself; then there is nothing left to undo.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # Whoever holds the error holds the frames that raised it, and so cursors that would block a VACUUM.
        clear_frames(error.__traceback__)
        raise


def until(deadline: float, attempt: Callable[[], bool]) -> bool:
    """Repeat an attempt until it succeeds; False when it hasn't by the deadline."""
    start = time.monotonic()
    while not attempt():
        now = time.monotonic()
        if now >= deadline:
            return False
        time.sleep(pause_before_asking_again(now - start))
    return True


def succeeds(connection: SqliteConnection, statement: str) -> bool:
    """Whether the statement ran; False when somebody else holds the file just now."""
    try:
        connection.execute(statement).fetchall()
    except sqlite3.OperationalError as error:
        if is_busy(error):
            return False
        raise
    return True


# A connection to a SQLite file that runs named queries.


class SqliteConnection(sqlite3.Connection):
    """A `Connection` of the relational stores, and all that SQLite's own is."""

    dialect: Final[Dialect] = "sqlite"
    refusal = sqlite3.IntegrityError

    def __del__(self) -> None:
        """Close it with the engine that nobody closed, of which Python 3.13 would warn otherwise."""
        with suppress(sqlite3.ProgrammingError):  # Where it could not be opened, there is nothing to close.
            self.close()

    def run(self, name: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> sqlite3.Cursor:
        """What the query of this name finds or does."""
        return self.execute(queries("sqlite")[name], values)

    def run_text(self, text: str, values: Mapping[str, Any], /) -> sqlite3.Cursor:
        """The same for the text of a named query, with the conditions of a filter in place."""
        return self.execute(text, values)

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order."""
        self.executemany(queries("sqlite")[name], rows)

    def expect(self, rows: int, /) -> None:
        """Nothing to prepare: a plan here doesn't go by sizes."""

    @contextmanager
    def attempt(self, why: Why, /) -> Iterator[None]:
        """A block whose refusal `why` may explain; it leaves the rest of the transaction as it was."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            why(self, error)
            raise


# Turns of writers.
#
# SQLite's own busy handler backs off: the longest waiting process tries least often, so a process that writes
# without pause can starve another for seconds. Here a waiting process tries at short intervals, the more
# often the longer it has waited, and one that has written for a while pauses.

_FRESH_PAUSE = 0.001
_AGED_PAUSE = 0.0001
_AGED_AFTER = 0.03

# Who has locked the file for this long without a gap leaves a gap in which any waiter asks at least
# once. It costs a lone writer about one part in twenty-five.
_LONGEST_TURN = 0.025
_COURTESY = 0.0011


def pause_before_asking_again(waited: float) -> float:
    """How many seconds to sleep before the next try, after `waited` seconds in vain."""
    if waited >= _AGED_AFTER:
        return _AGED_PAUSE
    return _FRESH_PAUSE - (_FRESH_PAUSE - _AGED_PAUSE) * waited / _AGED_AFTER


class WriterQueue:
    """Hands the right to write from thread to thread in the order of asking."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()
        self._taken = False
        self._turn_began = 0.0
        self._turn_ended = 0.0

    def take(self, deadline: float) -> None:
        """Wait for the turn until `deadline` (monotonic seconds); raises StoreBusy after it."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            ticket = Lock()
            ticket.acquire()
            self._waiting.append(ticket)
        if ticket.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return
        with self._guard:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                raise StoreBusy("Other threads of this process wrote for longer than the timeout. Try again.")
        # The turn was handed over in the very moment of giving up, so it is ours.

    def give(self) -> None:
        """End the turn; the longest waiting thread has the next one."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def begin(self, attempt: Callable[[], bool], *, deadline: float) -> None:
        """Call `attempt` until it gets the file; raises StoreBusy when it hasn't by `deadline`."""
        self._leave_a_gap()
        start = time.monotonic()
        waited = 0.0
        while not attempt():
            waited = time.monotonic() - start
            if start + waited >= deadline:
                raise StoreBusy(
                    f"Other processes wrote to the store for {waited:.1f} s, longer than the timeout. "
                    "Nothing was stored. Try again, and find out who keeps a transaction open for so long."
                )
            time.sleep(pause_before_asking_again(waited))
        if waited:
            self._turn_began = time.monotonic()

    def ended(self) -> None:
        """Note that the file was let go."""
        self._turn_ended = time.monotonic()

    def _leave_a_gap(self) -> None:
        now = time.monotonic()
        if now - self._turn_ended >= _COURTESY:
            self._turn_began = now
        elif now - self._turn_began >= _LONGEST_TURN:
            time.sleep(_COURTESY)
            self._turn_began = time.monotonic()


# Errors of the driver as errors of germane.

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "The disk or the quota is full, so nothing was stored. Free space and try again.",
    sqlite3.SQLITE_READONLY: "It can't be written: the file or its folder is read-only. "
    "Change the permissions, or open it with read_only=True.",
    sqlite3.SQLITE_CANTOPEN: "It can't be opened. Check that the folder exists, that the path is a file, "
    "and that both may be read and written.",
    sqlite3.SQLITE_PERM: "Its permissions forbid this. Change them, or choose another path.",
    sqlite3.SQLITE_AUTH: "Its permissions forbid this. Change them, or choose another path.",
    sqlite3.SQLITE_NOTADB: "The file is no SQLite database. Choose another path, or move that file away.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged. Restore it from a backup; where it can still be opened, "
    "`germane db doctor` says what is damaged.",
    sqlite3.SQLITE_IOERR: "Reading or writing it failed. Check the disk, then run `germane db doctor`.",
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the driver only says that somebody else holds the file just now."""
    return _primary_code(error) in _BUSY


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Raise what the driver raises inside as an error of germane's, chained to it."""
    try:
        with storable():
            yield
    except GermaneError:
        raise
    except sqlite3.Error as error:
        raise _translation(error, location) from error
    except UnicodeDecodeError as error:
        # SQLite quotes what it can't read, which the driver then can't read either.
        raise damaged(f"The store {location}", error) from error
    except OSError as error:
        raise StoreUnavailable(
            f"The store {shown(location)} can't be reached: {error.strerror or error}. Check the path."
        ) from error


def _translation(error: sqlite3.Error, location: str) -> GermaneError:
    code = _primary_code(error)
    if code in _BUSY:
        return StoreBusy(f"The store {location} is locked by another process. Try again later.")
    if code in _UNAVAILABLE:
        # SQLite doesn't say why it couldn't open a file.
        why = (_too_many_files() if code == sqlite3.SQLITE_CANTOPEN else "") or _UNAVAILABLE[code]
        return StoreUnavailable(f"The store {location}: {why} (SQLite: {error})")
    if isinstance(error, sqlite3.IntegrityError):
        return InvalidInput(f"The store {location} refuses a value: {error}. Nothing was stored.")
    if isinstance(error, sqlite3.DataError) or code == sqlite3.SQLITE_TOOBIG:
        return InvalidInput(
            f"A text is too large for the store {location} ({error}); SQLite's limit is 1 GB. Divide it."
        )
    return StoreError(f"The store {location} failed: {error}. Nothing was half written.")


_FILES_OF_A_STORE: Final = 3
"""The file, its log and the index of the log."""


def _too_many_files() -> str:
    """What to say where no further files can be opened; empty where they can."""
    opened: list[int] = []
    try:
        opened += (os.open(os.devnull, os.O_RDONLY) for _ in range(_FILES_OF_A_STORE))
    except OSError as error:
        if error.errno == errno.EMFILE:
            try:
                import resource  # noqa: PLC0415 - Windows has no such module, and no limit to raise.
            except ModuleNotFoundError:
                return "This process has too many files open. Close engines that aren't used any more."
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            return (
                f"It can't be opened: this process has too many files open; its limit is {most:,}. Raise it "
                "(`ulimit -n`, or LimitNOFILE of the service), or close engines that aren't used any more."
            )
        if error.errno == errno.ENFILE:
            return (
                "It can't be opened: all processes of the system together have too many files open. Raise "
                "its limit (on Linux `sysctl fs.file-max`), or end some of them."
            )
    finally:
        for each in opened:
            os.close(each)
    return ""


def _primary_code(error: sqlite3.Error) -> int:
    # The low byte of an extended code is the primary one.
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
