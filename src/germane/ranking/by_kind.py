"""Ranks memories by kind, then by place, relevance and time: what a project knows, for a task.

The order of kinds and the tie-break by the time of the last update are those of the decision record that
the scoped plan comes from. Between them stand the nearest path, and a score: what a memory has to do
with the task, how work turned out with it, and whether it may be out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import attrgetter

import numpy as np

from germane.lifecycle import is_obsolete
from germane.model.context import Ranked, TraceNote, short_id
from germane.model.memory import Memory
from germane.model.plan import KindPriority, TaskContext
from germane.model.query import Candidate, CandidateTable
from germane.ranking.relevance import Gated, Scoring, outside, score
from germane.ranking.scores import OBSOLETE, asks_for_obsolete, sums_of
from germane.ranking.signals import column_at
from germane.ranking.similarity import Parts, Ranking, having, ordered
from germane.scopes import closeness, closeness_to

_EARLIEST = datetime.min.replace(tzinfo=UTC)
MOST_OUTCOME = 0.5
"""What all success or failure there ever was can add or take: as much as half of a full match of words."""

MOST_STALE = 0.5
"""What being out of date can take: part of it for a file that changed, part for age."""

OBSOLETE_PENALTY = 1.0
"""What no longer holding takes, as a part of the score; it comes last within its kind whatever the score."""

_A_KIND = 10.0
"""What a kind counts more than the next: more than all other parts of a score together."""
_CHANGED, _AGE = 0.3, 0.2
_NAMED = 5
_ID = attrgetter("ref")
_TIMES = attrgetter("updated_at", "created_at")


def by_kind(
    sections: Sequence[Sequence[Candidate]],
    how: KindPriority,
    scoring: Scoring,
    *,
    work: TaskContext,
    relevant: bool = True,
    gated: bool = True,
) -> list[Gated]:
    """The candidates of each section in rank order, each chain of versions once; none is dropped.

    Unless `relevant` is False, relevance is a part of their scores. What the gate would leave out has none
    of it, so that among it the latest comes first. Raises as `germane.ranking.relevance.rank` does.
    """
    unique = each_once([CandidateTable.of(section) for section in sections])
    together = CandidateTable.joined(unique)
    parts = _relevance(together, scoring, gated=gated) if how.relevance and relevant else {}
    if asks_for_obsolete(scoring.query.text):
        how = replace(how, obsolete_last=False)
    ends = np.cumsum([0, *map(len, unique)]).tolist()
    return [
        Gated(
            passed=kinds_first(
                section,
                how,
                {name: part[start:end] for name, part in parts.items()},
                work=work,
                now=scoring.now,
            )
        )
        for section, (start, end) in zip(unique, pairwise(ends), strict=True)
    ]


def _relevance(table: CandidateTable, scoring: Scoring, *, gated: bool) -> Parts:
    """The parts of relevance of all candidates, none for those that the gate leaves out."""
    query, places = scoring.query, np.arange(len(table))
    if gated:
        # Most have nothing to do with the task: no word in common, and no likeness in meaning.
        lexical, semantic, coverage = (
            np.nan_to_num(table.column(name)) for name in ("lexical", "semantic", "coverage")
        )
        places = np.flatnonzero((semantic >= query.least_cosine) | (lexical != 0) | (coverage != 0))
    among = table.at(places.tolist())
    # The order by kinds sees to what is obsolete, and commits are a kind of their own.
    found, _ = score(among, replace(scoring, without=(OBSOLETE, "history")))
    if gated:
        exact = having(found, "exact", len(among))
        out = outside(among, exempt=exact, information=query.information, least_cosine=query.least_cosine)
        found = {name: np.where(out, np.nan, part) for name, part in found.items()}
    return {name: column_at(places.tolist(), part, len(table)) for name, part in found.items()}


def kinds_first(
    candidates: CandidateTable,
    how: KindPriority,
    relevance: Parts,
    *,
    work: TaskContext,
    now: datetime,
) -> Ranking:
    """The candidates in the order of `in_precedence`, with the parts of their scores.

    The parts are `kind`, those of `relevance`, `path` (how closely its places fit the nearest path, from 0 to
    1), `outcome`, `stale` and `obsolete`. The order of the candidates doesn't matter.
    """
    memories, count = candidates.memories, len(candidates)
    priorities = np.array([how.priorities.get(one.kind, how.others) for one in memories], dtype=np.int64)
    few = {
        "path": _paths(memories, work),
        "outcome": _outcomes(memories, work),
        "stale": _stale(memories, how, work, now),
        "obsolete": _obsolete(memories, how),
    }
    columns = {name: column_at([*at], [*at.values()], count) for name, at in few.items() if at}
    kinds = _A_KIND * (how.others - priorities).astype(np.float64)
    parts = {"kind": kinds, **relevance, **columns}
    scores = sums_of(parts, count)
    keys = [
        -scores,
        *(-np.nan_to_num(parts[name]) for name in ("path", "obsolete") if name in parts),
        priorities,
    ]

    def latest(places: list[int]) -> list[int]:
        tied = sorted(places, key=lambda place: _ID(memories[place]))
        return sorted(tied, key=lambda place: _TIMES(memories[place]), reverse=True)

    return Ranking(candidates, scores, parts, ordered(keys, latest))


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
            latest = heads.setdefault(memory.id, memory)
            if latest is not memory and memory.version > latest.version:
                heads[memory.id] = memory
    placed: set[str] = set()
    tables: list[CandidateTable] = []
    for section in sections:
        here = [
            place
            for place, one in enumerate(section.memories)
            if heads[one.id].version == one.version and one.id not in placed
        ]
        placed.update([section.memories[place].id for place in here])
        tables.append(section.at(here))
    return tables


def kinds_first_notes(
    ranked: Sequence[Sequence[Ranked]], *, work: TaskContext, now: datetime
) -> Iterator[TraceNote]:
    """What a reader should know of this order: what may be out of date and why, and what outcomes moved."""
    stale = [one for section in ranked for one in _memories_having(section, "stale")]
    if stale:
        these = "; ".join(f"{short_id(one.ref)}, {_why_stale(one, work, now)}" for one in stale[:_NAMED])
        more = f"; and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
        yield TraceNote(code="stale", text=f"These may be out of date, and rank lower for it: {these}{more}.")
    moved = sum(len(_memories_having(section, "outcome")) for section in ranked)
    if moved:
        yield TraceNote(
            code="outcomes",
            text=f"How work turned out before moves {moved} of {sum(map(len, ranked))} memories within their "
            "kind.",
        )


def _memories_having(ranked: Sequence[Ranked], part: str) -> list[Memory]:
    if isinstance(ranked, Ranking):
        present = having(ranked.parts, part, len(ranked.table))
        return [ranked.table.memories[place] for place in ranked.order if present[place]]
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
    return f"not updated for {days} day{'s'[: days != 1]}"
