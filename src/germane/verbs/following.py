"""Tells a caller of every move in a working set, also of those that other processes make.

Level: verbs. The log of moves is asked for its latest number a few times a second, which costs next to
nothing; it is read only when that number has grown.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread, current_thread
from types import TracebackType
from typing import Final, Self

from germane.model.holding import Move
from germane.protocols import Holding

__all__ = ["Following"]

_GOODBYE: Final = 5.0


class Following:
    """A thread that calls back with each move in order, each once, until it is closed.

    What the callback raises ends it, and so does a store that was closed; `error` is then what ended it.
    """

    def __init__(
        self,
        store: Holding,
        owner: str,
        name: str,
        callback: Callable[[Move], object],
        *,
        since: int,
        every: float,
    ) -> None:
        self.error: Exception | None = None
        self._store = store
        self._owner = owner
        self._name = name
        self._callback = callback
        self._since = since
        self._every = every
        self._stopped = Event()
        self._thread = Thread(target=self._run, name=f"germane-follow-{name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether moves are still told."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it. A callback that is under way is waited for, 5 seconds at most. Closing twice is fine."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(_GOODBYE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                if self._store.moved(self._owner) > self._since:
                    self._tell()
                self._stopped.wait(self._every)
        except Exception as error:  # noqa: BLE001 - whatever it is, `error` tells of it; a thread can't raise.
            self.error = error

    def _tell(self) -> None:
        for move in self._store.moves(self._owner, since=self._since):
            if self._stopped.is_set():
                return
            self._since = move.number
            if move.working_set == self._name:
                self._callback(move)
