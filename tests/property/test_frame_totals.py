"""Frames over any store and text: their totals hold, constraints are in, and their patterns are found."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import BudgetTooSmall, Draft, Filter, Frame, Outcome
from germane.kinds import BUILT_IN
from germane.plans.frames import FRAMES
from germane.plans.intent import Complexity, Intent, IntentKind, has, normalized_words, without
from germane.plans.layered import FLEXIBLE, budgeted, layered
from germane.testing.fakes import FixedClock, HashEmbedder
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WORDS = ["redis", "cache", "deploy", "error", "decide", "ideas", "yesterday", "hi", "thanks", "?", "why is"]
texts = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=8).map(" ".join)
frames = st.sampled_from(FRAMES) | st.builds(
    Frame,
    name=st.sampled_from(["one", "two", "debug"]),
    description=texts,
    questions=st.lists(texts, max_size=3).map(tuple),
    priorities=st.lists(st.sampled_from(FLEXIBLE), unique=True).flatmap(
        lambda names: st.tuples(*(st.tuples(st.just(name), st.floats(0, 1)) for name in names))
    ),
    patterns=st.lists(st.sampled_from(["redis", "err*|deploy", "^why", "?"]), max_size=3).map(tuple),
    precedence=st.integers(-5, 9),
    budget=st.integers(2100, 20_000),
    shares=st.lists(st.sampled_from(FLEXIBLE), unique=True).flatmap(
        lambda names: st.tuples(*(st.tuples(st.just(name), st.integers(0, 9000)) for name in names))
    ),
)
memories = st.lists(
    st.builds(
        Draft,
        content=texts.filter(lambda text: any(each.isalnum() for each in text)),
        kind=st.sampled_from([kind.name for kind in BUILT_IN]),
        outcome=st.none() | st.sampled_from(germane.Outcome),
        confidence=st.floats(0, 1),
        pinned=st.booleans(),
        subject=st.none() | st.sampled_from(WORDS),
        tags=st.sampled_from([(), ("a",), ("b", "a")]),
        metadata=st.fixed_dictionaries(
            {},
            optional={
                "action": st.sampled_from(["absolute", "block", "warn"]),
                "domain": st.just("operations"),
            },
        ),
    ),
    max_size=20,
)
intents = st.none() | st.builds(
    Intent, aim=st.sampled_from(IntentKind), hints=st.lists(st.sampled_from(FLEXIBLE), unique=True).map(tuple)
)


@settings(max_examples=examples(200))
@given(frame=frames, complexity=st.sampled_from(Complexity), intent=intents)
def test_the_shares_of_any_frame_add_up_to_its_total(
    frame: Frame, complexity: Complexity, intent: Intent | None
) -> None:
    found = budgeted(frame, complexity=complexity, intent=intent)
    assert sum(found.shares.values()) + found.spare == found.total <= frame.budget
    assert min(found.spare, *found.shares.values()) >= 0
    plan = layered(BUILT_IN, frame, complexity=complexity, intent=intent)
    assert plan.spare + sum(section.share.weight for section in plan.sections) == found.total


@settings(max_examples=examples(60))
@given(
    memories=memories,
    frame=frames | st.just("auto"),
    query=texts,
    budget=st.none() | st.integers(0, 600),
    conversation=st.none() | texts,
    semantic=st.booleans(),
    plan=st.sampled_from(["layered", "layered_strict"]),
)
def test_the_total_holds_and_constraints_are_in_or_the_error_says_so(
    memories: list[Draft],
    frame: Frame | str,
    query: str,
    budget: int | None,
    conversation: str | None,
    semantic: bool,
    plan: str,
) -> None:
    embedder = HashEmbedder() if semantic else None
    with germane.open(":memory:", clock=FixedClock(NOW), embedder=embedder) as engine:
        engine.remember_many(memories)
        must = {
            memory.id
            for memory in engine.memories(Filter(without=(Outcome.ABANDONED,)))
            if memory.pinned
            or memory.kind == "identity"
            or (memory.kind == "constraint" and memory.metadata.get("action") in ("absolute", "block"))
        }
        try:
            context = engine.assemble(query, frame=frame, budget=budget, conversation=conversation, plan=plan)
        except BudgetTooSmall as error:
            assert error.shortfall > 0
            assert set(error.required) <= must
            return
        assert context.tokens <= context.trace.budget
        assert must <= {item.memory.id for item in context.items}
        refreshed = engine.refresh(context, query, frame=frame, free_tokens=context.tokens, plan=plan)
        assert refreshed.context.tokens <= context.tokens


@settings(max_examples=examples(40))
@given(memories=memories, query=texts, cut=st.integers(1, 400))
def test_under_pressure_nothing_comes_in_and_constraints_stay(
    memories: list[Draft], query: str, cut: int
) -> None:
    with germane.open(":memory:", clock=FixedClock(NOW), embedder=None) as engine:
        engine.remember_many(memories)
        context = engine.assemble(query)
        limit = max(0, context.tokens - cut)
        try:
            refreshed = engine.refresh(context, "", free_tokens=limit)
        except BudgetTooSmall:
            return
        assert refreshed.context.tokens <= limit or not refreshed.needed
        before = {item.memory.id for item in context.items}
        assert {item.memory.id for item in refreshed.context.items} <= before
        assert {entry.memory_id for entry in refreshed.context.trace.entries} >= before


OWN = ("pull request*|diff", "a* b|^fix", "?", "trade* off*|^x* y", "^is|no", "well-known*")
PATTERNS = [*(pattern for frame in FRAMES for pattern in frame.patterns), *OWN]
PHRASED = sorted(
    {word.strip("*^") for pattern in PATTERNS for phrase in pattern.split("|") for word in phrase.split()}
)
TEXTS = st.lists(
    st.sampled_from([*PHRASED, ".", ",", "x", "failing", "trades off", "notable", "well-known.", "it's"])
    | st.text(max_size=5),
    max_size=8,
).map(" ".join)


def by_expressions(pattern: str, words: str) -> bool:
    """One expression for each phrase: whole words, a star for the rest of one, a caret for a beginning."""
    for phrase in pattern.split("|"):
        parts = [re.escape(word.casefold()).replace(r"\*", r"\S*") for word in phrase.lstrip("^").split()]
        start = r"\^ " if phrase.startswith("^") else ""
        if re.search(rf"(?<= ){start}{' '.join(parts)}(?= )", words):
            return True
    return False


@settings(max_examples=examples(500))
@given(pattern=st.sampled_from(PATTERNS), text=TEXTS)
def test_a_pattern_is_found_where_any_of_its_phrases_stands(pattern: str, text: str) -> None:
    words = normalized_words(text)
    assert has(pattern, words) == by_expressions(pattern, words)


@given(pattern=st.sampled_from(OWN), text=TEXTS)
def test_what_is_taken_away_is_no_longer_found(pattern: str, text: str) -> None:
    words = normalized_words(text)
    left = without([pattern], words)
    if not has(pattern, words):
        assert left.split() == [word for word in words.split() if word not in ("^", "?")]
    else:
        assert len(left) < len(words)
