"""What is hardly worth keeping, measured on labelled texts; no pattern ever saw the second half of them."""

from __future__ import annotations

from pathlib import Path

import germane
from germane.lifecycle import QualityFlag

NAMES = {
    "talk": QualityFlag.SMALL_TALK,
    "meta": QualityFlag.META_ANSWER,
    "status": QualityFlag.STATUS_DUMP,
    "keep": None,
}
LINES = Path(__file__).with_name("worth_sample.txt").read_text(encoding="utf-8").splitlines()
SAMPLE = [line.split(" | ", 1) for line in LINES if not line.startswith("#")]


def judged_alone(text: str) -> QualityFlag | None:
    """The mark of a text in a store without any other, which it might be like."""
    with germane.open(":memory:", embedder=None) as engine:
        (result,) = engine.remember_many([text])
        return result.quality_flag


def measured(texts: list[list[str]]) -> tuple[float, float]:
    """Precision and recall of doubt, whatever its reason."""
    judged = [(judged_alone(text) is not None, label != "keep") for label, text in texts]
    right = judged.count((True, True))
    return right / (right + judged.count((True, False))), right / (right + judged.count((False, True)))


def test_the_sample_is_large_and_of_all_sorts() -> None:
    assert len(SAMPLE) >= 120
    assert {label for label, _ in SAMPLE} == set(NAMES)


def test_the_half_that_was_looked_at_is_distinguished() -> None:
    assert all(judged_alone(text) is NAMES[label] for label, text in SAMPLE[::2])


def test_the_half_reserved_is_distinguished_as_measured() -> None:
    precision, recall = measured(SAMPLE[1::2])
    assert precision >= 0.97
    assert recall >= 0.9
