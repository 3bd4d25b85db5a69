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
    """Whether nothing in the words forbids that the texts say the same: numbers, negations, or order."""
    first, second = words_of(one), words_of(other)
    if first == second:
        return True
    if _figures(first) != _figures(second) or _negations(first) != _negations(second):
        return False
    return sorted(first) != sorted(second)


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
