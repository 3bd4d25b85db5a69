"""Ranks memories by kind, then by place, relevance and time: what a project knows, for a task.

Level: ranking (imports the pure rules, model and errors; never retrieval or stores). Pure.

The order of kinds and the tie-break by the time of the last update are those of the decision record that
the scoped plan comes from. Between them stand the nearest path, and a score: what a memory has to do
with the task, how work turned out with it, and whether it may be out of date.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from germane.model.explanation import short_id
from germane.model.memory import Memory
from germane.model.query import Candidate
from germane.model.trace import Note, Ranked
from germane.model.work import KindsFirst, Work
from germane.places import closeness

__all__ = [
    "MOST_OUTCOME",
    "MOST_STALE",
    "each_once",
    "kinds_first",
    "kinds_first_notes",
    "precedence",
]

MOST_OUTCOME = 0.5
"""What all success or failure there ever was can add or take: as much as half of a full match of words."""

MOST_STALE = 0.5
"""What being out of date can take: part of it for a file that changed, part for age."""

_A_KIND = 10.0
"""What a kind counts more than the next: more than all that can be said of a memory within its kind."""
_CHANGED, _AGE = 0.3, 0.2
_NAMED = 5


def kinds_first(
    candidates: Sequence[Candidate],
    how: KindsFirst,
    *,
    relevant: Mapping[str, Ranked],
    work: Work,
    now: datetime,
) -> tuple[Ranked, ...]:
    """The candidates in the order of `precedence`, with the parts of their scores.

    `relevant` are those that have to do with the task, by id. The parts are `kind`, those of relevance,
    `path` (how closely its places fit the nearest path, from 0 to 1), `outcome` and `stale`. The order of
    the candidates doesn't matter.
    """
    ranked = [_ranked(one, how, relevant=relevant, work=work, now=now) for one in candidates]
    return tuple(sorted(ranked, key=lambda one: precedence(one, how)))


def precedence(one: Ranked, how: KindsFirst) -> tuple[int, float, float, float, int]:
    """What orders memories whatever their section: smaller comes first. No two memories share one."""
    memory = one.candidate.memory
    return (
        how.priority(memory.kind),
        -one.parts.get("path", 0.0),
        -one.score,
        -memory.updated_at.timestamp(),
        -_number(memory.id),
    )


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


def _ranked(
    candidate: Candidate, how: KindsFirst, *, relevant: Mapping[str, Ranked], work: Work, now: datetime
) -> Ranked:
    memory = candidate.memory
    known = relevant.get(memory.id)
    parts = {"kind": _A_KIND * (how.others - how.priority(memory.kind))}
    if known is not None:
        parts |= known.parts
    if work.paths and (near := closeness(memory, work.paths)):
        parts["path"] = near
    if lean := work.leanings.get(memory.id):
        parts["outcome"] = MOST_OUTCOME * lean
    if stale := _staleness(memory, how, work, now):
        parts["stale"] = -stale
    return Ranked(candidate=candidate, score=math.fsum(parts.values()), parts=parts)


def _staleness(memory: Memory, how: KindsFirst, work: Work, now: datetime) -> float:
    """From 0 to MOST_STALE."""
    if how.stale_after is None:
        return 0.0
    stale = _CHANGED if _changed_since(memory, work.changed) else 0.0
    age = now - memory.updated_at
    if age > how.stale_after:
        # Rises from 0 where it begins, to half of the most at twice that age.
        stale += _AGE * (1.0 - how.stale_after / age)
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


def _number(memory_id: str) -> int:
    """An id as a number that orders as the text does."""
    return int.from_bytes(memory_id.encode(), "big")
