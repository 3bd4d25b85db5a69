"""The public stand-ins do what a test relies on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from germane.errors import InvalidInput
from germane.protocols import Embedder, Summarizer, TokenCounter
from germane.testing.fakes import (
    FailingEmbedder,
    FirstSentenceSummarizer,
    FixedClock,
    HashEmbedder,
    WordCounter,
)


def test_similar_texts_are_nearer_than_others() -> None:
    embedder = HashEmbedder(128)
    question, near, far = embedder.embed(
        ["should we cache sessions in Redis", "Redis caches the sessions", "the cat sleeps on the sofa"]
    )
    assert question @ near > 0.3 > question @ far


def test_vectors_are_the_same_everywhere() -> None:
    first = HashEmbedder(8).embed(["germane"])[0]
    np.testing.assert_allclose(first, HashEmbedder(8).embed(["Germane!"])[0])
    assert np.linalg.norm(first) == pytest.approx(1)
    assert np.flatnonzero(np.abs(first) > 0.5).tolist() == [3]


@pytest.mark.parametrize("text", ["", "…", "\ud800", "漢字"])
def test_any_text_has_a_finite_vector(text: str) -> None:
    vectors = HashEmbedder(4).embed([text])
    assert vectors.shape == (1, 4)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def test_a_failing_embedder_fails_when_configured_to() -> None:
    error = OSError("gone")
    embedder = FailingEmbedder(error, dimension=4, after=1)
    assert isinstance(embedder, Embedder)
    assert embedder.embed(["a"]).shape == (1, 4)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            embedder.embed(["a"])
    assert embedder.calls == 3


def test_a_fixed_clock_moves_only_as_set() -> None:
    start = datetime(2025, 3, 1, tzinfo=UTC)
    clock = FixedClock(start, timedelta(seconds=2))
    assert [clock(), clock()] == [start, start + timedelta(seconds=2)]
    clock.advance(timedelta(days=1))
    assert clock() == start + timedelta(days=1, seconds=4)
    assert FixedClock(start)() == FixedClock(start)()


def test_a_clock_needs_a_time_zone() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        FixedClock(datetime(2025, 3, 1))  # noqa: DTZ001 - the naive time is what is refused.


def test_a_word_counter_counts_words() -> None:
    counter = WordCounter(margin=0.25)
    assert isinstance(counter, TokenCounter)
    assert counter.count("  one two\nthree ") == 3
    assert counter.margin == 0.25


@pytest.mark.parametrize(
    ("text", "tokens", "short"),
    [
        ("It rained. Then it stopped.", 10, "It rained."),
        ("Version 3.11 is out! Upgrade.", 10, "Version 3.11 is out!"),
        ("雨が降った。止んだ。", 10, "雨が降った。"),
        ("no end here", 2, "no end"),
        ("a title\nand more", 9, "a title"),
        ("", 5, ""),
        ("word", 0, ""),
    ],
)
def test_a_summary_is_the_first_sentence(text: str, tokens: int, short: str) -> None:
    summarizer = FirstSentenceSummarizer()
    assert isinstance(summarizer, Summarizer)
    assert summarizer.summarize(text, tokens) == short
