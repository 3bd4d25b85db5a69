"""The layered plan in its passes: who lends, who gets what is left, what is too much of one thing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import germane
from germane import Context, Draft, Engine, Frame, Level, Reason
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FLEXIBLE = ("decisions", "facts", "procedures", "episodes")
"""The sections that relevance fills."""
# Frame, and what it gives decisions, procedures, facts and episodes.
PRIORITIES = {
    "conversation": (0.5, 0.2, 0.8, 0.6),
    "question": (0.7, 0.4, 1.0, 0.5),
    "task": (0.8, 0.9, 0.7, 0.5),
    "decision": (1.0, 0.8, 0.6, 0.4),
    "debug": (0.5, 1.0, 0.8, 0.7),
    "creative": (0.4, 0.2, 0.7, 0.8),
}


def opened(drafts: Sequence[Draft]) -> Engine:
    engine = germane.open(":memory:", clock=FixedClock(NOW), embedder=None)
    engine.remember_many(drafts)
    return engine


def shown(context: Context, section: str) -> list[str]:
    return [item.memory.content for item in context.items if item.section == section]


def excluded(context: Context) -> dict[str, Reason | None]:
    return {entry.label: entry.reason for entry in context.trace.excluded}


@pytest.mark.parametrize("name", PRIORITIES)
def test_every_frame_says_all_that_a_frame_can(name: str) -> None:
    with opened([]) as engine:
        frames = {frame.name: frame for frame in engine.frames()}
    frame = frames[name]
    priorities = dict(frame.priorities)
    order = ("decisions", "procedures", "facts", "episodes")
    assert tuple(priorities[section] for section in order) == PRIORITIES[name]
    assert frame.patterns
    assert frame.questions
    assert frame.domain
    assert frame.description
    assert {section for section, _ in frame.shares} == set(FLEXIBLE)
    assert list(frames) == list(PRIORITIES)


def long(kind: str, count: int, *, about: str = "Redis") -> list[Draft]:
    """Memories of a hundred tokens at summary, of twenty at micro."""
    return [
        Draft(
            content=f"{about} {kind} {place}: " + " ".join(f"word{place}x{each}" for each in range(60)),
            kind=kind,
            created_at=NOW - timedelta(hours=place),
        )
        for place in range(count)
    ]


def test_what_a_section_does_not_need_goes_to_the_best_of_any_section() -> None:
    frame = Frame(
        name="mine",
        description="",
        priorities=(("decisions", 0.5), ("facts", 0.5), ("episodes", 0.9)),
        budget=2700,
        shares=(("decisions", 0), ("facts", 0), ("procedures", 600), ("episodes", 0)),
    )
    with opened([*long("decision", 40), *long("fact", 40), *long("episode", 4)]) as engine:
        context = engine.assemble("Redis", frame=frame)
        used = {use.name: use for use in context.trace.sections}
        # There is no procedure. Episodes have the greatest priority in this frame, and all four come in.
        assert (used["episodes"].included, used["procedures"].included) == (4, 0)
        assert min(used["decisions"].included, used["facts"].included) > 0
        assert context.tokens > 0.9 * 2700
        best = sorted(context.trace.entries, key=lambda entry: -entry.score)
        assert all(entry.included for entry in best[:4])


def test_a_larger_budget_shows_more_memories_and_more_of_them_whole() -> None:
    with opened([*long("decision", 6), *long("fact", 6)]) as engine:
        every, whole, shown = len(engine.memories()), 0, 1
        for budget in (500, 900, 1400, 2000, 3000, 4500):
            context = engine.assemble("Redis", frame="decision", budget=budget)
            ranked = sorted(context.trace.entries, key=lambda entry: -entry.score)
            levels = [entry.level for entry in ranked if entry.section in FLEXIBLE]
            assert levels[0] is not None
            assert len(context.items) >= shown
            shown = len(context.items)
            assert context.tokens > 0.9 * min(budget, 3000)
            assert levels.count(Level.FULL) >= whole
            whole = levels.count(Level.FULL)
        assert whole == every


def test_who_lends_to_constraints_is_whoever_has_the_least_priority() -> None:
    block = [
        Draft(
            content=f"Rule {place} forbids {place} things.",
            kind="constraint",
            metadata={"action": "absolute"},
        )
        for place in range(60)
    ]
    with opened(block) as engine:
        context = engine.assemble("Redis", frame="decision", budget=2400)
        shares = {use.name: use.share for use in context.trace.sections}
        lent = next(note.text for note in context.trace.notes if note.code == "lent")
        without = {
            use.name: use.share
            for use in opened([]).assemble("x", frame="decision", budget=2400).trace.sections
        }
        owed = shares["constraints"] - without["constraints"]
        assert lent == f"Required memories needed {owed} tokens beyond their sections' shares."
        lenders = {name: without[name] - shares[name] for name in shares if shares[name] < without[name]}
        assert sum(lenders.values()) == owed
        # Episodes have the least priority of what relevance fills, and calibration less; decisions the most.
        assert list(lenders)[-1] == "calibration"
        assert shares["episodes"] == shares["calibration"] == 0
        assert {"identity", "frame", "focus", "decisions"} & set(lenders) == set()


@pytest.mark.parametrize(
    ("kind", "section", "most", "alike", "other"),
    [
        ("fact", "facts", 5, {"subject": "Redis"}, {"subject": "Postgres"}),
        (
            "decision",
            "decisions",
            3,
            {"metadata": {"category": "cache"}},
            {"metadata": {"category": "queue"}},
        ),
        ("episode", "episodes", 2, {"tags": ("cache",)}, {"tags": ("queue", "cache")}),
    ],
)
def test_of_one_thing_only_so_many_come_before_what_differs(
    kind: str, section: str, most: int, alike: dict[str, Any], other: dict[str, Any]
) -> None:
    drafts = [
        Draft(
            content=f"Redis is told of, number {place}.",
            kind=kind,
            created_at=NOW - timedelta(days=place),
            **alike,
        )
        for place in range(8)
    ]
    drafts += [Draft(content="Redis stands beside it.", kind=kind, **other)]
    drafts += [Draft(content=f"Redis and nothing else {place}.", kind=kind) for place in range(4)]
    with opened(drafts) as engine:
        # Where all fit, all are there.
        assert len(shown(engine.assemble("Redis"), section)) == len(drafts)
        for budget in range(60, 400, 10):
            texts = shown(engine.assemble("Redis", budget=budget), section)
            numbered = sum("number" in text for text in texts)
            assert numbered <= most or len(texts) - numbered == 5
        # What is pinned stands there all the same.
        last = next(memory for memory in engine.memories() if "number 7" in memory.content)
        assert last.content in shown(engine.assemble("Redis", budget=100, pins=[last.id]), section)


def test_a_section_without_tokens_is_left_out_and_nothing_is_cut_inside() -> None:
    with opened([*long("fact", 3), *long("decision", 3)]) as engine:
        whole = {
            rendition.text
            for memory in engine.memories()
            for rendition in (memory.renditions.micro, memory.renditions.summary, memory.renditions.full)
        }
        for budget in range(0, 700, 7):
            context = engine.assemble("Redis", budget=budget, dates=False)
            for item in context.items:
                text = item.text.removeprefix("- ")
                # An excerpt of a text that is one long sentence ends with a word.
                cut = text.removesuffix("…").strip()
                assert text in whole or (item.level is Level.EXCERPT and item.memory.content.startswith(cut))
            for use in context.trace.sections:
                heading = use.heading in context.text.splitlines()
                assert heading == (use.used > 0)


def test_two_procedures_of_one_title_are_distinguished() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        for subject, content in (
            ("web shop", "Deploy by a tag."),
            ("ledger", "Deploy by hand."),
            (None, "Deploy never."),
        ):
            engine.remember(content, kind="procedure", subject=subject, metadata={"name": "Deploy"})
        context = engine.assemble("How do I deploy?", budget=2000)
        headings = [line for line in context.text.splitlines() if line.startswith("## Procedure")]
        assert len(set(headings)) == 3
        assert headings[0] == "## Procedure: Deploy"
        assert all(heading.startswith("## Procedure: Deploy (") for heading in headings[1:])
        assert context.tokens <= 2000
        assert engine.assemble("How do I deploy?", budget=2000).text == context.text
