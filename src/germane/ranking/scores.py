"""The scores that signals add up to: the composite score, what time adds to it, and the hybrid search.

Pure: `now` is an argument.

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

HTM's hybrid search and its relevance scorer, as one ranker. Pure: `now` is an argument.

First the lists of the vectors, the text and the tags are fused by reciprocal ranks (k = 60), and the best
of that stay candidates. Then four signals make the score, from 0 to 10:

    10 * (0.5 meaning + 0.3 tags + 0.1 recency + 0.1 access)

    meaning    cosine; for a memory without a vector, what its words say (BM25) stands in
    tags       hierarchical Jaccard of the memory's tags and those asked for; 0 without any
    recency    2 ^ (-age / 168 h): a true half-life, where HTM's own code takes e ^ (-age / 168 h)
    access     ln(1 + accesses) / 10, at most 1

Each signal is brought to 0 to 1 by the least and the greatest of the candidates. A signal of one
candidate alone stays as it is, equal ones count 1, and meaning or tags that no candidate has count 0.
A memory without a vector counts as near as the nearest one, times the share that its BM25 score has in
the best one or in that of a full match; where no vector is near at all, words take the place of
meaning. Unlike HTM's, the list of the vectors takes part in finding, so that what matches by meaning
alone is found; and where HTM gives a half to what it doesn't know, what isn't known counts nothing.
The parts are no shares of a good match, as those of `germane.ranking.relevance` are, and none has the
name of one that learning weighs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.lifecycle import is_withdrawn
from germane.model.context import Fused, Ranked, TraceNote
from germane.model.memory import Memory, Outcome, Stage, Status
from germane.model.query import Candidate, Order, Query
from germane.ranking.signals import fuse_ranks, is_turn, share_of

__all__ = [
    "HALF_LIFE_HOURS",
    "HIGHEST",
    "HYBRID_WEIGHTS",
    "LOWEST",
    "OBSOLETE",
    "ORDER_BOOST",
    "Boosts",
    "asks_for_history",
    "factors_of",
    "hybrid",
    "is_of",
    "leaning",
    "lower_obsolete",
    "lower_obsolete_in_columns",
    "min_max",
    "multiply",
    "multiply_in_columns",
    "sums_of",
    "superseded_notes",
    "tag_likeness",
    "under_successors",
    "usage_of",
    "weighted_sum",
    "weighted_sum_v1",
    "with_associations",
]

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
_ASSOCIATION = 0.5

_ONE: Sequence[float] = ()
"""A column of which each number is 1."""
_KIND, _CREATED, _OUTCOME_OF = attrgetter("kind"), attrgetter("created_at"), attrgetter("outcome")
_USES, _CONFIDENCE_OF, _STAGE = attrgetter("access_count"), attrgetter("confidence"), attrgetter("stage")
_Number = TypeVar("_Number", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """What multiplies into a score beside the memory itself.

    `priorities` are those of the frame by kind, `domain` names what it is about, and `usefulness` is, by
    memory id, how much more or less than usual a memory was used of what was shown, 0.5 to 1.5.
    """

    priorities: Mapping[str, float] = field(default_factory=dict)
    domain: tuple[str, ...] = ()
    usefulness: Mapping[str, float] = field(default_factory=dict)

    def priority(self, kind: str) -> float:
        """The priority of the section of a kind, 0.5 unless it is named."""
        return self.priorities.get(kind, _UNKNOWN_PRIORITY)


def weighted_sum_v1(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """The weighted terms of the note's score, which add up to it."""
    memory = candidate.memory
    days = max((now - memory.created_at) // _DAY, 0)
    return _terms(
        memory,
        candidate.signals.get("semantic", 0.0),
        boosts.priority(memory.kind),
        math.exp(-_PER_DAY * days),
    )


def weighted_sum(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """The same terms from 0 to 1 in sum: a clamped cosine, an exact half-life, divided by the most."""
    memory = candidate.memory
    cosine = min(max(candidate.signals.get("semantic", 0.0), 0.0), 1.0)
    terms = _terms(memory, cosine, boosts.priority(memory.kind), _recency(memory, now))
    return {name: term / HIGHEST for name, term in terms.items()}


def multiply(
    candidates: Sequence[Candidate],
    parts: Sequence[dict[str, float]],
    *,
    now: datetime,
    boosts: Boosts,
    without: Collection[str] = (),
) -> None:
    """Add to the parts of each score what its factors change, one after the other; they still add up.

    A turn of dialogue has none of these: it is neither proven nor sure, and said when it was said.
    """
    for candidate, found in zip(candidates, parts, strict=True):
        score = math.fsum(found.values())
        if score <= 0 or is_turn(candidate):
            continue
        for name, factor in factors_of(candidate.memory, now=now, boosts=boosts).items():
            if factor != 1.0 and name not in without:
                found[name] = score * (factor - 1.0)
                score *= factor


def multiply_in_columns(
    memories: Sequence[Memory], parts: dict[str, NDArray[np.float64]], *, now: datetime, boosts: Boosts
) -> None:
    """The same for memories that are no turns, a column for each part; NaN where one doesn't have it."""
    scores = sums_of(parts, len(memories))
    counts = scores > 0
    for name, factors in factors_in_columns(memories, now=now, boosts=boosts).items():
        changes = counts & (factors != 1.0)
        if changes.any():
            parts[name] = np.where(changes, scores * (factors - 1.0), np.nan)
            scores = scores * factors


def sums_of(parts: Mapping[str, NDArray[np.float64]], count: int) -> NDArray[np.float64]:
    """The exact sums of the parts of so many scores."""
    if not parts:
        return np.zeros(count)
    columns = [np.where(np.isnan(part), 0.0, part).tolist() for part in parts.values()]
    return np.array(list(map(math.fsum, zip(*columns, strict=True))), dtype=np.float64)


def with_associations(ranked: Sequence[Ranked], nearness: Mapping[str, float]) -> tuple[Ranked, ...]:
    """The ranking with part `association` for what is near to what was found: half of how near it is."""
    lifted = [
        one
        if one.memory.ref not in nearness
        else replace(
            one,
            parts={**one.parts, "association": _ASSOCIATION * nearness[one.memory.ref]},
            score=one.score + _ASSOCIATION * nearness[one.memory.ref],
        )
        for one in ranked
    ]
    return tuple(sorted(lifted, key=lambda one: -one.score))


def factors_of(memory: Memory, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """What a memory's score is multiplied by, by name; 1 changes nothing."""
    return {
        "frame": _of_kind(memory.kind, boosts),
        "recency": _of_recency(_recency(memory, now)),
        "outcome": _of_outcome(memory.outcome),
        "usage": _of_usage(memory.access_count),
        "confidence": _of_confidence(memory.confidence),
        "domain": _of_domain(memory, boosts),
        "core": _of_stage(memory.stage),
        "useful": boosts.usefulness.get(memory.ref, 1.0),
    }


def factors_in_columns(
    memories: Sequence[Memory], *, now: datetime, boosts: Boosts
) -> dict[str, NDArray[np.float64]]:
    """What `factors_of` says of each; a factor that is 1 for all of them is left out."""
    useful = boosts.usefulness
    columns = {
        "frame": _by_value(_KIND, memories, lambda kind: _of_kind(kind, boosts)),
        "recency": _of_recency(np.array(_recencies(memories, now), dtype=np.float64)),
        "outcome": _by_value(_OUTCOME_OF, memories, _of_outcome),
        "usage": _by_value(_USES, memories, _of_usage),
        "confidence": _by_value(_CONFIDENCE_OF, memories, _of_confidence),
        "domain": _of_domains(memories, boosts),
        "core": _by_value(_STAGE, memories, _of_stage),
        "useful": [useful.get(one.ref, 1.0) for one in memories] if useful else _ONE,
    }
    return {
        name: np.array(column, dtype=np.float64) for name, column in columns.items() if column is not _ONE
    }


def is_of(memory: Memory, domain: Collection[str]) -> bool:
    """Whether a memory names one of these domains, in its metadata."""
    named = memory.metadata.get("domain")
    several = named if isinstance(named, list | tuple) else (named,)
    return any(each in domain for each in several)


def usage_of(memory: Memory) -> float:
    """How often a memory was used, from 1 for never or once to 1.5 for a hundred thousand times."""
    return _usage(memory.access_count)


def _of_kind(kind: str, boosts: Boosts) -> float:
    return 1.0 + _TYPE / _SEMANTIC * (boosts.priority(kind) - _UNKNOWN_PRIORITY)


def _of_recency(recency: _Number) -> _Number:
    return 1.0 + _RECENCY_FACTOR * (recency - 1.0)


def _of_outcome(outcome: Outcome | None) -> float:
    return 1.0 + _OUTCOME / _SEMANTIC * (_outcome(outcome) - 1.0)


def _of_usage(uses: int) -> float:
    return 1.0 + _USAGE / _SEMANTIC * (_usage(uses) - 1.0)


def _of_confidence(confidence: float) -> float:
    return 1.0 + _CONFIDENCE / _SEMANTIC * (confidence - 1.0)


def _of_domain(memory: Memory, boosts: Boosts) -> float:
    return 1.0 + _DOMAIN_FACTOR * (boosts.domain != () and is_of(memory, boosts.domain))


def _of_domains(memories: Sequence[Memory], boosts: Boosts) -> Sequence[float]:
    """The same of each; most name none."""
    if not boosts.domain:
        return _ONE
    return [_of_domain(one, boosts) if one.metadata and "domain" in one.metadata else 1.0 for one in memories]


def _of_stage(stage: Stage | None) -> float:
    return 1.0 + _CORE_FACTOR * (stage is Stage.CORE)


def _by_value(
    value_of: Callable[[Memory], Hashable], memories: Sequence[Memory], factor: Callable[[Any], float]
) -> Sequence[float]:
    """The factors of memories that have few values among them, each worked out once."""
    values = list(map(value_of, memories))
    factors = {value: factor(value) for value in set(values)}
    if all(each == 1.0 for each in factors.values()):
        return _ONE
    return list(map(factors.__getitem__, values))


def _terms(memory: Memory, semantic: float, priority: float, recency: float) -> dict[str, float]:
    return {
        "semantic": _SEMANTIC * semantic,
        "type": _TYPE * priority,
        "recency": _RECENCY * recency,
        "outcome": _OUTCOME * _outcome(memory.outcome),
        "usage": _USAGE * usage_of(memory),
        "confidence": _CONFIDENCE * memory.confidence,
    }


def _recency(memory: Memory, now: datetime) -> float:
    return math.exp2(-max((now - memory.created_at) / _HALF_LIFE, 0.0))


def _recencies(memories: Sequence[Memory], now: datetime) -> list[float]:
    """The same of each, in half of the time."""
    half_lives = [age / _HALF_LIFE for age in map(now.__sub__, map(_CREATED, memories))]
    # Powers one by one: those of a whole vector may differ in the last place.
    return list(map(math.exp2, (-np.maximum(half_lives, 0.0)).tolist()))


def _outcome(outcome: Outcome | None) -> float:
    return 1.0 if outcome is None else _OUTCOMES.get(outcome, 1.0)


def _usage(uses: int) -> float:
    return min(1.0 + 0.1 * math.log10(uses), 1.5) if uses > 0 else 1.0


# What a memory's place in time adds to its score, and what being superseded takes from it.

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


def superseded_notes(memories: Sequence[Memory]) -> list[TraceNote]:
    """A note for each memory that a newer version replaces, with that version's id."""
    return [
        TraceNote(
            code="superseded", text=f"Memory {memory.version_id} is superseded by {memory.superseded_by}."
        )
        for memory in memories
        if memory.status is Status.SUPERSEDED and memory.superseded_by
    ]


def _with_part(one: Ranked, name: str, value: float) -> Ranked:
    parts = {**one.parts, name: value}
    return replace(one, parts=parts, score=math.fsum(parts.values()))


HYBRID_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"meaning": 0.5, "tags": 0.3, "recency": 0.1, "access": 0.1}
)
"""What each signal is worth; together 1."""

HALF_LIFE_HOURS = 168.0
"""A week."""

_FOUND_BY = ("meaning", "lexical", "tags")
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

    `tags` are those asked for, the query's filter's unless given; without any, tags count nothing.
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
    asked = frozenset(query.filter.tags if tags is None else tags)
    raw = {one.memory.ref: _raw(one, asked, now=now, half_life_hours=half_life_hours) for one in candidates}
    fused = _fused(candidates, raw)
    none = Fused(score=0.0)

    def places(one: Candidate) -> tuple[float, datetime, str]:
        return fused.get(one.memory.ref, none).score, *_newness(one)

    kept = sorted(candidates, key=places, reverse=True)[:keep]
    signals = _signals([one.memory.ref for one in kept], raw, lexical_bound=lexical_bound)
    ranked = [
        _ranked(
            one, {name: signals[name][one.memory.ref] for name in signals}, fused.get(one.memory.ref, none)
        )
        for one in kept
    ]
    ranked = under_successors(ranked)
    # They come in the order of their fused ranks, and sorting keeps that among equals.
    return tuple(sorted(ranked, key=lambda one: one.score, reverse=True))


def tag_likeness(one: Collection[str], other: Collection[str]) -> float:
    """The Jaccard index of two sets of tags, each with all that is above it: `a:b` is in `a:b` and in `a`.

    1 for the same sets, 0 where nothing is shared or either is empty.
    """
    mine, theirs = _with_those_above(one), _with_those_above(other)
    either = len(mine | theirs)
    return len(mine & theirs) / either if either else 0.0


def min_max(values: Mapping[str, float]) -> Mapping[str, float]:
    """The values from 0 for the least to 1 for the greatest; one alone stays as it is, equal ones are 1."""
    if len(values) < 2:  # noqa: PLR2004 - one value has neither a least nor a greatest beside it.
        return values
    least, most = min(values.values()), max(values.values())
    if least == most:
        return dict.fromkeys(values, 1.0)
    return {name: (value - least) / (most - least) for name, value in values.items()}


def _with_those_above(tags: Collection[str]) -> frozenset[str]:
    parts = [tag.split(":") for tag in tags]
    return frozenset(":".join(part[: end + 1]) for part in parts for end in range(len(part)))


def _raw(
    candidate: Candidate, asked: Collection[str], *, now: datetime, half_life_hours: float
) -> dict[str, float]:
    """The signals of a candidate as they are; what it lacks is absent."""
    memory = candidate.memory
    age = max((now - memory.created_at) / _HOUR, 0.0)
    found = {
        "recency": math.exp2(-age / half_life_hours),
        "access": min(math.log1p(memory.access_count) / _SCALE, 1.0),
    }
    for signal, name in (("semantic", "meaning"), ("lexical", "lexical")):
        if signal in candidate.signals:
            value = candidate.signals[signal]
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The {signal} signal of memory {memory.ref!r} is {value}, which can't be ranked. "
                    "The store that found it has to return finite signals."
                )
            found[name] = value
    if "meaning" in found:
        found["meaning"] = min(max(found["meaning"], 0.0), 1.0)
    if "lexical" in found:
        # Words that speak against a memory are no worse than words that say nothing of it.
        found["lexical"] = max(found["lexical"], 0.0)
    found["tags"] = tag_likeness(memory.tags, asked)
    return found


def _fused(candidates: Sequence[Candidate], raw: Mapping[str, Mapping[str, float]]) -> Mapping[str, Fused]:
    """The reciprocal ranks of vectors, text and tags, fused; a list holds what matches at all."""
    by_newness = sorted(candidates, key=_newness, reverse=True)

    def best_first(name: str) -> list[str]:
        matching = {
            one.memory.ref: value for one in by_newness if (value := raw[one.memory.ref].get(name, 0.0)) > 0
        }
        return sorted(matching, key=matching.__getitem__, reverse=True)

    return fuse_ranks({name: best_first(name) for name in _FOUND_BY})


def _signals(
    ids: Sequence[str], raw: Mapping[str, Mapping[str, float]], *, lexical_bound: float
) -> dict[str, Mapping[str, float]]:
    """The four signals of the candidates, from 0 to 1."""
    values = {signal: {each: raw[each][signal] for each in ids} for signal in ("recency", "access")}
    found = {signal: min_max(each) for signal, each in values.items()}
    for signal, each in (
        ("meaning", _meaning(ids, raw, lexical_bound=lexical_bound)),
        ("tags", {each: raw[each]["tags"] for each in ids}),
    ):
        # Equal ones count whole, but having nothing in common is nothing, however many are equal in it.
        found[signal] = min_max(each) if any(each.values()) else each
    return {signal: {name: min(each, 1.0) for name, each in found[signal].items()} for signal in found}


def _meaning(
    ids: Sequence[str], raw: Mapping[str, Mapping[str, float]], *, lexical_bound: float
) -> Mapping[str, float]:
    """The cosines, and where there is none, what the words say of it.

    A text without any of the words is known to lack them, which is not the same as neutral.
    """
    words = {each: raw[each].get("lexical", 0.0) for each in ids}
    cosines = {each: raw[each]["meaning"] for each in ids if "meaning" in raw[each]}
    if not any(cosines.values()):
        return words
    nearest, best = max(cosines.values()), max([lexical_bound, *words.values()])
    return {each: cosines.get(each, nearest * share_of(words[each], best)) for each in ids}


def _ranked(candidate: Candidate, signals: Mapping[str, float], fused: Fused) -> Ranked:
    parts = {name: _SCALE * weight * signals[name] for name, weight in HYBRID_WEIGHTS.items()}
    return Ranked(candidate=candidate, score=math.fsum(parts.values()), parts=parts, fused=fused)


def _newness(candidate: Candidate) -> tuple[datetime, str]:
    return candidate.memory.created_at, candidate.memory.ref
