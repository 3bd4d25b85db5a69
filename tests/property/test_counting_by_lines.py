"""A text is as long as its parts are, where each part but the first begins with a line's bullet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.kinds import Kinds
from germane.model.memory import Level
from germane.packing.costs import Costs
from germane.packing.lines import Line
from germane.packing.remembered import RememberedLines
from germane.testing.fakes import WordCounter
from germane.tokens import CachedCounter, get_counter
from germane.tokens_exact import apart_at_bullets

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
@given(before=TEXTS, after=TEXTS)
def test_parts_count_as_the_whole(name: str, before: str, after: str) -> None:
    counter, text = get_counter(name), f"{before}\n- {after}"
    parts = apart_at_bullets(text)
    assert "".join(parts) == text
    assert all(part.startswith("- ") and "\n- " not in part for part in parts[1:])
    assert sum(map(counter.count, parts)) == counter.count(text)


@pytest.mark.parametrize("counter", [get_counter("o200k"), CachedCounter(get_counter("o200k"))])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5), between=st.lists(TEXTS, min_size=5, max_size=5))
def test_a_whole_is_counted_by_the_lines_that_are_known(
    counter: CachedCounter, texts: list[str], between: list[str]
) -> None:
    written = list(_written(texts, between))
    lines = [
        Line(level=Level.FULL, text=each, tokens=counter.count(f"{each}\n"))
        for each in written
        if each.startswith("- ")
    ]
    text = "\n".join(written)
    assert Costs(counter, Kinds(), RememberedLines()).whole(text, lines) == counter.count(text)


def test_only_an_exact_counter_is_trusted_with_parts() -> None:
    line = Line(level=Level.FULL, text="- one two", tokens=1000)
    costs = Costs(WordCounter(), Kinds(), RememberedLines())
    assert costs.whole("- one two\n- three", [line]) == WordCounter().count("- one two\n- three")


def _written(texts: list[str], between: list[str]) -> Iterator[str]:
    for text, other in zip(texts, between, strict=False):
        yield f"- {text}"
        yield other
        yield f"- {text}"
