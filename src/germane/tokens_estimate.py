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

__all__ = ["FEATURES", "BytesDiv4Floor", "EstimateCounter", "text_features"]

_ASCII_PATTERNS = {
    "pieces of words": r"[A-Za-z][a-z]*",
    "four letters": r"[a-z]{4}",
    "seven letters": r"[a-z]{7}",
    "capitals": r"[A-Z]{2,}",
    "consonants in a row": r"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{4}",
    "letter beside digit": r"[0-9][A-Za-z]|[A-Za-z][0-9]",
    "numbers": r"[0-9]{1,3}",
    "runs of marks": r"[!-/:-@\[-`{-~]+",
    "pairs of marks": r"[!-/:-@\[-`{-~]{2}",
    "mixed marks": r"([!-/:-@\[-`{-~])(?!\1)(?=[!-/:-@\[-`{-~])",
    "line ends": r"[\r\n]+",
    "spaces": r"[ \t]{2,}",
    "controls": r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]",
}
_OTHER_PATTERNS = {
    "words of other scripts": r"(?<![^\x00-\x7f])[^\x00-\x7f]",
    "Latin": r"[\u0080-\u024f\u1e00-\u1eff]",
    "Greek and Cyrillic": r"[\u0370-\u03ff\u0400-\u052f]",
    "Armenian and Georgian": r"[\u0530-\u058f\u10a0-\u10ff]",
    "Hebrew and Arabic": r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]",
    "Indic": r"[\u0900-\u0dff]",
    "South-East Asian": r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]",
    "Hangul": r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]",
    "Kana": r"[\u3040-\u30ff]",
    "Han": r"[\u4e00-\u9fff]",
    "signs": r"[\u2000-\u2bff\u3000-\u303f\uff00-\uffef]",
    "pictures": r"[\U0001f000-\U0001faff]",
    "everything else": (
        r"[^\x00-\u024f\u0370-\u08ff\u0900-\u0dff\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u1e00-\u1eff"
        r"\u2000-\u2bff\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff\uac00-\ud7ff\ufb1d-\ufdff\ufe70-\uffef"
        r"\U0001f000-\U0001faff]"
    ),
}
_ASCII = tuple(re.compile(pattern) for pattern in _ASCII_PATTERNS.values())
_OTHER = tuple(re.compile(pattern) for pattern in _OTHER_PATTERNS.values())

FEATURES = (*_ASCII_PATTERNS, *_OTHER_PATTERNS)
"""What `text_features` counts, in its order."""


def text_features(text: str) -> tuple[int, ...]:
    """How often each of FEATURES occurs, in their order."""
    counts = tuple(len(pattern.findall(text)) for pattern in _ASCII)
    if text.isascii():
        return counts + (0,) * len(_OTHER)
    return counts + tuple(len(pattern.findall(text)) for pattern in _OTHER)


class EstimateCounter:
    """Estimates `o200k` from 26 counts that regular expressions make: no vocabulary, nothing to load.

    `margin` is the largest undercount on the texts held out from the fit, in 100 languages,
    code, tables and random characters of every script.
    """

    name = "estimate"
    margin = 1.99

    def count(self, text: str) -> int:
        return weighed(text_features(text), _WEIGHTS) if text else 0

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


def weighed(counts: Sequence[int], weights: Sequence[float]) -> int:
    """The weighted sum of the counts, rounded up, and at least 1."""
    return max(1, math.ceil(float(sum(map(mul, counts, weights)))))


_WEIGHTS = (
    0.604, 0.915, 0.192, 0.0, 2.693, 0.071, 1.807, 0.664, 0.108, 0.354, 0.743, 0.359, 1.242, 0.0,
    1.511, 0.574, 1.136, 0.698, 0.92, 0.602, 2.178, 1.266, 1.743, 2.382, 2.569, 3.855,
)  # fmt: skip
