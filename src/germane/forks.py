"""What a process has to let go of before it forks, and to make anew in the child.

A child has the one thread that forked, and a copy of everything else: locks that other threads owned stay
locked for ever, and SQLite takes the parent's locks on a file for its own. So a fork waits until no call
of a store is under way, whose `Gate` holds back new ones meanwhile, and the store lets go of what must
not be inherited. Where that takes too long, the child can't use that store, and is refused at once.
"""

from __future__ import annotations

import _frozen_importlib
import _imp
import logging  # noqa: F401 - A fork takes its lock too, after ours only where it registered before us.
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock, get_ident, local
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakMethod, WeakSet

from germane.errors import StoreUnavailable

_PATIENCE: Final = 5.0
"""Seconds that a fork waits for calls of stores to end."""
_LOOK_AGAIN: Final = 0.001


Done = TypeVar("Done")
Lockable = TypeVar("Lockable")


def renewed(lock: Lockable) -> Lockable:
    """A lock, condition or event that is free in a child process, whoever owned it when the parent forked.

    It is for what holds for a moment and guards nothing that a fork could catch half done.
    """
    with _GUARD:
        _LOCKS.add(lock)
    return lock


class Gate:
    """What every call of one store goes through; a fork waits until none is inside.

    A call inside another one of the same thread is a part of it. `let_go`, a method, is called before a
    fork, while no call is inside. In a child that was forked while one was, every call raises
    StoreUnavailable; where the store is a file, `check_unforked` does so for every store of that file.
    """

    def __init__(
        self, location: str, *, let_go: Callable[[], None] | None = None, file: bool = False
    ) -> None:
        self._location = location
        self._file = file
        self._let_go = None if let_go is None else WeakMethod(let_go)
        self._changed = Condition(Lock())
        self._inside: dict[int, int] = {}
        self._forks = 0
        self._process = os.getpid()
        self._torn = False
        with _GUARD:
            _GATES.add(self)

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self.renew(quiet=False)  # It was forked by something that Python doesn't know of.
        thread = get_ident()
        with self._changed:
            depth = self._inside.get(thread, 0)
            while self._forks and not depth:
                self._changed.wait()
            if self._torn:
                raise _forked(self._location)
            self._inside[thread] = depth + 1

    def __exit__(self, *_: object) -> None:
        thread = get_ident()
        with self._changed:
            depth = self._inside.pop(thread, 1) - 1
            if depth:
                self._inside[thread] = depth
            elif self._forks and not self._inside:
                self._changed.notify_all()

    def run(self, work: Callable[[], Done]) -> Done:
        """Do a piece of work inside the gate."""
        with self:
            return work()

    def hold(self) -> None:
        """Let no other call in, until `renew` or `release`."""
        with self._changed:
            self._forks += 1

    def clear(self, deadline: float) -> bool:
        """Wait until no call is inside, and let go of what must not be inherited; whether that was done."""
        with self._changed:
            # One that forks inside a call can't wait for itself.
            if get_ident() not in self._inside:
                self._changed.wait_for(lambda: not self._inside, max(0.0, deadline - time.monotonic()))
            if self._inside:
                return False
            if self._let_go is not None and (let_go := self._let_go()) is not None:
                let_go()
            return True

    def release(self) -> None:
        """Let calls in again, in the process that forked."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def renew(self, *, quiet: bool) -> None:
        """Begin anew in a child process; `quiet` says that no call was inside when it was forked."""
        self._changed, self._inside, self._forks = Condition(Lock()), {}, 0
        self._process = os.getpid()
        self._torn = self._torn or not quiet
        if self._torn and self._file:
            with suppress(OSError):
                _TORN.add(_file_at(self._location))


def check_unforked(location: str) -> None:
    """Raise StoreUnavailable if the file was in use when this process was forked."""
    with suppress(OSError):
        if _TORN and _file_at(location) in _TORN:
            raise _forked(location)


def _forked(location: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The store {location} was in use by another thread when this process was forked, so it can't be "
        "used here. Fork while no thread uses the store, or start processes by spawn."
    )


def _file_at(location: str) -> tuple[int, int]:
    status = os.stat(location)  # noqa: PTH116 - A Path adds nothing.
    return status.st_dev, status.st_ino


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
        self._size_was = 0

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

    def check_to_write(self, pages: Callable[[], tuple[int, int]]) -> None:
        """As `check`, and of the log and the length as well, for within a write transaction.

        `pages` returns how many pages the transaction sees, and the bytes of each. SQLite makes the log at
        the first write transaction, and keeps it while any connection is open.
        """
        self.check()
        self._check_length(pages)
        if self._log_was is None:
            if _CAN_GO and Path(self._log).exists():
                self._log_was = self._now(self._log)
        elif self._now(self._log) != self._log_was:
            raise StoreUnavailable(
                f"Another log stands at {self._log} since this store was opened, so nothing more is stored: "
                "nobody else would see it. Close the store and open it again; what was stored last may be "
                "missing, for it stood in the log that was there."
            )

    def _check_length(self, pages: Callable[[], tuple[int, int]]) -> None:
        """Raise StoreUnavailable if the file was truncated.

        SQLite shortens a file after a VACUUM, and writes new pages to the log first. Pages in neither are
        lost, which SQLite itself notices only once they leave its cache.
        """
        if self._file_was is None:
            return
        size = os.stat(self._location).st_size  # noqa: PTH116 - As in `_now`.
        if size < self._size_was:
            number, length = pages()
            there = size // length
            if number - there > len(_pages_in_log(self._log, length, above=there)):
                raise StoreUnavailable(
                    f"The file {self._location} was truncated since this store was opened: of {number} pages "
                    f"it has {there}. Nothing more is stored in it. Close the store, and restore the file "
                    "from a backup."
                )
        self._size_was = size

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


_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24


def _pages_in_log(log: str, length: int, *, above: int) -> set[int]:
    """The numbers above `above` of the pages in a write-ahead log; old frames have another salt."""
    found: set[int] = set()
    with suppress(FileNotFoundError), Path(log).open("rb") as file:
        salt = file.read(_LOG_HEADER)[16:24]
        while len(header := file.read(_FRAME_HEADER)) == _FRAME_HEADER and header[8:16] == salt:
            found.add(int.from_bytes(header[:4]))
            file.seek(length, os.SEEK_CUR)
    return {number for number in found if number > above}


# What happens at a fork.


class _Fork(local):
    """The gates that this thread holds while it forks, each with whether it is clear."""

    gates: dict[Gate, bool] | None = None


_GATES: Final[WeakSet[Gate]] = WeakSet()
_LOCKS: Final[WeakSet[Any]] = WeakSet()
_TORN: Final[set[tuple[int, int]]] = set()
_GUARD: Final = Lock()
_fork: Final = _Fork()


def _wait_for_imports(deadline: float) -> None:
    """Wait until no other thread imports anything, and let none begin until the fork is over."""
    while True:
        _imp.acquire_lock()
        if not _is_importing() or time.monotonic() >= deadline:
            return
        _imp.release_lock()
        time.sleep(_LOOK_AGAIN)


def _is_importing() -> bool:
    """Whether another thread is looking for a module or running it, or about to.

    It has that module's lock meanwhile, which lives as long as somebody uses it.
    """
    with suppress(Exception):  # What Python doesn't show can't be waited for, and must not hinder a fork.
        locks = [known() for known in list(getattr(_frozen_importlib, "_module_locks", {}).values())]
        return any(lock is not None and getattr(lock, "owner", None) != get_ident() for lock in locks)
    return False


def _before() -> None:
    deadline = time.monotonic() + _PATIENCE
    locked = _fork.gates = {}
    while True:
        # A module that is imported may register locks, so imports end before registering does.
        _wait_for_imports(deadline)
        _GUARD.acquire()
        # Stores may be opened while others are waited for.
        new = [gate for gate in _GATES if gate not in locked]
        if not new:
            return  # Nothing is added from here on, until the fork is over.
        _let_in()
        for gate in new:
            gate.hold()
        locked.update((gate, gate.clear(deadline)) for gate in new)


def _let_in() -> None:
    """Let others import and register again."""
    _GUARD.release()
    _imp.release_lock()


def _after_in_parent() -> None:
    _let_in()
    locked, _fork.gates = _fork.gates or {}, None
    for gate in locked:
        gate.release()


def _after_in_child() -> None:
    locked, _fork.gates = _fork.gates, None
    if locked is None:
        _GUARD._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - As the standard library does.
    else:
        with suppress(RuntimeError):  # Some versions of Python have released it already.
            _imp.release_lock()
        _GUARD.release()
    for lock in list(_LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001 - As above.
    for gate in list(_GATES):
        gate.renew(quiet=bool(locked and locked.get(gate)))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
