"""Episodes repeated within two days, measured on labelled pairs with the embedder that comes along."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.lifecycle import QualityFlag
from support.alike import Alike

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LINES = Path(__file__).with_name("repeated_episodes.txt").read_text(encoding="utf-8").splitlines()
TEST_FROM = next(place for place, line in enumerate(LINES) if line.startswith("# held back"))
TRIED, TEST = (
    [line.split(" | ") for line in lines if not line.startswith("#")]
    for lines in (LINES[:TEST_FROM], LINES[TEST_FROM:])
)


def is_doubted(first: str, second: str, *, after: timedelta = timedelta(hours=5), **options: Any) -> bool:
    """Whether the second is marked as a repetition."""
    with germane.open(":memory:", clock=lambda: NOW, **options) as engine:
        engine.remember(first, kind="episode", created_at=NOW - after)
        (result,) = engine.remember_many([{"content": second, "kind": "episode"}])
        return result.quality_flag is QualityFlag.NEAR_DUPLICATE


def measured(pairs: list[list[str]]) -> tuple[int, int, int]:
    """How many repetitions were found rightly, found wrongly, and missed."""
    judged = [(is_doubted(first, second), label == "same") for label, first, second in pairs]
    return judged.count((True, True)), judged.count((True, False)), judged.count((False, True))


def test_the_sample_is_as_large_as_the_documentation_says() -> None:
    assert [len(pairs) for pairs in (TRIED, TEST)] == [40, 20]
    assert all(sum(label == "same" for label, *_ in pairs) == len(pairs) / 2 for pairs in (TRIED, TEST))


def test_no_other_story_is_taken_for_the_same_and_most_repetitions_are_found() -> None:
    assert measured(TRIED) == (14, 0, 6)


def test_on_pairs_that_were_reserved_it_does_as_well() -> None:
    assert measured(TEST) == (8, 0, 2)


@pytest.mark.parametrize(("hours", "doubted"), [(0, True), (48, True), (48.001, False)])
def test_after_two_days_a_story_may_be_repeated(hours: float, *, doubted: bool) -> None:
    result = ("Had lunch with the new designer.", "Had lunch with our new designer.")
    assert is_doubted(*result, after=timedelta(hours=hours)) is doubted


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The release is on Thursday.", "The release is on Friday.", False),
        ("The flag is on.", "The flag is off.", False),
        ("The tests passed.", "The tests failed.", False),
        ("We meet at nine.", "We meet at ten.", False),
        ("Kim and Raj decide.", "Kim or Raj decides.", False),
        ("Ana replaced Ben as the lead.", "Ben replaced Ana as lead.", False),
        ("They authorise by token.", "They authenticate by token.", False),
        ("The limit was raised.", "The limit has been raised.", True),
        ("Ana wants it each Monday.", "Ana wants it every Monday.", True),
        ("Jo showed the dashboard.", "Jo has shown the dashboard.", True),
    ],
)
def test_one_word_in_place_of_another_says_something_else(one: str, other: str, *, same: bool) -> None:
    for first, second in ((one, other), (other, one)):
        assert is_doubted(first, second, embedder=Alike()) is same


def test_facts_of_different_days_are_never_merged_or_confirmed() -> None:
    with germane.open(":memory:", clock=lambda: NOW) as engine:
        first = engine.remember("The release is frozen on Thursday.", kind="fact", subject="release")
        engine.remember("The release is frozen on Friday.", kind="fact", subject="release")
        assert engine.maintain(dry_run=True).steps == ()
        engine.remember("The release is frozen on Sunday.", kind="fact", subject="release", reconcile=True)
        assert engine.lifecycle_state(first.id).confirmations == 0
