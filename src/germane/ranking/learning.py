"""Learns from use what each part of a score is worth to one agent. Pure, and the same on every machine.

Level: ranking (imports model and errors; never retrieval or stores).

Of what one context showed, some memories were used and some were not. Let a used memory with the
parts x compete with the unused ones of its context, so that it wins with the probability
exp(t·x) / (exp(t·x) + sum over the unused n of exp(t·n)): a conditional logit (McFadden 1974). What
a user asks for and how much a context shows then say nothing, since only memories of one context
are compared. Each context counts the same, however many memories were used in it.

The coefficients are t = steepness * weights, fitted in turns. The steepness, which they have
together, is how well the score says what is used. The weights are fitted against a prior that holds
them at 1 as firmly as `prior_strength` contexts of this use tell. So few contexts move nothing to
speak of, and about as many as the prior is worth move the weights half of the way. Where use has
nothing to do with the scores, the steepness is about 0, and so is all that the weights could learn:
they stay equal.
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

_STEEPNESS, _STEEPNESS_PRIOR = 4.0, 0.1
"""The steepness expected before any use, and how firmly: a lead of 1 makes being used e⁴ times as likely."""
_MOST_STEEPNESS = 20.0
_LEAST_INFORMATION = 0.25
"""What a context tells of the weights where scores say something of use; the prior counts no less."""
_TURNS, _ROUNDS = 5, 8
_LONGEST_STEP = 0.5
_LEAST = 0.01
_DIGITS = 4

_Array: TypeAlias = NDArray[np.float64]


def signals_of(parts: Mapping[str, float]) -> Mapping[str, float]:
    """The parts of a score that have weights; none where recency or a scorer of the caller's decided."""
    return {name: part for name, part in parts.items() if name in WEIGHABLE}


def fit_weights(examples: Iterable[Example], *, prior_strength: float = PRIOR_STRENGTH) -> Weights:
    """The weights that the examples speak for: 1 for each part that they say nothing of.

    Each is from LEAST_WEIGHT to MOST_WEIGHT, with four digits. A context of which all was used, or
    nothing, says nothing and isn't counted. The order of the examples doesn't
    matter. Raises InvalidInput for a `prior_strength` that isn't above 0.
    """
    if not prior_strength > 0:
        raise InvalidInput(
            f"prior_strength={prior_strength} holds nothing. Give a number of contexts above 0."
        )
    contexts = _telling(examples)
    names = sorted({name for context in contexts for name in _differing(context)})
    told = sum(map(len, contexts))
    if not names:
        return Weights(values={}, contexts=0, examples=0)
    choices = _Choices(contexts, names)
    steepness, weights = _STEEPNESS, np.ones(len(names))
    for _ in range(_TURNS):
        steepness = _steepness(choices, weights, start=steepness)
        weights = _weights(choices, steepness, prior_strength, start=weights)
    bounded = np.clip(weights / weights.mean(), LEAST_WEIGHT, MOST_WEIGHT).round(_DIGITS)
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


def _differing(context: Sequence[Example]) -> set[str]:
    """The parts in which the memories of a context differ; no other says anything."""
    names = {name for one in context for name in one.parts}
    return {name for name in names if len({one.parts.get(name, 0.0) for one in context}) > 1}


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


def _steepness(choices: _Choices, weights: _Array, *, start: float) -> float:
    """The common coefficient of the greatest posterior at these weights, by Newton's method: it is convex."""
    steepness = start
    for _ in range(_ROUNDS):
        slope, curvature = choices.slope_and_curvature(steepness * weights)
        down = float(weights @ slope) + _STEEPNESS_PRIOR * (steepness - _STEEPNESS)
        steepness -= down / (float(weights @ curvature @ weights) + _STEEPNESS_PRIOR)
        steepness = min(max(steepness, 0.0), _MOST_STEEPNESS)
    return steepness


def _weights(choices: _Choices, steepness: float, prior_strength: float, *, start: _Array) -> _Array:
    """The weights of the greatest posterior at this steepness, by Newton's method: it is convex."""
    equal = np.ones_like(start)
    _, curvature = choices.slope_and_curvature(steepness * equal)
    told = steepness**2 * float(np.trace(curvature)) / (len(equal) * choices.count)
    precision = prior_strength * max(told, _LEAST_INFORMATION)
    found = start.copy()
    for _ in range(_ROUNDS):
        slope, curvature = choices.slope_and_curvature(steepness * found)
        down = steepness * slope + precision * (found - equal)
        step = np.linalg.solve(steepness**2 * curvature + precision * np.eye(len(equal)), down)
        found -= step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _LONGEST_STEP))
    # Nothing shown counts against being used; so the mean stays above 0 as well.
    return np.maximum(found, _LEAST)
