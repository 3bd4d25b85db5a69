"""What a memory's place in time adds to its score, and what being superseded takes from it.

Level: ranking (imports lifecycle and model; never retrieval or stores). Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from germane.lifecycle import is_withdrawn
from germane.model.memory import Memory, Status
from germane.model.query import Order
from germane.model.trace import Note, Ranked
from germane.ranking.composite import sums_of

__all__ = [
    "OBSOLETE",
    "ORDER_BOOST",
    "asks_for_history",
    "leaning",
    "lower_obsolete",
    "lower_obsolete_in_columns",
    "superseded_notes",
    "under_successors",
]

OBSOLETE = "obsolete"
"""The part of a score that a record loses whose own status says that it no longer holds."""

ORDER_BOOST = 0.5
"""As much as a time that the question names adds: enough between memories that match about alike."""

_RELEVANT = 0.5
_OUTDATED = 0.5
_BELOW = 0.99
# Words of a question that asks for what was decided otherwise, or no longer holds.
_HISTORY = re.compile(
    r"\b(?:reject|supersed|deprecat|abandon|discard|withdr[ae]w|obsolete|histor|previous|former|alternative)"
    r"|\b(?:used to|no longer|instead of|why not|didn't|did not|decided against|turned down|in the past)\b",
    re.IGNORECASE,
)
_VERSION = attrgetter("memory.version")


def leaning(ranked: Sequence[Ranked], order: Order) -> list[Ranked]:
    """The memories with part `order`: up to half of the score more, for the first or the last in time.

    Only those that score at least half of the best take part, so that the newest of all memories
    isn't the answer to a question about the last of a few. Among them the one at the end that is
    asked for gets all of it, the one at the other end nothing, and the rest by their place in time.
    """
    least = _RELEVANT * max((one.score for one in ranked), default=0.0)
    times = [one.memory.created_at for one in ranked if one.score >= least]
    if least <= 0 or min(times) == max(times):
        return list(ranked)
    oldest, newest = min(times), max(times)

    def lifted(one: Ranked) -> Ranked:
        place = (one.memory.created_at - oldest) / (newest - oldest)
        boost = ORDER_BOOST * (1.0 - place if order is Order.OLDEST else place) * one.score
        return _with_part(one, "order", boost) if one.score >= least and boost > 0 else one

    return [lifted(one) for one in ranked]


def under_successors(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The memories with part `superseded`: half of the score less for what a newer version replaces.

    Such a memory also stays below its successor, where that was found too.
    """
    superseded = Status.SUPERSEDED
    if all(one.candidate.memory.status is not superseded for one in ranked):
        return list(ranked)
    found = {one.memory.version_id: one for one in ranked}
    # A successor is named by its version, or by its id where it is another memory.
    latest = {one.memory.id: one.memory.version_id for one in sorted(ranked, key=_VERSION)}
    # Later versions first: each is what the one before it has to stay below.
    for one in sorted(ranked, key=_VERSION, reverse=True):
        if one.memory.status is superseded:
            score = one.score - _OUTDATED * abs(one.score)
            after = one.memory.superseded_by or ""
            successor = found.get(latest.get(after, after))
            if successor is not None:
                score = min(score, successor.score - (1.0 - _BELOW) * abs(successor.score))
            found[one.memory.version_id] = _with_part(one, "superseded", score - one.score)
    return [found[one.memory.version_id] for one in ranked]


def asks_for_history(question: str) -> bool:
    """Whether a question is about what was rejected or replaced, so that this is what it should find."""
    return _HISTORY.search(question) is not None


def lower_obsolete(memories: Sequence[Memory], parts: Sequence[dict[str, float]]) -> None:
    """Add part `obsolete`, half of the score less, for records that say that they no longer hold."""
    for memory, found in zip(memories, parts, strict=True):
        if _is_lowered(memory) and (score := math.fsum(found.values())) > 0:
            found[OBSOLETE] = -_OUTDATED * score


def lower_obsolete_in_columns(memories: Sequence[Memory], parts: dict[str, NDArray[np.float64]]) -> None:
    """The same with a column for each part; NaN where one doesn't have it."""
    lowered = [place for place, one in enumerate(memories) if _is_lowered(one)]
    if not lowered:
        return
    scores = sums_of(parts, len(memories))
    column = np.full(len(memories), np.nan)
    column[lowered] = np.where(scores[lowered] > 0, -_OUTDATED * scores[lowered], np.nan)
    parts[OBSOLETE] = column


def _is_lowered(memory: Memory) -> bool:
    # A version that was replaced loses its half by `under_successors`.
    return memory.status is not Status.SUPERSEDED and is_withdrawn(memory)


def superseded_notes(memories: Sequence[Memory]) -> list[Note]:
    """A note for each memory that a newer version replaces, with that version's id."""
    return [
        Note(code="superseded", text=f"Memory {memory.version_id} is superseded by {memory.superseded_by}.")
        for memory in memories
        if memory.status is Status.SUPERSEDED and memory.superseded_by
    ]


def _with_part(one: Ranked, name: str, value: float) -> Ranked:
    parts = {**one.parts, name: value}
    return replace(one, parts=parts, score=math.fsum(parts.values()))
