# ruff: noqa: E501 - the sentences are shown whole.
"""What confidence was worth: Brier's score, bias, and one sentence."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

import germane
from germane import Outcome
from germane.lifecycle import DecisionCalibration


def calibrated(*judged: tuple[float | None, Outcome | None]) -> DecisionCalibration:
    """The calibration of decisions with these confidences and outcomes."""
    with germane.open(":memory:", embedder=None) as engine:
        for number, (confidence, outcome) in enumerate(judged):
            engine.remember(f"Decided {number}.", kind="decision", confidence=confidence, outcome=outcome)
        return engine.calibration()


def decided(confidence: float, successes: int, failures: int) -> DecisionCalibration:
    outcomes = [Outcome.SUCCESS] * successes + [Outcome.FAILURE] * failures
    return calibrated(*((confidence, outcome) for outcome in outcomes))


def test_the_score_is_the_mean_squared_error_and_the_bias_its_direction() -> None:
    found = decided(0.8, 6, 4)
    assert (found.count, found.success) == (10, 0.6)
    assert found.brier == pytest.approx((6 * 0.04 + 4 * 0.64) / 10)
    assert found.bias == pytest.approx(0.2)


def test_one_sentence_for_each_leaning() -> None:
    assert [decided(each, 6, 4).advice for each in (0.8, 0.3, 0.6)] == snapshot(
        [
            "Of 10 decisions 60% came true (Brier score 0.280): you are over-confident by 20%; ask what speaks against your choice.",
            "Of 10 decisions 60% came true (Brier score 0.330): you are under-confident by 30%; trust your analysis more.",
            "Of 10 decisions 60% came true (Brier score 0.240): your confidence is about right.",
        ]
    )


def test_too_few_say_nothing() -> None:
    assert [decided(0.9, count, 0).advice for count in (0, 1, 9)] == snapshot(
        [
            "No decisions have both a confidence and an outcome; with fewer than 10, it is too early to say how well you judge.",
            "1 decision has both a confidence and an outcome; with fewer than 10, it is too early to say how well you judge.",
            "9 decisions have both a confidence and an outcome; with fewer than 10, it is too early to say how well you judge.",
        ]
    )


def test_what_was_never_an_estimate_or_never_ended_does_not_count() -> None:
    unsaid = (None, Outcome.SUCCESS)
    open_ones = [(0.5, outcome) for outcome in (None, Outcome.PENDING, Outcome.ABANDONED)]
    found = calibrated(unsaid, *open_ones, (0.5, Outcome.PARTIAL))
    assert (found.count, found.brier, found.bias) == (1, 0.0, 0.0)
