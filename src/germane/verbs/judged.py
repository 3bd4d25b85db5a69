"""How well an agent judges itself, read anew when its memory has changed.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.kinds import Kinds
from germane.model.judgement import Judgement
from germane.model.memory import Outcome, Status
from germane.model.query import Filter, Order, Query, Slice
from germane.protocols import Recording, Store
from germane.ranking.calibration import calibrated

__all__ = ["KnownJudgement"]

_ALL: Final = 10**9
_SAY_NOTHING: Final = (Outcome.PENDING, Outcome.ABANDONED)


class KnownJudgement:
    """The latest judgement, by agent. Threads may share it: at worst decisions are read twice.

    It is never stored, and holds for the very point to which the agent's log had come.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, int], Judgement]] = {}

    def of(self, store: Store, agent: str, kinds: Kinds) -> Judgement:
        """What all decisions that stand say, archived ones included: that of `engine.calibration()`.

        A store that doesn't tell how far its log has come is asked each time.
        """
        point = store.point(agent) if isinstance(store, Recording) else None
        known = self._known.get(agent)
        if known is not None and known[0] == point:
            return known[1]
        judgement = _judgement(store, agent, kinds)
        if point is not None:
            # Read after the point: a decision of later makes the next call read again, none is missed.
            self._known[agent] = point, judgement
        return judgement


def _judgement(store: Store, agent: str, kinds: Kinds) -> Judgement:
    decisions = tuple(kind.name for kind in kinds if kind.lifecycle == "decision")
    if not decisions:
        return calibrated(())
    where = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED), without=_SAY_NOTHING)
    # A search keeps in memory what it has read, where a listing reads all decisions every time.
    everything = Slice(kinds=decisions, order=Order.NEWEST, where=where, limit=_ALL)
    (found,) = store.search(agent, Query(slices=(everything,))).slices
    return calibrated(sorted((one.memory for one in found), key=lambda memory: memory.id))
