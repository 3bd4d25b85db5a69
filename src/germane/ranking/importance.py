"""Learns from use how important each memory is to one agent. Pure, and the same on every machine.

Level: ranking (imports model and errors; never retrieval or stores).

Of what a context showed, a share was used. A memory that did no better than the others of its
contexts is as important as it was set to be; one that was used twice as often as they is twice as
important. Observed uses over expected uses say how often, where a context adds its share of used
memories to what is expected of each that it showed. Nine showings prove little, so the ratio is drawn
toward 1 by a beta prior that is worth `PRIOR_SHOWINGS` showings with the expected rate:

    factor = 1 + showings / (showings + PRIOR_SHOWINGS) * (uses / expected - 1)

It is kept from LEAST_FACTOR to MOST_FACTOR, and what it makes of an importance from 0 to 10. So an
importance of 0 stays 0, and no other moves by more than a factor of 2, whatever is used: the number
that a user set goes on to count. A pinned memory keeps the importance that was set for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from germane.errors import InvalidInput
from germane.model.held import Held
from germane.model.learning import Example

__all__ = [
    "LEAST_FACTOR",
    "LEAST_SHOWINGS",
    "MOST_FACTOR",
    "PRIOR_SHOWINGS",
    "LearnedImportance",
    "importance_of",
    "learn_importance",
]

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


def importance_of(held: Held, learned: Mapping[str, LearnedImportance]) -> float:
    """The importance that counts: the learned one, unless the memory is pinned or nothing was learned."""
    own = held.memory.importance
    known = None if held.stays else learned.get(held.memory.id)
    return own if known is None else known.of(own)


def _factor(showings: int, uses: int, expected: float, prior_showings: float) -> float:
    believed = showings / (showings + prior_showings)
    factor = 1.0 + believed * (uses / expected - 1.0)
    return round(min(max(factor, LEAST_FACTOR), MOST_FACTOR), _DIGITS)
