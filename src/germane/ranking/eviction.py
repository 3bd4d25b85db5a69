"""Which memories leave a working set when it needs tokens: by importance and by age.

| policy               | leaves first                                                            |
|----------------------|-------------------------------------------------------------------------|
| `importance`         | the least important, then the least accessed, then the oldest (default)  |
| `lru`                | what was accessed least recently, by order of access and not by the clock |
| `lfu`                | what was accessed least often, then what was accessed least recently     |
| `frequency-weighted` | the least importance * (1 + ln(1 + accesses)), then the oldest            |
| `importance-age`     | the least important, then the oldest                                      |
| a function           | the least value of it, then the oldest                                    |

An entry's age counts from when it entered the set, or from another moment that `basis` names.
`importance-age` is the decision record on eviction to the letter, whose text sorts by importance before
age. The default lets accesses decide between them, so that of two equally important entries the one that is
in use stays. The logarithm has 1 added, as that record has it: without it, whatever was never accessed
would be worth nothing.

Learns from use how important each memory is to one agent. Pure, and the same on every machine.

Of what a context showed, a share was used. A memory that did no better than the others of its contexts is
as important as it was set to be; one that was used twice as often as they is twice as important. Observed
uses over expected uses say how often, where a context adds its share of used memories to what is expected
of each that it showed. Nine showings prove little, so the ratio is drawn toward 1 by a beta prior that is
worth `PRIOR_SHOWINGS` showings with the expected rate:

    factor = 1 + showings / (showings + PRIOR_SHOWINGS) * (uses / expected - 1)

It is clipped from LEAST_FACTOR to MOST_FACTOR, and what it makes of an importance from 0 to 10. So an
importance of 0 stays 0, and no other moves by more than a factor of 2, whatever is used: the number
that a user set goes on to count. A pinned memory keeps the importance that was set for it.

How a memory loses weight with age. Pure.

hyperbolic   1 / (1 + age / hours)    half at `hours`, a third at twice that, a quarter at three times
    exponential  2 ^ (-age / hours)       half at `hours`, a quarter at twice that: a half-life
    none         1

`hours` is therefore the half-value age of both, and a half-life of the exponential shape alone. The
hyperbolic one with one hour is that of the decision record on context assembly, which calls it a
half-life.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.learning import Example
from germane.model.validation import checked_fields
from germane.working_sets import AgeBasis, Evicted, Eviction, WorkingSetItem

EvictionPolicy: TypeAlias = Literal["importance", "lru", "lfu", "frequency-weighted", "importance-age"]

Value: TypeAlias = Callable[[WorkingSetItem, datetime], float]
"""What an entry is worth at a moment; the least valuable leaves first. Must be pure."""

_Key: TypeAlias = tuple[float, int, datetime, int, datetime, str]


def lacking(
    items: Iterable[WorkingSetItem], *, tokens: int, max_tokens: int, replacing: str | None = None
) -> int:
    """How many tokens a set lacks for an entry of `tokens`; 0 if it fits.

    An entry that is replaced, by memory id, gives its own tokens back. Raises InvalidInput for an
    entry that is longer than the whole set, which no eviction could make fit.
    """
    if tokens > max_tokens:
        raise InvalidInput(
            f"An entry of {tokens} tokens can't enter a working set of {max_tokens}: emptying the set would "
            "not free enough. Raise max_tokens, or hold a shorter memory."
        )
    used = sum(one.tokens for one in items if one.memory.id != replacing)
    return max(0, used + tokens - max_tokens)


def evict(
    items: Iterable[WorkingSetItem],
    needed: int,
    *,
    now: datetime,
    policy: EvictionPolicy | Value | str = "importance",
    learned: Mapping[str, LearnedImportance] | None = None,
    basis: AgeBasis = AgeBasis.ENTERED,
    keep: Collection[str] = (),
) -> Eviction:
    """The entries that leave so that at least `needed` tokens are freed, in the order of leaving.

    Entries leave one by one until enough is freed, and none after that. Pinned entries stay, and
    so do those whose memory ids are in `keep` (the entry that is being replaced). An entry without
    tokens stays too: it would free nothing. `learned` holds by memory id
    what use says of importances. `basis` says from which moment on an entry is old. The order of
    `items` doesn't matter.
    Raises InvalidInput for an unknown policy, also for an empty set, and for a function that
    raises or returns what is no finite number.
    """
    name, key_of = _keys(policy, learned or {}, basis, now)
    every = tuple(items)
    leaving = [one for one in every if not one.stays and one.tokens > 0 and one.memory.id not in keep]
    evicted: list[Evicted] = []
    freed = 0
    for key, one in sorted(((key_of(one), one) for one in leaving), key=lambda pair: pair[0]):
        if freed >= needed:
            break
        evicted.append(Evicted(item=one, freed=one.tokens, value=key[0]))
        freed += one.tokens
    shortfall = max(0, needed - freed)
    blocking = (one for one in every if one.stays and one.tokens > 0 and one.memory.id not in keep)
    return Eviction(
        policy=name,
        needed=max(0, needed),
        evicted=tuple(evicted),
        freed=freed,
        shortfall=shortfall,
        in_the_way=tuple(sorted(blocking, key=lambda one: one.order)) if shortfall else (),
    )


def _keys(
    policy: EvictionPolicy | Value | str,
    learned: Mapping[str, LearnedImportance],
    basis: AgeBasis,
    now: datetime,
) -> tuple[str, Callable[[WorkingSetItem], _Key]]:
    """A policy's name and its total order: by value, then as the table above says, then by id."""

    def important(one: WorkingSetItem) -> float:
        return importance_of(one, learned)

    def rest(one: WorkingSetItem) -> tuple[int, datetime, str]:
        return one.order, one.memory.created_at, one.memory.id

    def oldest_by(value: Callable[[WorkingSetItem], float]) -> Callable[[WorkingSetItem], _Key]:
        return lambda one: (value(one), 0, one.moment(basis), *rest(one))

    def least_recent_by(value: Callable[[WorkingSetItem], float]) -> Callable[[WorkingSetItem], _Key]:
        return lambda one: (value(one), 0, _ANY_TIME, *rest(one))

    if callable(policy):
        return getattr(policy, "__name__", type(policy).__name__), oldest_by(_checked(policy, now))
    known: Mapping[str, Callable[[WorkingSetItem], _Key]] = {
        "importance": lambda one: (important(one), one.accesses, one.moment(basis), *rest(one)),
        "lru": least_recent_by(lambda one: float(one.order)),
        "lfu": least_recent_by(lambda one: float(one.accesses)),
        "frequency-weighted": oldest_by(lambda one: important(one) * (1.0 + math.log1p(one.accesses))),
        "importance-age": oldest_by(important),
    }
    if policy not in known:
        raise InvalidInput(
            f"Unknown eviction policy: {policy!r}. Known policies: {', '.join(known)}. "
            "Or give a function of an entry and a moment that returns what the entry is worth."
        )
    return policy, known[policy]


_ANY_TIME = datetime.min.replace(tzinfo=UTC)
"""Compared with itself alone."""


def _checked(value: Value, now: datetime) -> Callable[[WorkingSetItem], float]:
    def checked(one: WorkingSetItem) -> float:
        try:
            worth = float(value(one, now))
        except Exception as error:
            raise InvalidInput(
                f"The eviction policy failed for memory {one.memory.id!r}: {type(error).__name__}: {error}. "
                "Nothing was evicted."
            ) from error
        if not math.isfinite(worth):
            raise InvalidInput(
                f"The eviction policy gave memory {one.memory.id!r} the value {worth}, which has no place in "
                "an order. It has to return a finite number. Nothing was evicted."
            )
        return worth

    return checked


PRIOR_SHOWINGS = 10.0
"""What the prior is worth: after so many showings, half of what use says is believed."""

LEAST_FACTOR, MOST_FACTOR = 0.5, 2.0
"""However much feedback says so, no memory counts less or more than this times its set importance."""

LEAST_SHOWINGS = 2
"""One showing says more about the question than about the memory, and changes nothing."""

_MOST_IMPORTANT = 10.0
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedImportance:
    """What use says of one memory: its importance is `factor` times the one that was set.

    `uses` of `showings` were reported, where `expected` would have been usual.
    """

    factor: float
    showings: int
    uses: int
    expected: float

    def of(self, importance: float) -> float:
        """The importance that follows from the one that was set, from 0 to 10."""
        return min(importance * self.factor, _MOST_IMPORTANT)

    def explain(self, importance: float) -> str:
        """Both importances and what the second rests on, in words."""
        return (
            f"importance set {importance:.1f}, learned {self.of(importance):.1f} "
            f"from {self.showings} showing{'s'[: self.showings != 1]}"
        )


def learn_importance(
    examples: Iterable[Example], *, prior_showings: float = PRIOR_SHOWINGS
) -> Mapping[str, LearnedImportance]:
    """What use says of each memory, by memory id; a memory without enough of it isn't named.

    A context of which all was used, or nothing, says nothing and isn't counted. The order of the
    examples doesn't matter. Raises InvalidInput for a `prior_showings` that isn't above 0.
    """
    if not prior_showings > 0:
        raise InvalidInput(
            f"prior_showings={prior_showings} holds nothing. Give a number of showings above 0."
        )
    contexts: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in examples:
        contexts[one.context][one.memory_id] = one.used or contexts[one.context].get(one.memory_id, False)
    showings: dict[str, int] = defaultdict(int)
    uses: dict[str, int] = defaultdict(int)
    expected: dict[str, float] = defaultdict(float)
    # In one order, so that the sums don't depend on that of the examples.
    for _, shown in sorted(contexts.items()):
        share = sum(shown.values()) / len(shown)
        if 0.0 < share < 1.0:
            for memory_id, used in shown.items():
                showings[memory_id] += 1
                uses[memory_id] += used
                expected[memory_id] += share
    return {
        memory_id: LearnedImportance(
            factor=_factor(count, uses[memory_id], expected[memory_id], prior_showings),
            showings=count,
            uses=uses[memory_id],
            expected=round(expected[memory_id], _DIGITS),
        )
        for memory_id, count in sorted(showings.items())
        if count >= LEAST_SHOWINGS
    }


def importance_of(item: WorkingSetItem, learned: Mapping[str, LearnedImportance]) -> float:
    """The importance that counts: the learned one, unless the memory is pinned or nothing was learned."""
    own = item.memory.importance
    known = None if item.stays else learned.get(item.memory.id)
    return own if known is None else known.of(own)


def _factor(showings: int, uses: int, expected: float, prior_showings: float) -> float:
    believed = showings / (showings + prior_showings)
    factor = 1.0 + believed * (uses / expected - 1.0)
    return round(min(max(factor, LEAST_FACTOR), MOST_FACTOR), _DIGITS)


Shape: TypeAlias = Literal["hyperbolic", "exponential", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Decay:
    """The weight of a memory by its age, from 1 when it is new towards 0.

    `hours` is the age at which the weight is one half, `basis` the moment from which an item
    ages. Raises InvalidInput for an unknown shape or basis, and for `hours` that aren't a finite
    number above 0.
    """

    shape: Shape = "hyperbolic"
    hours: float = 1.0
    basis: AgeBasis = AgeBasis.CREATED

    def __post_init__(self) -> None:
        if not 0 < self.hours < math.inf:
            raise InvalidInput(
                f"hours={self.hours} can't be the age that halves a weight. Give a finite number above 0, "
                'or shape="none" for no decay.'
            )

    def weight(self, age_hours: float) -> float:
        """The weight at an age in hours; an age below 0 counts as 0, since clocks can run backwards."""
        age = max(age_hours, 0.0)
        if self.shape == "hyperbolic":
            return 1.0 / (1.0 + age / self.hours)
        if self.shape == "exponential":
            return math.exp2(-age / self.hours)
        return 1.0

    def weights(self, ages: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights at many ages, each the same as `weight` gives."""
        if self.shape == "hyperbolic":
            return 1.0 / (1.0 + np.maximum(ages, 0.0) / self.hours)
        return np.array([self.weight(age) for age in ages.tolist()], dtype=np.float64)
