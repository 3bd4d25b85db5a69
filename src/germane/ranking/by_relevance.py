"""Ranks and gates hundreds of candidates by relevance, and parts them among the sections of a plan."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from germane.model.context import Ranked
from germane.model.learning import LearningStatus, Seen, Weights
from germane.model.memory import Memory, Status
from germane.model.plan import Fusion
from germane.model.query import Candidate, CandidateTable, Order, Query, SearchResult, TimeRange
from germane.protocols import Scorer
from germane.ranking.relevance import FEW, Gated, gate, outside, parts_of, rank
from germane.ranking.scores import (
    Boosts,
    asks_for_history,
    lower_obsolete_in_columns,
    multiply_in_columns,
    sums_of,
    with_associations,
)
from germane.ranking.signals import Signals, history_factors, identifiers_in, signals_in, signals_of
from germane.ranking.similarity import Ranking, later

__all__ = ["Best", "Known", "Scoring", "by_relevance", "ranked_at_once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What scores are made of beside signals, each as for `germane.ranking.relevance.rank`.

    `associated` says by memory id how near one is to what was found.
    """

    now: datetime
    method: Fusion = "floored"
    scorer: Scorer | None = None
    prefer: TimeRange | None = None
    order: Order | None = None
    without: Collection[str] = ()
    weights: Weights | None = None
    boosts: Boosts | None = None
    associated: Mapping[str, float] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether a score is the sum of what each signal says, and what multiplies into that."""
        others = self.scorer is not None or self.order is not None or self.without or self.associated
        return self.method == "floored" and not others


def by_relevance(
    sections: Sequence[Sequence[Candidate]],
    scoring: Scoring,
    *,
    found: SearchResult,
    query: Query,
    gated: bool = False,
    exempt: Collection[str] = (),
) -> list[Gated]:
    """The candidates of each section in rank order, and those that have nothing to do with the question.

    All are ranked together, so that their scores compare across sections. What is associated passes the gate,
    as do memories whose ids are `exempt`. Raises as `rank` does.
    """
    if scoring.plain:
        at_once = ranked_at_once(
            sections,
            found=found,
            query=query,
            now=scoring.now,
            prefer=scoring.prefer,
            weights=scoring.weights,
            boosts=scoring.boosts,
            gated=gated,
            exempt=exempt,
        )
        if at_once is not None:
            return at_once
    ranked = _ranked([one for section in sections for one in section], scoring, found, query)
    passed = Gated(passed=ranked)
    if gated:
        passed = gate(
            ranked,
            prefer=scoring.prefer,
            exempt=frozenset(exempt) | scoring.associated.keys(),
            few=found.admitted <= FEW,
            information=query.information,
            least_cosine=query.least_cosine,
        )
    return _split_sections(sections, passed)


def _ranked(
    candidates: Sequence[Candidate], scoring: Scoring, found: SearchResult, query: Query
) -> tuple[Ranked, ...]:
    ranked = rank(
        candidates,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        now=scoring.now,
        method=scoring.method,
        scorer=scoring.scorer,
        query=query,
        prefer=scoring.prefer,
        order=scoring.order,
        without=scoring.without,
        weights=scoring.weights,
        boosts=scoring.boosts,
    )
    return with_associations(ranked, scoring.associated) if scoring.associated else ranked


def _split_sections(sections: Sequence[Sequence[Candidate]], passed: Gated) -> list[Gated]:
    """What each section has of a ranking, in the same order; of one that several have, the last."""
    section_of = {one.memory.ref: number for number, section in enumerate(sections) for one in section}
    kept: list[list[Ranked]] = [[] for _ in sections]
    dropped: list[list[Ranked]] = [[] for _ in sections]
    for parted, several in ((kept, passed.passed), (dropped, passed.dropped)):
        for one in several:
            parted[section_of[one.candidate.memory.ref]].append(one)
    return [
        Gated(passed=tuple(here), dropped=tuple(out), unsure=passed.unsure)
        for here, out in zip(kept, dropped, strict=True)
    ]


# Ranks and gates hundreds of candidates in columns, without an object for each.
#
# Pure: `now` is an argument. The result is what `germane.ranking.relevance.rank` and
# `germane.ranking.relevance.gate` make of the same candidates.

_SUPERSEDED = Status.SUPERSEDED


def ranked_at_once(
    sections: Sequence[Sequence[Candidate]],
    *,
    found: SearchResult,
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
    tables = [CandidateTable.of(section) for section in sections]
    memories = [memory for table in tables for memory in table.memories]
    signals = signals_of(tables)
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
    if commits := history_factors(memories, query.text):
        history, sums = np.full(len(memories), np.nan), sums_of(parts, len(memories))
        for place, factor in commits.items():
            history[place] = factor * sums[place]
        parts = {**parts, "history": history}
    if not passes.any() or any(np.isinf(part).any() for part in parts.values()):
        return None
    judged = _Verdict(tables, memories, parts, now, boosts, lowers=not asks_for_history(query.text))
    dropped = cache(lambda: judged.rankings(~passes))
    return [
        Gated(passed=kept, dropped=later(len(table) - len(kept), partial(_at, dropped, number)))
        for number, (table, kept) in enumerate(zip(tables, judged.rankings(passes), strict=True))
    ]


def _each_alone(memories: Sequence[Memory], signals: Signals) -> bool:
    """Whether each has a score of its own, and each stands there once."""
    if np.isnan(signals.lexical).all() and np.isnan(signals.semantic).all():
        return False
    if any(one.status is _SUPERSEDED for one in memories):
        return False
    return len({one.ref for one in memories}) == len(memories)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The candidates of all sections, one section after the other, and what their scores are made of."""

    tables: Sequence[CandidateTable]
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
        starts = list(accumulate(map(len, self.tables), initial=0))

        def ranking(start: int, end: int, table: CandidateTable) -> Ranking:
            numbers = range(bisect_left(places, start), bisect_left(places, end))
            order = _best_first(numbers, scores, memories)

            def ranked(rank: int) -> Ranked:
                number = order[rank]
                values = {name: part.item(number) for name, part in parts.items()}
                return Ranked(
                    candidate=table[places[number] - start],
                    score=scores[number],
                    parts={name: value for name, value in values.items() if not math.isnan(value)},
                )

            return Ranking([memories[each] for each in order], [scores[each] for each in order], ranked)

        return [ranking(*ends, table) for ends, table in zip(pairwise(starts), self.tables, strict=True)]


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


# Ranks and gates the candidates of a search by their signals alone, so that only the best are read.
#
# The result is what `germane.ranking.relevance.rank` and `germane.ranking.relevance.gate` make of the same
# candidates.

Known = Callable[[LearningStatus], "tuple[Weights | None] | None"]
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
