"""What speaks against a known memory in words that no rule knows: what is revised, shown, and left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Embedder, Memory
from germane.extractors import LearningRun
from germane.testing.fakes import FixedClock

OTHERS = ("The user likes hiking.", "The user's sister is called Ada.")


def learned(
    known: str, text: str, *, question: str = "How can I help?", embedder: Embedder | str | None = "bundled"
) -> tuple[LearningRun, Mapping[str, bool]]:
    """The run of a message, and whether each memory known before is current after it."""
    clock = FixedClock(datetime(2026, 11, 12, tzinfo=UTC), timedelta(seconds=1))
    with germane.open(":memory:", embedder=embedder, clock=clock) as engine:
        for each in (known, *OTHERS):
            engine.remember(each)
        run = engine.learn_from(
            [{"role": "assistant", "content": question}, {"role": "user", "content": text}]
        )
        texts = {each.content for each in current(engine.memories())}
        return run, {each: each in texts for each in (known, *OTHERS)}


def current(memories: Sequence[Memory]) -> list[Memory]:
    return [each for each in memories if each.valid_until is None]


@pytest.mark.parametrize("embedder", ["bundled", None])
def test_a_change_in_other_words_revises_the_one_memory_that_it_is_about(embedder: str | None) -> None:
    known = "The user works at Acme."
    run, left = learned(known, "Acme let me go in March, I freelance since then.", embedder=embedder)

    assert [each.outcome.value for each in run.decisions] == ["revised"]
    assert "with a likelihood of" in run.decisions[0].reason
    assert left == {known: False, **dict.fromkeys(OTHERS, True)}


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user plays the cello.", "It's the viola I play, I've never touched a cello."),
        ("The user is a vegetarian.", "I never was vegetarian."),
    ],
)
def test_what_was_never_true_is_shown_beside_the_correction(known: str, text: str) -> None:
    run, left = learned(known, text)

    assert [each.outcome.value for each in run.decisions] == ["contradicted"]
    assert run.decisions[0].other is not None
    assert left[known]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user takes ramipril for high blood pressure.", "I also take amlodipine since last week"),
        ("The user has a cat.", "I have a dog too"),
        ("The user plays tennis on Saturdays.", "I play chess on Sundays now."),
        ("The user is a nurse.", "I'm a mother of two now."),
        ("The user went to Rome in May.", "I went to Oslo last month."),
        ("The user is trying to fix the login page.", "We're trying to speed up the search, it takes 3 s."),
    ],
)
def test_what_can_be_true_beside_it_leaves_a_memory_alone(known: str, text: str) -> None:
    run, left = learned(known, text)

    assert {each.outcome.value for each in run.decisions} <= {"new", "refused"}
    assert all(left.values())


def test_a_short_answer_becomes_the_new_value_of_the_memory() -> None:
    run, _ = learned(
        "The user's pilates class is on Tuesday evenings.",
        "Thursday, they moved it",
        question="Is your pilates class still on Tuesday?",
    )

    assert [each.proposal.content for each in run.decisions] == [
        "The user's pilates class is on Thursday evenings."
    ]


def test_statements_of_one_run_do_not_speak_against_each_other() -> None:
    clock = FixedClock(datetime(2026, 11, 12, tzinfo=UTC), timedelta(seconds=1))
    with germane.open(":memory:", clock=clock) as engine:
        run = engine.learn_from(
            [
                {"role": "user", "content": "I work at Acme."},
                {"role": "user", "content": "I handed in my notice at Initech and started at Acme in May."},
            ]
        )

    assert [each.outcome.value for each in run.decisions].count("new") >= 1
    assert all(each.outcome.value != "contradicted" for each in run.decisions)
