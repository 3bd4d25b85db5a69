"""Finds phrases in what was said, word by word.

Level: plans (imports nothing of the package). Pure.

A phrase is what `germane.model.frame.Frame` calls one alternative of a pattern. Words are what stands
between spaces and punctuation, hyphens and apostrophes kept, so that "wrong?" is the word "wrong".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["count_words", "has", "said", "taken_out", "without"]

_START = "^"
_PART_END = r"[.,;:!?\n\u3002\uff0c\uff1f\uff01\u061f]"
_TOKEN = re.compile(rf"{_PART_END}|\w+(?:['-]\w+)*")
_QUESTION_MARKS = "?\uff1f\u061f"
_KNOWN_PATTERNS = 512


def said(text: str) -> str:
    """The words of a text, case folded and parted by single spaces, in the form that `has` reads.

    Each part of a sentence begins with "^", and a question mark is a word.
    """
    found = [_START]
    for token in _TOKEN.findall(text.replace("\u2019", "'").casefold()):
        if token in _QUESTION_MARKS:
            found.append("?")
        found.append(_START if not (token[0].isalnum() or token[0] == "_") else token)
    return f" {' '.join(found)} "


def has(pattern: str, words: str) -> bool:
    """Whether any phrase of a pattern stands in what `said` made of a text."""
    for probe in _probes(pattern):
        if probe in words:
            return True
    return _starred_inside(pattern) and _compiled(pattern).search(words) is not None


def without(patterns: Iterable[str], words: str) -> str:
    """What is left of `said` words without these phrases, as a text."""
    for pattern in patterns:
        # A replaced phrase leaves the space that the next one has to begin with.
        words = _compiled(pattern).sub("", words)
    return " ".join(word for word in words.split() if word not in (_START, "?"))


def taken_out(pattern: str, text: str) -> str:
    """A text without the phrases of a pattern, and else as it stands."""
    anchored, free = _cutting(pattern)
    plain = text.replace("\u2019", "'")
    for phrases in (anchored, free):
        plain = phrases.sub(r"\g<before>", plain) if phrases is not None else plain
    return plain.strip().lstrip(",;:. ")


def count_words(words: str) -> int:
    """How many words `said` found."""
    return sum(1 for word in words.split() if word not in (_START, "?"))


@lru_cache(_KNOWN_PATTERNS)
def _probes(pattern: str) -> tuple[str, ...]:
    """The phrases as they stand among words; to compile hundreds takes longer than to look for them."""
    phrases = (f" {phrase.replace('^', '^ ')}" for phrase in pattern.casefold().split("|"))
    # What follows a star belongs to the same word, so that what comes before it is all there is to find.
    return tuple(
        phrase[:-1] if phrase.endswith("*") else f"{phrase} " for phrase in phrases if "*" not in phrase[:-1]
    )


@lru_cache(_KNOWN_PATTERNS)
def _cutting(pattern: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """What finds the phrases of a pattern in a text as it stands: those that begin a part, and the rest."""
    phrases = pattern.split("|")
    found: list[re.Pattern[str] | None] = []
    for several, before in (
        ([phrase[1:] for phrase in phrases if phrase.startswith("^")], rf"(?:^|{_PART_END})\s*"),
        ([phrase for phrase in phrases if not phrase.startswith("^")], r"(?<![\w'-])"),
    ):
        either = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in several)
        whole = rf"(?P<before>{before})(?:{either})(?![\w'-])[^\S\n]*"
        found.append(re.compile(whole, re.IGNORECASE) if several else None)
    return found[0], found[1]


@lru_cache(_KNOWN_PATTERNS)
def _starred_inside(pattern: str) -> bool:
    return "* " in pattern


@lru_cache(_KNOWN_PATTERNS)
def _compiled(pattern: str) -> re.Pattern[str]:
    phrases = (
        re.escape(phrase.casefold()).replace(r"\*", r"\S*").replace(r"\^", r"\^ ")
        for phrase in pattern.split("|")
    )
    return re.compile(rf"(?<= )(?:{'|'.join(phrases)})(?= )")
