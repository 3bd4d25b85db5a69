"""Statements that exclude each other are shown as contradictions, and those about other things aren't."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Draft
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def outcome(known: str, stated: str) -> str:
    """What becomes of a statement where another one was known for 90 days."""
    clock = FixedClock(NOW, timedelta(microseconds=1))
    with germane.open(":memory:", embedder="bundled", clock=clock) as engine:
        engine.remember_many([Draft(content=known, created_at=NOW - timedelta(days=90))])
        (decision,) = engine.learn_from([{"role": "user", "content": stated}]).decisions
        return str(decision.outcome)


@pytest.mark.parametrize(
    ("known", "stated"),
    [
        ("The user doesn't eat fish.", "I eat salmon every Friday."),
        ("The user drinks beer after every match.", "I never drink alcohol."),
        ("The user is vegan.", "I eat cheese every morning."),
        ("The user has no pets.", "My dog Bello sleeps in my room."),
        ("The user can't drive.", "I drive to work every day."),
        ("The user's birthday is May 4.", "My birthday is May 14."),
        ("The user was born in Tampere.", "I was born in Turku."),
        ("The user's blood type is A negative.", "My blood type is 0 positive."),
        ("The backend is written in Go.", "The backend is written in Rust."),
        ("The office is closed on Mondays.", "The office is open on Mondays."),
    ],
)
def test_what_excludes_a_known_memory_is_a_contradiction(known: str, stated: str) -> None:
    assert outcome(known, stated) == "contradicted"


@pytest.mark.parametrize(
    ("known", "stated"),
    [
        ("The user's birthday is May 4.", "Sorry, my birthday is May 14, not May 4."),
        ("The user is a junior developer at Nordwind.", "I'm a senior developer now."),
        ("The user uses the Basic plan.", "I upgraded to the Plus plan on Monday."),
        ("The user doesn't eat fish.", "I eat salmon every Friday now."),
        ("The team deploys twice a week.", "We deploy daily now."),
        ("The user works as a cook.", "I work as a driver these days."),
        ("The user's flat is on the third floor.", "Our flat is on the fifth floor now."),
        ("The user takes the bus to work.", "I take the tram to work now."),
        ("The user's partner is Ana.", "I broke up with Ana in May."),
        ("The user has two cats.", "We have three cats now."),
        ("The user's landlord is Mr. Berg.", "My landlord is Mrs. Lind now."),
        ("The user uses Qualtrics for surveys.", "We use LimeSurvey for surveys now."),
        ("The user's phone number is 06 12 34 56 78.", "New phone number since today: 06 98 76 54 32"),
    ],
)
def test_a_sign_of_change_makes_a_revision_of_it(known: str, stated: str) -> None:
    assert outcome(known, stated) == "revised"


@pytest.mark.parametrize(
    ("known", "stated"),
    [
        ("The user's name is Sam.", "My boss is called Eva."),
        ("The user doesn't have time on Mondays.", "The time zone of the project is UTC on Mondays."),
        ("The user's sister doesn't eat fish.", "I eat salmon every Friday."),
        ("The user is vegan.", "My cat eats fish every morning."),
        ("The user can't cook.", "I drive to work every day."),
        ("The user likes tea.", "I like coffee."),
        ("The user uses Postgres for orders.", "We use Docker for tests now."),
        ("The team deploys twice a week.", "We meet daily now."),
    ],
)
def test_statements_about_other_things_stand_beside_each_other(known: str, stated: str) -> None:
    assert outcome(known, stated) == "new"
