"""Token counters that need no network: exact ones by public vocabularies, and estimates without one.

The vocabulary is part of the wheel of `rs-bpe`, or of `splintr-rs` from Python 3.14 on, which is imported at
the first count, so that a process that counts nothing doesn't load it. Decision records 2 and 42 explain the
choice of these packages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from operator import mul
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput, MissingExtra
from germane.forks import renewed

_JOINED = ("", "/")


def parts_apart(lines: Iterable[str]) -> list[str]:
    """Lines with their line ends, joined if necessary, so that the exact counts of the parts add up.

    Both vocabularies split a text into pieces before they find tokens. A piece with line ends ends after them
    unless white space or slashes follow, so any other line begins a part.
    """
    parts: list[str] = []
    for line in lines:
        if parts and (line[:1] in _JOINED or line[:1].isspace()):
            parts[-1] += line
        else:
            parts.append(line)
    return parts


class ExactCounter:
    """Counts like OpenAI's `tiktoken` with `encode_ordinary`: texts of special tokens such as
    `<|endoftext|>` are counted as plain text.

    Any `str` can be counted: as in tiktoken, an unpaired surrogate counts as U+FFFD, and a surrogate pair as
    its character. Threads can share an instance.
    """

    margin = 0.0

    def __init__(self, name: str, *, vocabulary: str) -> None:
        self.name = name
        self._vocabulary = vocabulary
        self._encoder: _Encoder | None = None

    def count(self, text: str) -> int:
        if not text:
            return 0
        encoder = self._encoder
        if encoder is None:
            encoder = self._encoder = _loaded(self._vocabulary)
        try:
            return encoder.count(text)
        except UnicodeEncodeError:
            return encoder.count(_without_surrogates(text))

    def __repr__(self) -> str:
        return f"ExactCounter({self.name!r})"


class TokenizerFileCounter:
    """Counts by the `tokenizer.json` of a model, without the tokens that frame a text.

    `name` is the path as it was given. Unpaired surrogates are counted as U+FFFD. Threads can share an
    instance. Raises MissingExtra without the package `tokenizers`, and InvalidInput for a file that it
    can't read.
    """

    margin = 0.0

    def __init__(self, path: str) -> None:
        self.name = path
        try:
            self._tokenizer = import_module("tokenizers").Tokenizer.from_file(path)
        except ModuleNotFoundError as missing:
            raise MissingExtra(feature=f"Counting by {path}", extra="tokenizers") from missing
        except Exception as error:  # The library raises no narrower class.
            raise InvalidInput(
                f"The counter {path!r} is no tokenizer.json that can be read: {error}."
            ) from error
        # A file may say that texts are cut or filled up, which is for training.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        if not text:
            return 0
        try:
            return len(self._tokenizer.encode(text, add_special_tokens=False).ids)
        except (UnicodeEncodeError, TypeError):  # The library takes no surrogates for a str.
            return len(self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False).ids)

    def __repr__(self) -> str:
        return f"TokenizerFileCounter({self.name!r})"


def _without_surrogates(text: str) -> str:
    """The text with each surrogate pair as its character, and unpaired surrogates as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Encoder(Protocol):
    def count(self, text: str) -> int: ...


class _ListingEncoder:
    """An encoder of splintr-rs, which has no method that only counts."""

    def __init__(self, vocabulary: str) -> None:
        self._encode = import_module("splintr").Tokenizer.from_pretrained(vocabulary).encode_ordinary

    def count(self, text: str) -> int:
        return len(self._encode(text))


_LOADED: dict[str, _Encoder] = {}
_LOADING = renewed(Lock())


def _loaded(vocabulary: str) -> _Encoder:
    """The encoder of the vocabulary, which all counters of the process share."""
    with _LOADING:
        if vocabulary not in _LOADED:
            # Loading takes some 70 ms, so it waits for the first text.
            _LOADED[vocabulary] = _new_encoder(vocabulary)
        return _LOADED[vocabulary]


def _new_encoder(vocabulary: str) -> _Encoder:
    """The encoder of the package that this version of Python has a build of."""
    try:
        openai = import_module("rs_bpe.bpe").openai
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("rs_bpe"):
            raise
        return _ListingEncoder(vocabulary)
    encoder: _Encoder = getattr(openai, vocabulary)()
    return encoder


# Token counts without a vocabulary: an estimate of `o200k`, and InDusk's unit.
#
# `text_features` are the inputs of the estimate of `o200k` and of the upper estimates of Claude's counts. The
# weights come from `tools/fit_estimate.py`, which documents their training texts and errors.


class EstimateCounter:
    """Estimates `o200k` from the classes of a text's characters and their patterns, without a vocabulary.

    `margin` is the largest undercount on test texts: prose in some 100 languages, code, Markdown, JSON,
    tables, logs, hashes, random ASCII. The estimate tends to be high. Random characters of non-Latin scripts,
    which aren't text, can have up to 1.7 times the estimate. Use `o200k` if such input must not overflow.
    """

    name = "estimate"
    margin = 0.23

    def count(self, text: str) -> int:
        if not text:
            return 0
        shapes, classes = text_features(text)
        return weighed((*shapes, *classes), _WEIGHTS)

    def __repr__(self) -> str:
        return "EstimateCounter()"


class BytesDiv4Floor:
    """InDusk's unit: the UTF-8 bytes of the text divided by four, rounded down.

    It is a unit and not an estimate of a model's tokens: budgets and counts in this unit are exact, so its
    margin is 0. Texts of one to three bytes have 0 tokens. As an estimate of a model's tokens it has no error
    bound: it undercounts most texts other than plain English prose.
    """

    name = "bytes_div_4_floor"
    margin = 0.0

    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass")) // 4

    def __repr__(self) -> str:
        return "BytesDiv4Floor()"


def text_features(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The number of occurrences of each of SHAPES, and of characters of each of CLASSES, in the text."""
    data = text.encode("utf-8", "surrogatepass")
    plain = data if text.isascii() else data.translate(None, _BEYOND_ASCII)
    members = tuple(_how_many(plain, each) for each in _ASCII_CLASSES.values())
    others = _NONE_BEYOND_ASCII if plain is data else _classes_beyond_ascii(text)
    return _shapes(data), (*members, *others)


def weighed(counts: Sequence[float], weights: Sequence[float]) -> int:
    """The weighted sum of the counts, rounded up, and at least 1."""
    return max(1, math.ceil(float(sum(map(mul, counts, weights)))))


def _shapes(data: bytes) -> tuple[int, ...]:
    # Each table turns the characters that matter into one letter and all others into dots, so that
    # counting two or three letters in a row finds what a regular expression would, ten times faster.
    letters = b"." + data.translate(_LETTERS)
    consonants = data.translate(_CONSONANTS)
    triples = data.translate(_DIGITS).replace(b"000", b"t")
    marks = b"." + data.translate(_MARKS)
    return (
        1,
        letters.count(b"A") + letters.count(b".a") + letters.count(b"0a"),
        letters.count(b"aaaa"),
        data.translate(_SMALL_CONSONANTS).count(b"cc"),
        consonants.count(b"ccc"),
        consonants.count(b"ccccc"),
        _how_many(data, b"jqxzJQXZ"),
        letters.count(b"0a") + letters.count(b"0A") + letters.count(b"a0") + letters.count(b"A0"),
        triples.count(b"t") + triples.count(b"0") - triples.count(b"00"),
        marks.count(b".m"),
        len(_DIFFERING_MARKS.findall(data)) if b"mm" in marks else 0,
        (b"." + data.translate(_LINE_ENDS)).count(b".n"),
        (b"." + data.translate(_BLANKS)).count(b".ss"),
        letters.count(b"aA"),
        (b"." + data.translate(_OTHERS)).count(b".o"),
    )


def _classes_beyond_ascii(text: str) -> tuple[int, ...]:
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    places = np.searchsorted(_RANGE_STARTS, points[points > _LAST_ASCII], side="right")
    counts: list[int] = np.bincount(_CLASS_OF_RANGE[places], minlength=len(_NONE_BEYOND_ASCII)).tolist()
    return tuple(counts)


def _how_many(data: bytes, members: bytes) -> int:
    return len(data) - len(data.translate(None, members))


def _table(**letters: bytes) -> bytes:
    table = bytearray(b"." * 256)
    for letter, members in letters.items():
        for member in members:
            table[member] = ord(letter)
    return bytes(table)


def _ranges() -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
    """The start of each range of code points, and the class that begins there (after the range: none)."""
    classes = enumerate(_OTHER_CLASSES.values())
    spans = sorted((first, last, place) for place, ranges in classes for first, last in ranges)
    starts: list[int] = []
    places = [len(_OTHER_CLASSES)]
    for first, last, place in spans:
        starts += [first, last + 1]
        places += [place, len(_OTHER_CLASSES)]
    return np.array(starts, dtype=np.uint32), np.array(places, dtype=np.intp)


_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_CAPITAL_LETTERS = _SMALL_LETTERS.upper()
_ALL_MARKS = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_ASCII_CLASSES = {
    "small letters": _SMALL_LETTERS,
    "capitals": _CAPITAL_LETTERS,
    "digits": b"0123456789",
    "marks": _ALL_MARKS,
    "blanks": b" \t\r\n",
    "controls": bytes({*range(32), 127} - {9, 10, 13}),
}
_OTHER_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "Latin of the West": ((0xC0, 0xFF),),
    "Latin of the East": ((0xA0, 0xBF), (0x100, 0x17F)),
    "rare Latin": ((0x180, 0x24F), (0x300, 0x36F)),
    "Vietnamese": ((0x1E00, 0x1EFF),),
    "Greek": ((0x384, 0x3CE),),
    "Russian": ((0x410, 0x44F),),
    "other Cyrillic": ((0x400, 0x40F), (0x450, 0x52F)),
    "Armenian and Georgian": ((0x531, 0x589), (0x10D0, 0x10F0)),
    "Hebrew": ((0x5D0, 0x5EA),),
    "Arabic": ((0x600, 0x66F),),
    "other Arabic": ((0x670, 0x6FF),),
    "Devanagari": ((0x900, 0x97F),),
    "Bengali": ((0x980, 0x9FF),),
    "Gujarati, Telugu, Malayalam": ((0xA80, 0xAFF), (0xC00, 0xC7F), (0xD00, 0xD7F)),
    "Gurmukhi, Oriya, Tamil": ((0xA00, 0xA7F), (0xB00, 0xBFF)),
    "Kannada": ((0xC80, 0xCFF),),
    "Thai": ((0xE00, 0xE7F),),
    "Lao, Burmese, Khmer": ((0xE80, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF)),
    "Hangul": ((0xAC00, 0xD7A3),),
    "Kana": ((0x3041, 0x30FF),),
    "Han": ((0x4E00, 0x9FFF),),
    "wide marks": ((0x3000, 0x303F), (0xFF00, 0xFF65)),
    "dashes and quotes": ((0x2010, 0x2027), (0x2030, 0x203A)),
    "signs": ((0x203B, 0x2BFF),),
    "pictures": ((0x1F000, 0x1FAFF),),
    "rest of the first plane": (
        (0xA000, 0xABFF),
        (0xFB00, 0xFEFF),
        (0x1100, 0x177F),
        (0x1800, 0x1DFF),
        (0x3100, 0x4DFF),
        (0x2C00, 0x2FFF),
    ),
    "rest of the other planes": ((0x10000, 0x1EFFF), (0x1FB00, 0x10FFFF)),
}
SHAPES = (
    "the text itself",
    "pieces of words",
    "four small letters",
    "two small consonants",
    "three consonants",
    "five consonants",
    "rare letters",
    "letter beside digit",
    "numbers up to 999",
    "runs of marks",
    "marks that differ",
    "runs of line ends",
    "indents",
    "humps",
    "words of other scripts",
)
CLASSES = (*_ASCII_CLASSES, *_OTHER_CLASSES, "everything else")

_LAST_ASCII = 127
_BEYOND_ASCII = bytes(range(128, 256))
_NONE_BEYOND_ASCII = (0,) * (len(_OTHER_CLASSES) + 1)
_RANGE_STARTS, _CLASS_OF_RANGE = _ranges()
_DIFFERING_MARKS = re.compile(rb"([!-/:-@\[-`{-~])(?!\1)(?=[!-/:-@\[-`{-~])")
_LETTERS = _table(**{"a": _SMALL_LETTERS, "A": _CAPITAL_LETTERS, "0": b"0123456789"})
_SMALL_CONSONANTS = _table(c=_SMALL_LETTERS.translate(None, b"aeiouy"))
_CONSONANTS = _table(c=(_SMALL_LETTERS + _CAPITAL_LETTERS).translate(None, b"aeiouyAEIOUY"))
_DIGITS = _table(**{"0": b"0123456789"})
_MARKS = _table(m=_ALL_MARKS)
_LINE_ENDS = _table(n=b"\r\n")
_BLANKS = _table(s=b" \t")
_OTHERS = _table(o=_BEYOND_ASCII)

# In the order of SHAPES, then CLASSES.
_WEIGHTS = (
    4.356, 0.236, 0, 0, 0.708, 2.46, 0.51, 0.231, 1.587, 0.919, 0.219, 1.216, 0, 0, 0, 0.226, 0.326,
    0, 0.031, 0.063, 1.241, 0.558, 1.16, 2.223, 1.041, 0.491, 0.407, 2.341, 0.517, 0.586, 0.391,
    1.112, 0.475, 0.651, 0.537, 1.48, 0.537, 0.64, 0.906, 2.001, 1.183, 1.423, 0, 0.525, 2.505,
    2.654, 4.119, 4.108, 2.983,
)  # fmt: skip
