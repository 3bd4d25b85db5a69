"""Who leaves a working set when it needs room. Pure: it decides, and whoever keeps the set applies it.

Level: ranking (imports ranking, model and errors; never retrieval or stores).

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from germane.errors import InvalidInput
from germane.model.held import AgeBasis, Evicted, Eviction, Held
from germane.ranking.importance import LearnedImportance, importance_of

__all__ = ["EVICTION_POLICIES", "EvictionPolicy", "Value", "evict", "lacking"]

EvictionPolicy: TypeAlias = Literal["importance", "lru", "lfu", "frequency-weighted", "importance-age"]

EVICTION_POLICIES: tuple[str, ...] = get_args(EvictionPolicy)
"""The policies that can be asked for by name."""

Value: TypeAlias = Callable[[Held, datetime], float]
"""What an entry is worth at a moment; the least valuable leaves first. Must be pure."""

_Key: TypeAlias = tuple[float, int, datetime, int, datetime, str]


def lacking(held: Iterable[Held], *, tokens: int, max_tokens: int, replacing: str | None = None) -> int:
    """How many tokens a set lacks for an entry of `tokens`; 0 where there is room for it.

    An entry that is replaced, by memory id, gives its own tokens back. Raises InvalidInput for an
    entry that is longer than the whole set, which nothing that leaves could make room for.
    """
    if tokens > max_tokens:
        raise InvalidInput(
            f"An entry of {tokens} tokens can't enter a working set of {max_tokens}: emptying the set would "
            "not make room for it. Raise max_tokens, or hold a shorter memory."
        )
    used = sum(one.tokens for one in held if one.memory.id != replacing)
    return max(0, used + tokens - max_tokens)


def evict(
    held: Iterable[Held],
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
    `held` doesn't matter.
    Raises InvalidInput for an unknown policy, also when nothing is held, and for a function that
    raises or returns what is no finite number.
    """
    name, key_of = _keys(policy, learned or {}, basis, now)
    every = tuple(held)
    leaving = [one for one in every if not one.stays and one.tokens > 0 and one.memory.id not in keep]
    evicted: list[Evicted] = []
    freed = 0
    for key, one in sorted(((key_of(one), one) for one in leaving), key=lambda pair: pair[0]):
        if freed >= needed:
            break
        evicted.append(Evicted(held=one, freed=one.tokens, value=key[0]))
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
) -> tuple[str, Callable[[Held], _Key]]:
    """A policy's name and its total order: by value, then as the table above says, then by id."""

    def important(one: Held) -> float:
        return importance_of(one, learned)

    def rest(one: Held) -> tuple[int, datetime, str]:
        return one.order, one.memory.created_at, one.memory.id

    def oldest_by(value: Callable[[Held], float]) -> Callable[[Held], _Key]:
        return lambda one: (value(one), 0, one.moment(basis), *rest(one))

    def least_recent_by(value: Callable[[Held], float]) -> Callable[[Held], _Key]:
        return lambda one: (value(one), 0, _ANY_TIME, *rest(one))

    if callable(policy):
        return getattr(policy, "__name__", type(policy).__name__), oldest_by(_checked(policy, now))
    known: Mapping[str, Callable[[Held], _Key]] = {
        "importance": lambda one: (important(one), one.accesses, one.moment(basis), *rest(one)),
        "lru": least_recent_by(lambda one: float(one.order)),
        "lfu": least_recent_by(lambda one: float(one.accesses)),
        "frequency-weighted": oldest_by(lambda one: important(one) * (1.0 + math.log1p(one.accesses))),
        "importance-age": oldest_by(important),
    }
    if policy not in known:
        raise InvalidInput(
            f"Unknown eviction policy: {policy}. Known policies: {', '.join(known)}. "
            "Or give a function of an entry and a moment that returns what the entry is worth."
        )
    return policy, known[policy]


_ANY_TIME = datetime.min.replace(tzinfo=UTC)
"""Compared with itself alone."""


def _checked(value: Value, now: datetime) -> Callable[[Held], float]:
    def checked(one: Held) -> float:
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
