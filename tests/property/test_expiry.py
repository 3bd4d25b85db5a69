"""Whatever expires when, and whatever the clock says: nothing that has expired is in any result."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import germane
from germane.testing.fakes import FixedClock, WordCounter

START = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
KINDS = ("note", "fact", "episode", "decision", "procedure", "constraint")

lifetimes = st.lists(
    st.tuples(st.sampled_from(KINDS), st.none() | st.integers(1, 8), st.booleans()), min_size=1, max_size=7
)
clocks = st.lists(st.integers(0, 9), min_size=1, max_size=5)


def found_by(engine: germane.Engine) -> Iterator[set[str]]:
    """The ids that each of the ways to read finds."""
    yield {one.id for one in engine.memories()}
    yield {one.id for one in engine.memories(germane.Filter(statuses=tuple(germane.Status)))}
    yield {one.memory.id for one in engine.recall("What is known of the harbour?", limit=50).ranked}
    yield {one.memory.id for one in engine.recall("", limit=50).ranked}
    yield {item.memory.id for item in engine.assemble("What of the harbour?", budget=4000).items}
    yield {item.memory.id for item in engine.assemble("", budget=4000, plan="scoped").items}
    yield {item.memory.id for item in engine.working_set("now").items()}


@given(lifetimes, clocks)
def test_nothing_that_has_expired_is_found(
    lives: list[tuple[str, int | None, bool]], readings: list[int]
) -> None:
    time = START

    def clock() -> datetime:
        return time

    with germane.open(":memory:", embedder=None, counter=WordCounter(), clock=clock) as engine:
        expiry: dict[str, datetime | None] = {}
        for number, (kind, hours, pinned) in enumerate(lives):
            memory = engine.remember(
                f"The harbour has crane number {number}, which is {kind}.",
                kind=kind,
                pinned=pinned,
                ttl=None if hours is None else timedelta(hours=hours),
            )
            expiry[memory.id] = memory.expires_at
            engine.working_set("now").add(memory)
        valid: set[str] = set()
        for hour in readings:
            time = START + timedelta(hours=hour)
            valid = {name for name, at in expiry.items() if at is None or at > time}
            for found in found_by(engine):
                assert found <= valid
            assert {one.id for one in engine.memories()} == valid
            assert engine.count() == len(valid)
        engine.maintain()
        time = START
        assert {one.id for one in engine.memories()} == valid


def test_a_user_reads_no_expired_memory_of_the_agent() -> None:
    clock = FixedClock(START)
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        engine.remember("The harbour is closed today.", ttl=3600)
        user = engine.for_user("alice")
        assert [one.memory.content for one in user.recall("harbour").ranked]
        clock.advance(timedelta(hours=1))
        assert not user.recall("harbour").ranked
        assert user.count() == 0
