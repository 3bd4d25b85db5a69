"""Ranks and gates hundreds of candidates in columns, without an object for each.

Level: ranking (imports model and ranking only; never retrieval or stores). Pure: `now` is an argument. The
result is what `germane.ranking.relevance.rank` and `germane.ranking.gate.gate` make of the same candidates.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from germane.model.learning import Weights
from germane.model.memory import Memory, Status
from germane.model.query import Candidate, Found, Query, TimeRange
from germane.model.slate import Slate
from germane.model.trace import Ranked
from germane.ranking.composite import Boosts, multiply_in_columns, sums_of
from germane.ranking.deferred import Ranking, later
from germane.ranking.gate import FEW, Gated, outside
from germane.ranking.history import SHARE_OF_COMMITS, commits_among
from germane.ranking.identifiers import identifiers_in
from germane.ranking.in_columns import Signals, signals_of
from germane.ranking.relevance import parts_of
from germane.ranking.standing import asks_for_history, lower_obsolete_in_columns

__all__ = ["ranked_at_once"]

_SUPERSEDED = Status.SUPERSEDED


def ranked_at_once(
    sections: Sequence[Sequence[Candidate]],
    *,
    found: Found,
    query: Query,
    now: datetime,
    prefer: TimeRange | None = None,
    weights: Weights | None = None,
    boosts: Boosts | None = None,
    gated: bool = True,
    exempt: Collection[str] = (),
) -> list[Gated] | None:
    """The candidates of each section in rank order, by the method "floored", all ranked and gated together.

    `exempt` are ids of memories that pass the gate. What doesn't pass it is ranked when it is looked at. None
    where more has a say than what each is by itself: turns of dialogue, newer versions, no relevance at all,
    few memories, an identifier in the question, a gate that would leave nothing; and where a signal or a part
    of a score is no number.
    """
    slates = [Slate.of(section) for section in sections]
    memories = [memory for slate in slates for memory in slate.memories]
    signals = signals_of(slates)
    if identifiers_in(query.text):
        return None
    if signals is None or not _each_alone(memories, signals) or (gated and found.admitted <= FEW):
        return None
    preferred = None if prefer is None else np.array([one.created_at in prefer for one in memories])
    passes = np.ones(len(memories), dtype=np.bool_)
    if gated:
        passes = ~outside(
            signals,
            information=query.information,
            least_cosine=query.least_cosine,
            preferred=preferred,
            exempt=np.array([one.ref in exempt for one in memories]) if exempt else None,
        )
    parts = parts_of(
        signals, lexical_bound=found.lexical_bound, query=query, weights=weights, preferred=preferred
    )
    if commits := commits_among(memories, query.text):
        history = np.full(len(memories), np.nan)
        history[commits] = (SHARE_OF_COMMITS - 1) * sums_of(parts, len(memories))[commits]
        parts = {**parts, "history": history}
    if not passes.any() or any(np.isinf(part).any() for part in parts.values()):
        return None
    judged = _Judged(slates, memories, parts, now, boosts, lowers=not asks_for_history(query.text))
    dropped = cache(lambda: judged.rankings(~passes))
    return [
        Gated(kept=kept, dropped=later(len(slate) - len(kept), partial(_at, dropped, number)))
        for number, (slate, kept) in enumerate(zip(slates, judged.rankings(passes), strict=True))
    ]


def _each_alone(memories: Sequence[Memory], signals: Signals) -> bool:
    """Whether each has a score of its own, and each stands there once."""
    if np.isnan(signals.lexical).all() and np.isnan(signals.semantic).all():
        return False
    if any(one.status is _SUPERSEDED for one in memories):
        return False
    return len({one.ref for one in memories}) == len(memories)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The candidates of all sections, one section after the other, and what their scores are made of."""

    slates: Sequence[Slate]
    memories: Sequence[Memory]
    parts: Mapping[str, NDArray[np.float64]]
    now: datetime
    boosts: Boosts | None
    lowers: bool

    def rankings(self, chosen: NDArray[np.bool_]) -> list[Ranking]:
        """Those that are chosen, section by section in rank order: by score, then the newer, then the id."""
        places: list[int] = np.flatnonzero(chosen).tolist()
        memories = [self.memories[place] for place in places]
        parts = {name: part[chosen] for name, part in self.parts.items()}
        if self.boosts is not None:
            multiply_in_columns(memories, parts, now=self.now, boosts=self.boosts)
        if self.lowers:
            lower_obsolete_in_columns(memories, parts)
        scores: list[float] = sums_of(parts, len(memories)).tolist()
        starts = list(accumulate(map(len, self.slates), initial=0))

        def ranking(start: int, end: int, slate: Slate) -> Ranking:
            numbers = range(bisect_left(places, start), bisect_left(places, end))
            order = _best_first(numbers, scores, memories)

            def ranked(rank: int) -> Ranked:
                number = order[rank]
                values = {name: part.item(number) for name, part in parts.items()}
                return Ranked(
                    candidate=slate[places[number] - start],
                    score=scores[number],
                    parts={name: value for name, value in values.items() if not math.isnan(value)},
                )

            return Ranking([memories[each] for each in order], [scores[each] for each in order], ranked)

        return [ranking(*ends, slate) for ends, slate in zip(pairwise(starts), self.slates, strict=True)]


def _best_first(numbers: Sequence[int], scores: Sequence[float], memories: Sequence[Memory]) -> list[int]:
    order = sorted(numbers, key=scores.__getitem__, reverse=True)
    if len({scores[number] for number in numbers}) < len(numbers):
        order.sort(
            key=lambda number: (scores[number], memories[number].created_at, memories[number].ref),
            reverse=True,
        )
    return order


def _at(rankings: Callable[[], Sequence[Ranking]], section: int) -> Ranking:
    return rankings()[section]
