"""metrics: each figure as its definition says, and none where nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from xml.etree import ElementTree as ET

import pytest

import germane
from conversations import answer, prompt
from germane.evaluation import trend
from germane.ledger import Assembly
from germane.testing.fakes import START, FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def engine(clock: FixedClock) -> Iterator[germane.Engine]:
    with germane.open(":memory:", embedder=None, clock=clock) as made:
        yield made


def recorded(engine: germane.Engine, query: str, budget: int = 1000) -> germane.Context:
    return engine.assemble(query, budget=budget, record=True)


def latest(engine: germane.Engine) -> Assembly:
    return engine.ledger().list()[0]


def test_nothing_known_is_no_figure(engine: germane.Engine) -> None:
    found = engine.metrics()
    names = (
        "relevance",
        "budget_use",
        "refreshes_per_turn",
        "recall_precision",
        "cold_start",
        "memory_growth",
        "fact_confirmation",
    )
    assert found.figures() == {**dict.fromkeys(names), "memory_growth": 0.0}
    assert (found.until - found.since, found.until) == (timedelta(days=30), START)
    assert [found.on_target(name) for name in names] == [None] * 7


def test_budget_use_is_the_mean_share_of_the_budgets(engine: germane.Engine) -> None:
    engine.remember("Redis caches sessions.", kind="fact")
    contexts = [recorded(engine, "redis", budget) for budget in (100, 400)]
    expected = (contexts[0].tokens / 100 + contexts[1].tokens / 400) / 2
    assert engine.metrics().budget_use == pytest.approx(expected)


def test_relevance_is_the_better_of_words_and_meaning(engine: germane.Engine) -> None:
    engine.remember("Redis caches sessions.", kind="fact")
    engine.remember("Always answer in French.", kind="rule")
    recorded(engine, "redis caches sessions")
    (fact,) = [entry for entry in latest(engine).included if entry.kind == "fact"]
    assert engine.metrics().relevance == pytest.approx(min(1.0, fact.parts["lexical"]))


def test_recall_precision_counts_what_was_shown_where_feedback_was_given(engine: germane.Engine) -> None:
    for text in ("Redis caches sessions.", "Redis is fast.", "Redis is old.", "Redis is blue."):
        engine.remember(text, kind="fact")
    context = recorded(engine, "redis")
    assert engine.metrics().recall_precision is None
    engine.feedback(context, used=[context.items[0].memory])
    recorded(engine, "redis blue")
    found = engine.metrics()
    assert found.recall_precision == pytest.approx(1 / len(context.items))
    assert (found.assemblies, found.with_feedback) == (2, 1)


def test_contexts_are_counted_for_each_turn_of_the_user(engine: germane.Engine, clock: FixedClock) -> None:
    recorded(engine, "one")
    talk = engine.conversation("s")
    for number in range(4):
        talk.extend([prompt(f"turn {number}", created_at=clock()), answer("yes", created_at=clock())])
    assert engine.metrics().refreshes_per_turn == pytest.approx(1 / 4)
    assert engine.metrics().turns == 4


def test_growth_is_new_memories_a_day_whatever_became_of_them(
    engine: germane.Engine, clock: FixedClock
) -> None:
    engine.remember("long ago")
    clock.advance(timedelta(days=40))
    one = engine.remember("One fact.", kind="fact")
    engine.forget(one.id)
    two = engine.remember("Another fact.", kind="fact")
    engine.revise(two.id, content="Another fact, revised.")
    clock.advance(timedelta(hours=1))
    found = engine.metrics(since=clock() - timedelta(days=10))
    assert found.memory_growth == pytest.approx(2 / 10)
    assert sum(day.added for day in found.per_day) == 2
    assert len(found.per_day) == 11


def test_a_fact_remembered_again_is_confirmed(engine: germane.Engine) -> None:
    for text in ("Redis is fast.", "Milo is a cat.", "The port is 5433.", "Redis is fast."):
        engine.remember(text, kind="fact")
    found = engine.metrics()
    assert found.facts == 3
    assert found.fact_confirmation == pytest.approx(1 / 3)
    assert found.on_target("fact_confirmation") is True


def test_a_cold_start_is_the_first_assembly_of_an_engine(engine: germane.Engine) -> None:
    recorded(engine, "one")
    first = latest(engine).seconds
    recorded(engine, "two")
    found = engine.metrics()
    assert (found.cold, found.cold_start) == (1, first)
    assert first is not None
    assert first > 0


def test_only_what_was_made_since_counts(engine: germane.Engine, clock: FixedClock) -> None:
    recorded(engine, "one")
    clock.advance(timedelta(days=5))
    recorded(engine, "two")
    assert engine.metrics(since=START + timedelta(days=1)).assemblies == 1
    for since in (clock(), clock() - timedelta(days=5000)):
        with pytest.raises(germane.InvalidInput, match="before now"):
            engine.metrics(since=since)


def test_the_picture_is_well_formed_with_and_without_figures(
    engine: germane.Engine, clock: FixedClock
) -> None:
    assert "unknown" in trend(engine.metrics())
    for number in range(3):
        engine.remember(f"Redis fact {number}", kind="fact")
        recorded(engine, "redis")
        clock.advance(timedelta(days=1))
    drawn = trend(engine.metrics())
    ET.fromstring(drawn)  # noqa: S314 - Our own text.
    assert drawn.count("<circle") >= 3
