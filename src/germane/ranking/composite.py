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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

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
    "newton",
    "newton_v1",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """What multiplies into a score beside the memory itself.

    `priorities` are those of the frame by kind, `domain` names what it is about, and `usefulness` is, by
    memory id, how much more or less than usual a memory was used of what was shown, 0.5 to 1.5.
    """

    priorities: Mapping[str, float] = field(default_factory=dict)
    domain: tuple[str, ...] = ()
    usefulness: Mapping[str, float] = field(default_factory=dict)

    def priority(self, memory: Memory) -> float:
        """The priority of a memory's section, 0.5 unless it is named."""
        return self.priorities.get(memory.kind, _UNKNOWN_PRIORITY)


def newton_v1(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """The weighted terms of the note's score, which add up to it."""
    memory = candidate.memory
    days = max((now - memory.created_at) // _DAY, 0)
    return _terms(
        memory, candidate.signals.get("semantic", 0.0), boosts.priority(memory), math.exp(-_PER_DAY * days)
    )


def newton(candidate: Candidate, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """The same terms from 0 to 1 in sum: a clamped cosine, an exact half-life, divided by the most."""
    memory = candidate.memory
    cosine = min(max(candidate.signals.get("semantic", 0.0), 0.0), 1.0)
    terms = _terms(memory, cosine, boosts.priority(memory), _recency(memory, now))
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


def with_associations(ranked: Sequence[Ranked], nearness: Mapping[str, float]) -> tuple[Ranked, ...]:
    """The ranking with part `association` for what is near to what was found: half of how near it is."""
    lifted = [
        one
        if one.memory.id not in nearness
        else replace(
            one,
            parts={**one.parts, "association": _ASSOCIATION * nearness[one.memory.id]},
            score=one.score + _ASSOCIATION * nearness[one.memory.id],
        )
        for one in ranked
    ]
    return tuple(sorted(lifted, key=lambda one: -one.score))


def factors_of(memory: Memory, *, now: datetime, boosts: Boosts) -> dict[str, float]:
    """What a memory's score is multiplied by, by name; 1 changes nothing."""
    return {
        "frame": 1.0 + _TYPE / _SEMANTIC * (boosts.priority(memory) - _UNKNOWN_PRIORITY),
        "recency": 1.0 + _RECENCY_FACTOR * (_recency(memory, now) - 1.0),
        "outcome": 1.0 + _OUTCOME / _SEMANTIC * (_outcome(memory) - 1.0),
        "usage": 1.0 + _USAGE / _SEMANTIC * (usage_of(memory) - 1.0),
        "confidence": 1.0 + _CONFIDENCE / _SEMANTIC * (memory.confidence - 1.0),
        "domain": 1.0 + _DOMAIN_FACTOR * (boosts.domain != () and is_of(memory, boosts.domain)),
        "core": 1.0 + _CORE_FACTOR * (memory.stage is Stage.CORE),
        "useful": boosts.usefulness.get(memory.id, 1.0),
    }


def is_of(memory: Memory, domain: Collection[str]) -> bool:
    """Whether a memory names one of these domains, in its metadata."""
    named = memory.metadata.get("domain")
    several = named if isinstance(named, list | tuple) else (named,)
    return any(each in domain for each in several)


def usage_of(memory: Memory) -> float:
    """How often a memory was used, from 1 for never or once to 1.5 for a hundred thousand times."""
    return min(1.0 + 0.1 * math.log10(memory.access_count), 1.5) if memory.access_count > 0 else 1.0


def _terms(memory: Memory, semantic: float, priority: float, recency: float) -> dict[str, float]:
    return {
        "semantic": _SEMANTIC * semantic,
        "type": _TYPE * priority,
        "recency": _RECENCY * recency,
        "outcome": _OUTCOME * _outcome(memory),
        "usage": _USAGE * usage_of(memory),
        "confidence": _CONFIDENCE * memory.confidence,
    }


def _recency(memory: Memory, now: datetime) -> float:
    return math.exp2(-max((now - memory.created_at) / _HALF_LIFE, 0.0))


def _outcome(memory: Memory) -> float:
    return 1.0 if memory.outcome is None else _OUTCOMES.get(memory.outcome, 1.0)
