"""Token counts without a vocabulary: an estimator of `o200k`, and InDusk's unit.

Level: tokens (may import protocols, model and errors). `text_features` is what both the estimate of
`o200k` here and the upper estimates of Claude's counts (tokens_claude) weigh; the weights come from
`tools/fit_estimate.py`, which says what they were fitted on and how well they hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import mul

__all__ = ["CLASSES", "SHAPES", "BytesDiv4Floor", "EstimateCounter", "text_features", "weighed"]


class EstimateCounter:
    """Estimates `o200k` by weighing what regular expressions find: no vocabulary, nothing to load.

    `margin` is the largest undercount on the texts held out from the fit: prose in some 100
    languages, code, Markdown, JSON, tables, logs, hashes, random ASCII. It leans to the high side.
    Characters drawn at random from another script than Latin aren't text: they can cost up to
    2.1 times the estimate. Use `o200k` where such input must not overflow.
    """

    name = "estimate"
    margin = 0.36

    def count(self, text: str) -> int:
        if not text:
            return 0
        shapes, classes = text_features(text)
        return weighed((*shapes, *classes), _WEIGHTS)

    def __repr__(self) -> str:
        return "EstimateCounter()"


class BytesDiv4Floor:
    """InDusk's unit: the UTF-8 bytes of the text divided by four, rounded down.

    It is a unit of its own, not an estimate of some model's tokens: budgets and counts in it agree with each
    other exactly, so its margin is 0. Texts of one to three bytes cost nothing. As an estimate of a
    model's tokens it has no bound: it undercounts most texts that aren't plain English prose.
    """

    name = "bytes_div_4_floor"
    margin = 0.0

    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass")) // 4

    def __repr__(self) -> str:
        return "BytesDiv4Floor()"


def text_features(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How often each of SHAPES is in the text, and how many of its characters are of each of CLASSES."""
    shapes = tuple(len(pattern.findall(text)) for pattern in _SHAPES)
    plain = text.encode("ascii", "ignore")
    ascii_classes = tuple(len(plain) - len(plain.translate(None, members)) for members in _ASCII_CLASSES)
    if len(plain) == len(text):
        return (1, *shapes), (*ascii_classes, *(0 for _ in _OTHER_CLASSES), 0)
    beyond = _ASCII_RUN.sub("", text)
    others = tuple(sum(map(len, pattern.findall(beyond))) for pattern in _OTHER_CLASSES)
    return (1, *shapes), (*ascii_classes, *others, len(beyond) - sum(others))


def weighed(counts: Sequence[float], weights: Sequence[float]) -> int:
    """The weighted sum of the counts, rounded up, and at least 1."""
    return max(1, math.ceil(float(sum(map(mul, counts, weights)))))


_SHAPE_PATTERNS = {
    "pieces of words": r"[A-Za-z][a-z]*",
    "four small letters": r"[a-z]{4}",
    "two consonants": r"[b-df-hj-np-tv-xz]{2}",
    "three consonants": r"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{3}",
    "five consonants": r"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{5}",
    "rare letters": r"[jqxzJQXZ]",
    "letter beside digit": r"[0-9][A-Za-z]|[A-Za-z][0-9]",
    "numbers": r"[0-9]{1,3}",
    "runs of marks": r"[!-/:-@\[-`{-~]+",
    "marks that differ": r"([!-/:-@\[-`{-~])(?!\1)(?=[!-/:-@\[-`{-~])",
    "line ends": r"[\r\n]+",
    "indents": r"[ \t]{2,}",
    "humps": r"[a-z][A-Z]",
    "words of other scripts": r"(?<![^\x00-\x7f])[^\x00-\x7f]",
}
_ASCII_CLASS_MEMBERS = {
    "small letters": b"abcdefghijklmnopqrstuvwxyz",
    "capitals": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "digits": b"0123456789",
    "marks": b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "blanks": b" \t\r\n",
    "controls": bytes({*range(32), 127} - {9, 10, 13}),
}
_OTHER_CLASS_RANGES = {
    "Latin of the West": r"\u00c0-\u00ff",
    "Latin of the East": r"\u00a0-\u00bf\u0100-\u017f",
    "rare Latin": r"\u0180-\u024f\u0300-\u036f",
    "Vietnamese": r"\u1e00-\u1eff",
    "Greek": r"\u0384-\u03ce",
    "Russian": r"\u0410-\u044f",
    "other Cyrillic": r"\u0400-\u040f\u0450-\u052f",
    "Armenian and Georgian": r"\u0531-\u0589\u10d0-\u10f0",
    "Hebrew": r"\u05d0-\u05ea",
    "Arabic": r"\u0600-\u066f",
    "other Arabic": r"\u0670-\u06ff",
    "Devanagari": r"\u0900-\u097f",
    "Bengali": r"\u0980-\u09ff",
    "Gujarati, Telugu, Malayalam": r"\u0a80-\u0aff\u0c00-\u0c7f\u0d00-\u0d7f",
    "Gurmukhi, Oriya, Tamil": r"\u0a00-\u0a7f\u0b00-\u0bff",
    "Kannada": r"\u0c80-\u0cff",
    "Thai": r"\u0e00-\u0e7f",
    "Lao, Burmese, Khmer": r"\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff",
    "Hangul": r"\uac00-\ud7a3",
    "Kana": r"\u3041-\u30ff",
    "Han": r"\u4e00-\u9fff",
    "wide marks": r"\u3000-\u303f\uff00-\uff65",
    "dashes and quotes": r"\u2010-\u2027\u2030-\u203a",
    "signs": r"\u203b-\u2bff",
    "pictures": r"\U0001f000-\U0001faff",
    "rest of the first plane": (
        r"\ua000-\uabff\ufb00-\ufeff\u1100-\u177f\u1800-\u1dff\u3100-\u4dff\u2c00-\u2fff"
    ),
    "rest of the other planes": r"\U00010000-\U0001efff\U0001fb00-\U0010ffff",
}
_SHAPES = tuple(re.compile(pattern) for pattern in _SHAPE_PATTERNS.values())
_ASCII_RUN = re.compile(r"[\x00-\x7f]+")
_ASCII_CLASSES = tuple(_ASCII_CLASS_MEMBERS.values())
_OTHER_CLASSES = tuple(re.compile(f"[{members}]+") for members in _OTHER_CLASS_RANGES.values())

SHAPES = ("the text itself", *_SHAPE_PATTERNS)
CLASSES = (*_ASCII_CLASS_MEMBERS, *_OTHER_CLASS_RANGES, "everything else")

# In the order of SHAPES, then CLASSES.
_WEIGHTS = (
    2.291, 0.207, 0, 0, 0.485, 2.769, 0.533, 0.233, 1.631, 0.84, 0.289, 1.279, 0, 0, 0, 0.21,
    0.232, 0, 0.029, 0.026, 1.21, 0.669, 1.141, 2, 0.519, 0.462, 0.375, 1.809, 0.496, 0.571,
    0.382, 0.938, 0.42, 0.598, 0.527, 1.086, 0.516, 0.586, 0.763, 1.621, 1.077, 0.984, 0, 1.012,
    2.449, 2.606, 4.948, 4.091, 2.148,
)  # fmt: skip
