"""What the bundled embedder promises for every text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from germane.embedders import StaticEmbedder

EMBEDDER = StaticEmbedder()
SOME = ["the", "dog", "barked", "at", "Zürich", "in", "2024,", "C++", "unaffable", "xqzt", "犬"]
WORDS = st.lists(st.sampled_from(SOME), max_size=700)
TEXTS = st.one_of(st.text(), WORDS.map(" ".join))


@given(st.lists(TEXTS, max_size=6))
def test_every_vector_has_length_one_or_is_zero(texts: list[str]) -> None:
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (len(texts), EMBEDDER.dimension)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(length == 0 or abs(length - 1) < 1e-5 for length in lengths.tolist())


@given(st.lists(TEXTS, max_size=6))
def test_a_text_has_the_same_vector_alone_and_among_others(texts: list[str]) -> None:
    together = EMBEDDER.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert EMBEDDER.embed([text]).tobytes() == vector.tobytes()


@given(st.text())
def test_case_and_surrounding_space_mean_nothing(text: str) -> None:
    plain = text if text.isascii() else "some words"
    one, other = EMBEDDER.embed([plain, f"  {plain.upper()}\n"])
    assert one.tobytes() == other.tobytes()
