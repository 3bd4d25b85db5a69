"""Reading from a standby, without missing what this process has written or seen before.

Level: stores (imports errors only). A server's writes have places in its log, which grow. A standby answers a
read if it has replayed the log up to the place that this process knows of; else the primary does.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

import psycopg

from germane.errors import StoreError
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.postgres.connecting.pool import Pool

__all__ = ["Replica", "place_of"]

_LONGEST_WAIT: Final = 1.0
_REST_SECONDS: Final = 5.0


def place_of(text: str) -> int:
    """A place in the log as a number, of its form of two hexadecimal halves: 16/B374D848."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


class Replica:
    """A standby, or several at one address. One that fails isn't asked again for five seconds."""

    def __init__(self, url: str, *, timeout: float) -> None:
        self._pool = Pool(url, timeout=min(timeout, _LONGEST_WAIT))
        self._guard = Lock()
        self._needed = 0
        self._rests_until = 0.0
        # How far each connection's server had come. A server never goes back behind that.
        self._reached: WeakKeyDictionary[Raw, int] = WeakKeyDictionary()

    @property
    def location(self) -> str:
        """The address without its password."""
        return self._pool.location

    def note(self, place: str) -> None:
        """From now on only a server answers that has come to this place in the log."""
        with self._guard:
            self._needed = max(self._needed, place_of(place))

    def begin(self, beginning: bytes) -> Raw | None:
        """A connection on which this ran; `give` it back. None where the primary has to be asked."""
        if time.monotonic() < self._rests_until:
            return None
        needed = self._needed
        raw = None
        try:
            raw = self._pool.begin()
            if self._pool.is_pooled:
                if _came_to(needed, raw, self._pool.beginning(beginning)):
                    return raw
            # Before the transaction: its snapshot would be older than what is learned inside it.
            elif self._has_reached(raw, needed):
                raw.execute(beginning, prepare=False)
                return raw
        except (psycopg.Error, StoreError):
            # The primary answers instead, and says what is wrong if it can't.
            self.rest()
        if raw is not None:
            self._pool.give(raw)
        return None

    @property
    def is_spread(self) -> bool:
        """As of a `Pool`."""
        return self._pool.is_spread

    def give(self, raw: Raw) -> None:
        """Take a connection back."""
        self._pool.give(raw)

    def rest(self) -> None:
        """Ask the primary alone for a while: a read failed here, or had to make room for the log."""
        self._rests_until = time.monotonic() + _REST_SECONDS

    def close(self) -> None:
        """Close every connection to it."""
        self._pool.close()

    def _has_reached(self, raw: Raw, needed: int) -> bool:
        reached = self._reached.get(raw)
        if reached is None or reached < needed:
            # A server that never was a standby has no such place, and isn't one.
            (place,) = raw.execute(b"SELECT pg_last_wal_replay_lsn()::text").fetchall()[0]
            if place is None:
                return False
            reached = self._reached[raw] = place_of(str(place))
        return reached >= needed


def _came_to(needed: int, raw: Raw, beginning: bytes) -> bool:
    """The same in one message with the beginning, since a pooler may give each to another server."""
    parts = (b"BEGIN", b"SELECT pg_last_wal_replay_lsn()::text", b"COMMIT", beginning)
    asked = raw.execute(b";".join(parts), prepare=False)
    asked.nextset()
    (place,) = asked.fetchall()[0]
    return place is not None and place_of(str(place)) >= needed
