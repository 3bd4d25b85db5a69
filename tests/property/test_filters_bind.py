"""A filter binds every section, score and count: nothing that it excludes has any part in an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Context, Draft, Engine, Filter, Memory, Order, Plan, Section, Share, TimeRange
from germane.kinds import BUILT_IN
from germane.testing.fakes import FixedClock, HashEmbedder
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
KINDS = [kind.name for kind in BUILT_IN]
WORDS = ["redis", "cache", "postgres", "decision", "deploy", "password", "hint", "latency"]
USERS = ["alice", "bob"]
TASK = germane.Scope(name="task", value="T-1")

whose = st.sampled_from(
    [
        Filter(metadata={"user": "alice"}),
        Filter(tags=("team:alice",)),
        Filter(scopes=(germane.Scope.parse("session:alice"),)),
        Filter(subject="alice"),
        Filter(source="alice"),
        Filter(where='user = "alice"'),
        Filter(where='tag = "team:alice" and subject startswith "al"'),
        Filter(where={"$not": {"$or": [{"user": {"$ne": "alice"}}, {"source": "bob"}]}}),
        Filter(metadata={"user": "alice"}, kinds=("fact", "decision", "identity")),
        Filter(tags=("team:alice",), min_importance=3.0),
        Filter(metadata={"user": "alice"}, pinned=False),
        Filter(metadata={"user": "alice"}, when=TimeRange(since=NOW - 20 * DAY, until=NOW - 2 * DAY)),
    ]
)


@st.composite
def of_a_user(draw: st.DrawFn) -> Draft:
    """A memory that is Alice's in every way, or Bob's."""
    user = draw(st.sampled_from(USERS))
    kind = draw(st.sampled_from([*KINDS, "fact", "decision", "episode", "identity"]))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
    metadata: dict[str, object] = {"user": user}
    if kind == "constraint":
        metadata["action"] = "block"
    return Draft(
        content=" ".join(words),
        kind=kind,
        subject=user,
        source=user,
        tags=(f"team:{user}",),
        importance=draw(st.integers(0, 10)),
        confidence=0.75,
        outcome=draw(st.sampled_from([None, "success", "failure"])) if kind == "decision" else None,
        scope=draw(st.sampled_from([f"session:{user}", "session:both"])),
        pinned=draw(st.booleans()),
        created_at=NOW - draw(st.integers(0, 40)) * DAY,
        metadata=metadata,
    )


def marked(drafts: Sequence[Draft]) -> list[Draft]:
    """The same, each with a word that no other has."""
    return [
        replace(draft, content=f"{draft.content} mark{place:03}of{draft.subject}")
        for place, draft in enumerate(drafts)
    ]


several = st.lists(of_a_user(), max_size=14).map(marked)


def altered(draft: Draft) -> Draft:
    """One of Bob's with other figures and the same words, which the agent's statistics count."""
    if draft.subject != "bob":
        return draft
    return replace(
        draft,
        importance=10 - (draft.importance or 0),
        confidence=0.25,
        pinned=not draft.pinned,
        outcome="partial" if draft.kind == "decision" else None,
        scope="session:bob" if draft.scope == "session:both" else "session:both",
        created_at=draft.created_at and draft.created_at - timedelta(hours=7),
    )


own_plans = st.sampled_from(
    [
        Plan(
            name="own",
            sections=(
                Section(
                    name="recent", heading="## Recent", kinds=("fact", "decision", "episode"), items=3,
                    share=Share(weight=1), order=Order.NEWEST,
                ),
                Section(name="facts", heading="## Facts", kinds=("fact", "decision"), share=Share(weight=2)),
                Section(
                    name="sure", heading="## Sure", share=Share(weight=1), where=Filter(min_importance=5.0)
                ),
                Section(
                    name="kinds", heading="## Kinds", share=Share(weight=1),
                    where=Filter(where='kind in ("identity", "focus") or confidence < 0.5'),
                ),
                Section(
                    name="all", heading="## All", share=Share(weight=1), where=Filter(), order=Order.IMPORTANT
                ),
            ),
        ),
    ]
)  # fmt: skip
plans = st.sampled_from(["layered", "layered_strict", "relevance"]) | own_plans
queries = st.sampled_from(
    ["", "password hint", "should we use redis for the cache?", "what did we decide last week?", "last week",
     "catch me up", "bob password"]
)  # fmt: skip


def opened(drafts: Sequence[Draft], *, semantic: bool) -> Engine:
    engine = germane.open(
        ":memory:", agent="a", clock=FixedClock(NOW), embedder=HashEmbedder() if semantic else None
    )
    engine.remember_many(drafts)
    return engine


def is_admitted(memory: Memory, where: Filter) -> bool:
    """As the filter says, but for its time range."""
    return (
        memory.subject == "alice"
        and (not where.kinds or memory.kind in where.kinds)
        and (where.min_importance is None or memory.importance >= where.min_importance)
        and (where.pinned is None or memory.pinned is where.pinned)
    )


def check(context: Context, stored: Sequence[Memory], where: Filter) -> None:
    out = [memory for memory in stored if not is_admitted(memory, where)]
    output = "\n".join([context.text, context.explain(), *(note.text for note in context.trace.notes)])
    for memory in out:
        mark = memory.content.split()[-1]
        assert mark not in output
        assert memory.id not in output
    ids = {memory.id for memory in out}
    assert not ids & {item.memory.id for item in context.items}
    assert not ids & {entry.memory_id for entry in context.trace.entries}


def account(context: Context) -> object:
    """All that a context says, but for ids, which differ from store to store."""
    entries = [
        (one.section, one.kind, one.score, dict(one.parts), one.level, one.reason, one.tokens, one.label)
        for one in context.trace.entries
    ]
    notes = [(note.code, note.text) for note in context.trace.notes]
    return context.text, context.tokens, entries, context.trace.sections, notes, context.trace.empty_reason


@settings(max_examples=examples(80))
@given(
    drafts=several,
    where=whose,
    query=queries,
    plan=plans,
    frame=st.sampled_from(["task", "auto", "decision"]),
    budget=st.sampled_from([None, 4000]),
    semantic=st.booleans(),
)
def test_what_a_filter_excludes_has_no_part_in_a_context(
    drafts: list[Draft],
    where: Filter,
    query: str,
    plan: str | Plan,
    frame: str,
    budget: int | None,
    semantic: bool,
) -> None:
    made = []
    for stored_as in (drafts, [altered(draft) for draft in drafts]):
        with opened(stored_as, semantic=semantic) as engine:
            stored = engine.memories(Filter(statuses=()))
            context = engine.assemble(query, where=where, plan=plan, frame=frame, budget=budget or 8000)
            check(context, stored, where)
            refreshed = engine.refresh(None, query, where=where, plan=plan, frame=frame, budget=8000)
            check(refreshed.context, stored, where)
            unfiltered = engine.assemble("password hint", plan=plan, frame=frame, budget=8000)
            again = engine.refresh(unfiltered, "password hint", where=where, plan=plan, frame=frame)
            check(again.context, stored, where)
            request = engine.request(
                [{"role": "user", "content": query or "go on"}], memory=plan, where=where, frame=frame
            )
            if request.memory is not None:
                check(request.memory, stored, where)
            made.append(account(context))
    assert made[0] == made[1]


@settings(max_examples=examples(40))
@given(drafts=several, where=whose, query=queries, semantic=st.booleans())
def test_what_a_filter_excludes_has_no_part_in_a_recall_or_a_listing(
    drafts: list[Draft], where: Filter, query: str, semantic: bool
) -> None:
    made = []
    for stored_as in (drafts, [altered(draft) for draft in drafts]):
        with opened(stored_as, semantic=semantic) as engine:
            stored = engine.memories(Filter(statuses=()))
            expected = {memory.id for memory in stored if is_admitted(memory, where)}
            recalled = engine.recall(query, where=where, limit=20, gate=False)
            assert {one.memory.id for one in recalled} <= expected
            assert {memory.id for memory in engine.memories(where)} <= expected
            assert engine.count(where) <= len(expected)
            desk = engine.working_set("desk")
            engine.recall(query, where=where, into=desk)
            assert {entry.memory.id for entry in desk.items()} <= expected
            made.append([(one.memory.content, one.score, dict(one.parts)) for one in recalled])
    assert made[0] == made[1]


@settings(max_examples=examples(40))
@given(
    drafts=several,
    where=whose.filter(lambda where: not where.scopes),
    query=queries,
    task=st.sampled_from([None, "T-1"]),
    beside=st.booleans(),
)
def test_what_a_filter_excludes_has_no_part_in_a_scoped_context(
    drafts: list[Draft], where: Filter, query: str, task: str | None, beside: bool
) -> None:
    placed = [
        replace(draft, scope="global" if place % 2 else "task:T-1") for place, draft in enumerate(drafts)
    ]
    with opened(placed, semantic=False) as engine:
        spaces = ["team"] if beside else []
        stored = [*engine.memories(Filter(statuses=()))]
        for name in spaces:
            team = engine.space(name, create=True)
            team.remember_many([replace(draft, content=f"team {draft.content}") for draft in placed])
            stored += team.memories(Filter(statuses=()))
        context = engine.assemble(query, where=where, plan="scoped", task=task, spaces=spaces)
        check(context, stored, where)
        narrow = replace(where, applies_to=(TASK,))
        inside = engine.assemble(query, where=narrow, plan="scoped", task="T-1", spaces=spaces)
        check(inside, stored, where)
        assert all(item.memory.scope == TASK for item in inside.items)
        if spaces:
            check(engine.assemble(query, where=where, spaces=spaces, budget=8000), stored, where)
