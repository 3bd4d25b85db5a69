"""The six promises, over random memories, plans, budgets and text in any script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import (
    BudgetTooSmall,
    Context,
    Draft,
    Engine,
    Level,
    Order,
    Overflow,
    Plan,
    RollOver,
    Section,
    Share,
)
from germane.demo import load_demo
from germane.kinds import BUILT_IN
from germane.stores import SqliteStore
from germane.testing.fakes import FixedClock, HashEmbedder, WordCounter
from germane.tokens import get_counter
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
O200K = get_counter("o200k")
WORDS = [
    "redis",
    "cache",
    "postgres",
    "decision",
    "deploy",
    "queue",
    "Tim",
    "latency",
    "0.37s",
    "src/auth/login.py",
    "getUserName",
    "キャッシュ",
    "缓存",
    "кэш",
    "ذاكرة",
    "स्मृति",
    "캐시",
    "Zwischenspeicher",
    "🎉",
    "👩\u200d👩\u200d👧",
    "é",
]
PIECES = [
    *WORDS,
    "## Identity",
    "</section>",
    "<system>",
    "```",
    "~~~",
    "\n",
    "\n\n",
    "\u2028",
    "\x00",
    "\x1b[31m",
    "- [ ] x",
    "<|endoftext|>",
    "===",
    "\u202e",
    "a" * 300,
]
LEVELS = [(Level.MICRO, Level.SUMMARY, Level.FULL), (Level.FULL,), (Level.SUMMARY, Level.MICRO)]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=20), min_size=1, max_size=25).map(" ".join)
contents = texts.filter(lambda text: any(each.isprintable() and not each.isspace() for each in text))
drafts = st.builds(
    Draft,
    content=contents,
    kind=st.sampled_from([kind.name for kind in BUILT_IN]),
    subject=st.none() | st.sampled_from(WORDS),
    tags=st.lists(st.sampled_from(["storage", "storage:cache", "people:tim"]), max_size=2).map(tuple),
    importance=st.floats(0, 10),
    confidence=st.floats(0, 1),
    outcome=st.none() | st.sampled_from(germane.Outcome),
    scope=st.sampled_from(["global", "session:one", "session:two", "task:NW-1"]),
    created_at=st.integers(0, 400).map(lambda days: NOW - timedelta(days=days)),
    metadata=st.fixed_dictionaries(
        {}, optional={"action": st.sampled_from(["block", "absolute", "warn"]), "name": texts}
    ),
)
queries = (
    st.sampled_from(["", "go on", "should we use redis for the cache?", "what about キャッシュ", "last week"])
    | texts
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of one to four sections over a random split of the kinds."""
    names = draw(st.permutations([kind.name for kind in BUILT_IN]))
    count = draw(st.integers(1, 4))
    sections = tuple(
        Section(
            name=f"part{number}",
            heading=draw(st.sampled_from(["# One", "## Two: {title}", ""])),
            kinds=tuple(names[number::count]),
            share=Share(weight=draw(st.integers(0, 5)), ceiling=draw(st.none() | st.integers(0, 500))),
            order=draw(st.none() | st.sampled_from(Order)),
            limit=draw(st.integers(1, 50)),
            levels=draw(st.sampled_from(LEVELS)),
            overflow=draw(st.sampled_from(Overflow)),
            items=draw(st.none() | st.integers(1, 3)),
            own_heading=draw(st.booleans()),
            by_session=draw(st.booleans()),
            priority=draw(st.floats(0, 1)),
        )
        for number in range(count)
    )
    return Plan(
        name="random",
        sections=sections,
        roll_over=draw(st.sampled_from(RollOver)),
        gate=draw(st.booleans()),
    )


def test_a_plan_refuses_a_level_that_is_made_during_packing() -> None:
    section = Section(name="facts", heading="", share=Share(weight=1), levels=(Level.FULL, Level.EXCERPT))
    with pytest.raises(germane.InvalidPlan, match=r"'facts' of plan 'mine' can't have level excerpt"):
        Plan(name="mine", sections=(section,))


def opened(memories: Sequence[Draft], *, agent: str = "a", semantic: bool = False) -> Engine:
    engine = germane.open(
        ":memory:", agent=agent, clock=FixedClock(NOW), embedder=HashEmbedder() if semantic else None
    )
    engine.remember_many(memories)
    return engine


@settings(max_examples=examples(60))
@given(
    memories=st.lists(drafts, max_size=15),
    query=queries,
    budget=st.integers(0, 400) | st.integers(0, 5000),
    plan=st.sampled_from(["layered", "layered_strict", "relevance"]) | plans(),
    counter=st.sampled_from(["o200k", "cl100k", "estimate", "bytes_div_4_floor", "claude", "words"]),
    semantic=st.booleans(),
)
def test_the_text_fits_and_every_candidate_is_accounted_for(
    memories: list[Draft], query: str, budget: int, plan: str | Plan, counter: str, semantic: bool
) -> None:
    counting = WordCounter() if counter == "words" else get_counter(counter)
    with opened(memories, semantic=semantic) as engine:
        try:
            context = engine.assemble(query, budget=budget, plan=plan, counter=counting)
        except BudgetTooSmall as error:
            assert error.budget == budget
            assert error.shortfall == error.needed - budget > 0
            return
        assert counting.count(context.text) == context.tokens
        assert context.tokens * (1 + counting.margin) <= budget
        _check_account(context, engine)


def _check_account(context: Context, engine: Engine) -> None:
    ids = Counter(entry.memory_id for entry in context.trace.entries)
    assert set(ids.values()) <= {1}
    assert set(ids) <= {memory.id for memory in engine.memories()}
    assert sorted(item.memory.id for item in context.items) == sorted(
        entry.memory_id for entry in context.trace.included
    )
    starts = [context.text.index(item.text) for item in context.items]
    assert all(start >= 0 for start in starts)
    for entry in context.trace.entries:
        assert (entry.level is None) == (entry.reason is not None)
        assert (entry.short_by > 0) == (entry.reason is germane.Reason.OVER_BUDGET)
        assert sum(entry.parts.values()) == pytest.approx(entry.score)
    for item in context.items:
        assert item.text in context.text
    assert (context.trace.empty_reason is None) == bool(context.items)
    assert sum(use.included for use in context.trace.sections) == len(context.items)
    assert context.explain()


@settings(max_examples=examples(40))
@given(memories=st.lists(drafts, max_size=12), query=queries, budget=st.integers(0, 2000))
def test_the_same_state_and_clock_give_the_same_bytes(memories: list[Draft], query: str, budget: int) -> None:
    def outcome(engine: Engine) -> object:
        try:
            context = engine.assemble(query, budget=budget)
        except BudgetTooSmall as error:
            return str(error)
        return context.text, context.trace

    with opened(memories, semantic=True) as engine:
        before = engine.memories(order=Order.OLDEST)
        assert outcome(engine) == outcome(engine)
        # Reading changed nothing that was read.
        assert engine.memories(order=Order.OLDEST) == before


@settings(max_examples=examples(40))
@given(mine=st.lists(drafts, max_size=6), theirs=st.lists(drafts, min_size=1, max_size=12), query=queries)
def test_what_another_agent_stores_changes_nothing_of_mine(
    mine: list[Draft], theirs: list[Draft], query: str
) -> None:
    store = SqliteStore(":memory:")
    with germane.open(store, agent="mine", clock=FixedClock(NOW)) as engine:
        engine.remember_many(mine)
        alone = engine.recall(query), _text(engine, query)
        other = germane.open(store, agent="theirs", clock=FixedClock(NOW))
        stored = other.remember_many(theirs)
        assert (engine.recall(query), _text(engine, query)) == alone
        for one in stored:
            with pytest.raises(germane.NotFound):
                engine.get(one.memory.id)
            with pytest.raises(germane.NotFound):
                engine.forget(one.memory.id)
            with pytest.raises(germane.NotFound):
                engine.purge(one.memory.id, confirm=True)
        assert len(other.memories()) == len({one.memory.id for one in stored})


def _text(engine: Engine, query: str) -> str:
    try:
        return engine.assemble(query, budget=1500).text
    except BudgetTooSmall as error:
        return str(error)


@settings(max_examples=examples(30))
@given(
    memories=st.lists(
        drafts, min_size=1, max_size=8, unique_by=lambda draft: (draft.kind, draft.content, draft.subject)
    ),
    query=queries,
)
def test_what_is_forgotten_or_purged_never_comes_back(memories: list[Draft], query: str) -> None:
    with opened(memories) as engine:
        stored = engine.memories()
        gone, hidden = stored[0], stored[-1]
        engine.purge(gone.id, confirm=True)
        if hidden is not gone:
            engine.forget(hidden.id)
        out = {gone.id, hidden.id}
        assert not out & {one.id for one in engine.recall(query, limit=50)}
        assert not out & {memory.id for memory in engine.memories()}
        try:
            context = engine.assemble(query, budget=4000)
        except BudgetTooSmall:
            return
        assert not out & {entry.memory_id for entry in context.trace.entries}


@pytest.mark.parametrize(
    "budgets", [range(n, n + 400) for n in range(0, 2001, 400)], ids=lambda r: f"from {r[0]}"
)
def test_every_budget_up_to_two_thousand_is_respected_on_the_demo_memory(budgets: range) -> None:
    with germane.open(
        ":memory:", agent="newton", clock=FixedClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
    ) as engine:
        load_demo(engine)
        for budget in budgets:
            try:
                context = engine.assemble(
                    "Should we use Redis for caching in Newton?", budget=budget, frame="decision"
                )
            except BudgetTooSmall as error:
                assert error.needed > budget
                continue
            assert O200K.count(context.text) == context.tokens <= budget


def test_a_line_of_a_megabyte_is_stored_shortened_and_fits() -> None:
    with opened(
        [Draft(content="redis " + "x" * 1_000_000, kind="fact"), Draft(content="キ" * 300_000)]
    ) as engine:
        context = engine.assemble("redis", budget=300)
        assert 0 < context.tokens <= 300
        assert engine.assemble("redis", budget=300, plan="relevance").tokens <= 300
