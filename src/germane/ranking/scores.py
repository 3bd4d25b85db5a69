"""The scores that signals add up to: the composite score, what time adds to it, and the hybrid search.

Pure: `now` is an argument. Scores and their parts are columns, with one number for each candidate; NaN
stands for a candidate that doesn't have a part.

    weighted_sum_v1 = .50 semantic + .15 type + .15 recency + .10 outcome + .05 usage + .05 confidence

    semantic    the cosine, -1 to 1; 0 where there is none
    type        the priority of the memory's section, 0 to 1; 0.5 unless the frame names it
    recency     e ^ (-0.023 * whole days)
    outcome     success 1.2, partial 1.0, pending 0.9, failure 0.8; all else 1.0
    usage       1 + 0.1 log10(uses), at most 1.5; 1.0 without a use
    confidence  as it is

It lies between -0.37 and 1.045, and gives 0.425 and more to what has nothing to do with the question,
which is why a gate has to stand before it. `weighted_sum` is the same with the cosine clamped to 0 to 1,
recency exact to the moment with a half-life of 30 days, and divided by 1.045.

As factors, the same signals multiply into a score of relevance, so that none of them can outrank it:
each weighs against likeness as much as it does in the sum, recency but a third of that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.lifecycle import withdrawal
from germane.model.context import Fused, Ranked, TraceNote
from germane.model.memory import Memory, Outcome, Stage, Status
from germane.model.query import Candidate, CandidateTable, Order, Query, is_unread
from germane.ranking.signals import check_finite, column_at, fuse_ranks, shares
from germane.ranking.similarity import Parts, Ranking, newest

LOWEST, HIGHEST = -0.37, 1.045
"""The range of `weighted_sum_v1`."""

_SEMANTIC, _TYPE, _RECENCY, _OUTCOME, _USAGE, _CONFIDENCE = 0.50, 0.15, 0.15, 0.10, 0.05, 0.05
_OUTCOMES = {Outcome.SUCCESS: 1.2, Outcome.PARTIAL: 1.0, Outcome.PENDING: 0.9, Outcome.FAILURE: 0.8}
_DAY = timedelta(days=1)
_PER_DAY = 0.023
_HALF_LIFE = timedelta(days=30)
_UNKNOWN_PRIORITY = 0.5
_RECENCY_FACTOR = 0.1
_DOMAIN_FACTOR = 0.1
_CORE_FACTOR = 0.1

_FIELDS = attrgetter("kind", "created_at", "outcome", "access_count", "confidence", "stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """What multiplies into a score beside the memory itself.

    `priorities` are those of the frame by kind, `domain` names what it is about, and `usefulness` is, by
    memory id, how much more or less than usual a memory was used of what was shown, 0.5 to 1.5.
    """

    priorities: Mapping[str, float] = field(default_factory=dict)
    domain: tuple[str, ...] = ()
    usefulness: Mapping[str, float] = field(default_factory=dict)


def weighted_sum(table: CandidateTable, *, now: datetime, boosts: Boosts, normalised: bool) -> Parts:
    """The weighted terms of the composite score: those of `weighted_sum` if `normalised`, else of `_v1`."""
    semantic, worths = np.nan_to_num(table.column("semantic")), _worths(table.memories, now, boosts)
    recency, whole = worths["recency"], HIGHEST
    if normalised:
        semantic = np.clip(semantic, 0.0, 1.0)
    else:
        days = [max((now - one.created_at) // _DAY, 0) for one in table.memories]
        recency, whole = np.array([math.exp(-_PER_DAY * each) for each in days]), 1.0
    terms = {
        "semantic": _SEMANTIC * semantic,
        "type": _TYPE * worths["priority"],
        "recency": _RECENCY * recency,
        "outcome": _OUTCOME * worths["outcome"],
        "usage": _USAGE * worths["usage"],
        "confidence": _CONFIDENCE * worths["confidence"],
    }
    return {name: term / whole for name, term in terms.items()}


def multiply(
    memories: Sequence[Memory],
    parts: Parts,
    *,
    now: datetime,
    boosts: Boosts,
    applies: NDArray[np.bool_],
    without: Collection[str] = (),
) -> None:
    """Add to `parts` what each factor changes, one factor after the other; they still add up to the score.

    Only scores above 0 of memories to which factors apply are changed.
    """
    scores = sums_of(parts, len(memories))
    counts = applies & (scores > 0)
    for name, column in factors(memories, now=now, boosts=boosts).items():
        changes = counts & (column != 1.0)
        if name not in without and changes.any():
            parts[name] = np.where(changes, scores * (column - 1.0), np.nan)
            scores = scores * column


def sums_of(parts: Mapping[str, NDArray[np.float64]], count: int) -> NDArray[np.float64]:
    """The exact sums of the parts of `count` scores."""
    columns = np.zeros((count, len(parts)))
    for number, part in enumerate(parts.values()):
        np.copyto(columns[:, number], part, where=~np.isnan(part))
    if len(parts) <= 2:  # noqa: PLR2004 - Adding two numbers rounds once, as the exact sum does.
        return np.asarray(columns.sum(axis=1), dtype=np.float64)
    return np.fromiter(map(math.fsum, columns.tolist()), dtype=np.float64, count=count)


def is_of(memory: Memory, domain: Collection[str]) -> bool:
    """Whether a memory names one of these domains, in its metadata."""
    named = memory.metadata.get("domain")
    several = named if isinstance(named, list | tuple) else (named,)
    return any(each in domain for each in several)


def factors(memories: Sequence[Memory], *, now: datetime, boosts: Boosts) -> Parts:
    """What each memory's score is multiplied by, by name; 1 changes nothing."""
    worths = _worths(memories, now, boosts)
    columns = {
        "frame": 1.0 + _TYPE / _SEMANTIC * (worths["priority"] - _UNKNOWN_PRIORITY),
        "recency": 1.0 + _RECENCY_FACTOR * (worths["recency"] - 1.0),
        "outcome": 1.0 + _OUTCOME / _SEMANTIC * (worths["outcome"] - 1.0),
        "usage": 1.0 + _USAGE / _SEMANTIC * (worths["usage"] - 1.0),
        "confidence": 1.0 + _CONFIDENCE / _SEMANTIC * (worths["confidence"] - 1.0),
    }
    if boosts.domain:
        # Most memories name no domain.
        named = [bool(one.metadata) and is_of(one, boosts.domain) for one in memories]
        columns["domain"] = 1.0 + _DOMAIN_FACTOR * np.array(named, dtype=np.float64)
    columns["core"] = 1.0 + _CORE_FACTOR * worths["core"]
    if boosts.usefulness:
        columns["useful"] = np.array([boosts.usefulness.get(one.ref, 1.0) for one in memories])
    return columns


def _worths(memories: Sequence[Memory], now: datetime, boosts: Boosts) -> Parts:
    """What each memory's fields are worth."""
    # One pass, as each memory is to be fetched from far away.
    fields = zip(*map(_FIELDS, memories), strict=True) if memories else ((),) * 6
    kinds, created, outcomes, uses, confidences, stages = fields
    half_lives = np.array([age / _HALF_LIFE for age in map(now.__sub__, created)], dtype=np.float64)
    # Powers one by one: those of a whole vector may differ in the last place.
    recencies = map(math.exp2, (-np.maximum(half_lives, 0.0)).tolist())
    return {
        "priority": _by_value(kinds, lambda kind: boosts.priorities.get(kind, _UNKNOWN_PRIORITY)),
        "recency": np.array(list(recencies), dtype=np.float64),
        "outcome": _by_value(outcomes, lambda outcome: _OUTCOMES.get(outcome, 1.0)),
        "usage": _by_value(uses, _usage),
        "confidence": np.array(confidences, dtype=np.float64),
        "core": _by_value(stages, lambda stage: stage is Stage.CORE),
    }


def _by_value(values: Sequence[Any], worth: Callable[[Any], float]) -> NDArray[np.float64]:
    """What each value is worth; few values occur, and each is worked out once."""
    known = {value: worth(value) for value in set(values)}
    if len(known) == 1:
        return np.full(len(values), known[values[0]], dtype=np.float64)
    return np.array([known[value] for value in values], dtype=np.float64)


def _usage(uses: int) -> float:
    """From 1 for never or once to 1.5 for a hundred thousand times."""
    return min(1.0 + 0.1 * math.log10(uses), 1.5) if uses > 0 else 1.0


# What a memory's place in time adds to its score, and what being superseded takes from it.

OBSOLETE = "obsolete"
"""The part of a score that a record loses whose own status says that it no longer holds."""

VALIDITY = "validity"
"""The part of a score that a memory loses that doesn't hold at the time of the question."""

ORDER_BOOST = 0.5
"""As much as a time that the question names adds: enough between memories that match about alike."""

_RELEVANT = 0.5
_OUTDATED = 0.5
_BELOW = 0.99
# Words of a question that asks for what was decided otherwise, or no longer holds.
_OBSOLETE_WORDS = re.compile(
    r"\b(?:reject|supersed|deprecat|abandon|discard|withdr[ae]w|obsolete|histor|previous|former|alternative)"
    r"|\b(?:used to|no longer|instead of|why not|didn't|did not|decided against|turned down|in the past)\b",
    re.IGNORECASE,
)


def asks_for_obsolete(question: str) -> bool:
    """Whether a question is about what was rejected or replaced, so that this is what it should find."""
    return _OBSOLETE_WORDS.search(question) is not None


def lower_obsolete(memories: Sequence[Memory], parts: Parts) -> None:
    """Add part `obsolete`, half of the score less, for records that say that they no longer hold."""
    # A version that was replaced loses its half by `lower_superseded`.
    lowered = [
        place
        for place, one in enumerate(memories)
        if (
            one.withdrawn
            if is_unread(one)
            else one.metadata and one.status is not Status.SUPERSEDED and withdrawal(one)
        )
    ]
    _halve(parts, OBSOLETE, lowered, len(memories))


def lower_invalid(
    memories: Sequence[Memory], parts: Parts, *, start: datetime, end: datetime
) -> frozenset[int]:
    """Add part `validity`: half of the score less for what doesn't hold from `start` until `end`.

    Returns the places of former versions that were valid then: who asks for that time asks for them.
    """
    dated = [place for place, one in enumerate(memories) if one.is_dated]
    valid = frozenset(place for place in dated if memories[place].holds(start, end))
    _halve(parts, VALIDITY, [place for place in dated if place not in valid], len(memories))
    return valid


def _halve(parts: Parts, name: str, places: Sequence[int], count: int) -> None:
    """Add a part: half of the score less at these places, where that is above 0."""
    if places:
        scores = sums_of(parts, count)[places]
        parts[name] = column_at(places, np.where(scores > 0, -_OUTDATED * scores, np.nan), count)


def favour_order(
    memories: Sequence[Memory], parts: Parts, scores: NDArray[np.float64], order: Order
) -> NDArray[np.float64]:
    """Add part `order`: up to half of the score more for the first or the last in time; the new scores.

    Only those that score at least half of the best take part, so that the newest of all memories
    isn't the answer to a question about the last of a few. Among them the memory at the end that the
    question names gets all of it, that at the other end nothing, and the rest by their place in time.
    """
    least = _RELEVANT * float(scores.max(initial=0.0))
    places = np.flatnonzero(scores >= least).tolist()
    times = [memories[place].created_at for place in places]
    if least <= 0 or min(times) == max(times):
        return scores
    oldest, span = min(times), max(times) - min(times)
    late = np.array([(each - oldest) / span for each in times])
    boosts = ORDER_BOOST * (1.0 - late if order is Order.OLDEST else late) * scores[places]
    parts["order"] = column_at(places, np.where(boosts > 0, boosts, np.nan), len(memories))
    return sums_of(parts, len(memories))


def lower_superseded(
    memories: Sequence[Memory],
    parts: Parts,
    scores: NDArray[np.float64],
    spared: Collection[int] = (),
) -> NDArray[np.float64]:
    """Add part `superseded`: half of the score less for what a newer version replaces; the new scores.

    Such a memory also stays below its successor, where that was found too. Places that are `spared` lose
    nothing.
    """
    replaced = [
        place for place, one in enumerate(memories) if one.status is Status.SUPERSEDED and place not in spared
    ]
    if not replaced:
        return scores
    found = {one.version_id: place for place, one in enumerate(memories)}
    # A successor is named by its version, or by its id where it is another memory.
    latest = {one.id: one.version_id for one in sorted(memories, key=lambda one: one.version)}
    lost, lowered = np.full(len(memories), np.nan), scores.copy()
    # Later versions first: each is what the one before it has to stay below.
    for place in sorted(replaced, key=lambda place: memories[place].version, reverse=True):
        score = scores[place] - _OUTDATED * abs(scores[place])
        after = memories[place].superseded_by or ""
        successor = found.get(latest.get(after, after))
        if successor is not None:
            score = min(score, lowered[successor] - (1.0 - _BELOW) * abs(lowered[successor]))
        lost[place] = score - scores[place]
        own = [column[place] for column in parts.values() if not math.isnan(column[place])]
        lowered[place] = math.fsum([*own, lost[place]])
    parts["superseded"] = lost
    return lowered


def superseded_notes(memories: Sequence[Memory]) -> list[TraceNote]:
    """A note for each memory that a newer version replaces, with that version's id."""
    return [
        TraceNote(
            code="superseded", text=f"Memory {memory.version_id} is superseded by {memory.superseded_by}."
        )
        for memory in memories
        if memory.status is Status.SUPERSEDED and memory.superseded_by
    ]


# The hybrid search and relevance scorer of HTM, as one ranker.
#
# First the lists of the vectors, the text and the tags are fused by reciprocal ranks (k = 60), and the best
# of that stay candidates. Then four signals make the score, from 0 to 10:
#
#     10 * (0.5 meaning + 0.3 tags + 0.1 recency + 0.1 access)
#
#     meaning    cosine; for a memory without a vector, what its words say (BM25) stands in
#     tags       hierarchical Jaccard of the memory's tags and those of the query; 0 without any
#     recency    2 ^ (-age / 168 h): a true half-life, where HTM's own code takes e ^ (-age / 168 h)
#     access     ln(1 + accesses) / 10, at most 1
#
# Each signal is brought to 0 to 1 by the least and the greatest of the candidates. A signal of one candidate
# alone stays as it is, equal ones count 1, and meaning or tags that no candidate has count 0. A memory
# without a vector counts as near as the nearest one, times the share that its BM25 score has in the best one
# or in that of a full match; where no vector is near at all, words take the place of meaning. Unlike HTM's,
# the list of the vectors takes part in finding, so that what matches by meaning alone is found; and where HTM
# gives a half to what it doesn't know, what isn't known counts nothing. The parts are no shares of a good
# match, as those of `germane.ranking.relevance` are, and none has the name of one that learning weighs.

HYBRID_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"meaning": 0.5, "tags": 0.3, "recency": 0.1, "access": 0.1}
)
"""What each signal is worth; together 1."""

HALF_LIFE_HOURS = 168.0
"""A week."""

_SCALE = 10.0
_HOUR = timedelta(hours=1)


def hybrid(
    candidates: Sequence[Candidate],
    *,
    query: Query,
    now: datetime,
    tags: Collection[str] | None = None,
    keep: int | None = None,
    half_life_hours: float = HALF_LIFE_HOURS,
    lexical_bound: float = 0.0,
) -> tuple[Ranked, ...]:
    """The candidates with their scores, best first; ties fall to the fused ranks, the newer, the id.

    `tags` are those of the query, by default the ones of its filter; without any, tags count nothing.
    `keep` limits the candidates to the best by fused ranks before they are scored (HTM: three
    times the limit). `lexical_bound` is the BM25 score of a full match. The parts are the four signals,
    weighed, so that they add up to the score, and `fused` says in which lists a memory stands and what
    each adds to its fused rank; what a newer version replaces stays below that one. The order of the
    candidates doesn't matter. Raises InvalidInput for a signal that is no finite number, a half-life that
    isn't above 0, a `keep` below 1.
    """
    if not (math.isfinite(half_life_hours) and half_life_hours > 0):
        raise InvalidInput(f"half_life_hours={half_life_hours} is no half-life. Give hours above 0.")
    if keep is not None and keep < 1:
        raise InvalidInput(f"keep={keep} leaves nothing to rank. Give 1 or more, or None for all.")
    wanted = frozenset(query.filter.tags if tags is None else tags)
    table = CandidateTable.of(candidates)
    check_finite(table)
    raw = _raw(table, wanted, now=now, half_life_hours=half_life_hours)
    newest_first = newest(range(len(table)), table.memories)

    def best_first(name: str) -> list[int]:
        values: list[float] = raw[name].tolist()
        return sorted(
            (place for place in newest_first if values[place] > 0), key=values.__getitem__, reverse=True
        )

    fused = fuse_ranks({name: best_first(name) for name in ("meaning", "lexical", "tags")})
    none = Fused(score=0.0)
    order = sorted(newest_first, key=lambda place: fused.get(place, none).score, reverse=True)[:keep]
    signals = _signals({name: column[order] for name, column in raw.items()}, lexical_bound=lexical_bound)
    parts = {name: _SCALE * weight * signals[name] for name, weight in HYBRID_WEIGHTS.items()}
    memories = [table.memories[place] for place in order]
    scores = lower_superseded(memories, parts, sums_of(parts, len(order)))
    # They come in the order of their fused ranks, and sorting keeps that among equals.
    ranked = Ranking(table.at(order), scores, parts, np.argsort(-scores, kind="stable").tolist())
    return tuple(
        replace(one, fused=fused.get(order[number], none))
        for one, number in zip(ranked, ranked.order, strict=True)
    )


def tag_likeness(one: Collection[str], other: Collection[str]) -> float:
    """The Jaccard index of two sets of tags, each with all that is above it: `a:b` is in `a:b` and in `a`.

    1 for the same sets, 0 where nothing is shared or either is empty.
    """
    mine, theirs = _with_those_above(one), _with_those_above(other)
    either = len(mine | theirs)
    return len(mine & theirs) / either if either else 0.0


def min_max(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values from 0 for the least to 1 for the greatest; one alone stays as it is, equal ones are 1."""
    if len(values) < 2:  # noqa: PLR2004 - one value has neither a least nor a greatest beside it.
        return values
    least, most = values.min(), values.max()
    return np.ones(len(values)) if least == most else (values - least) / (most - least)


def _with_those_above(tags: Collection[str]) -> frozenset[str]:
    parts = [tag.split(":") for tag in tags]
    return frozenset(":".join(part[: end + 1]) for part in parts for end in range(len(part)))


def _raw(table: CandidateTable, wanted: Collection[str], *, now: datetime, half_life_hours: float) -> Parts:
    """The signals of the candidates as they are; NaN where a candidate lacks one."""
    memories = table.memories
    ages = [max((now - one.created_at) / _HOUR, 0.0) for one in memories]
    return {
        "recency": np.array([math.exp2(-age / half_life_hours) for age in ages]),
        "access": np.array([min(math.log1p(one.access_count) / _SCALE, 1.0) for one in memories]),
        "meaning": np.clip(table.column("semantic"), 0.0, 1.0),
        # Words that speak against a memory are no worse than words that say nothing of it.
        "lexical": np.maximum(table.column("lexical"), 0.0),
        "tags": np.array([tag_likeness(one.tags, wanted) for one in memories]),
    }


def _signals(raw: Parts, *, lexical_bound: float) -> Parts:
    """The four signals of the candidates, from 0 to 1."""
    words, cosines = np.nan_to_num(raw["lexical"]), raw["meaning"]
    meaning = words
    if np.nan_to_num(cosines).any():
        # A text without any of the words is known to lack them, which is not the same as neutral.
        best = max(lexical_bound, words.max(initial=0.0))
        meaning = np.where(np.isnan(cosines), np.nanmax(cosines) * shares(words, best), cosines)
    found = {
        "recency": min_max(raw["recency"]),
        "access": min_max(raw["access"]),
        # Equal ones count whole, but having nothing in common is nothing, however many are equal in it.
        "meaning": min_max(meaning) if meaning.any() else meaning,
        "tags": min_max(raw["tags"]) if raw["tags"].any() else raw["tags"],
    }
    return {name: np.minimum(column, 1.0) for name, column in found.items()}
