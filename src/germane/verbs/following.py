"""Tells a caller of everything that a log gets, also of what other processes add to it.

Level: verbs. Whoever starts it says how to look: a look asks for the log's latest number, which costs
next to nothing, and reads the log only where that number has grown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread, current_thread
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from germane.forking import renewed
from germane.stores.waking import Waking

__all__ = ["Following", "Look"]

T = TypeVar("T")

Look = Callable[[int], tuple[int, Sequence[T]]]
"""From the number of the last entry that was told to that of the last there is, and the entries between."""

_GOODBYE: Final = 5.0

_UNHEARD: Final = 5.0
"""Seconds until a look where the store hears of writes: the last word of who died then may be missing."""


class Following(Generic[T]):
    """A thread that calls back with each entry of a log in order, each once, until it is closed.

    What the callback raises ends it, and so does a log that can't be read any more; `error` is then
    what ended it. Where the store hears of writes for the `tenant`, it looks at once when there was one,
    and else but now and then.
    """

    def __init__(
        self,
        look: Look[T],
        callback: Callable[[T], object],
        *,
        name: str,
        since: int,
        every: float,
        store: object = None,
        tenant: str = "",
    ) -> None:
        self.error: Exception | None = None
        self._look = look
        self._callback = callback
        self._since = since
        self._every = every
        self._store = store if isinstance(store, Waking) else None
        self._tenant = tenant
        self._stopped = renewed(Event())
        self._due = renewed(Event())
        self._thread = Thread(target=self._run, name=f"germane-follow-{name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether entries are still told."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it. A callback that is under way is waited for, 5 seconds at most. Closing twice is fine."""
        self._stopped.set()
        self._due.set()
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
            # From before the first look on, so that nothing falls between.
            with self._woken():
                while not self._stopped.is_set():
                    self._due.clear()
                    self._since, entries = self._look(self._since)
                    for entry in entries:
                        if self._stopped.is_set():
                            return
                        self._callback(entry)
                    # An end that came while it was cleared shows here.
                    if not self._stopped.is_set():
                        self._due.wait(self._patience())
        except Exception as error:  # noqa: BLE001 - whatever it is, `error` tells of it; a thread can't raise.
            self.error = error

    @contextmanager
    def _woken(self) -> Iterator[None]:
        if self._store is None:
            yield
            return
        sleep = self._store.awake(self._tenant, self._due.set)
        try:
            yield
        finally:
            sleep()

    def _patience(self) -> float:
        if self._store is None or not self._store.hears:
            return self._every
        return max(self._every, _UNHEARD)
