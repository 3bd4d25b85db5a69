"""Remembered lines save work and can't be wrong: they are for one very memory."""

from __future__ import annotations

from datetime import UTC, datetime

import germane
from germane import Level
from germane.kinds import BUILT_IN
from germane.model.plan import Section, Share
from germane.packing.lines import Costs, RememberedLines, RenderedLine
from germane.plans.layered import relevance
from germane.testing.fakes import make_memory

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Section(name="one", heading="## One", share=Share(weight=1)).look
HEADED = Section(name="one", heading="## One", share=Share(weight=1), own_heading=True).look


def _line(text: str, level: Level = Level.FULL) -> RenderedLine:
    return RenderedLine(level=level, text=text, tokens=3)


def test_a_line_is_found_by_its_memory_level_and_heading() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    lines.keep(memory, _line("- The cache"), look=PLAIN)
    assert lines.get(memory, Level.FULL, look=PLAIN) == _line("- The cache")
    assert lines.get(memory, Level.MICRO, look=PLAIN) is None
    assert lines.get(memory, Level.FULL, look=HEADED) is None


def test_another_memory_of_the_same_id_is_another() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    lines.keep(memory, _line("- The cache"), look=PLAIN)
    assert lines.get(memory.evolve(content="Something else."), Level.FULL, look=PLAIN) is None


def test_what_is_counted_in_another_way_is_kept_apart() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    lines.of("content").keep(memory, _line("- The cache"), look=PLAIN)
    assert lines.of("content").get(memory, Level.FULL, look=PLAIN) is not None
    assert lines.of("whole").get(memory, Level.FULL, look=PLAIN) is None
    lines.clear()
    assert lines.of("content").get(memory, Level.FULL, look=PLAIN) is None


def test_a_huge_memory_is_not_held_and_many_are_let_go() -> None:
    lines, huge = RememberedLines(), make_memory("word " * 5000)
    lines.keep(huge, _line("- word"), look=PLAIN)
    assert lines.get(huge, Level.FULL, look=PLAIN) is None
    first = make_memory("first")
    lines.keep(first, _line("- first"), look=PLAIN)
    for _ in range(1300):
        lines.keep(make_memory("x" * 19_000), _line("- x"), look=PLAIN)
    assert lines.get(first, Level.FULL, look=PLAIN) is None


def test_contexts_are_the_same_with_and_without_what_was_remembered() -> None:
    with germane.open(":memory:", agent="a", clock=lambda: NOW) as engine:
        for number in range(30):
            engine.remember(f"# Note {number}\nThe cache of part {number} lives in <b>Redis</b>.")
        first = engine.assemble("Where does the cache live?", budget=300)
        assert engine.assemble("Where does the cache live?", budget=300) == first
        other = engine.assemble("Where does the cache live?", budget=300, counter="cl100k")
        assert other.trace.counter == "cl100k"
        assert engine.assemble("Where does the cache live?", budget=300) == first


def test_a_purge_takes_the_remembered_lines_along() -> None:
    with germane.open(":memory:", agent="a", clock=lambda: NOW) as engine:
        engine.remember("The secret lives in the vault.")
        held = engine.recall("secret")[0].memory
        engine.assemble("Where does the secret live?", budget=300, plan="relevance")
        session, look = engine._session, relevance(BUILT_IN).sections[0].look
        remembered = session.lines.of(f"{Costs.way} {session.counter.name}")
        assert remembered.get(held, Level.FULL, look=look) is not None
        engine.purge(held.id, confirm=True)
        remembered = session.lines.of(f"{Costs.way} {session.counter.name}")
        assert remembered.get(held, Level.FULL, look=look) is None
        assert engine.assemble("Where does the secret live?", budget=300, plan="relevance").text == ""
