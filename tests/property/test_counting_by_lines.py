"""Counting in parts, with a cache and by a margin: the tokens of a whole are those of its parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from germane import Level
from germane.kinds import Kinds
from germane.packing.lines import Costs, RememberedLines, RenderedLine
from germane.packing.render import render, written_lines
from germane.protocols import TokenCounter
from germane.testing.fakes import WordCounter
from germane.tokens import CachedCounter, get_counter, spendable, uncached
from germane.tokens.counters import parts_apart
from support.examples import examples

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
        RenderedLine(level=Level.FULL, text=line, tokens=counter.count(f"{line}\n"), body=line)
        for _, lines in blocks
        for line in lines
    ]
    costs = Costs(counter, Kinds(), RememberedLines())
    assert costs.whole(written_lines(blocks), known) == counter.count(render(blocks))
    assert render(blocks) == "\n\n".join(
        "\n".join([heading, *lines] if heading else lines) for heading, lines in blocks
    )


def test_only_an_exact_counter_is_trusted_with_parts() -> None:
    line = RenderedLine(level=Level.FULL, text="- one two", tokens=1000, body="- one two")
    costs = Costs(WordCounter(), Kinds(), RememberedLines())
    assert costs.whole(["- one two\n", "- three"], [line]) == WordCounter().count("- one two\n- three")


@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=30))
@settings(max_examples=examples(20))
def test_threads_count_as_one_thread_does(texts: list[str]) -> None:
    counter = CachedCounter(get_counter("o200k"), size=7)
    alone = [get_counter("o200k").count(text) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(counter.count, texts * 4)) == alone * 4


@given(
    texts=st.lists(st.sampled_from(["", "a", "b c", "d e f", "g " * 9]), max_size=60),
    size=st.integers(1, 3),
    longest=st.integers(0, 6),
)
def test_a_cache_changes_no_count_and_stays_small(texts: list[str], size: int, longest: int) -> None:
    inner = WordCounter(margin=0.25)
    cached = CachedCounter(inner, size=size, longest=longest)
    assert [cached.count(text) for text in texts] == [inner.count(text) for text in texts]
    assert len(cached) <= size
    assert (cached.name, cached.margin) == (inner.name, inner.margin)


def test_a_cache_counts_a_text_once_until_it_is_forgotten() -> None:
    counted: list[str] = []

    class Listening(WordCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    cached = CachedCounter(Listening(), size=2, longest=5)
    for text in ("a", "b", "a", "c", "a", "b", "too long", "too long"):
        cached.count(text)
    assert counted == ["a", "b", "c", "b", "too long", "too long"]


def test_a_counter_without_its_cache_remembers_nothing() -> None:
    inner = WordCounter()
    cached = CachedCounter(inner)
    assert uncached(cached).count("a b") == cached.count("a b") == 2
    assert uncached(cached) is uncached(inner) is inner
    assert len(cached) == 1


@given(budget=st.integers(0, 10**9), margin=st.integers(0, 300).map(lambda percent: percent / 100))
def test_what_is_spendable_is_the_most_that_can_not_overflow(budget: int, margin: float) -> None:
    percent = 100 + round(100 * margin)
    left = spendable(budget, WordCounter(margin=margin))
    assert left * percent <= budget * 100 < (left + 1) * percent
