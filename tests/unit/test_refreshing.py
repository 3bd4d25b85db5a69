"""When a context no longer serves: each rule by itself, and what refresh does about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import germane
from germane import Context, Engine, Frame, InvalidInput, Plan, RefreshResult, Section, Share
from germane.demo import DEMO_NOW, DEMO_QUESTION, load_demo
from germane.ledger import RefreshReason
from germane.testing.fakes import FixedClock, HashEmbedder


class Aimed:
    """Gives every text the same direction, but for one whose cosine with the others is given."""

    name = "aimed"
    dimension = 2

    def __init__(self, text: str, cosine: float) -> None:
        self._text, self._cosine = text, cosine
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        cosines = np.array([self._cosine if text == self._text else 1.0 for text in texts], dtype=np.float32)
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)


QUESTION = "Where does the cache run?"
OTHER = "Which zeppelin hovers above the fjord?"
"""A question that shares no word with that one, so that their vectors alone say how near they are."""


def judged(
    current: str | None,
    message: str,
    *,
    chosen: str | None = None,
    similarity: float = 1.0,
    frames: Sequence[Frame] = (),
    **how: Any,
) -> RefreshResult:
    """What a refresh says of a context for a frame, where another frame is chosen by name or by words."""
    embedder = Aimed(message, similarity)
    with germane.open(":memory:", embedder=embedder, frames=frames) as engine:
        engine.remember("The cache keeps sessions.", kind="fact")
        context = (
            engine.assemble(QUESTION, plan="relevance")
            if current is None
            else engine.assemble(QUESTION, frame=current)
        )
        found = engine.refresh(context, message, frame="auto" if chosen is None else lambda *_: chosen, **how)
    assert found.needed is (found.reason is not None)
    return found


@pytest.mark.parametrize(
    ("current", "chosen", "similarity", "switches"),
    [
        ("decision", "debug", 1.0, True),
        ("debug", "decision", 1.0, True),
        ("debug", "debug", 0.0, False),
        (None, "debug", 0.0, False),
        ("decision", "question", 0.5, False),
        ("decision", "question", 0.49, True),
        ("decision", "conversation", 0.49, True),
    ],
)
def test_a_frame_switch(current: str | None, chosen: str, similarity: float, *, switches: bool) -> None:
    found = judged(current, OTHER, chosen=chosen, similarity=similarity)
    assert (found.reason is RefreshReason.FRAME) is switches
    assert found.similarity == pytest.approx(similarity)


def test_a_friendly_word_that_says_nothing_switches_to_no_frame() -> None:
    found = judged("decision", "it works", chosen="conversation", acting=True)
    assert (found.reason, found.similarity) == (None, None)


def test_a_frame_that_is_chosen_with_little_confidence_is_not_switched_to() -> None:
    rivals = [Frame(name=name, description="", patterns=("red",)) for name in ("one", "two", "three")]
    frames = [*rivals, Frame(name="more", description="", patterns=("a", "b"))]
    with germane.open(":memory:", embedder=None, frames=frames) as engine:
        trace = engine.assemble("a red b", frame="auto").trace
    assert trace.frame == "more"
    assert trace.frame_confidence == pytest.approx(2 / 5)
    assert judged("debug", "a red b", frames=frames, acting=True).reason is RefreshReason.DECISION_POINT
    surer = judged("debug", "Should we use Redis for caching in Newton?")
    assert (surer.reason, surer.context.trace.frame_confidence) == (RefreshReason.FRAME, 0.5)


@pytest.mark.parametrize(
    ("message", "similarity", "reason"),
    [
        ("ok", 0.0, None),
        (OTHER, 0.5, None),
        (OTHER, 1.0, None),
        (OTHER, 0.49, RefreshReason.TOPIC),
    ],
)
def test_a_new_topic(message: str, similarity: float, reason: RefreshReason | None) -> None:
    assert judged("task", message, chosen="task", similarity=similarity).reason is reason


@pytest.mark.parametrize(
    ("text", "current", "acting", "acts"),
    [
        ("Go ahead with Redis.", "question", False, True),
        ("ok, ship it", "task", False, True),
        ("We should not go there", "task", False, False),
        ("anything", "task", True, True),
        ("go ahead", "decision", True, False),
        ("go ahead", "debug", False, True),
        ("go ahead", None, False, False),  # A context without a frame is for no task.
    ],
)
def test_a_decision_point(text: str, current: str | None, *, acting: bool, acts: bool) -> None:
    found = judged(current, text, chosen=current or "task", acting=acting)
    assert found.reason is (RefreshReason.DECISION_POINT if acts else None)


def test_token_pressure() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("The cache keeps sessions.", kind="fact")
        context = engine.assemble(QUESTION, frame="task", guidance=False)
        assert context.tokens > 1
        for free, reason in (
            (None, None),
            (context.tokens, None),
            (context.tokens - 1, RefreshReason.PRESSURE),
            (0, RefreshReason.PRESSURE),
        ):
            assert engine.refresh(context, "ok", free_tokens=free).reason is reason


def test_the_substance_is_what_is_left_beside_the_word_to_act() -> None:
    embedder = Aimed("", 1.0)
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember("The cache keeps sessions.", kind="fact")
        context = engine.assemble(QUESTION, frame="task")
        embedder.embedded.clear()
        engine.refresh(context, "Go ahead with Redis", frame="task")
    assert embedder.embedded[:2] == ["with Redis", QUESTION]


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


@pytest.mark.parametrize("message", ["And what would Redis cost us to run?", "ok, thanks!", "go on", ""])
def test_what_goes_on_keeps_the_context(engine: Engine, context: Context, message: str) -> None:
    refreshed = engine.refresh(context, message)
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


@pytest.mark.parametrize(("message", "acting"), [("Go ahead.", False), ("do it now!", False), ("", True)])
def test_who_says_no_more_than_to_act_goes_on_with_the_question(
    engine: Engine, message: str, acting: bool
) -> None:
    question = "How do we deploy a release?"
    context = engine.assemble(question, frame="question")
    refreshed = engine.refresh(context, message, acting=acting)
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
    limit = context.tokens - 500
    refreshed = engine.refresh(context, "And Redis?", free_tokens=limit)
    smaller = refreshed.context
    assert (refreshed.reason, smaller.tokens <= limit) == (RefreshReason.PRESSURE, True)
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
    assert engine.refresh(smaller, "And Redis?", free_tokens=limit).needed is False
    assert all(entry in context.trace.included for entry in smaller.trace.included)


def test_the_frame_never_leaves(engine: Engine, context: Context) -> None:
    always = {"identity", "constraints", "focus", "calibration"}
    forbidding = {item.memory.id for item in context.items if item.memory.metadata.get("action") == "block"}
    assert forbidding
    left = []
    for limit in range(context.tokens - 1, 0, -40):
        try:
            smaller = engine.refresh(context, "", free_tokens=limit).context
        except germane.BudgetTooSmall:
            break
        assert smaller.tokens <= limit
        assert forbidding <= {item.memory.id for item in smaller.items}
        flexible = [item for item in smaller.items if item.section not in always]
        left.append(len(flexible))
        assert "## Current Approach: Decision\n" in smaller.text
    assert left == sorted(left, reverse=True)
    assert len(left) > 20


def test_a_budget_too_small_for_what_must_stay_is_an_error(engine: Engine, context: Context) -> None:
    with pytest.raises(germane.BudgetTooSmall):
        engine.refresh(context, "And Redis?", free_tokens=50)


def test_a_budget_too_small_for_the_frame_is_an_error() -> None:
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


def test_a_text_is_embedded_as_it_stands() -> None:
    embedder = Noting()
    with germane.open(":memory:", embedder=embedder, clock=FixedClock(DEMO_NOW)) as engine:
        context = engine.assemble("Where does Redis run?", frame="question")
        embedder.given.clear()
        engine.refresh(context, "Does getUserName() in API.py call Redis?")
        assert "Does getUserName() in API.py call Redis?" in embedder.given
        embedder.given.clear()
        engine.refresh(context, "OK, go ahead with API.py: Redis it is!")
        assert "OK, with API.py: Redis it is!" in embedder.given


def test_a_new_context_keeps_within_the_budget_as_well(engine: Engine, context: Context) -> None:
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
        context = engine.assemble("Where does Redis run?", frame="question")
        assert engine.refresh(context, "Redis sessions").similarity == pytest.approx(1.0)
        assert engine.refresh(context, "holidays in Portugal").similarity == 0.0
