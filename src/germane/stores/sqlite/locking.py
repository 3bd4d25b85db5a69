"""Turns of writers, the identity of the open file, and what the driver raises.

SQLite's own busy handler backs off: the longest waiting process tries least often, so a process that writes
without pause can starve another for seconds. Here a waiting process tries at short intervals, the more often
the longer it has waited, and one that has written for a while pauses.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreError, StoreUnavailable, shown
from germane.stores.relational.tables import storable

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


# Whether the file that is open is still the one at its path. What is written to another is lost.

_Inode: TypeAlias = tuple[int, int]

# Windows doesn't let a file be deleted, renamed or replaced while SQLite has it open, and looking there
# would open the file each time.
_CAN_GO: Final = os.name != "nt"


class FileIdentity:
    """Which file stood at a path when it was opened, and which log beside it.

    A system lets go of an open file's name and keeps its bytes until it is closed, so that SQLite would
    go on without noticing. Links are followed, as SQLite follows them: one that leads elsewhere since
    is another file. A file that was overwritten in its place counts as the same.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._log = f"{location}-wal"
        self._file_was: _Inode | None = None
        self._log_was: _Inode | None = None

    def opened(self) -> None:
        """Note which file was opened. Raises StoreUnavailable if it isn't the one that was opened first."""
        if not _CAN_GO:
            return
        if self._file_was is None:
            self._file_was = self._now(self._location)
        self.check()

    def forget_log(self) -> None:
        """Forget the log, whose connection is no longer used; the next one may have another."""
        self._log_was = None

    def check(self) -> None:
        """Raise StoreUnavailable if the path names no file any more, or another one."""
        if self._file_was is not None and self._now(self._location) != self._file_was:
            raise StoreUnavailable(
                f"Another file stands at {self._location} since this store was opened, so nothing more is "
                "read from the old one or stored in it. Close the store and open it again to use the new "
                "one, or put the old one back."
            )

    def check_to_write(self) -> None:
        """As `check`, and of the log as well, for within a write transaction.

        SQLite makes the log at the first of them, and keeps it while any connection is open.
        """
        self.check()
        if self._log_was is None:
            if _CAN_GO and Path(self._log).exists():
                self._log_was = self._now(self._log)
        elif self._now(self._log) != self._log_was:
            raise StoreUnavailable(
                f"Another log stands at {self._log} since this store was opened, so nothing more is stored: "
                "nobody else would see it. Close the store and open it again; what was stored last may be "
                "missing, for it stood in the log that was there."
            )

    def _now(self, path: str) -> _Inode:
        try:
            found = os.stat(path)  # noqa: PTH116 - A Path for each transaction would cost more than the question.
        except (FileNotFoundError, NotADirectoryError):
            raise self._gone(path) from None
        except OSError as error:
            raise StoreUnavailable(
                f"Whether {path} is still there can't be seen ({error.strerror or error}), so nothing more "
                "is stored in it. Let this process look into its folder, then try again."
            ) from error
        return found.st_dev, found.st_ino

    def _gone(self, path: str) -> StoreUnavailable:
        if path == self._location:
            return StoreUnavailable(
                f"The file {path} was deleted, or it or its folder was moved, since this store was opened, "
                "so nothing more is read from it or stored in it. Put it back there; or close the store and "
                "open it again, which makes a new file, or open it where it is now."
            )
        return StoreUnavailable(
            f"The log {path} was deleted since this store was opened, so nothing more is stored: nobody else "
            "would see it. Put it back; or close the store and open it again; what was stored last may be "
            "missing, for it stood in that log."
        )


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
            import resource  # noqa: PLC0415 - Not on Windows, which has no such limit.

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
