"""Ranks memories by kind, then by place, relevance and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from germane.lifecycle import is_obsolete
from germane.model.context import Ranked, TraceNote, short_id
from germane.model.learning import Weights
from germane.model.memory import Memory, Status
from germane.model.plan import KindPriority, TaskContext
from germane.model.query import Candidate, CandidateTable, Query, SearchResult
from germane.protocols import Scorer
from germane.ranking.relevance import Gated, gate, outside, parts_of, rank
from germane.ranking.scores import OBSOLETE, asks_for_history
from germane.ranking.signals import Signals, identifiers_in, signals_of
from germane.ranking.similarity import Ranking
from germane.scopes import closeness, closeness_to

__all__ = [
    "MOST_OUTCOME",
    "MOST_STALE",
    "NOTHING_KNOWN",
    "OBSOLETE_PENALTY",
    "ByKind",
    "KnownRelevance",
    "by_kind",
    "each_once",
    "in_precedence",
    "kinds_first",
    "kinds_first_notes",
]

_SUPERSEDED = Status.SUPERSEDED


def by_kind(
    sections: Sequence[Sequence[Candidate]],
    how: KindPriority,
    *,
    found: SearchResult,
    query: Query,
    work: TaskContext,
    now: datetime,
    scorer: Scorer | None = None,
    gated: bool = True,
    weights: Weights | None = None,
) -> list[Gated]:
    """The candidates of each section in rank order, each chain once; none is dropped.

    What the gate would leave out has no relevance here, so that among it the latest comes first.
    """
    kept = each_once([CandidateTable.of(section) for section in sections])
    known: Sequence[KnownRelevance] = [NOTHING_KNOWN for _ in kept]
    if how.relevance and found.by_relevance:
        in_columns = gated and scorer is None and not identifiers_in(query.text)
        signals = signals_of(kept) if in_columns else None
        alone = None if signals is None else _passable(kept, signals, query.least_cosine)
        if signals is not None and alone is not None:
            known = _known_at_once(
                kept, signals, alone, lexical_bound=found.lexical_bound, query=query, weights=weights
            )
        else:
            known = _known_one_by_one(
                kept, found=found, query=query, now=now, scorer=scorer, gated=gated, weights=weights
            )
    if asks_for_history(query.text):
        how = replace(how, obsolete_last=False)
    return [
        Gated(passed=kinds_first(section, how, known=each, work=work, now=now))
        for section, each in zip(kept, known, strict=True)
    ]


def _passable(
    kept: Sequence[CandidateTable], signals: Signals, least_cosine: float
) -> NDArray[np.bool_] | None:
    """Which the gate could let pass.

    None where more than their signals has a say in their scores: a newer version, or their age alone.
    """
    may_pass = _may_pass(signals, least_cosine)
    memories = [one for section in kept for one in section.memories]
    replaced = [place for place, one in enumerate(memories) if one.status is _SUPERSEDED]
    those = signals.at(may_pass)
    none = np.isnan(those.lexical).all() and np.isnan(those.semantic).all()
    return None if none or may_pass[replaced].any() else may_pass


def _may_pass(signals: Signals, least_cosine: float) -> NDArray[np.bool_]:
    """Which the gate could let pass: they share a word with the task, or are near to it in meaning."""
    shares = (np.nan_to_num(signals.coverage) != 0) | (np.nan_to_num(signals.lexical) != 0)
    passing: NDArray[np.bool_] = shares | (np.nan_to_num(signals.semantic) >= least_cosine)
    return passing


def _known_at_once(
    kept: Sequence[CandidateTable],
    signals: Signals,
    judged: NDArray[np.bool_],
    *,
    lexical_bound: float,
    query: Query,
    weights: Weights | None,
) -> list[KnownRelevance]:
    """What relevance says of the candidates of each section, where each stands alone."""
    those = signals.at(judged)
    out = outside(those, information=query.information, least_cosine=query.least_cosine)
    parts = parts_of(those, lexical_bound=lexical_bound, query=query, weights=weights)
    columns: dict[str, NDArray[np.float64]] = {}
    for name, part in parts.items():
        columns[name] = np.full(len(judged), np.nan)
        columns[name][judged] = np.where(out, np.nan, part)
    ends = np.cumsum([0, *map(len, kept)]).tolist()
    return [
        KnownRelevance.in_columns({name: column[start:end] for name, column in columns.items()})
        for start, end in pairwise(ends)
    ]


def _known_one_by_one(
    kept: Sequence[CandidateTable],
    *,
    found: SearchResult,
    query: Query,
    now: datetime,
    scorer: Scorer | None,
    gated: bool,
    weights: Weights | None,
) -> list[KnownRelevance]:
    """The same by ranking them all, whatever they are."""
    everything = [
        one for section in kept for one in section if not gated or _could_pass(one, query.least_cosine)
    ]
    ranked = rank(
        everything,
        lexical_bound=found.lexical_bound,
        now=now,
        scorer=scorer,
        query=query,
        weights=weights,
        # The order by kinds sees to these by itself.
        without=(OBSOLETE,),
    )
    passed = (
        gate(ranked, information=query.information, least_cosine=query.least_cosine)
        if gated
        else Gated(passed=ranked)
    )
    relevant = {} if passed.unsure else {one.memory.ref: one.parts for one in passed.passed}
    return [KnownRelevance.by_id(section, relevant) for section in kept]


def _could_pass(candidate: Candidate, least_cosine: float) -> bool:
    """The same as `_may_pass` says, of one with any signals."""
    signals = candidate.signals
    return bool(signals.get("coverage") or signals.get("lexical")) or (
        signals.get("semantic", 0.0) >= least_cosine
    )


# Ranks memories by kind, then by place, relevance and time: what a project knows, for a task.
#
# The order of kinds and the tie-break by the time of the last update are those of the decision record that
# the scoped plan comes from. Between them stand the nearest path, and a score: what a memory has to do
# with the task, how work turned out with it, and whether it may be out of date.

_EARLIEST = datetime.min.replace(tzinfo=UTC)
MOST_OUTCOME = 0.5
"""What all success or failure there ever was can add or take: as much as half of a full match of words."""

MOST_STALE = 0.5
"""What being out of date can take: part of it for a file that changed, part for age."""

OBSOLETE_PENALTY = 1.0
"""What no longer holding takes, as a part of the score; it comes last within its kind whatever the score."""

_A_KIND = 10.0
"""What a kind counts more than the next: more than all that can be said of a memory within its kind."""
_CHANGED, _AGE = 0.3, 0.2
_NAMED = 5
_ID = attrgetter("ref")
_TIMES = attrgetter("updated_at", "created_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRelevance:
    """What is known of candidates' relevance: numbers to add to each one's score, and the parts by place.

    Each of `addends` has a number for every candidate, 0 where it has none of that part.
    """

    addends: Sequence[Sequence[float]]
    parts: Callable[[int], Mapping[str, float]]

    @classmethod
    def in_columns(cls, columns: Mapping[str, NDArray[np.float64]]) -> KnownRelevance:
        """By columns of parts; NaN stands for a part that a candidate doesn't have."""
        lists = {name: column.tolist() for name, column in columns.items()}
        return cls(
            addends=[np.where(np.isnan(column), 0.0, column).tolist() for column in columns.values()],
            parts=lambda place: {
                name: column[place] for name, column in lists.items() if not math.isnan(column[place])
            },
        )

    @classmethod
    def by_id(cls, candidates: CandidateTable, relevant: Mapping[str, Mapping[str, float]]) -> KnownRelevance:
        """By the parts of those that have to do with the task."""
        parts = [relevant.get(one.ref, {}) for one in candidates.memories]
        names = dict.fromkeys(name for each in parts for name in each)
        return cls(
            addends=[[each.get(name, 0.0) for each in parts] for name in names], parts=parts.__getitem__
        )


NOTHING_KNOWN = KnownRelevance(addends=(), parts=lambda _: {})
"""Where relevance isn't asked for, or says nothing."""


class ByKind(Ranking):
    """A ranking by kinds, which tells who has a part without making any of them."""

    __slots__ = ("_places", "_rest")

    def __init__(self, made: _Made, places: Sequence[int]) -> None:
        """`places` are those of the candidates, in rank order."""
        super().__init__(
            [made.candidates.memories[place] for place in places],
            [made.scores[place] for place in places],
            lambda number: made.ranked(places[number]),
        )
        self._places, self._rest = places, made.rest

    def having(self, part: str) -> list[Memory]:
        """The memories with this part beside kind and relevance."""
        held = self._rest[part]
        return [one for one, place in zip(self.memories, self._places, strict=True) if place in held]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """All that scores are made of, by the places of the candidates; `rest` are parts that few have."""

    candidates: CandidateTable
    kinds: Sequence[float]
    known: KnownRelevance
    rest: Mapping[str, Mapping[int, float]]
    scores: Sequence[float]

    def ranked(self, place: int) -> Ranked:
        parts = {"kind": self.kinds[place], **self.known.parts(place)}
        for name, values in self.rest.items():
            if place in values:
                parts[name] = values[place]
        return Ranked(candidate=self.candidates[place], score=self.scores[place], parts=parts)


def kinds_first(
    candidates: CandidateTable,
    how: KindPriority,
    *,
    known: KnownRelevance = NOTHING_KNOWN,
    work: TaskContext,
    now: datetime,
) -> ByKind:
    """The candidates in the order of `in_precedence`, with the parts of their scores.

    The parts are `kind`, those of relevance, `path` (how closely its places fit the nearest path, from 0 to
    1), `outcome`, `stale` and `obsolete`. The order of the candidates doesn't matter.
    """
    memories = candidates.memories
    given, others = how.priorities, how.others
    priorities = [given.get(one.kind, others) for one in memories]
    by_priority = {each: _A_KIND * (others - each) for each in set(priorities)}
    kinds = [by_priority[each] for each in priorities]
    rest = {
        "path": _paths(memories, work),
        "outcome": _outcomes(memories, work),
        "stale": _stale(memories, how, work, now),
        "obsolete": _obsolete(memories, how),
    }
    addends = [kinds, *known.addends, *(_column(each, len(memories)) for each in rest.values() if each)]
    # The sum is exact, so that numbers of nothing don't change it.
    scores = kinds if len(addends) == 1 else list(map(math.fsum, zip(*addends, strict=True)))
    made = _Made(candidates=candidates, kinds=kinds, known=known, rest=rest, scores=scores)
    paths, obsolete = (_column(rest[name], len(memories)) for name in ("path", "obsolete"))
    return ByKind(made, _ordered(memories, priorities, obsolete, paths, scores))


def _ordered(
    memories: Sequence[Memory],
    priorities: Sequence[int],
    obsolete: Sequence[float],
    paths: Sequence[float],
    scores: Sequence[float],
) -> list[int]:
    """The places in the order that `in_precedence` gives; times are read where all else is the same."""
    codes = {priority: code for code, priority in enumerate(sorted(set(priorities)))}
    keys = (
        -np.array(scores, dtype=np.float64),
        -np.array(paths, dtype=np.float64),
        -np.array(obsolete, dtype=np.float64),
        np.array([codes[each] for each in priorities], dtype=np.int64),
    )
    order = np.lexsort(keys)
    places: list[int] = order.tolist()
    differs = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
    starts = [0, *(np.flatnonzero(differs) + 1).tolist(), len(places)]
    for start, end in pairwise(starts):
        if end - start > 1:
            tied = sorted(places[start:end], key=lambda place: _ID(memories[place]))
            tied.sort(key=lambda place: _TIMES(memories[place]), reverse=True)
            places[start:end] = tied
    return places


def _column(values: Mapping[int, float], count: int) -> list[float]:
    column = [0.0] * count
    for place, value in values.items():
        column[place] = value
    return column


def _paths(memories: Sequence[Memory], work: TaskContext) -> dict[int, float]:
    if not work.paths:
        return {}
    near = closeness_to(work.paths)
    return {
        place: path
        for place, one in enumerate(memories)
        # Most stand neither on a path nor name one, and there are hundreds.
        if (one.metadata or one.scope.name == "path") and (path := near(one))
    }


def _outcomes(memories: Sequence[Memory], work: TaskContext) -> dict[int, float]:
    leanings = work.leanings
    if not leanings:
        return {}
    return {
        place: MOST_OUTCOME * lean for place, one in enumerate(memories) if (lean := leanings.get(one.ref))
    }


def _obsolete(memories: Sequence[Memory], how: KindPriority) -> dict[int, float]:
    if not how.obsolete_last:
        return {}
    return {place: -OBSOLETE_PENALTY for place, one in enumerate(memories) if is_obsolete(one)}


def _stale(
    memories: Sequence[Memory], how: KindPriority, work: TaskContext, now: datetime
) -> dict[int, float]:
    if how.stale_after is None:
        return {}
    if now - _EARLIEST <= how.stale_after:
        return {}
    oldest = now - how.stale_after
    return {
        place: -stale
        for place, one in enumerate(memories)
        if (work.changed or one.updated_at < oldest) and (stale := _staleness(one, how, work, oldest))
    }


def in_precedence(ranked: Iterable[Ranked], how: KindPriority) -> list[Ranked]:
    """The memories in the order of their kinds, paths, scores and times, whatever their section.

    Within a kind, what is obsolete comes last. Of two that are alike in all of these, the one created later
    comes first, and then the one of the smaller id: what one import stored at one moment stands as its source
    had it. So the order is total.
    """
    ordered = sorted(ranked, key=lambda one: _ID(one.memory))
    ordered.sort(key=lambda one: _TIMES(one.memory), reverse=True)
    # Sorting is stable, so that the times decide where all of this is the same.
    priorities, others = how.priorities, how.others
    ordered.sort(
        key=lambda one: (
            priorities.get(one.candidate.memory.kind, others),
            "obsolete" in one.parts,
            -one.parts.get("path", 0.0),
            -one.score,
        )
    )
    return ordered


def each_once(sections: Sequence[CandidateTable]) -> list[CandidateTable]:
    """The candidates of each section, a memory once: its latest version, in the first section that has it."""
    heads: dict[str, Memory] = {}
    for section in sections:
        for memory in section.memories:
            held = heads.setdefault(memory.id, memory)
            if held is not memory and memory.version > held.version:
                heads[memory.id] = memory
    placed: set[str] = set()
    kept: list[CandidateTable] = []
    for section in sections:
        here = [
            place
            for place, one in enumerate(section.memories)
            if heads[one.id].version == one.version and one.id not in placed
        ]
        placed.update([section.memories[place].id for place in here])
        kept.append(section.at(here))
    return kept


def kinds_first_notes(
    ranked: Sequence[Sequence[Ranked]], *, work: TaskContext, now: datetime
) -> Iterator[TraceNote]:
    """What a reader should know of this order: what may be out of date and why, and what outcomes moved."""
    stale = [one for section in ranked for one in _having(section, "stale")]
    if stale:
        told = "; ".join(f"{short_id(one.ref)}, {_why_stale(one, work, now)}" for one in stale[:_NAMED])
        more = f"; and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
        yield TraceNote(code="stale", text=f"These may be out of date, and rank lower for it: {told}{more}.")
    moved = sum(len(_having(section, "outcome")) for section in ranked)
    if moved:
        yield TraceNote(
            code="outcomes",
            text=f"How work turned out before moves {moved} of {sum(map(len, ranked))} memories within their "
            "kind.",
        )


def _having(ranked: Sequence[Ranked], part: str) -> list[Memory]:
    if isinstance(ranked, ByKind):
        return ranked.having(part)
    return [one.memory for one in ranked if part in one.parts]


def _staleness(memory: Memory, how: KindPriority, work: TaskContext, oldest: datetime) -> float:
    """From 0 to MOST_STALE; what was updated after `oldest` isn't stale for its age."""
    stale = _CHANGED if work.changed and _changed_since(memory, work.changed) else 0.0
    if how.stale_after is not None and memory.updated_at < oldest:
        # Rises from 0 where it begins, to half of the most at twice that age.
        stale += _AGE * (1.0 - how.stale_after / (oldest - memory.updated_at + how.stale_after))
    return stale


def _changed_since(memory: Memory, changed: Mapping[str, datetime]) -> str | None:
    """A file that a note is on and that was changed after the note was written.

    Only a path scope makes a memory a note on a file: a decision that governs a path is meant to
    outlive changes there.
    """
    if memory.scope.name != "path":
        return None
    newer = [path for path, at in sorted(changed.items()) if at > memory.updated_at]
    return next((path for path in newer if closeness(memory, [path])), None)


def _why_stale(memory: Memory, work: TaskContext, now: datetime) -> str:
    path = _changed_since(memory, work.changed)
    if path is not None:
        return f"written before {path} was changed"
    days = (now - memory.updated_at) // timedelta(days=1)
    return f"not updated for {days} days"
