"""Whose turn it is to write: first come, first served within a process, and nearly so between processes.

Level: stores (imports errors only).

SQLite's own busy handler backs off: who has waited longest asks least often, so a process that
writes without pause can starve another for seconds. Here who waits asks at short, constant
intervals and the more often the longer it has waited, and who has written for a while pauses.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from germane.errors import StoreBusy

__all__ = ["Turns", "pause_before_asking_again"]

_FRESH_PAUSE = 0.001
_AGED_PAUSE = 0.0001
_AGED_AFTER = 0.03

# Who has held the file for this long without a gap leaves a gap in which any waiter asks at least
# once. It costs a lone writer about one part in twenty-five.
_LONGEST_TURN = 0.025
_COURTESY = 0.0011


def pause_before_asking_again(waited: float) -> float:
    """How many seconds to sleep before the next try, after `waited` seconds in vain."""
    if waited >= _AGED_AFTER:
        return _AGED_PAUSE
    return _FRESH_PAUSE - (_FRESH_PAUSE - _AGED_PAUSE) * waited / _AGED_AFTER


class Turns:
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
