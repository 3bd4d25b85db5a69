"""Ranks and gates the candidates of a search by their signals alone, so that only the best are read.

Level: ranking (imports model and ranking only; never retrieval or stores). The result is what
`germane.ranking.relevance.rank` and `germane.ranking.gate.gate` make of the same candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from germane.model.learning import LearningState, Weights
from germane.model.picking import Seen
from germane.model.query import Candidate, Query, TimeRange
from germane.model.trace import Ranked
from germane.ranking.composite import sums_of
from germane.ranking.gate import FEW, outside
from germane.ranking.in_columns import Signals, signals_in
from germane.ranking.relevance import parts_of

__all__ = ["Best", "Known"]

Known = Callable[[LearningState], "tuple[Weights | None] | None"]
"""The weights that apply while learning stands so; None where examples would have to be read first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Best:
    """Picks the `limit` best of a question about memories that stand alone. One object serves one search.

    It leaves to `rank` what their signals can't decide: turns of dialogue, few memories, no relevance at all,
    a search of which the gate would leave nothing, and weights that aren't known yet.
    """

    def __init__(
        self, query: Query, *, limit: int, gated: bool, known: Known, prefer: TimeRange | None = None
    ) -> None:
        """`prefer` is the time that the question names."""
        self.weights: Weights | None = None
        self._query = query
        self._limit = limit
        self._gated = gated
        self._known = known
        self._prefer = prefer
        self._scores: list[float] = []
        self._parts: list[dict[str, float]] = []

    def __call__(self, seen: Seen) -> NDArray[np.int64] | None:
        """The places of the best, best first; None where more than the signals decides."""
        signals = signals_in(seen.signals, len(seen.ids))
        known = None if seen.learning is None else self._known(seen.learning)
        if signals is None or known is None or (self._gated and seen.admitted <= FEW):
            return None
        if np.isnan(signals.lexical).all() and np.isnan(signals.semantic).all():
            return None
        (self.weights,) = known
        preferred = None if self._prefer is None else _inside(self._prefer, seen.created)
        places = self._passing(signals, preferred)
        if not len(places):
            return None
        columns = parts_of(
            signals,
            lexical_bound=seen.lexical_bound,
            query=self._query,
            weights=self.weights,
            preferred=preferred,
        )
        scores = sums_of({name: column[places] for name, column in columns.items()}, len(places))
        best = _first(scores, seen.created[places], seen.ids[places], self._limit)
        chosen = places[best]
        self._scores = scores[best].tolist()
        self._parts = _by_place({name: column[chosen] for name, column in columns.items()})
        return chosen

    def ranked(self, candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
        """The candidates that were picked last, in their order, with their scores."""
        return tuple(
            Ranked(candidate=candidate, score=score, parts=parts)
            for candidate, score, parts in zip(candidates, self._scores, self._parts, strict=True)
        )

    def _passing(self, signals: Signals, preferred: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The places of what the gate lets pass; none where it would have to keep one all the same."""
        if not self._gated:
            return np.arange(len(signals.lexical))
        out = outside(
            signals,
            information=self._query.information,
            least_cosine=self._query.least_cosine,
            preferred=preferred,
        )
        return np.flatnonzero(~out)


def _inside(time: TimeRange, created: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these moments lie in a time."""
    inside = np.ones(len(created), dtype=np.bool_)
    if time.start is not None:
        inside &= created >= (time.start - _EPOCH) // _MICROSECOND
    if time.end is not None:
        inside &= created < (time.end - _EPOCH) // _MICROSECOND
    return inside


def _first(
    scores: NDArray[np.float64], created: NDArray[np.int64], ids: NDArray[np.bytes_], limit: int
) -> NDArray[np.int64]:
    """The places of the `limit` best: by score, then the newer, then the greater id."""
    last = np.partition(scores, len(scores) - limit)[len(scores) - limit] if len(scores) > limit else -np.inf
    among = np.flatnonzero(scores >= last)
    order: NDArray[np.int64] = among[np.lexsort((ids[among], created[among], scores[among]))]
    return order[::-1][:limit]


def _by_place(columns: Mapping[str, NDArray[np.float64]]) -> list[dict[str, float]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {name: value for name, value in zip(columns, row, strict=True) if not math.isnan(value)}
        for row in rows
    ]
