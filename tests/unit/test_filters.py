"""A filter is a promise: whose and which memories a call may show, in every section and verb."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine, Filter, InvalidInput, Order, Plan, Section, Share
from germane.demo import DEMO_NOW, load_demo
from germane.embedders import StaticEmbedder
from germane.ledger import RefreshReason
from germane.protocols import Query
from germane.stores import EmbeddingIdentity, SearchResult, SqliteStore
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ALICE = Filter(metadata={"user": "alice"})


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="support", clock=FixedClock(NOW)) as engine:
        for user, hint in (("alice", "her first cat"), ("bob", "his old street")):
            metadata = {"user": user}
            engine.remember(f"{user} is a customer", kind="identity", metadata=metadata, tags=[user])
            engine.remember(f"The password hint of {user} is {hint}", kind="fact", metadata=metadata)
            engine.remember(f"Never call {user}", kind="constraint", metadata={**metadata, "action": "block"})
            engine.remember(f"{user} waits for a refund", kind="focus", metadata=metadata, pinned=True)
        yield engine


@pytest.mark.parametrize("plan", ["layered", "layered_strict", "relevance"])
def test_what_is_always_shown_obeys_the_filter(engine: Engine, plan: str) -> None:
    context = engine.assemble("password hint", plan=plan, where=ALICE)
    assert "alice" in context.text
    assert "bob" not in context.text + context.explain()
    assert len(context.trace.entries) <= 4


def test_tags_bind_what_is_always_shown_too(engine: Engine) -> None:
    context = engine.assemble("password hint", tags=["alice"])
    assert [item.memory.content for item in context.items] == ["alice is a customer"]


def test_what_a_call_names_by_id_stands(engine: Engine) -> None:
    bobs = engine.memories(Filter(metadata={"user": "bob"}, kinds=("fact",)))[0]
    context = engine.assemble("password hint", where=ALICE, pins=[bobs.id])
    assert [item.memory.id for item in context.items if "bob" in item.text] == [bobs.id]


def test_only_a_time_range_is_lifted_for_what_is_always_shown_and_a_note_says_so(engine: Engine) -> None:
    engine.remember("alice likes tea", kind="identity", metadata={"user": "alice"}, created_at=NOW - 9 * DAY)
    within = engine.assemble("password hint", where=ALICE, since=NOW - DAY)
    assert "alice likes tea" in within.text
    assert "bob" not in within.text
    (note,) = [note for note in within.trace.notes if note.code == "time_lifted"]
    assert "1 that is always shown (identity)" in note.text
    without = engine.assemble("password hint", where=ALICE, since=NOW - 10 * DAY)
    assert "time_lifted" not in [note.code for note in without.trace.notes]


def test_the_judgement_counts_only_what_the_filter_admits() -> None:
    with germane.open(":memory:", clock=FixedClock(NOW)) as engine:
        for user, result in (("alice", "success"), ("bob", "failure")):
            for number in range(12):
                engine.remember(
                    f"{user} chose option {number}", kind="decision", outcome=result, confidence=0.9,
                    metadata={"user": user},
                )  # fmt: skip
        everybody = engine.assemble("option").text
        hers = engine.assemble("option", where=ALICE).text
        with germane.open(":memory:", clock=FixedClock(NOW)) as alone:
            for memory in engine.memories(ALICE, order=Order.OLDEST):
                alone.remember(
                    memory.content, kind="decision", outcome="success", confidence=0.9,
                    metadata={"user": "alice"},
                )  # fmt: skip
            expected = alone.assemble("option").text
    note = expected[expected.index("## Note") :]
    assert hers.endswith(note)
    assert not everybody.endswith(note)


def test_a_refresh_goes_on_with_the_filter_of_its_context(engine: Engine) -> None:
    context = engine.assemble("password hint", where=ALICE, frame="question")
    refreshed = engine.refresh(context, "And the password hint?")
    assert (refreshed.needed, refreshed.context) == (False, context)
    anew = engine.refresh(context, "Who waits for a refund in the old street?")
    assert anew.reason is RefreshReason.TOPIC
    assert "bob" not in anew.context.text
    cut = engine.refresh(context, "And the password hint?", free_tokens=context.tokens - 1)
    assert cut.context.trace.where == context.trace.where


def test_a_refresh_by_another_filter_makes_another_context(engine: Engine) -> None:
    everything = engine.assemble("password hint")
    assert "bob" in everything.text
    refreshed = engine.refresh(everything, "password hint", where=ALICE)
    assert refreshed.reason is RefreshReason.FILTER
    assert "bob" not in refreshed.context.text
    assert "bob" in engine.refresh(refreshed.context, "password hint", where=Filter()).context.text


def test_a_request_obeys_a_filter(engine: Engine) -> None:
    messages = [{"role": "user", "content": "What is the password hint?"}]
    assert "bob" in str(engine.request(messages, memory="layered").messages)
    request = engine.request(messages, memory="layered", where=ALICE)
    assert "bob" not in str(request.messages)
    assert "alice" in str(request.messages)


def test_a_request_after_one_by_another_filter_gathers_anew(engine: Engine) -> None:
    messages = [{"role": "user", "content": "What is the password hint?"}]
    first = engine.request(messages, memory="layered")
    second = engine.request(messages, memory="layered", where=ALICE, previous=first)
    assert "bob" not in str(second.messages)
    assert "alice" in str(second.messages)


@pytest.mark.parametrize("memory", [None, "made"])
def test_a_request_that_gathers_nothing_takes_no_filter(engine: Engine, memory: str | None) -> None:
    given = None if memory is None else engine.assemble("hint")
    with pytest.raises(InvalidInput, match="where filters the memories"):
        engine.request([{"role": "user", "content": "x"}], memory=given, where=ALICE)


def test_a_plan_may_gather_by_filters_alone(engine: Engine) -> None:
    plan = Plan(
        name="by_filter",
        sections=(
            Section(name="of_bob", heading="# Bob", share=Share(weight=1), where=Filter(tags=("bob",))),
            Section(
                name="newest", heading="# Newest", share=Share(weight=1), where=Filter(), order=Order.NEWEST
            ),
        ),
    )
    context = engine.assemble("customer", plan=plan, budget=1000)
    sections = {item.memory.content: item.section for item in context.items}
    assert sections["bob is a customer"] == "of_bob"
    assert sections["alice is a customer"] == "newest"
    assert len(context.items) == 8
    hers = engine.assemble("customer", plan=plan, budget=1000, where=ALICE)
    assert {item.memory.metadata["user"] for item in hers.items} == {"alice"}


def test_a_recent_tier_stands_beside_the_others_and_nothing_stands_twice(engine: Engine) -> None:
    for number in range(8):
        engine.remember(f"Redis fact {number}", kind="fact", created_at=NOW - (8 - number) * DAY)
    plan = Plan(
        name="tiers",
        sections=(
            Section(
                name="recent", heading="# Recent", kinds=("fact",), items=3, order=Order.NEWEST,
                share=Share(weight=1),
            ),
            Section(name="facts", heading="# Facts", kinds=("fact", "focus"), share=Share(weight=1)),
        ),
    )  # fmt: skip
    context = engine.assemble("redis fact", plan=plan, budget=2000, where=Filter(min_importance=0.0))
    ids = [entry.memory_id for entry in context.trace.entries]
    assert len(ids) == len(set(ids))
    by_section = {
        name: [item.memory.content for item in context.items if item.section == name]
        for name in ("recent", "facts")
    }
    assert len(by_section["recent"]) == 3
    assert {f"Redis fact {number}" for number in range(7)} <= {
        content for several in by_section.values() for content in several
    }


class CountingStore(SqliteStore):
    """A store that records its queries."""

    queries: list[Query]

    def search(self, agent: str, query: Query) -> SearchResult:
        self.queries.append(query)
        return super().search(agent, query)


def test_association_asks_once_for_all_that_was_found_and_obeys_the_filter() -> None:
    embedder = StaticEmbedder()
    store = CountingStore(
        ":memory:", embedding=EmbeddingIdentity(name=embedder.name, dimension=embedder.dimension)
    )
    store.queries = []
    with germane.open(store, agent="newton", clock=FixedClock(DEMO_NOW), embedder=embedder) as engine:
        load_demo(engine)
        store.queries.clear()
        context = engine.assemble("Should we raise prices?", frame="auto")
        assert "associated" in [note.code for note in context.trace.notes]
        assert any("association" in entry.parts for entry in context.trace.included)
        # The sections, and what is near to all that was found; a third one where procedures are empty.
        assert len(store.queries) <= 3
        where = Filter(kinds=("fact", "identity"))
        store.queries.clear()
        narrow = engine.assemble("Should we raise prices?", frame="auto", where=where)
        assert {entry.kind for entry in narrow.trace.entries} <= {"fact", "identity"}
        assert sum(any(part.order is None for part in query.slices) for query in store.queries) == 1
