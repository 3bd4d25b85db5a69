"""Cached lines save work and can't be wrong: they are for one very memory and section."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import germane
from germane import Level, Memory, Section, Share
from germane.kinds import BUILT_IN
from germane.packing.lines import ContentCosts, Costs, RememberedLines, RenderedLine
from germane.plans.layered import relevance
from germane.testing.fakes import make_memory
from germane.tokens import get_counter

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = Section(name="one", heading="## One", share=Share(weight=1))
COUNTER = get_counter("o200k")


def _lines(lines: RememberedLines, memory: Memory, section: Section = ONE) -> dict[Level, RenderedLine]:
    """What an assembly finds in the cache."""
    return Costs(COUNTER, BUILT_IN, lines).line_cache(section, memory).lines


def _made(lines: RememberedLines, memory: Memory) -> RenderedLine:
    """A line that an assembly makes, and leaves in the cache."""
    return Costs(COUNTER, BUILT_IN, lines).line(ONE, memory, Level.FULL)


def test_a_line_is_found_by_its_memory_and_level() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    made = _made(lines, memory)
    assert made.text == "- The cache lives in Redis."
    assert _lines(lines, memory) == {Level.FULL: made}


@pytest.mark.parametrize(
    "option", [{"own_heading": True}, {"ids": True}, {"levels": (Level.FULL,)}, {"share": Share(weight=2)}]
)
def test_a_section_that_differs_in_any_option_has_lines_of_its_own(option: dict[str, Any]) -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    made = _made(lines, memory)
    assert _lines(lines, memory, replace(ONE)) == {Level.FULL: made}
    assert _lines(lines, memory, replace(ONE, **option)) == {}


def test_another_memory_of_the_same_id_is_another() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    _made(lines, memory)
    assert _lines(lines, memory.evolve(content="Something else.")) == {}


def test_what_is_counted_in_another_way_is_cached_apart() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    _made(lines, memory)
    assert ContentCosts(COUNTER, BUILT_IN, lines).line_cache(ONE, memory).lines == {}
    assert Costs(get_counter("cl100k"), BUILT_IN, lines).line_cache(ONE, memory).lines == {}
    lines.clear()
    assert _lines(lines, memory) == {}


def test_a_huge_memory_is_not_cached_and_many_are_let_go() -> None:
    lines, huge = RememberedLines(), make_memory("word " * 5000)
    _made(lines, huge)
    assert _lines(lines, huge) == {}
    first = make_memory("first")
    _made(lines, first)
    for number in range(1300):
        _lines(lines, make_memory("x" * 19_000, id=f"m{number}"))
    assert _lines(lines, first) == {}


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
        session, (section,) = engine._session, relevance(BUILT_IN).sections
        assert Costs(session.counter, BUILT_IN, session.lines).line_cache(section, held).lines != {}
        engine.purge(held.id, confirm=True)
        assert Costs(session.counter, BUILT_IN, session.lines).line_cache(section, held).lines == {}
        assert engine.assemble("Where does the secret live?", budget=300, plan="relevance").text == ""
