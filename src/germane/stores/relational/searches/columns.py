"""Columns of numbers about an agent's memories, one place for each, in the order of their writing.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.model.query import Order
from germane.retrieval.sessions import Sessions

__all__ = ["Columns"]

_FEWEST = 64


class Columns:
    """Grows at its end and never moves: a memory keeps its place, its ordinal, until all is loaded anew.

    Arrays may have room behind `used`; `nums` ascend.
    """

    def __init__(self) -> None:
        self.used = 0
        self.dead = 0
        self.nums = np.empty(0, dtype=np.int64)
        self.ids = np.empty(0, dtype="S16")
        self._kinds = np.empty(0, dtype=np.int32)
        self.created = np.empty(0, dtype=np.int64)
        self._importance = np.empty(0, dtype=np.float64)
        self._alive = np.empty(0, dtype=np.bool_)
        self._sessions = np.empty(0, dtype=np.int64)
        self._numbers: dict[str, int] = {}
        self._codes: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        arrays = (
            self.nums,
            self.ids,
            self._kinds,
            self.created,
            self._importance,
            self._alive,
            self._sessions,
        )
        return sum(each.nbytes for each in arrays)

    @property
    def turns(self) -> NDArray[np.bool_]:
        """By ordinal, which memories belong to a session."""
        return self._sessions[: self.used] >= 0

    def sessions(self, admitted: NDArray[np.bool_]) -> Sessions | None:
        """The admitted memories in the order of their sessions; None where no memory belongs to any.

        What was purged counts no more, so that who saw it before finds what somebody new does.
        """
        if not self._numbers or not np.any(self.turns & self._alive[: self.used]):
            return None
        return Sessions(
            self._sessions[: self.used], self.created[: self.used], self.ids[: self.used], admitted
        )

    def append(self, rows: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
        """Add rows of num, id, kind, created_at, importance and session; returns their ordinals."""
        start = self.used
        if rows:
            self.append_columns(list(zip(*rows, strict=True)))
        return np.arange(start, self.used, dtype=np.int64)

    def append_columns(self, given: Sequence[Sequence[Any]]) -> None:
        """The same from the six columns of the rows."""
        nums, ids, kinds, created, importance, sessions = given
        start, stop = self.used, self.used + len(nums)
        if stop > len(self.nums):
            self._grow(max(stop, len(self.nums) * 3 // 2, _FEWEST))
        self._sessions[start:stop] = [
            -1 if name is None else self._numbers.setdefault(name, len(self._numbers)) for name in sessions
        ]
        self.nums[start:stop] = nums
        self.ids[start:stop] = np.frombuffer(b"".join(ids), dtype="S16")
        self._kinds[start:stop] = [self._codes.setdefault(kind, len(self._codes)) for kind in kinds]
        self.created[start:stop] = created
        self._importance[start:stop] = importance
        self._alive[start:stop] = True
        self.used = stop

    def remove(self, ordinal: int) -> None:
        """Note that a memory is gone; its place stays empty."""
        if self._alive[ordinal]:
            self._alive[ordinal] = False
            self.dead += 1

    def ordinals(self, nums: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ordinals of these nums; a num that isn't here is left out."""
        places = np.searchsorted(self.nums[: self.used], nums)
        inside = places < self.used
        places, nums = places[inside], nums[inside]
        found: NDArray[np.int64] = places[self.nums[places] == nums]
        return found

    def of_kinds(self, kinds: Sequence[str]) -> NDArray[np.bool_]:
        """By ordinal, which memories are of one of these kinds."""
        wanted = [self._codes[kind] for kind in kinds if kind in self._codes]
        # A lookup by code is several times faster than np.isin, which sorts.
        known = np.zeros(max(len(self._codes), 1), dtype=np.bool_)
        known[wanted] = True
        found: NDArray[np.bool_] = known[self._kinds[: self.used]]
        return found

    def best(self, ordinals: NDArray[np.int64], scores: NDArray[Any], limit: int) -> NDArray[np.int64]:
        """The `limit` ordinals of the highest scores, the newer id where scores tie; in no order."""
        if limit <= 0:
            return ordinals[:0]
        if len(ordinals) <= limit:
            return ordinals
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        sure = np.flatnonzero(scores > last)
        tied = np.flatnonzero(scores == last)
        newest = np.argsort(self.ids[ordinals[tied]])[len(sure) - limit :]
        chosen: NDArray[np.int64] = ordinals[np.concatenate([sure, tied[newest]])]
        return chosen

    def first(self, admitted: NDArray[np.bool_], order: Order, limit: int) -> NDArray[np.int64]:
        """The first `limit` admitted ordinals by an order; in no order themselves."""
        ordinals = np.flatnonzero(admitted)
        if len(ordinals) <= limit:
            return ordinals
        if order is Order.OLDEST:
            # The exact reverse of newest: the older id comes first where times tie.
            newest = self.best(ordinals, self.created[ordinals], len(ordinals) - limit)
            rest = np.ones(len(admitted), dtype=np.bool_)
            rest[newest] = False
            oldest: NDArray[np.int64] = np.flatnonzero(admitted & rest)
            return oldest
        if order is Order.NEWEST:
            return self.best(ordinals, self.created[ordinals], limit)
        importance = self._importance[ordinals]
        last = (
            np.partition(importance, len(importance) - limit)[len(importance) - limit]
            if limit > 0
            else np.inf
        )
        sure = ordinals[importance > last]
        tied = ordinals[importance == last]
        return np.concatenate([sure, self.best(tied, self.created[tied], limit - len(sure))])

    def _grow(self, size: int) -> None:
        for name in ("nums", "ids", "_kinds", "created", "_importance", "_alive", "_sessions"):
            old = getattr(self, name)
            new = np.zeros(size, dtype=old.dtype)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)
