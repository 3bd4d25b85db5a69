"""Tells which memories are used more and which less than others, of those that are shown.

Level: ranking (imports model only; never retrieval or stores). Pure.

Of what an agent was shown, a part is used: its usual rate. A memory's own rate, drawn towards that one by
two showings' worth, divided by it and held between 0.5 and 1.5, is its factor. It is 1 until a memory was
shown twice. What was judged long ago counts less: half after 500 judgements, so that a memory that was of
no use once can come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from germane.model.learning import Example

__all__ = ["HALF_AFTER", "LEAST", "LEAST_SHOWN", "MOST", "usefulness"]

LEAST, MOST = 0.5, 1.5
LEAST_SHOWN = 2
"""Showings below which nothing is said of a memory."""
HALF_AFTER = 500
"""Judgements after which one counts half."""

_DRAWN = 2.0
_DIGITS = 4


def usefulness(examples: Sequence[Example]) -> Mapping[str, float]:
    """The factors that aren't 1, by memory id. The order of the examples doesn't matter."""
    latest = max((one.given for one in examples), default=0)
    times: Counter[str] = Counter(one.memory_id for one in examples)
    shown: dict[str, float] = {}
    used: dict[str, float] = {}
    for one in sorted(examples, key=lambda each: (each.memory_id, each.given, each.context)):
        weight = 0.5 ** ((latest - one.given) / HALF_AFTER)
        shown[one.memory_id] = shown.get(one.memory_id, 0.0) + weight
        used[one.memory_id] = used.get(one.memory_id, 0.0) + weight * one.used
    usual = sum(used.values()) / sum(shown.values()) if shown else 0.0
    if not usual:
        return {}
    factors = {
        memory_id: round(_factor(used[memory_id], shown[memory_id], usual), _DIGITS)
        for memory_id, count in times.items()
        if count >= LEAST_SHOWN
    }
    return {memory_id: factor for memory_id, factor in factors.items() if factor != 1.0}


def _factor(used: float, shown: float, usual: float) -> float:
    rate = (used + _DRAWN * usual) / (shown + _DRAWN)
    return min(max(rate / usual, LEAST), MOST)
