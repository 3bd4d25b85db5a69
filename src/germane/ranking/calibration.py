"""How well an agent judges itself: the confidence of its decisions beside what became of them.

Level: ranking (imports model only; never retrieval or stores). Pure. The score is Brier's (1950): the mean of
(confidence - outcome)^2, from 0 for a prophet to 1; whoever always says 0.5 gets 0.25.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from germane.model.judgement import Judgement
from germane.model.memory import Memory, Outcome

__all__ = ["FEWEST", "NEUTRAL_BIAS", "calibrated", "judged_by"]

FEWEST: Final = 10
"""Decisions with an outcome below which nothing can be said."""
NEUTRAL_BIAS: Final = 0.05
"""How far confidence may lie from what came true before it counts as a leaning."""

_WORTH: Final = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}


def calibrated(decisions: Iterable[Memory]) -> Judgement:
    """Brier score, bias and one sentence of advice, from decisions with a confidence and an outcome.

    A success counts 1, a partial one 0.5, a failure 0; pending and abandoned ones say nothing. A
    decision whose confidence nobody gave has 1, and is left out: it was never an estimate.
    """
    pairs = [pair for pair in map(judged_by, decisions) if pair is not None]
    count = len(pairs)
    if count == 0:
        return Judgement(count=0, brier=None, bias=None, success=None, advice=_too_few(0))
    brier = sum((confidence - worth) ** 2 for confidence, worth in pairs) / count
    bias = sum(confidence - worth for confidence, worth in pairs) / count
    success = sum(worth for _, worth in pairs) / count
    advice = _too_few(count) if count < FEWEST else _advice(success, bias, brier, count)
    return Judgement(count=count, brier=brier, bias=bias, success=success, advice=advice)


def judged_by(decision: Memory) -> tuple[float, float] | None:
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
