"""Working sets as the store offers them.

Level: stores (imports model and errors). The work is done in `sets`, which the first such call loads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from germane.stores.relational.connection import Connections

if TYPE_CHECKING:
    from germane.model.holding import Features, HeldChange, HeldSet, Move
    from germane.stores.relational.working_sets.sets import HeldIn, Kept

__all__ = ["WorkingSets"]


class WorkingSets:
    """The part of a SQLite store that is `Holding`. Threads and processes may share it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._kept_guard = Lock()

    def hold(
        self, owner: str, name: str, changes: Sequence[HeldChange], *, seen: int | None = None, by: str = ""
    ) -> tuple[Move, ...] | None:
        """Apply all changes to a set in one transaction, in order, or none of them; returns the moves.

        With `seen`, only if the set's latest move has that number; else nothing is done, and None returned.
        """
        return self._held_in.hold(owner, name, changes, seen=seen, by=by)

    def held(self, owner: str, name: str) -> HeldSet:
        """A set as it is now, from one snapshot of the store; an empty one where there is none."""
        return self._held_in.held(owner, name)

    def working_sets(self, owner: str) -> tuple[str, ...]:
        """The names of the sets of an owner that anything was ever done to, in order."""
        return self._held_in.working_sets(owner)

    def moves(self, owner: str, *, since: int = 0, limit: int | None = None) -> tuple[Move, ...]:
        """What became of the owner's sets after the move numbered `since`, in order, at most `limit`."""
        return self._held_in.moves(owner, since=since, limit=limit)

    def moved(self, owner: str) -> int:
        """The number of the owner's latest move."""
        return self._held_in.moved(owner)

    def features(self, owner: str, ids: Sequence[str]) -> tuple[Features | None, ...]:
        """What the index knows of these memories, in the order asked; None where there is no memory."""
        return self._held_in.features(owner, ids)

    def _forget_held(self) -> None:
        with self._kept_guard:
            self._kept.clear()

    @property
    def _held_in(self) -> HeldIn:
        from germane.stores.relational.working_sets.sets import HeldIn  # noqa: PLC0415 - Most processes hold nothing.

        return HeldIn(self._connections, self._kept, self._kept_guard)
