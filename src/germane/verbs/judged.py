"""How well an agent judges itself, read anew when its memory has changed.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from germane.kinds import Kinds
from germane.model.judgement import Judgement
from germane.model.memory import Memory, Outcome, Status
from germane.model.query import Filter, Order, Query, Slice
from germane.protocols import Recording, Store
from germane.ranking.calibration import calibrated

__all__ = ["KnownJudgement", "Sought"]

_ALL: Final = 10**9
_SAY_NOTHING: Final = (Outcome.PENDING, Outcome.ABANDONED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a search has to bring so that a judgement can be told: a slice, unless it is `known` already.

    `point` is that to which the agent's log had come before; None where the store doesn't tell.
    """

    slice: Slice | None = None
    known: Judgement | None = None
    point: Mapping[str, int] | None = None


class KnownJudgement:
    """The latest judgement, by agent. Threads may share it: at worst decisions are read twice.

    It is never stored, and holds for the very point to which the agent's log had come.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, int], Judgement]] = {}

    def sought(self, store: Store, agent: str, kinds: Kinds) -> Sought:
        """What is needed to tell what all decisions that stand say, archived ones included.

        A store that doesn't tell how far its log has come is asked for them each time.
        """
        decisions = tuple(kind.name for kind in kinds if kind.lifecycle == "decision")
        if not decisions:
            return Sought(known=calibrated(()))
        point = store.point(agent) if isinstance(store, Recording) else None
        known = self._known.get(agent)
        if known is not None and known[0] == point:
            return Sought(known=known[1])
        where = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED), without=_SAY_NOTHING)
        # A search keeps in memory what it has read, where a listing reads all decisions every time.
        everything = Slice(kinds=decisions, order=Order.NEWEST, where=where, limit=_ALL)
        return Sought(slice=everything, point=point)

    def told(self, agent: str, sought: Sought, found: Iterable[Memory]) -> Judgement:
        """The judgement by what the slice brought: that of `engine.calibration()`."""
        if sought.known is not None:
            return sought.known
        own = (memory for memory in found if memory.agent == agent)
        judgement = calibrated(sorted(own, key=lambda memory: memory.id))
        if sought.point is not None:
            # Searched after the point: a decision of later makes the next call read again, none is missed.
            self._known[agent] = sought.point, judgement
        return judgement

    def of(self, store: Store, agent: str, kinds: Kinds) -> Judgement:
        """The judgement, by a search of its own where it isn't known."""
        sought = self.sought(store, agent, kinds)
        if sought.slice is None:
            return self.told(agent, sought, ())
        (found,) = store.search(agent, Query(slices=(sought.slice,))).slices
        return self.told(agent, sought, (one.memory for one in found))
