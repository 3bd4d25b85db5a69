"""Ids that sort by the time they were made: UUID version 7 (RFC 9562, section 5.7), and parts that name them.

Neither a clock nor a random source is read here: the moment and the random bits are handed in.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from germane.errors import InvalidInput
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


# Ids named by a part of them.

SHORTEST: Final = 4
"""Characters of an id that name it at least."""

_MOST_NAMED: Final = 5
_SHORT: Final = re.compile(r"([0-9a-f]{8})(@\d+)?")


def is_short(text: str) -> bool:
    """Whether a text has the form of a short id, eight digits, with or without a version."""
    return _SHORT.fullmatch(text) is not None


def by_short_id(text: str, ids: Iterable[str], of: str) -> str:
    """The id that a short id names, with its version, if any; any other text is returned as it is.

    Raises InvalidInput for a short id of several.
    """
    short = _SHORT.fullmatch(text)
    found = None if short is None else only_id(short[1], ids, of)
    return text if short is None or found is None else found + (short[2] or "")


def only_id(text: str, ids: Iterable[str], of: str) -> str | None:
    """The id that begins or ends with a text, or None; `of` is the plural noun of the ids' objects.

    Raises InvalidInput for a text that is too short or ambiguous.
    """
    wanted = text.strip().lower()
    if len(wanted) < SHORTEST:
        raise InvalidInput(
            f"{text!r} is too short for an id: give {SHORTEST} characters or more of its beginning or end."
        )
    matches = [each for each in dict.fromkeys(ids) if each.startswith(wanted) or each.endswith(wanted)]
    if len(matches) > 1:
        more = f" and {len(matches) - _MOST_NAMED} more" if len(matches) > _MOST_NAMED else ""
        first = ", ".join(matches[:_MOST_NAMED])
        raise InvalidInput(f"{text!r} names {len(matches)} {of}: {first}{more}. Give more of it, or all.")
    return matches[0] if matches else None
