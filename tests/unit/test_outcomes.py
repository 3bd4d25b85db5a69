"""Success and failure speak for and against what was shown: bounded, fading, once for each context."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import InvalidInput, Outcome
from germane.ranking import OutcomeRecord, OutcomeResult, UsageHistory
from germane.testing.fakes import FixedClock, make_id, make_memory
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HALF_LIFE = timedelta(days=90)
MOST_OUTCOME = 0.5
"""What all success or failure there ever was can add to a score or take from it."""
SHOWN = make_memory("Deploy by pipeline.", kind="adr", id=make_id("shown"), created_at=NOW, agent="default")


def leaning(attested: Iterable[OutcomeRecord]) -> float:
    """How far these outcomes speak for the memory that was shown, from -1 to 1."""
    with germane.open(":memory:", embedder=None, clock=lambda: NOW) as engine:
        engine.import_memories([SHOWN])
        engine.import_usage_history(UsageHistory(outcomes=tuple(attested)))
        (entry,) = engine.assemble(plan="scoped").trace.entries
        return entry.parts.get("outcome", 0.0) / MOST_OUTCOME


def attested(*worths: float, at: datetime = NOW, weight: float = 1.0) -> list[OutcomeRecord]:
    return [
        OutcomeRecord(context=f"{number:032x}", memory_id=SHOWN.id, worth=worth, weight=weight, at=at)
        for number, worth in enumerate(worths)
    ]


def test_leanings_follow_the_rule_of_succession() -> None:
    assert leaning(attested(1.0)) == pytest.approx(1 / 3)
    assert leaning(attested(1.0, 1.0)) == pytest.approx(1 / 2)
    assert leaning(attested(0.0)) == pytest.approx(-1 / 3)
    assert leaning(attested(1.0, 0.0, 0.5)) == 0
    assert leaning(attested(0.0, weight=0.25)) == pytest.approx(-1 / 9)
    assert leaning(attested(1.0, at=NOW - HALF_LIFE)) == pytest.approx(0.2)
    assert leaning(attested(1.0, at=NOW - 40 * HALF_LIFE)) == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0.01, 1), st.integers(-5, 5000), st.integers(0, 999)).map(
            lambda each: OutcomeRecord(
                context=f"{each[3]:032x}",
                memory_id=SHOWN.id,
                worth=each[0],
                weight=each[1],
                at=NOW - timedelta(days=each[2]),
            )
        ),
        unique_by=lambda one: one.context,
        max_size=8,
    )
)
@settings(max_examples=examples(100))
def test_leanings_are_bounded_and_no_order_matters(records: list[OutcomeRecord]) -> None:
    found = leaning(records)
    assert -1 < found < 1
    assert leaning(reversed(records)) == found


def test_an_outcome_moves_what_was_shown_and_counts_once_for_its_context() -> None:
    clock = FixedClock(NOW)
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        misled = engine.remember("Deploy by hand.", kind="adr")
        clock.advance(timedelta(hours=-1))
        helped = engine.remember("Deploy by pipeline.", kind="adr")
        clock.advance(timedelta(hours=2))
        context = engine.assemble(plan="scoped")
        assert [item.memory.id for item in context.items] == [misled.id, helped.id]
        assert engine.outcome(context, "failure", memories=[misled]) == OutcomeResult(memories=1, updated=1)
        assert engine.outcome(context, Outcome.FAILURE, memories=[misled.id]).updated == 0
        after = engine.assemble(plan="scoped")
        assert [item.memory.id for item in after.items] == [helped.id, misled.id]
        assert after.trace.entries[1].parts["outcome"] == pytest.approx(-MOST_OUTCOME / 3)
        assert "outcomes" in [note.code for note in after.trace.notes]
        # The latest word on a context stands.
        assert engine.outcome(context, "success", memories=[misled]).updated == 1
        assert engine.assemble(plan="scoped").trace.entries[0].parts["outcome"] > 0
        assert engine.outcome(after, "success") == OutcomeResult(memories=2, updated=2)
        assert engine.purge(misled.id, confirm=True) == 1
        assert engine.outcome(after, "failure") == OutcomeResult(memories=1, updated=1)
        exact = engine.assemble(plan="scoped_estimate")
        assert "outcome" not in exact.trace.entries[0].parts


def test_what_says_nothing_or_was_not_shown_is_refused() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("one", kind="adr")
        context = engine.assemble(plan="scoped")
        stranger = engine.remember("two", kind="adr")
        for wrong in ("pending", "abandoned", "fine"):
            with pytest.raises(InvalidInput):
                engine.outcome(context, wrong)
        with pytest.raises(InvalidInput, match="shown"):
            engine.outcome(context, "success", memories=[stranger])
        with pytest.raises(InvalidInput):
            engine.outcome("context", "success")  # type: ignore[arg-type]  # A caller without types.


def test_outcomes_of_a_recall_count_too_and_agents_stay_apart() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Cache in Redis.", kind="adr")
        assert engine.outcome(engine.recall("redis"), "success").updated == 1
        assert engine.assemble(plan="scoped").trace.entries[0].parts["outcome"] > 0
