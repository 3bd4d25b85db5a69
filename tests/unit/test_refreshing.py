"""When a context no longer serves: each rule by itself, and what refresh does about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

import germane
from germane import Context, Engine, Frame, InvalidInput, Plan, Section, Share
from germane.demo import DEMO_NOW, DEMO_QUESTION, load_demo
from germane.ledger import RefreshReason
from germane.plans import FrameChoice
from germane.plans.frames import frame_named
from germane.plans.intent import decision_point, frame_switch, new_topic, substance, token_pressure
from germane.testing.fakes import FixedClock, HashEmbedder

NO = (False, None)


def choice(name: str, confidence: float = 1.0) -> FrameChoice:
    return FrameChoice(frame=Frame(name=name, description=""), confidence=confidence, by="words")


@pytest.mark.parametrize(
    ("current", "chosen", "similarity", "switches"),
    [
        ("decision", choice("debug"), 1.0, True),
        ("debug", choice("decision"), 1.0, True),
        ("debug", choice("debug"), 0.0, False),
        (None, choice("debug"), 0.0, False),
        ("debug", choice("decision", 0.5), 1.0, True),
        ("debug", choice("decision", 0.49), 1.0, False),
        ("decision", choice("question"), 0.5, False),
        ("decision", choice("question"), 0.49, True),
        ("decision", choice("conversation"), None, False),
    ],
)
def test_a_frame_switch(
    current: str | None, chosen: FrameChoice, similarity: float | None, switches: bool
) -> None:
    expected = (True, RefreshReason.FRAME) if switches else NO
    assert frame_switch(current, chosen, similarity=similarity) == expected


@pytest.mark.parametrize(
    ("similarity", "verdict"), [(None, NO), (0.5, NO), (1.0, NO), (0.49, (True, RefreshReason.TOPIC))]
)
def test_a_new_topic(similarity: float | None, verdict: object) -> None:
    assert new_topic(similarity) == verdict


@pytest.mark.parametrize(
    ("text", "current", "acting", "acts"),
    [
        ("Go ahead with Redis.", "question", False, True),
        ("ok, ship it", "task", False, True),
        ("We should not go there", "task", False, False),
        ("anything", "task", True, True),
        ("go ahead", "decision", True, False),
        ("go ahead", None, False, True),
    ],
)
def test_a_decision_point(text: str, current: str | None, acting: bool, acts: bool) -> None:
    expected = (True, RefreshReason.DECISION_POINT) if acts else NO
    assert decision_point(text, current=current, acting=acting) == expected


@pytest.mark.parametrize(
    ("tokens", "room", "verdict"),
    [
        (10, None, NO),
        (10, 10, NO),
        (10, 9, (True, RefreshReason.PRESSURE)),
        (1, 0, (True, RefreshReason.PRESSURE)),
    ],
)
def test_token_pressure(tokens: int, room: int | None, verdict: object) -> None:
    assert token_pressure(tokens, room) == verdict


def test_the_substance_is_what_is_left_beside_the_word_to_act() -> None:
    assert substance("Go ahead with Redis") == "with Redis"


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="newton", clock=FixedClock(DEMO_NOW)) as engine:
        load_demo(engine)
        yield engine


@pytest.fixture(name="context")
def _context(engine: Engine) -> Context:
    return engine.assemble(DEMO_QUESTION, frame="auto", guidance=True)


def test_without_a_context_there_is_a_first_one(engine: Engine) -> None:
    needed, reason, made = engine.refresh(None, DEMO_QUESTION)
    assert (needed, reason) == (True, RefreshReason.FIRST)
    assert made == engine.assemble(DEMO_QUESTION, frame="auto")


@pytest.mark.parametrize("said", ["And what would Redis cost us to run?", "ok, thanks!", "go on", ""])
def test_what_goes_on_keeps_the_context(engine: Engine, context: Context, said: str) -> None:
    refreshed = engine.refresh(context, said)
    assert (refreshed.needed, refreshed.reason) == (False, None)
    assert refreshed.context is context


def test_another_frame_makes_another_context(engine: Engine, context: Context) -> None:
    refreshed = engine.refresh(context, "The nightly backup job fails with an error")
    assert (refreshed.reason, refreshed.context.trace.frame) == (RefreshReason.FRAME, "debug")
    assert refreshed.context.trace.question.text == "The nightly backup job fails with an error"


def test_another_topic_makes_another_context_in_the_same_frame(engine: Engine, context: Context) -> None:
    refreshed = engine.refresh(context, "Should we hire a designer for the website?")
    assert (refreshed.reason, refreshed.context.trace.frame) == (RefreshReason.TOPIC, "decision")
    assert refreshed.similarity is not None
    assert refreshed.similarity < 0.5


def test_who_is_about_to_act_gets_what_decides(engine: Engine) -> None:
    context = engine.assemble("How do we deploy a release?", frame="question")
    refreshed = engine.refresh(context, "How do we deploy a release to production?", acting=True)
    assert (refreshed.reason, refreshed.context.trace.frame) == (RefreshReason.DECISION_POINT, "decision")
    assert engine.refresh(context, "How do we deploy a release to production?").needed is False


@pytest.mark.parametrize(("said", "acting"), [("Go ahead.", False), ("do it now!", False), ("", True)])
def test_who_says_no_more_than_to_act_goes_on_with_the_question(
    engine: Engine, said: str, acting: bool
) -> None:
    question = "How do we deploy a release?"
    context = engine.assemble(question, frame="question")
    refreshed = engine.refresh(context, said, acting=acting)
    assert (refreshed.reason, refreshed.similarity) == (RefreshReason.DECISION_POINT, None)
    assert refreshed.context == engine.assemble(question, frame="decision")
    also = engine.refresh(context, "Go ahead with the canary release.", acting=acting)
    assert also.context.trace.question.text == "Go ahead with the canary release."


def test_a_frame_that_is_switched_to_in_no_words_of_its_own_keeps_the_question(engine: Engine) -> None:
    context = engine.assemble("How do we deploy a release?", frame="question")
    refreshed = engine.refresh(context, "what if?", frame=lambda _, frames: frames[-1])
    assert (refreshed.reason, refreshed.similarity) == (RefreshReason.FRAME, None)
    assert (refreshed.context.trace.frame, refreshed.context.trace.question.text) == (
        "creative",
        "How do we deploy a release?",
    )


def test_a_context_by_scopes_is_made_anew_and_never_smaller(engine: Engine) -> None:
    context = engine.assemble("Redis", plan="scoped", scopes=["task:T-1"])
    refreshed = engine.refresh(context, "holidays in Portugal", plan="scoped", scopes=["task:T-1"])
    assert (refreshed.reason, refreshed.context.trace.plan) == (RefreshReason.TOPIC, "scoped")
    with pytest.raises(InvalidInput, match="Assemble it anew"):
        engine.refresh(context, "", free_tokens=context.tokens - 1)


def test_under_pressure_the_least_relevant_leave_and_constraints_and_frame_stay(
    engine: Engine, context: Context
) -> None:
    room = context.tokens - 400
    refreshed = engine.refresh(context, "And Redis?", free_tokens=room)
    smaller = refreshed.context
    assert (refreshed.reason, smaller.tokens <= room) == (RefreshReason.PRESSURE, True)
    before = {item.memory.id: item for item in context.items}
    stayed = {item.memory.id for item in smaller.items}
    assert stayed < set(before)
    evicted = {entry.memory_id for entry in smaller.trace.excluded}
    assert stayed | evicted == set(before)
    always = {"identity", "constraints", "focus", "calibration"}
    assert {each for each, item in before.items() if item.section in always} <= stayed
    assert max(before[each].score for each in evicted) <= min(
        before[each].score for each in stayed if before[each].section not in always
    )
    assert "## Current Approach: Decision" in smaller.text
    assert "evicted" in [note.code for note in smaller.trace.notes]
    # The same again needs nothing, and keeps its scores and their parts.
    assert engine.refresh(smaller, "And Redis?", free_tokens=room).needed is False
    assert all(entry in context.trace.included for entry in smaller.trace.included)


def test_the_frame_never_leaves(engine: Engine, context: Context) -> None:
    always = {"identity", "constraints", "focus", "calibration"}
    forbidding = {item.memory.id for item in context.items if item.memory.metadata.get("action") == "block"}
    assert forbidding
    left = []
    for room in range(context.tokens - 1, 0, -40):
        try:
            smaller = engine.refresh(context, "", free_tokens=room).context
        except germane.BudgetTooSmall:
            break
        assert smaller.tokens <= room
        assert forbidding <= {item.memory.id for item in smaller.items}
        flexible = [item for item in smaller.items if item.section not in always]
        left.append(len(flexible))
        assert "## Current Approach: Decision\n" in smaller.text
    assert left == sorted(left, reverse=True)
    assert len(left) > 20


def test_a_room_too_small_for_what_must_stay_is_an_error(engine: Engine, context: Context) -> None:
    with pytest.raises(germane.BudgetTooSmall):
        engine.refresh(context, "And Redis?", free_tokens=50)


def test_a_room_too_small_for_the_frame_is_an_error() -> None:
    with germane.open(":memory:", clock=FixedClock(DEMO_NOW)) as other:
        for number in range(20):
            other.remember(f"Redis was turned down, reason {number}.", kind="decision")
        context = other.assemble("Should we use Redis?", frame="decision")
        assert "## Current Approach: Decision" in context.text
        with pytest.raises(germane.BudgetTooSmall) as error:
            other.refresh(context, "And Redis?", free_tokens=20)
        smaller = other.refresh(context, "And Redis?", free_tokens=error.value.needed).context
        assert "## Current Approach: Decision" in smaller.text
        assert smaller.tokens <= error.value.needed


@pytest.mark.parametrize(
    "remark",
    [
        "it works",
        "hmm",
        "It worked now, thanks!",
        "that works for me",
        "looks good to me",
        "perfect, that fixed it",
        "same error",
        "it failed",
        "try again",
        "show me more",
    ],
)
def test_a_remark_is_no_topic(engine: Engine, context: Context, remark: str) -> None:
    refreshed = engine.refresh(context, remark, frame="decision")
    assert (refreshed.needed, refreshed.similarity) == (False, None)


def test_a_word_that_says_something_is_a_topic(engine: Engine, context: Context) -> None:
    for text in ("What about holidays?", "invoices"):
        assert engine.refresh(context, text, frame="decision").reason is RefreshReason.TOPIC


def test_the_first_context_of_an_engine_is_cold_in_the_ledger_however_it_is_made() -> None:
    with germane.open(":memory:", clock=FixedClock(DEMO_NOW), record=True) as engine:
        engine.remember("Redis was turned down.", kind="decision")
        context = engine.refresh(None, "Should we use Redis?").context
        assert engine.refresh(context, "And Redis?").needed is False
        engine.refresh(context, "holidays in Portugal")
        assert sorted(one.cold for one in engine.ledger().list()) == [False, True]


class Noting(HashEmbedder):
    """An embedder that notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.given += texts
        return super().embed(texts)


def test_what_is_said_is_embedded_as_it_stands() -> None:
    embedder = Noting()
    with germane.open(":memory:", embedder=embedder, clock=FixedClock(DEMO_NOW)) as engine:
        context = engine.assemble("Where does Redis run?", frame="question")
        embedder.given.clear()
        engine.refresh(context, "Does getUserName() in API.py call Redis?")
        assert "Does getUserName() in API.py call Redis?" in embedder.given
        embedder.given.clear()
        engine.refresh(context, "OK, go ahead with API.py: Redis it is!")
        assert "OK, with API.py: Redis it is!" in embedder.given


def test_a_new_context_keeps_within_the_room_as_well(engine: Engine, context: Context) -> None:
    refreshed = engine.refresh(context, "The nightly backup job fails with an error", free_tokens=1500)
    assert refreshed.context.tokens <= 1500 == refreshed.context.trace.budget


def test_a_context_of_another_plan_needs_that_plan(engine: Engine) -> None:
    plan = Plan(
        name="mine",
        sections=(Section(name="all", heading="# All", kinds=("fact", "decision"), share=Share(weight=1)),),
    )
    context = engine.assemble(DEMO_QUESTION, plan=plan)
    with pytest.raises(InvalidInput, match="'mine'"):
        engine.refresh(context, DEMO_QUESTION, free_tokens=context.tokens - 1)
    smaller = engine.refresh(context, DEMO_QUESTION, free_tokens=context.tokens - 1, plan=plan)
    assert smaller.context.tokens < context.tokens
    relevant = engine.assemble(DEMO_QUESTION, plan="relevance", budget=2000)
    made = engine.refresh(relevant, DEMO_QUESTION, free_tokens=1000)
    assert made.context.tokens <= 1000


@pytest.mark.parametrize("wrong", [{"free_tokens": -1}, {"budget": -1}])
def test_what_is_no_count_is_refused(engine: Engine, context: Context, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        engine.refresh(context, "x", **wrong)  # type: ignore[arg-type]  # Wrong on purpose.


def test_similarity_is_words_alone_without_an_embedder() -> None:
    clock = FixedClock(datetime(2026, 11, 21, tzinfo=UTC))
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        engine.remember("Redis keeps sessions.", kind="fact")
        context = engine.assemble("Where does Redis run?", frame=frame_named("question"))
        assert engine.refresh(context, "Redis sessions").similarity == pytest.approx(1.0)
        assert engine.refresh(context, "holidays in Portugal").similarity == 0.0
