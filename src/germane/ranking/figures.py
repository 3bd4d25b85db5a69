"""The numbers of held memories in columns, each made once. Pure: they depend on the entries alone.

Level: ranking (imports model only; never retrieval or stores).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.model.held import AgeBasis, Held
from germane.model.memory import Memory

__all__ = ["Figures"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_HOUR = 3_600_000_000

_T = TypeVar("_T", bound=np.generic)


class Figures:
    """What strategies read of entries, column by column, in the order of the entries.

    A set is asked for its order many times before anything moves in it, and reading ten thousand entries
    takes longer than ranking them. Nothing here depends on a moment or a question. Threads may share it:
    at worst a column is made twice.
    """

    def __init__(self, held: Sequence[Held]) -> None:
        self.held = tuple(held)
        self._moments: dict[AgeBasis, NDArray[np.int64]] = {}

    @cached_property
    def importances(self) -> NDArray[np.float64]:
        """The importances that were set."""
        return _kept(np.array([one.importance for one in self.memories], dtype=np.float64))

    @cached_property
    def orders(self) -> NDArray[np.int64]:
        """The places in the order of access."""
        return _kept(np.array([one.order for one in self.held], dtype=np.int64))

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories."""
        return tuple([one.memory for one in self.held])

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the memories."""
        return tuple([one.ref for one in self.memories])

    def ages(self, basis: AgeBasis, *, now: datetime) -> NDArray[np.float64]:
        """The age of each in hours at `now`, 0 for what lies in the future."""
        moments = self._moments.get(basis)
        if moments is None:
            moments = self._moments[basis] = self._since_the_epoch(basis)
        # Whole microseconds, which is as fine as moments are, so that no age is rounded twice.
        past = (now - _EPOCH) // _MICROSECOND - moments
        return np.maximum(past / _PER_HOUR, 0.0)

    def _since_the_epoch(self, basis: AgeBasis) -> NDArray[np.int64]:
        if basis is AgeBasis.CREATED:
            # By far the most asked for; the detour over `moment` costs as much again.
            moments = [one.created_at for one in self.memories]
        else:
            moments = [one.moment(basis) for one in self.held]
        return np.array([(moment - _EPOCH) // _MICROSECOND for moment in moments], dtype=np.int64)


def _kept(column: NDArray[_T]) -> NDArray[_T]:
    """A column that stays, so nobody may change it."""
    column.flags.writeable = False
    return column
