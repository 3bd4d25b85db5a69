"""Learns from use what each part of a score is worth to one agent. Pure, and the same on every machine.

Level: ranking (imports model and errors; never retrieval or stores).

Of what one context showed, some memories were used and some were not. Let a used memory with the
parts x compete with the unused ones of its context, so that it wins with the probability
exp(t·x) / (exp(t·x) + sum over the unused n of exp(t·n)): a conditional logit (McFadden 1974). What
a user asks for and how much a context shows then say nothing, since only memories of one context
are compared. Each context counts the same, however many memories were used in it.

The prior holds the coefficients t equal: what pulls them apart costs as much as `prior_strength`
contexts of ordinary spread tell. So few contexts move nothing to speak of, and about as many as
the prior is worth move the weights half of the way. How steep they are together is left to the
data, since only their proportions order anything: with feedback that has nothing to do with the
scores all go towards 0 together, and the weights stay equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.learning import Example, Weights
from germane.model.trace import Note

__all__ = [
    "LEAST_WEIGHT",
    "MOST_WEIGHT",
    "PRIOR_STRENGTH",
    "WEIGHABLE",
    "fit_weights",
    "learned_note",
    "signals_of",
]

PRIOR_STRENGTH = 50.0
"""What the prior of equal weights is worth, in contexts."""

LEAST_WEIGHT, MOST_WEIGHT = 0.5, 2.0
"""However much feedback says so, no part counts less or more than this."""

WEIGHABLE = frozenset({"lexical", "semantic", "window", "session", "speaker", "when"})
"""The parts that have weights. The others are whole scores by themselves, or made of the weighed ones."""

_STEEPNESS = 4.0
"""The coefficient expected before any feedback: a lead of 1 makes being used e⁴ times as likely."""
_LEAST_STEEPNESS = 2.0
"""Where scores say less than this of what is used, differences between parts are mostly noise."""
_STEEPNESS_PRIOR = 0.05
"""How firmly the common steepness is expected; weakly, for it changes no order."""
_LEAST_INFORMATION = 0.02
"""A context tells at least this much when the prior is sized, so that it never vanishes."""
_ROUNDS = 25
_LONGEST_STEP = 2.0
_DIGITS = 4

_Array: TypeAlias = NDArray[np.float64]


def signals_of(parts: Mapping[str, float]) -> Mapping[str, float]:
    """The parts of a score that have weights; none where recency or a scorer of the caller's decided."""
    return {name: part for name, part in parts.items() if name in WEIGHABLE}


def fit_weights(examples: Iterable[Example], *, prior_strength: float = PRIOR_STRENGTH) -> Weights:
    """The weights that the examples speak for: 1 for each part that they say nothing of.

    The mean of the weights is about 1, each from LEAST_WEIGHT to MOST_WEIGHT, with four digits. A context of
    which all was used, or nothing, says nothing and isn't counted. The order of the examples doesn't
    matter. Raises InvalidInput for a `prior_strength` that isn't above 0.
    """
    if not prior_strength > 0:
        raise InvalidInput(
            f"prior_strength={prior_strength} holds nothing. Give a number of contexts above 0."
        )
    contexts = _telling(examples)
    names = sorted({name for context in contexts for example in context for name in example.parts})
    told = sum(map(len, contexts))
    if not names:
        return Weights(values={}, contexts=0, examples=0)
    choices = _Choices(contexts, names)
    equal = np.full(len(names), _STEEPNESS)
    coefficients = _most_likely(choices, equal, _penalty(choices, equal, prior_strength))
    common = float(coefficients.mean())
    weights = 1.0 + (coefficients - common) / max(common, _LEAST_STEEPNESS)
    bounded = np.clip(weights, LEAST_WEIGHT, MOST_WEIGHT).round(_DIGITS)
    return Weights(
        values=dict(zip(names, bounded.tolist(), strict=True)), contexts=len(contexts), examples=told
    )


def learned_note(weights: Weights) -> Note:
    """What a trace says of weights that were learned."""
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
    return Note(
        code="learned",
        text=f"The parts of each score are weighed by what was used before: {named} "
        f"(from {weights.examples} memories in {weights.contexts} context{'s'[: weights.contexts != 1]}).",
    )


def _telling(examples: Iterable[Example]) -> list[list[Example]]:
    """The examples by context, in a total order, where some were used and some were not."""
    ordered = sorted(
        examples, key=lambda one: (one.context, one.memory_id, one.used, sorted(one.parts.items()))
    )
    contexts = [list(group) for _, group in groupby(ordered, key=lambda one: one.context)]
    return [context for context in contexts if len({one.used for one in context}) > 1]


class _Choices:
    """Used and unused memories as arrays: a row each, a column per part, grouped by context.

    A used row stands for its share of its context, so that the shares of a context add up to 1.
    """

    def __init__(self, contexts: Sequence[Sequence[Example]], names: Sequence[str]) -> None:
        self.used, of_used = _rows(contexts, names, used=True)
        self.unused, of_unused = _rows(contexts, names, used=False)
        self.count = len(contexts)
        self.context = of_used
        self.starts = np.flatnonzero(np.diff(of_unused, prepend=-1))
        self.sizes = np.bincount(of_unused, minlength=self.count)
        self.share = 1.0 / np.bincount(of_used, minlength=self.count)[of_used]

    def slope_and_curvature(self, coefficients: _Array) -> tuple[_Array, _Array]:
        """The first and the second derivative of the summed log loss."""
        unused, used = self.unused @ coefficients, self.used @ coefficients
        top = np.maximum.reduceat(unused, self.starts)
        odds = np.exp(unused - np.repeat(top, self.sizes))
        total = np.add.reduceat(odds, self.starts)
        odds /= np.repeat(total, self.sizes)
        mean = np.add.reduceat(odds[:, None] * self.unused, self.starts)
        # The chance that a used one loses against all unused ones of its context together.
        lost = 1.0 / (1.0 + np.exp(np.clip(used - (np.log(total) + top)[self.context], -500, 500)))
        lead = self.used - mean[self.context]
        slope = -((self.share * lost) @ lead)
        spread = self.unused - np.repeat(mean, self.sizes, axis=0)
        lost_in = np.bincount(self.context, weights=self.share * lost, minlength=self.count)
        within = (np.repeat(lost_in, self.sizes) * odds)[:, None] * spread
        between = (self.share * lost * (1.0 - lost))[:, None] * lead
        return slope, within.T @ spread + between.T @ lead


def _rows(
    contexts: Sequence[Sequence[Example]], names: Sequence[str], *, used: bool
) -> tuple[_Array, NDArray[np.int64]]:
    """The parts of the used (or unused) examples, and the number of each one's context."""
    chosen = [(number, one) for number, context in enumerate(contexts) for one in context if one.used is used]
    rows = [[one.parts.get(name, 0.0) for name in names] for _, one in chosen]
    return np.array(rows, dtype=np.float64), np.array([number for number, _ in chosen], dtype=np.int64)


def _penalty(choices: _Choices, equal: _Array, prior_strength: float) -> _Array:
    """The precision of the prior: firm across the direction in which all weights are equal, weak along it."""
    size = len(equal)
    along = np.full((size, size), 1.0 / size)
    across = np.eye(size) - along
    _, curvature = choices.slope_and_curvature(equal)
    ordinary = float(np.trace(across @ curvature)) / (max(size - 1, 1) * choices.count)
    firm: _Array = prior_strength * max(ordinary, _LEAST_INFORMATION) * across
    return firm + _STEEPNESS_PRIOR * along


def _most_likely(choices: _Choices, equal: _Array, precision: _Array) -> _Array:
    """The coefficients of the greatest posterior, by Newton's method; the loss is convex."""
    found = equal.copy()
    for _ in range(_ROUNDS):
        slope, curvature = choices.slope_and_curvature(found)
        step = np.linalg.solve(curvature + precision, slope + precision @ (found - equal))
        found -= step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _LONGEST_STEP))
    return found
