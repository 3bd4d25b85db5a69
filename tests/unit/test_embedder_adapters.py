"""Adapters of functions and loaded models, and what they refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from germane.embedders import CallableEmbedder, SentenceTransformersEmbedder
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra
from germane.protocols import Embedder
from germane.testing.fakes import HashEmbedder

TEXTS = ("one", "two", "three")


@pytest.mark.parametrize(
    "returned",
    [
        [[1, 2], [3, 4], [5, 6]],
        ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)),
        np.arange(1, 7, dtype=np.float64).reshape(3, 2),
        np.arange(1, 7, dtype=np.float16).reshape(3, 2),
        np.asfortranarray(np.arange(1, 7, dtype=np.int8).reshape(3, 2)),
    ],
)
def test_any_table_of_numbers_becomes_float32_rows(returned: object) -> None:
    embedder = CallableEmbedder(lambda _: returned, name="mine", dimension=2)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert vectors.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert isinstance(embedder, Embedder)


def test_an_iterator_of_vectors_is_read() -> None:
    embedder = CallableEmbedder(lambda texts: ([len(text), 1] for text in texts), name="mine", dimension=2)
    assert embedder.embed(TEXTS).tolist() == [[3.0, 1.0], [3.0, 1.0], [5.0, 1.0]]


def test_what_is_returned_is_a_copy() -> None:
    own = np.ones((3, 2), dtype=np.float32)
    vectors = CallableEmbedder(lambda _: own, name="mine", dimension=2).embed(TEXTS)
    own[:] = 7
    assert vectors.max() == 1


def test_no_text_calls_nothing() -> None:
    embedder = CallableEmbedder(lambda _: pytest.fail("called"), name="mine", dimension=5)
    assert embedder.embed([]).shape == (0, 5)


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        ([[1, 2], [3, 4]], "returned 2 vectors for 3 texts"),
        ([[1, 2]] * 4, "returned 4 vectors for 3 texts"),
        ([[1, 2, 3]] * 3, "vectors of 3 numbers, and declares a dimension of 2"),
        ([[1, 2], [3], [4, 5]], "no table of numbers"),
        ([1, 2, 3], r"shape \(3,\) for 3 texts"),
        ([[[1, 2]]] * 3, r"shape \(3, 1, 2\)"),
        (None, "NoneType of object where numbers are needed"),
        ("vectors", "str of <U7 where numbers"),
        ([["1", "2"]] * 3, "of <U1 where numbers"),
        ([[True, False]] * 3, "of bool where numbers"),
        ([[1j, 2j]] * 3, "of complex128 where numbers"),
        ([[1, 2], [3, float("nan")], [5, 6]], r"NaN.* in vector 1 \(1 of 3"),
        ([[1, 2], [3, 4], [float("inf"), 6]], "in vector 2"),
        ([[1e300, 2], [3, 4], [5, 6]], "beyond float32 in vector 0"),
        (np.zeros((0,)), r"shape \(0,\)"),
    ],
)
def test_what_is_no_embedding_is_named(returned: object, what: str) -> None:
    embedder = CallableEmbedder(lambda _: returned, name="mine", dimension=2)
    with pytest.raises(EmbeddingFailed, match=what) as failed:
        embedder.embed(TEXTS)
    assert "'mine'" in str(failed.value)


def test_an_exception_of_the_function_is_chained() -> None:
    def broken(_: list[str]) -> object:
        raise KeyError("weights")

    with pytest.raises(EmbeddingFailed, match="'mine' raised KeyError for 3 texts") as failed:
        CallableEmbedder(broken, name="mine", dimension=2).embed(TEXTS)
    assert isinstance(failed.value.__cause__, KeyError)


@pytest.mark.parametrize(("name", "dimension"), [("", 2), ("  ", 2), ("mine", 0), ("mine", -1)])
def test_an_embedder_without_name_or_dimension_is_refused(name: str, dimension: int) -> None:
    with pytest.raises(InvalidInput):
        CallableEmbedder(len, name=name, dimension=dimension)


class LoadedModel:
    """What a loaded model of sentence-transformers offers, as far as it is used."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def encode(
        self, sentences: list[str], *, batch_size: int, show_progress_bar: bool, convert_to_numpy: bool
    ) -> object:
        assert convert_to_numpy
        assert not show_progress_bar
        self.batches.append(batch_size)
        return HashEmbedder(16).embed(sentences)

    def get_sentence_embedding_dimension(self) -> int:
        return 16


def test_a_loaded_model_embeds_under_the_name_given() -> None:
    model = LoadedModel()
    embedder = SentenceTransformersEmbedder(model, name="minilm", batch=7)
    assert (embedder.name, embedder.dimension) == ("minilm", 16)
    np.testing.assert_array_equal(embedder.embed(TEXTS), HashEmbedder(16).embed(TEXTS))
    assert model.batches == [7]
    assert embedder.embed([]).shape == (0, 16)
    assert isinstance(embedder, Embedder)


def test_a_loaded_model_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="LoadedModel came without a name"):
        SentenceTransformersEmbedder(LoadedModel())


def test_a_model_that_raises_fails_by_name() -> None:
    class Broken(LoadedModel):
        encode: Callable[..., object] = property(lambda _: 1 / 0)  # type: ignore[assignment] # It is the broken member that is tested.

    with pytest.raises(EmbeddingFailed, match="'broken' raised ZeroDivisionError"):
        SentenceTransformersEmbedder(Broken(), name="broken").embed(TEXTS)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = SentenceTransformersEmbedder("all-MiniLM-L6-v2")
    assert embedder.name == "all-MiniLM-L6-v2"
    with pytest.raises(MissingExtra, match=r"germane\[sentence-transformers\]"):
        embedder.embed(TEXTS)
