"""The question of the note on context management, for an agent that has lived through it."""

# ruff: noqa: E501 - The lines of a context are as long as the memories in it.

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from inline_snapshot import snapshot

import germane
from germane import Engine
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
QUESTION = "Should we use Redis for caching in Newton?"

# Kind, content, further fields, metadata, and its age in days.
MEMORIES: list[tuple[str, str, dict[str, Any], dict[str, Any], int]] = [
    ("identity", "Newton, an agent that weighs before it speaks and asks before it guesses.", {}, {}, 300),
    (
        "constraint",
        "Bringing in a service before its running cost is known",
        {"importance": 9},
        {"action": "block", "reason": "the message broker cost a night and solved nothing"},
        250,
    ),
    (
        "constraint",
        "Deciding with a single option on the table",
        {},
        {"action": "warn", "reason": "nothing to compare with, nothing to learn from"},
        240,
    ),
    ("focus", "Laying out how Newton stores and serves what it remembers.", {}, {}, 2),
    (
        "decision",
        "Keep vectors in Postgres with pgvector and drop the separate ChromaDB",
        {"outcome": "success", "confidence": 0.85},
        {"reasons": ["one system to back up and to watch", "one pool of connections"]},
        180,
    ),
    (
        "decision",
        "Start on SQLite and migrate to Postgres once the load asks for it",
        {"outcome": "success", "confidence": 0.8},
        {"reasons": ["the storage layer was abstract from the first day, so the migration hurt nobody"]},
        150,
    ),
    (
        "decision",
        "Turn Qdrant down and stay with pgvector",
        {"outcome": "success", "confidence": 0.82},
        {"reasons": ["simple to run beats fast on paper"]},
        120,
    ),
    ("decision", "Serve lunch vegetarian at the summer party", {"outcome": "success"}, {}, 90),
    ("decision", "Move the stand-up to half past nine", {}, {}, 40),
    ("fact", "An UNLOGGED table in PostgreSQL skips the write-ahead log and serves as a cache.", {}, {}, 60),
    ("fact", "Redis is one more service to run, to watch and to back up.", {}, {}, 60),
    ("fact", "Newton's compose file starts three services: newton, postgres and the dashboard.", {}, {}, 30),
    ("fact", "A hybrid query over pgvector takes 0.4 s at three hundred records.", {}, {}, 20),
    ("fact", "The office plant wants water on Thursdays.", {}, {}, 10),
    ("fact", "Tim's daughter starts school in September.", {}, {}, 10),
    (
        "procedure",
        "Weigh a change of architecture",
        {},
        {
            "name": "Architecture decision",
            "steps": [
                "Look up what was decided on the same question before.",
                "Set at least two options side by side, caching none at all among them.",
                "Write the decision and the confidence down before building.",
            ],
        },
        200,
    ),
    ("procedure", "Book a meeting room", {}, {"name": "Rooms", "steps": ["Open the calendar."]}, 200),
    (
        "episode",
        "Two hours with Tim on storage: Postgres with pgvector won over several caching services.",
        {},
        {"title": "Storage architecture", "duration": "2 h"},
        180,
    ),
    ("episode", "Watched the football final with the whole team.", {}, {"title": "Football"}, 100),
    *(
        ("decision", content, {"outcome": "success", "confidence": 0.9}, {}, 100 + days)
        for days, content in enumerate(
            (
                "Order the chairs from the second catalogue",
                "Paint the corridor in a lighter grey",
                "Close the office between the years",
                "Send the invoices on the first Monday",
                "Take the earlier train to the fair",
                "Print the badges in the house",
                "Let the gardener come every other week",
                "Keep the phone number for the hotline",
            )
        )
    ),
]


HEADINGS = snapshot(
    [
        "## Identity",
        "## Active Constraints",
        "## Current Focus",
        "## Relevant Past Decisions",
        "## Known Information",
        "## Procedure: Architecture decision",
        "## Past Experience",
        "## Note",
    ]
)
EXPECTED = snapshot(
    """\
## Identity
- Newton, an agent that weighs before it speaks and asks before it guesses.

## Active Constraints
- **Never:** Bringing in a service before its running cost is known — the message broker cost a night and solved nothing
- **Careful:** Deciding with a single option on the table — nothing to compare with, nothing to learn from

## Current Focus
- Laying out how Newton stores and serves what it remembers.

## Relevant Past Decisions
- Start on SQLite and migrate to Postgres once the load asks for it [success, 0.80 confidence]
  Reasons: the storage layer was abstract from the first day, so the migration hurt nobody (2026-06-23)
- Keep vectors in Postgres with pgvector and drop the separate ChromaDB [success, 0.85 confidence]
  Reasons: one system to back up and to watch; one pool of connections (2026-05-24)
- Turn Qdrant down and stay with pgvector [success, 0.82 confidence]
  Reasons: simple to run beats fast on paper (2026-07-23)

## Known Information
- Redis is one more service to run, to watch and to back up. (2026-09-21)
- Newton's compose file starts three services: newton, postgres and the dashboard. (2026-10-21)
- An UNLOGGED table in PostgreSQL skips the write-ahead log and serves as a cache. (2026-09-21)

## Procedure: Architecture decision
- Weigh a change of architecture
- Look up what was decided on the same question before.
- Set at least two options side by side, caching none at all among them.
- Write the decision and the confidence down before building.

## Past Experience
- Two hours with Tim on storage: Postgres with pgvector won over several caching services. (2026-05-24)

## Note
Of 11 decisions 100% came true (Brier score 0.016): you are under-confident by 12%; trust your analysis more.\
"""
)


GUIDANCE = """\
## Current Approach: Decision
Choosing between alternatives whose consequences last.
Consider:
- What is to be optimised?
- What was decided before, and how did it turn out?
- Which constraints hold?

"""
DECIDED = ("ChromaDB", "pgvector", "migrate to Postgres")
NOISE = (
    *("lunch", "stand-up", "plant", "daughter", "meeting room", "football"),
    *("chairs", "grey", "the years", "invoices", "the fair", "badges", "gardener", "hotline"),
)


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="newton", clock=FixedClock(NOW)) as engine:
        for kind, content, fields, metadata, days in MEMORIES:
            created_at = NOW - timedelta(days=days)
            engine.remember(content, kind=kind, metadata=metadata, created_at=created_at, **fields)
        yield engine


def test_the_context_of_the_redis_question(engine: Engine) -> None:
    context = engine.assemble(QUESTION, frame="auto", gate=True)

    assert (context.trace.frame, context.trace.budget) == ("decision", 12_000)
    assert context.tokens < 2000
    assert context.text == EXPECTED
    headings = [line for line in context.text.splitlines() if line.startswith("## ")]
    assert headings == HEADINGS


def test_the_frame_asks_its_questions_where_guidance_is_wanted(engine: Engine) -> None:
    content = engine.assemble(QUESTION, frame="auto", gate=True, guidance=True).text
    before, _, after = content.partition(GUIDANCE)
    assert after.startswith("## Current Focus")
    assert before + after == EXPECTED


def test_noise_stays_out_and_what_was_decided_is_in(engine: Engine) -> None:
    text = engine.assemble(QUESTION, frame="auto", gate=True).text
    assert all(word in text for word in DECIDED)
    assert "Architecture decision" in text
    assert [word for word in NOISE if word in text.casefold()] == []


def test_where_everything_fits_noise_comes_last_in_its_section(engine: Engine) -> None:
    context = engine.assemble(QUESTION, frame="auto")
    judged = engine.assemble(QUESTION, frame="auto", gate=True)
    assert context.trace.excluded == ()
    for section in ("decisions", "facts", "procedures", "episodes"):
        shown = [item.memory.id for item in context.items if item.section == section]
        first = [item.memory.id for item in judged.items if item.section == section]
        assert shown[: len(first)] == first
        noise = [item for item in context.items if item.section == section][len(first) :]
        assert all(item.memory.content not in judged.text for item in noise)
    assert all(word in context.text.casefold() for word in NOISE)


def test_the_note_as_it_stands_is_there_by_name(engine: Engine) -> None:
    context = engine.assemble(QUESTION, plan="layered_strict", frame="decision", budget=12_000)
    ranked = [entry for entry in context.trace.included if entry.parts]
    assert all(-0.37 <= entry.score <= 1.045 for entry in ranked)
    assert {name for entry in ranked for name in entry.parts} == {
        "semantic",
        "type",
        "recency",
        "outcome",
        "usage",
        "confidence",
    }
