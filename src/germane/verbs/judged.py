"""How well an agent judges itself, read anew when its memory has changed.

Level: verbs.
"""

from __future__ import annotations

from dataclasses import replace
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
_ANY: Final = Filter(statuses=())


class KnownJudgement:
    """The latest judgement, by agent. Threads may share it: at worst decisions are read twice.

    It is never stored, and holds while a search gives the stamp of the one that brought it. It counts the
    decisions that the caller's filter admits, whatever its time range and statuses; one by a filter that
    says whose or which they are holds for no other call.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], Judgement]] = {}

    def sought(self, agent: str, kinds: Kinds, where: Filter) -> Slice | None:
        """What a search has to bring besides for `told`: all decisions that stand, archived ones included.

        None where there are none, or the latest judgement may still hold: what else is searched for says
        whether it does.
        """
        if _binds(where) is None and agent in self._known:
            return None
        return _decisions(kinds, where)

    def told(self, agent: str, found: Found, place: int, where: Filter) -> Judgement:
        """The judgement by what the slice at that place brought.

        It is that of `engine.calibration()` where the filter excludes none.
        """
        shared = _binds(where) is None
        known = self._known.get(agent) if shared else None
        if known is not None and known[0] == found.stamp:
            return known[1]
        own = (one.memory for one in found.slices[place] if one.memory.agent == agent)
        judgement = calibrated(sorted(own, key=lambda memory: memory.ref))
        if found.stamp is not None and shared:
            self._known[agent] = found.stamp, judgement
        return judgement

    def of(
        self, store: Store, agent: str, kinds: Kinds, where: Filter, *, found: Found | None = None
    ) -> Judgement:
        """The judgement, by a search of its own unless what was `found` says that the latest still holds."""
        known = self._known.get(agent) if _binds(where) is None else None
        if known is not None and found is not None and known[0] == found.stamp:
            return known[1]
        decisions = _decisions(kinds, where)
        if decisions is None:
            return calibrated(())
        return self.told(agent, store.search(agent, Query(slices=(decisions,))), 0, where)


def _decisions(kinds: Kinds, where: Filter) -> Slice | None:
    deciding = tuple(kind.name for kind in kinds if kind.lifecycle == "decision")
    standing = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED), without=_SAY_NOTHING)
    # A search keeps in memory what it has read, where a listing reads all decisions every time.
    return (
        Slice(kinds=deciding, order=Order.NEWEST, where=standing, also=_binds(where), limit=_ALL)
        if deciding
        else None
    )


def _binds(where: Filter) -> Filter | None:
    """What a filter says of whose or which memories these are; None where it says nothing of it."""
    said = replace(where, when=None, statuses=(), without=())
    return None if said == _ANY else said
