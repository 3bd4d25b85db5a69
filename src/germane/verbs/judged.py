"""How well an agent judges itself, read anew when its memory has changed.

Level: verbs.
"""

from __future__ import annotations

from typing import Final

from germane.kinds import Kinds
from germane.model.judgement import Judgement
from germane.model.memory import Outcome, Status
from germane.model.query import Filter, Found, Order, Query, Slice
from germane.protocols import Store
from germane.ranking.calibration import calibrated

__all__ = ["KnownJudgement"]

_ALL: Final = 10**9
_SAY_NOTHING: Final = (Outcome.PENDING, Outcome.ABANDONED)


class KnownJudgement:
    """The latest judgement, by agent. Threads may share it: at worst decisions are read twice.

    It is never stored, and holds while a search gives the stamp of the one that brought it.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], Judgement]] = {}

    def sought(self, agent: str, kinds: Kinds) -> Slice | None:
        """What a search has to bring besides for `told`: all decisions that stand, archived ones included.

        None where there are none, or the latest judgement may still hold: what else is searched for says
        whether it does.
        """
        return None if agent in self._known else _decisions(kinds)

    def told(self, agent: str, found: Found, place: int) -> Judgement:
        """The judgement by what the slice at that place brought: that of `engine.calibration()`."""
        known = self._known.get(agent)
        if known is not None and known[0] == found.stamp:
            return known[1]
        own = (one.memory for one in found.slices[place] if one.memory.agent == agent)
        judgement = calibrated(sorted(own, key=lambda memory: memory.ref))
        if found.stamp is not None:
            self._known[agent] = found.stamp, judgement
        return judgement

    def of(self, store: Store, agent: str, kinds: Kinds, *, found: Found | None = None) -> Judgement:
        """The judgement, by a search of its own unless what was `found` says that the latest still holds."""
        known = self._known.get(agent)
        if known is not None and found is not None and known[0] == found.stamp:
            return known[1]
        decisions = _decisions(kinds)
        if decisions is None:
            return calibrated(())
        return self.told(agent, store.search(agent, Query(slices=(decisions,))), 0)


def _decisions(kinds: Kinds) -> Slice | None:
    deciding = tuple(kind.name for kind in kinds if kind.lifecycle == "decision")
    where = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED), without=_SAY_NOTHING)
    # A search keeps in memory what it has read, where a listing reads all decisions every time.
    return Slice(kinds=deciding, order=Order.NEWEST, where=where, limit=_ALL) if deciding else None
