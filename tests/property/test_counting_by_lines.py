"""The tokens of a whole text are those of its parts, where it is cut before what no token joins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Level
from germane.kinds import Kinds
from germane.packing.lines import Costs, RememberedLines, RenderedLine
from germane.packing.render import render, written_lines
from germane.protocols import TokenCounter
from germane.testing.fakes import WordCounter
from germane.tokens import CachedCounter, get_counter
from germane.tokens.counters import parts_apart

# What the vocabularies' patterns take together with a line end, or with what comes after one.
PIECES = st.sampled_from(
    [
        *("\n", "\n- ", "- ", " ", "  ", "\r", "\r\n", "/", "//", ".", "?!", "...", "-", "--", "#", "`"),
        *("a", "The", "aB", "'s", "’t", "ß", "é", "\u0301", "漢字", "😀", "\ud83d", "\ude00"),
        *("7", "123", "4567", "\t", "\x0b", "\x85", "\xa0", "\u2028"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60)


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
@given(texts=st.lists(TEXTS, max_size=6))
def test_parts_count_as_the_whole(name: str, texts: list[str]) -> None:
    counter, lines = get_counter(name), [f"{text}\n" for text in texts]
    parts = parts_apart(lines)
    assert "".join(parts) == "".join(lines)
    assert sum(map(counter.count, parts)) == counter.count("".join(lines))


def test_a_bullet_and_a_heading_begin_parts_and_what_a_token_may_join_does_not() -> None:
    lines = ["## One\n", "- two.\n", "  three\n", "\n", "/four\n", "- five\n\n", "### Six\n"]
    assert parts_apart(lines) == ["## One\n", "- two.\n  three\n\n/four\n", "- five\n\n", "### Six\n"]


@pytest.mark.parametrize("counter", [get_counter("o200k"), CachedCounter(get_counter("o200k"))])
@given(
    blocks=st.lists(
        st.tuples(st.just("") | TEXTS, st.lists(TEXTS | TEXTS.map("- {}".format), max_size=3)), max_size=4
    )
)
def test_a_whole_is_counted_by_the_lines_that_are_known(
    counter: TokenCounter, blocks: list[tuple[str, list[str]]]
) -> None:
    known = [
        RenderedLine(level=Level.FULL, text=line, tokens=counter.count(f"{line}\n"))
        for _, lines in blocks
        for line in lines
    ]
    costs = Costs(counter, Kinds(), RememberedLines())
    assert costs.whole(written_lines(blocks), known) == counter.count(render(blocks))
    assert render(blocks) == "\n\n".join(
        "\n".join([heading, *lines] if heading else lines) for heading, lines in blocks
    )


def test_only_an_exact_counter_is_trusted_with_parts() -> None:
    line = RenderedLine(level=Level.FULL, text="- one two", tokens=1000)
    costs = Costs(WordCounter(), Kinds(), RememberedLines())
    assert costs.whole(["- one two\n", "- three"], [line]) == WordCounter().count("- one two\n- three")
