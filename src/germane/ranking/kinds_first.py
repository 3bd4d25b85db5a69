"""Ranks memories by kind, then by place, relevance and time: what a project knows, for a task.

Level: ranking (imports the pure rules, model and errors; never retrieval or stores). Pure.

The order of kinds and the tie-break by the time of the last update are those of the decision record that
the scoped plan comes from. Between them stand the nearest path, and a score: what a memory has to do
with the task, how work turned out with it, and whether it may be out of date.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from germane.model.explanation import short_id
from germane.model.memory import Memory
from germane.model.query import Candidate
from germane.model.trace import Note, Ranked
from germane.model.work import KindsFirst, Work
from germane.places import closeness, closeness_to

__all__ = [
    "MOST_OUTCOME",
    "MOST_STALE",
    "each_once",
    "in_precedence",
    "kinds_first",
    "kinds_first_notes",
]

MOST_OUTCOME = 0.5
"""What all success or failure there ever was can add or take: as much as half of a full match of words."""

MOST_STALE = 0.5
"""What being out of date can take: part of it for a file that changed, part for age."""

_A_KIND = 10.0
"""What a kind counts more than the next: more than all that can be said of a memory within its kind."""
_CHANGED, _AGE = 0.3, 0.2
_NAMED = 5
_UPDATED = attrgetter("candidate.memory.updated_at", "candidate.memory.id")
_CANDIDATE_UPDATED = attrgetter("memory.updated_at", "memory.id")


def kinds_first(
    candidates: Sequence[Candidate],
    how: KindsFirst,
    *,
    relevant: Mapping[str, Mapping[str, float]],
    work: Work,
    now: datetime,
) -> tuple[Ranked, ...]:
    """The candidates in the order of `in_precedence`, with the parts of their scores.

    `relevant` are the parts of those that have to do with the task, by id. The parts are `kind`, those of
    relevance, `path` (how closely its places fit the nearest path, from 0 to 1), `outcome` and `stale`. The
    order of the candidates doesn't matter.
    """
    oldest = None if how.stale_after is None else now - how.stale_after
    near = closeness_to(work.paths) if work.paths else None
    # The same order as `in_precedence` gives, made with what is at hand here: the latest first, parted by
    # kind, and among these by what is known of each. The place in time makes each row another.
    parted: dict[int, list[tuple[float, float, int, Ranked]]] = {}
    for place, one in enumerate(sorted(candidates, key=_CANDIDATE_UPDATED, reverse=True)):
        memory = one.memory
        priority = how.priorities.get(memory.kind, how.others)
        score = _A_KIND * (how.others - priority)
        parts = {"kind": score}
        if relevant and (known := relevant.get(memory.id)) is not None:
            parts |= known
        path = 0.0 if near is None else near(memory)
        if path:
            parts["path"] = path
        if work.leanings and (lean := work.leanings.get(memory.id)):
            parts["outcome"] = MOST_OUTCOME * lean
        if (
            oldest is not None
            and (work.changed or memory.updated_at < oldest)
            and (stale := _staleness(memory, how, work, oldest))
        ):
            parts["stale"] = -stale
        if len(parts) > 1:
            score = math.fsum(parts.values())
        row = -path, -score, place, Ranked(candidate=one, score=score, parts=parts)
        parted.setdefault(priority, []).append(row)
    return tuple(row[-1] for _, rows in sorted(parted.items()) for row in sorted(rows))


def in_precedence(ranked: Iterable[Ranked], how: KindsFirst) -> list[Ranked]:
    """The memories in the order of their kinds, paths, scores and times, whatever their section.

    Of two that are alike in all of these the greater id comes first, so the order is total.
    """
    ordered = sorted(ranked, key=_UPDATED, reverse=True)
    # Sorting is stable, so that the times decide where all of this is the same.
    priorities, others = how.priorities, how.others
    ordered.sort(
        key=lambda one: (
            priorities.get(one.candidate.memory.kind, others),
            -one.parts.get("path", 0.0),
            -one.score,
        )
    )
    return ordered


def each_once(sections: Sequence[Sequence[Candidate]]) -> list[list[Candidate]]:
    """The candidates of each section, a chain once: its latest version, in the first section that has it.

    Of two with one version number the one updated last stands, then the one of the greater id.
    """
    heads: dict[str, Candidate] = {}
    for candidate in (one for section in sections for one in section):
        held = heads.setdefault(candidate.memory.chain, candidate)
        if held is not candidate and _version(candidate.memory) > _version(held.memory):
            heads[candidate.memory.chain] = candidate
    placed: set[str] = set()
    kept: list[list[Candidate]] = []
    for section in sections:
        here = [
            one
            for one in section
            if heads[one.memory.chain].memory.id == one.memory.id and one.memory.id not in placed
        ]
        placed.update(one.memory.id for one in here)
        kept.append(here)
    return kept


def kinds_first_notes(ranked: Sequence[Sequence[Ranked]], *, work: Work, now: datetime) -> Iterator[Note]:
    """What a reader should know of this order: what may be out of date and why, and what outcomes moved."""
    everything = [one for section in ranked for one in section]
    stale = [one.memory for one in everything if "stale" in one.parts]
    if stale:
        told = "; ".join(f"{short_id(one.id)}, {_why_stale(one, work, now)}" for one in stale[:_NAMED])
        more = f"; and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
        yield Note(code="stale", text=f"These may be out of date, and rank lower for it: {told}{more}.")
    moved = sum("outcome" in one.parts for one in everything)
    if moved:
        yield Note(
            code="outcomes",
            text=f"How work turned out before moves {moved} of {len(everything)} memories within their kind.",
        )


def _staleness(memory: Memory, how: KindsFirst, work: Work, oldest: datetime) -> float:
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


def _why_stale(memory: Memory, work: Work, now: datetime) -> str:
    path = _changed_since(memory, work.changed)
    if path is not None:
        return f"written before {path} was changed"
    days = (now - memory.updated_at) // timedelta(days=1)
    return f"not updated for {days} days"


def _version(memory: Memory) -> tuple[int, datetime, str]:
    return memory.version, memory.updated_at, memory.id
