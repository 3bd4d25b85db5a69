"""The orders in which a working set can be shown. Pure: `now` is an argument, and nothing held changes.

Level: ranking (imports protocols, model and errors; never retrieval or stores).

| strategy    | score, the highest first                                                        |
|-------------|---------------------------------------------------------------------------------|
| `balanced`  | importance * decay(age): 1 / (1 + hours) unless told otherwise (the default)      |
| `recent`    | the place in the order of access, 1 for what was accessed last; no clock is read |
| `important` | importance                                                                      |
| `frequent`  | importance * (1 + ln(1 + accesses))                                             |
| `custom`    | what a scorer says                                                              |
| `clustered` | groups of what is related, by the best of each under another strategy           |
| `smart`     | recent, important or balanced, as the question's words have it                  |

Equal scores fall to what was accessed later, then to the newer, then to the smaller id, so the order is
total. `frequent` adds 1 to the logarithm of the decision record's example: without it, whatever was
never accessed would score 0, however important. It doesn't decay, as in the record on eviction.

Relevance to a question joins in where it is known: (1 - w) * standing + w * relevance, where the
standing is the strategy's score, from 0 for nothing to 1 for the best of the set.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

import numpy as np

from germane.errors import InvalidInput
from germane.model.held import Held
from germane.model.query import Candidate, Query
from germane.model.trace import Note, Ranked
from germane.model.vector import Vector
from germane.protocols import Scorer
from germane.ranking.clustering import ClusterBy, cluster
from germane.ranking.decay import Decay
from germane.ranking.importance import LearnedImportance, importance_of
from germane.ranking.smart import choose_strategy

__all__ = ["DEFAULT_STRATEGY", "STRATEGIES", "Arranged", "Known", "Strategy", "StrategyName", "arrange"]

StrategyName: TypeAlias = Literal[
    "balanced", "recent", "important", "frequent", "custom", "clustered", "smart"
]

STRATEGIES: tuple[str, ...] = get_args(StrategyName)
"""The strategies that can be asked for by name."""

DEFAULT_STRATEGY = "balanced"

_HOUR = timedelta(hours=1)
_Parts: TypeAlias = list[dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a working set is to be ordered.

    `decay` is that of `balanced`; `scorer` scores for `custom`; `base` orders what `clustered` groups, by
    `cluster_by`. `relevance` is the weight, from 0 to 1, of relevance to the question where that is known.
    Raises InvalidInput for an unknown name, for `custom` without a scorer or a scorer without `custom`,
    and for a weight outside its range.
    """

    name: StrategyName | str = DEFAULT_STRATEGY
    decay: Decay = field(default_factory=Decay)
    scorer: Scorer | None = None
    base: StrategyName | str = DEFAULT_STRATEGY
    cluster_by: ClusterBy = "auto"
    relevance: float = 0.5

    def __post_init__(self) -> None:
        for name in (self.name, self.base):
            if name not in STRATEGIES:
                raise InvalidInput(f"Unknown strategy: {name}. Known strategies: {', '.join(STRATEGIES)}.")
        if self.base == "clustered":
            raise InvalidInput("base='clustered' can't order what is clustered. Give another strategy.")
        asked = "custom" in (self.name, self.base if self.name == "clustered" else "")
        if asked != (self.scorer is not None):
            raise InvalidInput(
                "The strategy 'custom' needs a scorer: a function of a candidate, a query and a moment."
                if asked
                else f"The strategy {self.name!r} doesn't ask a scorer. Give it with strategy='custom'."
            )
        if self.cluster_by not in get_args(ClusterBy):
            raise InvalidInput(
                f"Unknown cluster_by {self.cluster_by!r}. Known: {', '.join(get_args(ClusterBy))}."
            )
        if not 0.0 <= self.relevance <= 1.0:
            raise InvalidInput(
                f"relevance={self.relevance} can't weigh relevance. Give a number from 0 (off) to 1 (alone)."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of held memories besides themselves, by memory id; each may lack some or all.

    `learned` is what use says of importances. `relevance` runs from 0 to 1 and is None where there is
    no question: then it plays no part; a memory that it lacks has none. `vectors` are of unit length
    and `terms` a memory's words, both for `clustered`.
    """

    learned: Mapping[str, LearnedImportance] = field(default_factory=dict)
    relevance: Mapping[str, float] | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    terms: Mapping[str, Collection[Hashable]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """A working set in its order: each entry once, with its score and the parts of it.

    `strategy` is the one that ordered, which `smart` chooses. The parts are what a score is made of and
    need not add up to it.
    """

    ranked: tuple[Ranked, ...]
    strategy: str
    notes: tuple[Note, ...] = ()


def arrange(
    held: Sequence[Held],
    strategy: Strategy,
    *,
    now: datetime,
    query: Query | None = None,
    known: Known | None = None,
) -> Arranged:
    """The entries in the order of a strategy. The order in which they are given doesn't matter.

    Parts: `importance`; `decay` and `age_hours`; `recency`; `frequency` and `accesses`; `scorer`, by the
    strategy. Besides, `importance_set` and `showings` where use has taught another importance;
    `standing` and `relevance` where relevance takes part; `cluster`, counted from 1.
    Raises InvalidInput for a scorer that raises, and for a score that is no finite number or a
    relevance outside its range; the error names the memory.
    """
    query, known = query or Query(), known or Known()
    if strategy.name == "smart":
        chosen = choose_strategy(query.text)
        found = arrange(held, replace(strategy, name=chosen.strategy), now=now, query=query, known=known)
        return replace(found, notes=(chosen.note, *found.notes))
    if strategy.name == "clustered":
        base = replace(strategy, name=strategy.base, base=DEFAULT_STRATEGY)
        return _clustered(arrange(held, base, now=now, query=query, known=known), strategy, known)
    scores, parts = _scored(held, strategy, now, query, known)
    if known.relevance is not None and strategy.relevance > 0:
        scores = _with_relevance(held, scores, parts, known.relevance, strategy.relevance)
    return Arranged(
        ranked=tuple(
            Ranked(candidate=Candidate(memory=held[place].memory), score=scores[place], parts=parts[place])
            for place in _best_first(held, scores)
        ),
        strategy=strategy.name,
        notes=_learned_notes(parts),
    )


def _scored(
    held: Sequence[Held], strategy: Strategy, now: datetime, query: Query, known: Known
) -> tuple[list[float], _Parts]:
    """The score of each entry by one of the plain strategies, with its parts."""
    if strategy.name == "recent":
        scores = _recency(held)
        return scores, [{"recency": score} for score in scores]
    if strategy.name == "custom" and strategy.scorer is not None:
        scores = [_by_scorer(strategy.scorer, one, query, now, known) for one in held]
        return scores, [{"scorer": score} for score in scores]
    importances, parts = _importances(held, known.learned)
    if strategy.name == "important":
        return importances, parts
    if strategy.name == "frequent":
        # One function for each number, and not one for all: a vector's logarithms may differ in the
        # last place by where in it they stand.
        scores = []
        for one, importance, part in zip(held, importances, parts, strict=True):
            part["frequency"] = 1.0 + math.log1p(one.accesses)
            part["accesses"] = float(one.accesses)
            scores.append(importance * part["frequency"])
        return scores, parts
    ages = strategy.decay.ages(held, now=now)
    scores = []
    for age, importance, part in zip(ages, importances, parts, strict=True):
        part["decay"] = weight = strategy.decay.weight(age)
        part["age_hours"] = age
        scores.append(importance * weight)
    return scores, parts


def _recency(held: Sequence[Held]) -> list[float]:
    """The share of the entries that were accessed no later than each."""
    orders = np.array([one.order for one in held], dtype=np.int64)
    places = np.searchsorted(np.sort(orders), orders, side="right")
    shares: list[float] = (places / max(len(held), 1)).tolist()
    return shares


def _importances(
    held: Sequence[Held], learned: Mapping[str, LearnedImportance]
) -> tuple[list[float], _Parts]:
    if not learned:
        found = [one.memory.importance for one in held]
        return found, [{"importance": importance} for importance in found]
    found = [importance_of(one, learned) for one in held]
    parts = [{"importance": importance} for importance in found]
    for one, part in zip(held, parts, strict=True):
        if one.memory.id in learned and not one.stays:
            part["importance_set"] = one.memory.importance
            part["showings"] = float(learned[one.memory.id].showings)
    return found, parts


def _learned_notes(parts: _Parts) -> tuple[Note, ...]:
    count = sum("showings" in part for part in parts)
    if not count:
        return ()
    return (
        Note(
            code="learned_importance",
            text=f"The importance of {count} of {len(parts)} memories was learned from their use.",
        ),
    )


def _by_scorer(scorer: Scorer, one: Held, query: Query, now: datetime, known: Known) -> float:
    """What a scorer says; beside the memory it is told, as signals, what the set knows of it."""
    signals = {
        "touches": float(one.touches),
        "order": float(one.order),
        "recalled": float(one.recalled),
        "entered_hours": max((now - one.entered_at) / _HOUR, 0.0),
        "touched_hours": max((now - one.touched_at) / _HOUR, 0.0),
    }
    if known.relevance is not None:
        signals["relevance"] = known.relevance.get(one.memory.id, 0.0)
    try:
        score = float(scorer(Candidate(memory=one.memory, signals=signals), query, now))
    except Exception as error:
        raise InvalidInput(
            f"The scorer failed for memory {one.memory.id!r}: {type(error).__name__}: {error}."
        ) from error
    if not math.isfinite(score):
        raise InvalidInput(
            f"The scorer gave memory {one.memory.id!r} the score {score}, which has no place in an order. "
            "A scorer has to return a finite number."
        )
    return score


def _with_relevance(
    held: Sequence[Held],
    scores: Sequence[float],
    parts: _Parts,
    relevance: Mapping[str, float],
    weight: float,
) -> list[float]:
    """The scores brought to 0 to 1, and relevance joined to them."""
    least, most = min(0.0, min(scores, default=0.0)), max(scores, default=0.0)
    found = []
    for one, score, part in zip(held, scores, parts, strict=True):
        near = relevance.get(one.memory.id, 0.0)
        if not 0.0 <= near <= 1.0:
            raise InvalidInput(
                f"The relevance of memory {one.memory.id!r} is {near}. Relevance runs from 0 to 1."
            )
        part["standing"] = standing = (score - least) / (most - least) if most > least else 0.0
        part["relevance"] = near
        found.append((1.0 - weight) * standing + weight * near)
    return found


def _best_first(held: Sequence[Held], scores: Sequence[float]) -> list[int]:
    """The places of the entries in rank order."""
    by_score = np.array(scores, dtype=np.float64)
    by_order = np.array([one.order for one in held], dtype=np.int64)
    places = np.lexsort((-by_order, -by_score))
    best, orders = by_score[places], by_order[places]
    if not np.any((best[1:] == best[:-1]) & (orders[1:] == orders[:-1])):
        found: list[int] = places.tolist()
        return found
    return _fully_sorted(held, scores)


def _fully_sorted(held: Sequence[Held], scores: Sequence[float]) -> list[int]:
    """The same with the last two criteria, which only entries of one order need."""
    by_id = sorted(range(len(held)), key=lambda place: held[place].memory.id)
    return sorted(
        by_id,
        key=lambda place: (scores[place], held[place].order, held[place].memory.created_at),
        reverse=True,
    )


def _clustered(found: Arranged, strategy: Strategy, known: Known) -> Arranged:
    """The groups one after another, each member with the number of its group."""
    by_id = {one.memory.id: one for one in found.ranked}
    groups = cluster(list(by_id), vectors=known.vectors, terms=known.terms, by=strategy.cluster_by)
    ranked = tuple(
        replace(by_id[memory_id], parts={**by_id[memory_id].parts, "cluster": float(number)})
        for number, group in enumerate(groups, start=1)
        for memory_id in group
    )
    return Arranged(ranked=ranked, strategy="clustered", notes=found.notes)
