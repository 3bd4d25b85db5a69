"""The composite score of the note on context management, exactly, normalised, and as factors.

Level: ranking (imports model and ranking only; never retrieval or stores). Pure: `now` is an argument.

    newton_v1 = .50 semantic + .15 type + .15 recency + .10 outcome + .05 usage + .05 confidence

    semantic    the cosine, -1 to 1; 0 where there is none
    type        the priority of the memory's section, 0 to 1; 0.5 unless the frame names it
    recency     e ^ (-0.023 * whole days)
    outcome     success 1.2, partial 1.0, pending 0.9, failure 0.8; all else 1.0
    usage       1 + 0.1 log10(uses), at most 1.5; 1.0 without a use
    confidence  as it is

It lies between -0.37 and 1.045, and gives 0.425 and more to what has nothing to do with the question,
which is why a gate has to stand before it. `newton` is the same with the cosine clamped to 0 to 1,
recency exact to the moment with a half-life of 30 days, and divided by 1.045.

As factors, the same signals multiply into a score of relevance, so that none of them can outrank it:
each weighs against likeness as much as it does in the sum, recency but a third of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.model.memory import Memory, Outcome
from germane.model.query import Candidate
from germane.model.stage import Stage
from germane.model.trace import Ranked
from germane.ranking.dialogue import is_turn

__all__ = [
    "HIGHEST",
    "LOWEST",
    "Boosts",
    "factors_of",
    "is_of",
    "multiply",
    "multiply_in_columns",
    "newton",
    "newton_v1",
    "sums_of",
    "usage_of",
    "with_associations",
]

LOWEST, HIGHEST = -0.37, 1.045
"""The range of `newton_v1`."""

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


def newton_v1(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """The weighted terms of the note's score, which add up to it."""
    memory = candidate.memory
    days = max((now - memory.created_at) // _DAY, 0)
    return _terms(
        memory,
        candidate.signals.get("semantic", 0.0),
        boosts.priority(memory.kind),
        math.exp(-_PER_DAY * days),
    )


def newton(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
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
