"""Hearing of what other processes write, on any machine, as soon as it is committed.

Level: stores (imports errors only). What is heard only wakes: what happened is read from the tables, where it
has its number. So nothing depends on every word being heard.

A notification is sent right behind a commit and not inside the transaction. Inside, the server would let the
transactions that notify commit one at a time, each until its bytes are on the disk.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from threading import Event, Lock, Thread
from typing import Final

import psycopg

from germane.forking import renewed
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.postgres.connecting.poolers import is_between

__all__ = ["Listening", "notice"]

_CHANNEL: Final = "germane"
_TURN_SECONDS: Final = 0.2
_GOODBYE: Final = 5.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0

Wake = Callable[[], object]


def notice(agent: str | None) -> bytes:
    """The statement that tells all who listen that something was written for an agent, if it was for one.

    It finds the place in the server's log behind which it was written.
    """
    told = "NULL" if agent is None else f"pg_notify('{_CHANNEL}', '{_key(agent)} ' || place)"
    return f"SELECT place::text, {told} FROM pg_current_wal_insert_lsn() AS place".encode()


class Listening:
    """Calls back when something was written for an agent, by whomever, and now and then for no reason.

    A thread with a connection of its own listens as long as anybody wants to be woken. When its
    connection breaks it opens another, and wakes everybody, since something may have been missed. Before
    anybody is woken, `heard` is told the place in the server's log where what was written stands.
    """

    def __init__(self, connect: Callable[[], Raw], heard: Callable[[str], object]) -> None:
        self._connect = connect
        self._heard = heard
        self._guard = renewed(Lock())
        self._process = os.getpid()
        self._wakes: dict[str, list[Wake]] = {}
        self._thread: Thread | None = None
        self._stopped = renewed(Event())
        self._hears = renewed(Event())

    def add(self, agent: str, wake: Wake) -> Callable[[], None]:
        """Have `wake` called, which must be quick, until what is returned is called.

        It is called once as soon as the server is listened to, and never where a pooler stands between.
        """
        if self._process != os.getpid():
            # The thread stayed with the parent, and so did who waits for it.
            self._guard, self._process, self._wakes, self._thread = renewed(Lock()), os.getpid(), {}, None
        key = _key(agent)
        with self._guard:
            self._wakes.setdefault(key, []).append(wake)
            if self._thread is None:
                self._stopped, self._hears = renewed(Event()), renewed(Event())
                self._thread = Thread(
                    target=self._run, args=(self._stopped, self._hears), name="germane-listen", daemon=True
                )
                self._thread.start()
            hears = self._hears.is_set()
        if hears:
            wake()

        def remove() -> None:
            with self._guard:
                with suppress(ValueError):
                    self._wakes.get(key, []).remove(wake)
                if not self._wakes.get(key):
                    self._wakes.pop(key, None)
                if not self._wakes:
                    self._stopped.set()
                    self._thread = None

        return remove

    @property
    def hears(self) -> bool:
        """Whether the server tells of what is written just now; else only looking helps."""
        return self._hears.is_set()

    def close(self) -> None:
        """Stop listening, and wake everybody for the last time."""
        with self._guard:
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None and self._process == os.getpid():
            thread.join(_GOODBYE)
        self._wake_all()

    def _run(self, stopped: Event, hears: Event) -> None:
        pause = _FIRST_PAUSE
        while not stopped.is_set():
            try:
                with self._connect() as raw:
                    if is_between(raw):
                        # What was listened for would be told to whoever has the server's connection then.
                        return
                    raw.execute(f"LISTEN {_CHANNEL}".encode())
                    pause = _FIRST_PAUSE
                    self._heard(raw.execute(notice(None)).fetchall()[0][0])
                    self._wake_all(hears)
                    while not stopped.is_set():
                        for each in raw.notifies(timeout=_TURN_SECONDS):
                            self._wake(each.payload)
            except psycopg.Error:
                # A broken connection is made anew; a server that is down is asked again, ever more seldom.
                hears.clear()
                stopped.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret.
                pause = min(2 * pause, _LONGEST_PAUSE)
        hears.clear()

    def _wake(self, told: str) -> None:
        key, _, place = told.partition(" ")
        with self._guard:
            wakes = tuple(self._wakes.get(key, ()))
        if wakes:
            self._heard(place)
        for each in wakes:
            each()

    def _wake_all(self, hears: Event | None = None) -> None:
        with self._guard:
            # Who is added from here on sees that, and isn't woken twice.
            if hears is not None:
                hears.set()
            wakes = tuple(each for some in self._wakes.values() for each in some)
        for each in wakes:
            each()


def _key(agent: str) -> str:
    """Short, whatever the name's length, and without the name."""
    return blake2b(agent.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
