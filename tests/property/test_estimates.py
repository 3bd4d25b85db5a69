"""The estimates' bounds hold on texts that no fit has seen.

`claude_counts.json` holds texts written for this test, in 33 languages and a dozen kinds of other text, with
the counts of tiktoken (o200k) and of ctok 1.3.0 (versions 3.0 and 4.8, less the frame of the message).
"""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.tokens import get_counter

Counted = TypedDict("Counted", {"kind": str, "text": str, "o200k": int, "claude-4": int, "claude-4.8": int})
SAMPLES: list[Counted] = json.loads(
    Path(__file__).with_name("claude_counts.json").read_text(encoding="utf-8")
)
HAS_CTOK = importlib.util.find_spec("ctok") is not None


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_the_bounds_hold_on_unseen_texts(sample: Counted) -> None:
    text = sample["text"]
    assert get_counter("o200k").count(text) == sample["o200k"]
    estimate, older, newer = (
        get_counter("estimate"),
        get_counter("claude-4-estimate"),
        get_counter("claude-4.8-estimate"),
    )
    assert sample["o200k"] <= estimate.count(text) * (1 + estimate.margin)
    assert sample["claude-4"] <= older.count(text) * (1 + older.margin)
    assert sample["claude-4.8"] <= newer.count(text) * (1 + newer.margin)


def test_the_claude_estimates_lean_to_the_high_side_without_waste() -> None:
    for family in ("claude-4", "claude-4.8"):
        counted = [
            (sample[family], get_counter(f"{family}-estimate").count(sample["text"])) for sample in SAMPLES
        ]
        assert sum(true <= estimated for true, estimated in counted) >= 0.85 * len(counted)
        assert sum(estimated for _, estimated in counted) <= 1.5 * sum(true for true, _ in counted)


@given(
    runs=st.lists(st.tuples(st.sampled_from(" \t\n"), st.sampled_from([1, 2, 3, 8, 60, 1500])), max_size=60)
)
def test_the_estimates_bound_holds_for_blanks(runs: list[tuple[str, int]]) -> None:
    text = "".join(blank * times for blank, times in runs)
    estimate = get_counter("estimate")
    assert get_counter("o200k").count(text) <= estimate.count(text) * (1 + estimate.margin)


@given(order=st.permutations(range(len(SAMPLES))), many=st.integers(2, 12))
def test_the_bounds_hold_for_mixtures(order: list[int], many: int) -> None:
    chosen = [SAMPLES[place] for place in order[:many]]
    text = "\n\n".join(sample["text"] for sample in chosen)
    estimate = get_counter("estimate")
    true = get_counter("o200k").count(text)
    assert true <= estimate.count(text) * (1 + estimate.margin)
    for family in ("claude-4", "claude-4.8"):
        counter = get_counter(f"{family}-estimate")
        # What a part costs alone it costs in a mixture; a seam can only save a token.
        parts = sum(sample[family] for sample in chosen)
        assert parts <= counter.count(text) * (1 + counter.margin)


@given(seed=st.integers(0, 2**32), length=st.integers(20, 400))
def test_the_estimates_bound_holds_for_random_ascii(seed: int, length: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - seeded texts need no secure randomness.
    text = "".join(chr(dice.randrange(32, 127)) for _ in range(length))
    estimate = get_counter("estimate")
    assert get_counter("o200k").count(text) <= estimate.count(text) * (1 + estimate.margin)


@pytest.mark.skipif(not HAS_CTOK, reason="ctok needs Python 3.12, and the extra germane[claude]")
@pytest.mark.parametrize("family", ["claude-4", "claude-4.8"])
def test_ctok_counts_as_recorded(family: str) -> None:
    counter = get_counter(family)
    assert get_counter(family) is get_counter(family)
    assert [counter.count(sample["text"]) for sample in SAMPLES] == [sample[family] for sample in SAMPLES]  # type: ignore[literal-required] # The keys are the families.
    assert counter.name == family


def test_without_ctok_the_estimate_counts() -> None:
    counter = get_counter("claude-4.8")
    assert counter.name == ("claude-4.8" if HAS_CTOK else "claude-4.8-estimate")
