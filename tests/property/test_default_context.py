"""The default call over random stores and questions: how it fills a budget, and what more budget does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import BudgetTooSmall, Context, Draft, Engine, Item, Level, Reason
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.importers import import_source
from support.examples import examples

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
WORDS = [
    "cache",
    "redis",
    "postgres",
    "queue",
    "worker",
    "deploy",
    "billing",
    "invoice",
    "token",
    "search",
    "index",
    "latency",
    "backup",
]
KINDS = ("fact", "decision", "episode", "procedure", "note", "preference", "person")


def lengthened(draft: Draft, more: Sequence[str]) -> Draft:
    return replace(draft, content=" ".join([draft.content, *more]))


sentences = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(
    lambda words: " ".join(words).capitalize() + "."
)
drafts = st.builds(
    Draft,
    content=st.lists(sentences, min_size=1, max_size=25).map(" ".join),
    kind=st.sampled_from(KINDS),
    importance=st.floats(0, 10),
    created_at=st.integers(0, 400).map(lambda days: NOW - timedelta(days=days)),
)
stores = st.lists(drafts, min_size=1, max_size=25, unique_by=lambda draft: draft.content)
long_stores = st.lists(
    drafts | st.builds(lengthened, drafts, st.lists(sentences, min_size=25, max_size=60)),
    min_size=1,
    max_size=25,
    unique_by=lambda draft: draft.content,
)
turns = st.builds(
    Draft,
    content=st.lists(sentences, min_size=1, max_size=25).map(" ".join),
    kind=st.just("episode"),
    scope=st.sampled_from(["session:monday", "session:tuesday"]),
    metadata=st.sampled_from([{"speaker": "Ada"}, {"speaker": "Bob"}]),
    created_at=st.integers(0, 400).map(lambda hours: NOW - timedelta(hours=hours)),
)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
budgets = st.lists(st.integers(60, 4000), min_size=2, max_size=6)
PASSAGE = 64
"""Tokens of a passage of a few such sentences."""


def opened(memories: Sequence[Draft]) -> Engine:
    engine = germane.open(":memory:", agent="a", clock=lambda: NOW)
    engine.remember_many(memories)
    return engine


def shown(context: Context) -> dict[str, Level]:
    return {item.memory.id: item.level for item in context.items}


@settings(max_examples=examples(40))
@given(memories=stores, question=questions, budget=st.integers(400, 6000))
def test_at_most_a_tenth_of_a_budget_stays_free_while_anything_is_shortened_or_out(
    memories: Sequence[Draft], question: str, budget: int
) -> None:
    """Of a small budget so much may stay free as the next passage of a shortened text would take."""
    with opened(memories) as engine:
        context = engine.assemble(question, budget=budget)
        shortened = [item for item in context.items if item.level is not Level.FULL]
        lacking = [
            one for one in context.trace.excluded if one.reason in (Reason.OVER_BUDGET, Reason.STOPPED)
        ]
        # What is known of the user beyond its share waits for a question that has to do with it.
        lacking = [one for one in lacking if one.section not in ("user", "user_facts")]
        if shortened or lacking:
            assert budget - context.tokens <= max(0.1 * budget, PASSAGE)


@settings(max_examples=examples(40))
@given(memories=long_stores, question=questions, budgets=budgets)
def test_the_value_shown_never_falls_with_a_larger_budget(
    memories: Sequence[Draft], question: str, budgets: Sequence[int]
) -> None:
    """Value is the relevance of all memories shown."""
    with opened(memories) as engine:
        before = 0.0
        for budget in sorted(budgets):
            value = sum(item.score for item in engine.assemble(question, budget=budget).items)
            assert value >= before - 1e-9
            before = value


@settings(max_examples=examples(40))
@given(
    dialogue=st.lists(turns, min_size=1, max_size=25, unique_by=lambda draft: draft.content),
    others=st.just([]) | stores,
    question=questions,
    budgets=budgets,
)
def test_the_value_of_turns_by_their_length_never_falls_with_a_larger_budget(
    dialogue: Sequence[Draft], others: Sequence[Draft], question: str, budgets: Sequence[int]
) -> None:
    """One long turn may take the place of several, so value is relevance times length, weighed as in ranking.

    Beside other memories it may fall by a tenth.
    """
    with opened([*dialogue, *others]) as engine:
        before = 0.0
        for budget in sorted(budgets):
            value = sum(map(value_by_length, engine.assemble(question, budget=budget).items))
            assert value >= before * (0.9 if others else 1 - 1e-9)
            before = max(before, value)


def value_by_length(item: Item) -> float:
    whole = item.memory.renditions.full.tokens
    return item.score * item.tokens * (min(1.0, 100 / whole) ** 0.25 if item.section == "episodes" else 1.0)


@settings(max_examples=examples(25))
@given(memories=stores, question=questions)
def test_everything_is_shown_whole_where_it_fits(memories: Sequence[Draft], question: str) -> None:
    with opened(memories) as engine:
        context = engine.assemble(question, budget=20_000)
        assert set(shown(context)) == {memory.id for memory in engine.memories()}
        assert set(shown(context).values()) <= {Level.FULL}


@settings(max_examples=examples(25))
@given(condition=sentences, budget=st.integers(10, 400), others=stores)
def test_what_blocks_is_shown_whole_or_the_shortfall_is_named(
    condition: str, budget: int, others: Sequence[Draft]
) -> None:
    block = Draft(
        content=f"Export customer data {'to another region ' * 12}unless {condition}",
        kind="constraint",
        metadata={"action": "block"},
    )
    with opened([block, *others]) as engine:
        try:
            context = engine.assemble("export", budget=budget)
        except BudgetTooSmall as error:
            assert error.needed > budget
            assert engine.assemble("export", budget=error.needed).tokens <= error.needed
        else:
            assert condition.rstrip(".") in context.text


def test_an_empty_store_gives_an_empty_text() -> None:
    with germane.open(":memory:") as engine:
        for frame in (None, "task", "decision", "auto"):
            context = engine.assemble("Should we use Redis?", frame=frame)
            assert (context.text, context.tokens) == ("", 0)


def test_a_frame_speaks_only_where_it_is_named_and_little() -> None:
    with germane.open(":memory:") as engine:
        for number in range(40):
            engine.remember(f"Redis fact {number}: the cache of part {number} answers in {number} ms.")
        for frame in ("task", "decision", "debug"):
            context = engine.assemble("Should we use Redis?", frame=frame, budget=2000)
            use = next(use for use in context.trace.sections if use.name == "frame")
            assert 0 < use.used <= 100
            assert f"## Current Approach: {frame.capitalize()}" in context.text
            without = engine.assemble("Should we use Redis?", frame=frame, budget=2000, guidance=False)
            assert "Current Approach" not in without.text
        assert "Current Approach" not in engine.assemble("Should we use Redis?", budget=2000).text
        assert "Current Approach" in engine.assemble("Should we use Redis?", guidance=True).text


BUDGETS = (*range(60, 1000, 60), *range(1000, 8001, 500))


@pytest.mark.long
def test_more_budget_loses_no_memory_of_the_demo_that_was_whole() -> None:
    with germane.open(":memory:", agent="newton", clock=lambda: DEMO_NOW) as engine:
        load_demo(engine)
        for question in demo_questions():
            assert lost(engine, question.question, BUDGETS) == []


@pytest.mark.long
def test_more_budget_loses_no_record_of_this_project_that_was_whole() -> None:
    lines = (ROOT / "bench/data/decisions.jsonl").read_text(encoding="utf-8").splitlines()
    with germane.open(":memory:", clock=lambda: NOW) as engine:
        import_source(engine, str(ROOT / "docs/decisions"))
        for line in lines:
            assert lost(engine, json.loads(line)["question"], BUDGETS) == []


def lost(engine: Engine, question: str, budgets: Sequence[int]) -> list[str]:
    """The memories that are whole at a budget and missing at a larger one."""
    whole: set[str] = set()
    gone: set[str] = set()
    for budget in budgets:
        try:
            levels = shown(engine.assemble(question, budget=budget))
        except BudgetTooSmall:
            assert not whole
            continue
        gone |= whole - levels.keys()
        whole |= {name for name, level in levels.items() if level is Level.FULL}
    return sorted(gone)
