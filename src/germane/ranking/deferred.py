"""A ranking whose candidates are made when they are asked for: of hundreds, few are ever looked at.

Level: ranking (imports model only; never retrieval or stores). Pure: the same candidate is made each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from germane.model.deferred import Deferred
from germane.model.memory import Memory
from germane.model.trace import Ranked

__all__ = ["Ranking", "at_places", "later", "memories_of"]


class Ranking(Deferred[Ranked]):
    """Candidates in rank order, each with its score and its parts, made when it is asked for.

    `memories` and `scores` are theirs.
    """

    __slots__ = ("memories", "scores")

    def __init__(
        self, memories: Sequence[Memory], scores: Sequence[float], make: Callable[[int], Ranked]
    ) -> None:
        """`make` makes the candidate at a place of the ranking."""
        super().__init__(len(memories), make)
        self.memories, self.scores = memories, scores

    def at(self, places: Sequence[int]) -> Ranking:
        """The candidates at these places, in the order in which they are named."""
        make = self._make
        return Ranking(
            [self.memories[place] for place in places],
            [self.scores[place] for place in places],
            lambda number: make(places[number]),
        )


def later(count: int, ranking: Callable[[], Sequence[Ranked]]) -> Sequence[Ranked]:
    """A ranking of so many candidates that is made when one of them is first looked at."""
    made = cache(ranking)
    return Deferred(count, lambda place: made()[place])


def memories_of(ranked: Sequence[Ranked]) -> Sequence[Memory]:
    """The memories of a ranking, in its order."""
    return ranked.memories if isinstance(ranked, Ranking) else [one.candidate.memory for one in ranked]


def at_places(ranked: Sequence[Ranked], places: Sequence[int]) -> Sequence[Ranked]:
    """Those at these places, which ascend; none is made for it."""
    if len(places) == len(ranked):
        return ranked
    return ranked.at(places) if isinstance(ranked, Ranking) else tuple([ranked[place] for place in places])
