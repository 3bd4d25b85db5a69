"""Learns from use what each part of a score is worth, which memories are used, and how well an agent
judges.

Of what one context showed, some memories were used and some were not. Let a used memory with the parts x
compete with the unused ones of its context, so that it wins with the probability exp(t·x) / (exp(t·x) +
sum over the unused n of exp(t·n)): a conditional logit (McFadden 1974). What a user asks for and how much
a context shows then say nothing, since only memories of one context are compared. Each context counts the
same, however many memories were used in it.

The coefficients are t = steepness * weights, fitted in turns. The steepness, which they have
together, is how well the score says what is used. The weights are fitted against a prior that holds
them at 1 as firmly as `prior_strength` contexts of this use tell. So few contexts move nothing to
speak of, and about as many as the prior is worth move the weights half of the way. Where use has
nothing to do with the scores, the steepness is about 0, and so is all that the weights could learn:
they stay equal.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.lifecycle import CalibrationBin, DecisionCalibration
from germane.model.context import TraceNote
from germane.model.learning import Example, OutcomeRecord, Weights
from germane.model.memory import Memory, Outcome
from germane.model.text import counted

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
    total = sum(map(len, contexts))
    if not names:
        return Weights(values={}, contexts=0, examples=0)
    choices = _Choices(contexts, names)
    steepness, weights = _STEEPNESS, np.ones(len(names))
    for _ in range(_TURNS):
        steepness = _steepness(choices, weights, start=steepness)
        weights = _weights(choices, steepness, prior_strength, start=weights)
    bounded = np.clip(weights / weights.mean(), LEAST_WEIGHT, MOST_WEIGHT).round(_DIGITS)
    return Weights(
        values=dict(zip(names, bounded.tolist(), strict=True)), contexts=len(contexts), examples=total
    )


def learned_note(weights: Weights) -> TraceNote:
    """What a trace says of weights that were learned."""
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
    return TraceNote(
        code="learned",
        text=f"The parts of each score are weighed by what was used before: {named} "
        f"(from {counted(weights.examples, 'memory')} in {counted(weights.contexts, 'context')}).",
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
    information = steepness**2 * float(np.trace(curvature)) / (len(equal) * choices.count)
    precision = prior_strength * max(information, _LEAST_INFORMATION)
    found = start.copy()
    for _ in range(_ROUNDS):
        slope, curvature = choices.slope_and_curvature(steepness * found)
        down = steepness * slope + precision * (found - equal)
        step = np.linalg.solve(steepness**2 * curvature + precision * np.eye(len(equal)), down)
        found -= step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _LONGEST_STEP))
    # Nothing shown counts against being used; so the mean stays above 0 as well.
    return np.maximum(found, _LEAST)


# Tells which memories are used more and which less than others, of those that are shown.
#
# Of what an agent was shown, a part is used: its usual rate. A memory's own rate, drawn towards that one by
# two showings' worth, over it, clipped between 0.5 and 1.5, is its factor. It is 1 until a memory was
# shown twice. What was judged long ago counts less: half after 500 judgements, so that a memory that was of
# no use once can come back.

LEAST, MOST = 0.5, 1.5
LEAST_SHOWN = 2
"""Showings below which a memory has no learned value."""
HALF_AFTER = 500
"""Judgements after which one counts half."""

_DRAWN = 2.0


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


# What success and failure say of the memories that were shown.
#
# Each outcome is a vote for or against a memory, by its worth and its weight, that halves every 90 days. With
# s votes for and f against, the chance that the next work succeeds is (s + 1) / (s + f + 2), Laplace's
# rule of succession; a leaning is how far that is from even, from -1 to 1. So one failure says little, no
# number of outcomes says everything, later ones outweigh earlier ones, and what nobody confirms fades.

HALF_LIFE = timedelta(days=90)
"""After so long an outcome counts half."""

NAMED, SHOWN = 1.0, 0.25
"""What an outcome says of a memory that was named with it, and of one that was merely shown."""

_OUTCOME_LEAST = 1e-3


def leanings(attested: Iterable[OutcomeRecord], *, now: datetime) -> Mapping[str, float]:
    """How work turned out with each memory, from -1 to 1, by id; nothing for what leans neither way.

    The order of what is attested doesn't matter.
    """
    votes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in attested:
        weight = one.weight * 0.5 ** (max(now - one.at, timedelta(0)) / HALF_LIFE)
        votes[one.memory_id].append((weight * one.worth, weight * (1.0 - one.worth)))
    found = {memory_id: _leaning(its) for memory_id, its in sorted(votes.items())}
    return {memory_id: lean for memory_id, lean in found.items() if abs(lean) >= _OUTCOME_LEAST}


def _leaning(votes: Iterable[tuple[float, float]]) -> float:
    given = list(votes)
    success = math.fsum(each[0] for each in given)
    failure = math.fsum(each[1] for each in given)
    return 2.0 * (success + 1.0) / (success + failure + 2.0) - 1.0


# How well an agent judges itself: the confidence of its decisions beside what became of them.
#
# The score is Brier's (1950): the mean of (confidence - outcome)^2, from 0 for a prophet to 1; whoever
# always says 0.5 gets 0.25.

FEWEST: Final = 10
"""Decisions with an outcome below which no calibration is reported."""
NEUTRAL_BIAS: Final = 0.05
"""How far confidence may lie from what came true before it counts as a leaning."""

_WORTH: Final = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}


def calibrated(decisions: Iterable[Memory]) -> DecisionCalibration:
    """Brier score, bias and one sentence of advice, from decisions with a confidence and an outcome.

    A success counts 1, a partial one 0.5, a failure 0; pending and abandoned ones say nothing. A
    decision whose confidence nobody gave has 1, and is left out: it was never an estimate.
    """
    pairs = [pair for pair in map(decision_outcome, decisions) if pair is not None]
    count = len(pairs)
    if count == 0:
        return DecisionCalibration(count=0, brier=None, bias=None, success=None, advice=_too_few(0))
    brier = sum((confidence - worth) ** 2 for confidence, worth in pairs) / count
    bias = sum(confidence - worth for confidence, worth in pairs) / count
    success = sum(worth for _, worth in pairs) / count
    advice = _too_few(count) if count < FEWEST else _advice(success, bias, brier, count)
    return DecisionCalibration(
        count=count, brier=brier, bias=bias, success=success, advice=advice, bins=_bins(pairs)
    )


def _bins(pairs: Iterable[tuple[float, float]]) -> tuple[CalibrationBin, ...]:
    """Pairs of confidence and worth by tenths of confidence; full confidence belongs to the last tenth."""
    tenths: dict[int, list[tuple[float, float]]] = {}
    for confidence, worth in pairs:
        tenths.setdefault(min(9, int(confidence * 10)), []).append((confidence, worth))
    return tuple(
        CalibrationBin(
            confidence=math.fsum(confidence for confidence, _ in each) / len(each),
            success=math.fsum(worth for _, worth in each) / len(each),
            count=len(each),
        )
        for _, each in sorted(tenths.items())
    )


def decision_outcome(decision: Memory) -> tuple[float, float] | None:
    """The confidence and the worth of what became of it; None for what says nothing."""
    worth = None if decision.outcome is None else _WORTH.get(decision.outcome)
    if worth is None or decision.confidence >= 1.0:
        return None
    return decision.confidence, worth


def _advice(success: float, bias: float, brier: float, count: int) -> str:
    seen = f"Of {count} decisions {success:.0%} came true (Brier score {brier:.3f})"
    if bias > NEUTRAL_BIAS:
        return f"{seen}: you are over-confident by {bias:.0%}; ask what speaks against your choice."
    if bias < -NEUTRAL_BIAS:
        return f"{seen}: you are under-confident by {-bias:.0%}; trust your analysis more."
    return f"{seen}: your confidence is about right."


def _too_few(count: int) -> str:
    decisions = "decision has" if count == 1 else "decisions have"
    return (
        f"{count or 'No'} {decisions} both a confidence and an outcome; with fewer than {FEWEST}, it is too "
        "early to say how well you judge."
    )
