"""The token that each write leaves, by which a commit whose answer was lost is looked up.

Level: stores (imports errors only).
"""

from __future__ import annotations

import time
from secrets import token_hex
from typing import Final

import psycopg

from germane.stores.postgres.connecting.failures import is_lost
from germane.stores.postgres.connecting.pool import Pool

__all__ = ["LEAVE", "SECONDS_BETWEEN_SWEEPS", "new_token", "sweep", "was_committed"]

SECONDS_BETWEEN_SWEEPS: Final = 60.0
"""How often a process removes tokens that nobody can ask for any more."""

LEAVE: Final = b"INSERT INTO commits (token) VALUES (%s::uuid)"

_STAYS: Final = "10 minutes"  # As in `sweep_commits`.
_LONGEST_ASKED: Final = 300.0  # Seconds; well within what tokens stay.

_SWEEP: Final = b"SELECT sweep_commits()"

# A cluster locks no rows in a subquery for sure; who sweeps at the same time waits.
_SWEEP_SPREAD: Final = f"DELETE FROM commits WHERE at < now() - interval '{_STAYS}'".encode()


def new_token() -> str:
    """A UUID that begins with the time, so that those of one time lie together in the index."""
    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"


def was_committed(pool: Pool, token: str, *, timeout: float) -> bool:
    """Whether the transaction that left this token is committed; waits for it to end.

    Raises the driver's error where the server can't be asked within `timeout` seconds.
    """
    deadline = time.monotonic() + min(timeout, _LONGEST_ASKED)
    while True:
        raw = pool.begin(b"BEGIN")
        try:
            # Who wants to leave a token that is being left waits until it is known to stand.
            left = raw.execute(LEAVE + b" ON CONFLICT DO NOTHING", (token,), prepare=False)
        except psycopg.Error as error:
            if not is_lost(error, raw) or time.monotonic() >= deadline:
                raise
        else:
            return left.rowcount == 0
        finally:
            pool.give(raw)


def sweep(*, is_spread: bool) -> bytes:
    """The statement that removes old tokens."""
    return _SWEEP_SPREAD if is_spread else _SWEEP
