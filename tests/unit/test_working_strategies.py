"""The orders of a working set: each formula on exact inputs, scorers, clusters, and how relevance joins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

import germane
from germane import Context, Engine, InvalidInput, Memory, WorkingSet
from germane.protocols import Candidate, Query
from germane.ranking import Decay
from germane.testing.fakes import START, make_memory
from germane.working_sets import AgeBasis

NOW = START + timedelta(days=30)


class Clock:
    """Gives the moment that it was set to."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


def made(content: str, *, hours: float = 0.0, **fields: Any) -> Memory:
    """A memory created `hours` ago."""
    return make_memory(content, created_at=NOW - timedelta(hours=hours), **fields)


def working_set_of(engine: Engine, memories: Sequence[Memory], touches: Mapping[str, int]) -> WorkingSet:
    """A working set of these memories, the last being the latest, some touched so often on entering."""
    engine.import_memories(memories)
    working = engine.working_set(max_tokens=100_000)
    for memory in memories:
        working.add(memory.id)
        for _ in range(touches.get(memory.content, 0)):
            working.touch(memory.id)
    return working


def arranged(
    memories: Sequence[Memory],
    query: str = "",
    *,
    now: datetime = NOW,
    touches: Mapping[str, int] | None = None,
    **how: Any,
) -> Context:
    """All of these memories in the order of a strategy."""
    clock = Clock()
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        working = working_set_of(engine, memories, touches or {})
        clock.now = now
        context = working.assemble(query, budget=100_000, **how)
    assert len(context.items) == len(memories)
    return context


def texts(context: Context) -> list[str]:
    return [item.memory.content for item in context.items]


def scores(context: Context) -> list[float]:
    return [entry.score for entry in context.trace.entries]


def test_balanced_is_importance_by_age_and_the_default() -> None:
    memories = [
        made("User prefers debug_me", importance=9.0, hours=5 * 24),
        made("PostgreSQL decision", importance=10.0, hours=3 * 24),
        made("Current debugging issue", importance=5.0, hours=10 / 60),
        made("Error: foreign key violation", importance=7.0, hours=2 / 60),
    ]
    context = arranged(memories)
    assert texts(context) == [
        "Error: foreign key violation",
        "Current debugging issue",
        "PostgreSQL decision",
        "User prefers debug_me",
    ]
    exact = [7 / (1 + 2 / 60), 5 / (1 + 10 / 60), 10 / 73, 9 / 121]
    assert exact == pytest.approx([6.774194, 4.285714, 0.136986, 0.074380], abs=1e-6)
    assert scores(context) == pytest.approx(exact, abs=1e-9)
    assert scores(arranged(memories, strategy="balanced")) == scores(context)
    assert context.trace.entries[3].parts == pytest.approx(
        {"importance": 9.0, "decay": 1 / 121, "age_hours": 120.0}
    )


def test_balanced_can_decay_faster_by_half_lives_not_at_all_and_from_another_moment() -> None:
    memories = [made("old", importance=8.0, hours=2.0)]

    def score(decay: Decay) -> float:
        return scores(arranged(memories, decay=decay))[0]

    assert score(Decay(hours=0.5)) == pytest.approx(8 / 5, abs=1e-9)
    assert score(Decay(shape="exponential")) == pytest.approx(2.0, abs=1e-9)
    assert score(Decay(shape="none")) == 8.0
    assert score(Decay(basis=AgeBasis.ENTERED)) == 8.0


def test_recent_goes_by_the_order_of_access_and_reads_no_clock() -> None:
    memories = [
        made("User prefers debug_me", importance=9.0),
        made("What is the capital of France?", importance=1.0),
        made("Paris is the capital", importance=1.0, hours=500),
    ]
    for now in (NOW, START - timedelta(days=9999)):
        context = arranged(memories, strategy="recent", now=now)
        assert texts(context) == [
            "Paris is the capital",
            "What is the capital of France?",
            "User prefers debug_me",
        ]
        assert scores(context) == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_important_goes_by_importance_alone() -> None:
    memories = [
        made("We use PostgreSQL", importance=10.0, hours=72),
        made("TimescaleDB for time-series", importance=9.0, hours=48),
        made("time check", importance=1.0),
    ]
    context = arranged(memories, strategy="important")
    assert scores(context) == [10.0, 9.0, 1.0]
    assert context.trace.entries[0].parts == {"importance": 10.0}


def test_frequent_adds_one_so_that_the_unused_still_count() -> None:
    memories = [
        made("never", importance=4.0),
        made("ten times", importance=2.0, access_count=6),
        made("never, and less", importance=3.0),
    ]
    context = arranged(memories, strategy="frequent", touches={"ten times": 4})
    assert texts(context) == ["ten times", "never", "never, and less"]
    assert scores(context) == pytest.approx([2 * (1 + math.log(11)), 4.0, 3.0], abs=1e-9)
    assert context.trace.entries[0].parts["accesses"] == 10.0


def adr_example(candidate: Candidate, _: Query, now: datetime) -> float:
    """The scoring function of the decision record, with hours for its seconds over 3600."""
    memory = candidate.memory
    hours = (now - memory.created_at) / timedelta(hours=1)
    return memory.importance * (1.0 / (1 + hours)) * math.log(1 + memory.access_count)


def test_custom_asks_a_scorer() -> None:
    memories = [
        made("fresh", importance=9.0),
        made("used", importance=2.0, hours=1, access_count=10),
    ]
    context = arranged(memories, strategy="custom", scorer=adr_example)
    assert texts(context) == ["used", "fresh"]
    assert scores(context) == pytest.approx([math.log(11), 0.0], abs=1e-9)
    assert math.log(11) / 2 == pytest.approx(1.198948, abs=1e-6)


def test_a_scorer_gets_what_the_set_knows() -> None:
    seen: list[Mapping[str, float]] = []

    def scorer(candidate: Candidate, query: Query, _: datetime) -> float:
        seen.append(candidate.signals)
        return float(len(query.text))

    clock = Clock()
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        working = engine.working_set()
        memory = engine.remember("The cache is Redis.")
        assert engine.recall("cache", into=working)[0].memory == memory
        for _ in range(3):
            working.touch(memory)
        clock.now += timedelta(hours=2)
        context = working.assemble("cache", strategy="custom", scorer=scorer)
        (entry,) = working
    assert seen == [
        {
            "touches": 3.0,
            "order": float(entry.order),
            "recalled": 1.0,
            "entered_hours": 2.0,
            "touched_hours": 2.0,
            "relevance": 1.0,
        }
    ]
    assert context.trace.entries[0].parts["scorer"] == len("cache")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_scorer_that_returns_no_number_is_named_with_the_memory(score: float) -> None:
    memories = [made("one")]
    with pytest.raises(InvalidInput, match=f"{memories[0].id}.*{score}"):
        arranged(memories, strategy="custom", scorer=lambda *_: score)


def test_a_scorer_that_raises_is_named_with_the_memory() -> None:
    def scorer(*_: object) -> float:
        raise KeyError("score")

    memories = [made("one")]
    with pytest.raises(InvalidInput, match=f"{memories[0].id}.*KeyError: 'score'"):
        arranged(memories, strategy="custom", scorer=scorer)


@pytest.mark.parametrize("name", ["newest", "", "Balanced", "recent\0"])
def test_an_unknown_strategy_is_an_error_before_anything_enters(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        arranged([], strategy=name)
    assert f"Unknown strategy: {name!r}. Known strategies: balanced, recent" in str(refused.value)
    with pytest.raises(InvalidInput, match="Unknown strategy"):
        arranged([], strategy="clustered", base=name)


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({"strategy": "custom"}, "needs a scorer"),
        ({"strategy": "clustered", "base": "custom"}, "needs a scorer"),
        ({"strategy": "recent", "scorer": adr_example}, "doesn't ask a scorer"),
        ({"strategy": "clustered", "base": "clustered"}, "can't order what is clustered"),
        ({"strategy": "clustered", "cluster_by": "embedding"}, "embedding"),
    ],
)
def test_scorers_and_bases_have_to_belong(how: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        arranged([], **how)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_of_relevance_out_of_range_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInput, match="relevance"):
        arranged([], relevance=weight)


@pytest.mark.parametrize("name", ["balanced", "recent", "important", "frequent", "clustered", "smart"])
def test_an_empty_set_has_an_empty_order(name: str) -> None:
    assert list(arranged([], "Which cache?", strategy=name).trace.entries) == []


def test_relevance_joins_where_it_is_known() -> None:
    memories = [
        made("neither", importance=2.0),
        made("important", importance=8.0),
        made("Redis is relevant", importance=2.0),
    ]
    context = arranged(memories, "Redis", strategy="important", relevance=0.5)
    assert texts(context) == ["Redis is relevant", "important", "neither"]
    assert scores(context) == pytest.approx([0.5 * 0.25 + 0.5 * 1.0, 0.5, 0.125], abs=1e-9)
    assert context.trace.entries[0].parts == pytest.approx(
        {"importance": 2.0, "strategy": 0.25, "relevance": 1.0}
    )
    off = arranged(memories, "Redis", strategy="important", relevance=0.0)
    assert scores(off) == [8.0, 2.0, 2.0]
    assert off.trace.entries[0].parts == {"importance": 8.0}


def test_relevance_joins_scores_below_zero_and_scores_of_nothing() -> None:
    memories = [made("low"), made("high")]
    scored = {"low": -3.0, "high": 1.0}

    def scorer(one: Candidate, *_: object) -> float:
        return scored[one.memory.content]

    context = arranged(memories, "Redis", strategy="custom", scorer=scorer, relevance=0.25)
    assert scores(context) == [0.75, 0.0]
    none = arranged([made("one", importance=0.0)], "Redis", strategy="important")
    assert scores(none) == [0.0]


def test_smart_chooses_by_the_question_and_says_why() -> None:
    memories = [
        made("important", importance=9.0, hours=100),
        made("new", importance=2.0),
        made("said last", importance=1.0, hours=3),
    ]

    def first(text: str) -> tuple[str, str]:
        context = arranged(memories, text, strategy="smart", relevance=0)
        return texts(context)[0], context.trace.notes[0].text

    assert first("Could you repeat that?")[0] == "said last"
    assert first("Should we switch to Postgres?") == (
        "important",
        'Ranked by the strategy important: "should we", "switch to" spoke for what lasts.',
    )
    assert first("What is the capital of France?")[0] == "new"


def test_clustered_keeps_what_is_related_together_by_the_best_of_each() -> None:
    memories = [
        made("cache", importance=9.0),
        made("deploy", importance=8.0),
        made("cache again", importance=1.0),
        made("deploy again", importance=2.0),
        made("alone", importance=5.0),
    ]
    context = arranged(memories, strategy="clustered", base="important")
    expected = ["cache", "cache again", "deploy", "deploy again", "alone"]
    assert texts(context) == expected
    assert [entry.parts["cluster"] for entry in context.trace.entries] == [1.0, 1.0, 2.0, 2.0, 3.0]
    by_smart = arranged(memories, "What is our policy?", strategy="clustered", base="smart", relevance=0)
    assert texts(by_smart) == expected
    assert "smart" in [note.code for note in by_smart.trace.notes]


def test_factors_are_not_written_as_a_sum() -> None:
    context = arranged([made("old", importance=8.0, hours=3)])
    assert "age_hours 3.00, decay 0.25, importance 8.00" in context.explain()
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("The cache is Redis.", kind="decision", outcome="success")
        assert "lexical 1.00 + state 0.13" in engine.assemble("cache", plan="layered").explain()
