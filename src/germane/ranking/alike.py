"""Whether two short texts say the same thing, beyond what their vectors tell.

Level: ranking (imports nothing of the package). Pure. Vectors of words know neither order nor number: the
limits of 40 and of 50 MB lie as near to each other as two copies. So what has to agree is checked in words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
import regex
from numpy.typing import NDArray

__all__ = ["could_be_same", "is_quoted", "normalised", "similarity", "words_of"]

_WORDS = regex.compile(r"\d+(?:[.,:]\d+)*|[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*|[^\w\s.,;:!?…\"“”()*`'’_-]")
_NEGATIONS = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nobody",
        "nothing",
        "nor",
        "neither",
        "without",
        "cannot",
        "unlike",
        "except",
    ]
)
_ARTICLES = ("a", "an", "the", "our")
_AUXILIARIES = (
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "being",
    "am",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
)
_LIGHT = frozenset((*_ARTICLES, *_AUXILIARIES, "it", "its", "there", "also", "just", "then", "so"))
"""Words that may be there or not without anything else being said."""
_EVERY, _EVERYS = "every", frozenset({"each", "every"})
_SHORTEST_FORM, _ENDING = 3, 3
_FEWEST_QUOTED = 4
"""Words of which a text must have at least so many before another can be said to quote it."""


def words_of(text: str) -> list[str]:
    """The words, numbers and symbols of a text in order, folded; punctuation is left out."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _WORDS.findall(folded)


def normalised(text: str) -> str:
    """A text in the form in which two that differ in case, spaces and punctuation alone are equal."""
    return " ".join(words_of(text))


def could_be_same(one: str, other: str) -> bool:
    """Whether nothing in the words forbids that the texts say the same.

    Their numbers and negations have to agree, what words they share has to stand in one order, and no word of
    the one may stand in place of another word of the other: Friday for Thursday, off for on. Articles
    and auxiliaries are free, and so are forms of one word.
    """
    first, second = words_of(one), words_of(other)
    if first == second:
        return True
    if _figures(first) != _figures(second) or _negations(first) != _negations(second):
        return False
    if sorted(first) == sorted(second):
        return False
    heavy, others = _heavy(first), _heavy(second)
    common = Counter(heavy) & Counter(others)
    if _kept(heavy, common) != _kept(others, common):
        return False
    left, right = Counter(heavy) - common, Counter(others) - common
    return not left or not right or _are_forms(left, right)


def _heavy(words: Sequence[str]) -> list[str]:
    """The words that carry what is said, in order."""
    return [_EVERY if word in _EVERYS else word for word in words if word not in _LIGHT]


def _kept(words: Sequence[str], common: Counter[str]) -> list[str]:
    """The words that are in common, in order; of a word said more often, the first times."""
    room = Counter(common)
    kept = []
    for word in words:
        if room[word] > 0:
            room[word] -= 1
            kept.append(word)
    return kept


def _are_forms(left: Counter[str], right: Counter[str]) -> bool:
    """Whether the words of one side are forms of those of the other, each of one of them."""
    some, others = sorted(left.elements()), sorted(right.elements())
    return len(some) == len(others) and all(map(_is_form, some, others))


def _is_form(one: str, other: str) -> bool:
    """Whether two words differ in a short ending alone: showed and shown, not authorise and authenticate."""
    short, long = sorted((len(one), len(other)))
    shared = max(_SHORTEST_FORM, short - 1)
    return one[:shared] == other[:shared] and long - short <= _ENDING


def similarity(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The cosine of two unit vectors."""
    return float(one @ other)


def is_quoted(quoted: str, text: str) -> bool:
    """Whether the text holds all words of `quoted` in one piece; of fewer than four that says nothing."""
    words = words_of(quoted)
    if len(words) < _FEWEST_QUOTED:
        return False
    return f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def _figures(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if not word[0].isalpha())


def _negations(words: Sequence[str]) -> int:
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words)
