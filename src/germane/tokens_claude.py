"""Counts for Claude: by `ctok` where it is installed, else an upper estimate.

Level: tokens (may import protocols, model and errors). `ctok` rebuilds, offline, what Anthropic's service
counts for two vocabularies; it needs Python 3.12 or later. The upper estimate weighs the exact `o200k` count
and the features of the text, by weights that `tools/fit_estimate.py` fits against `ctok`.
"""

from __future__ import annotations

import importlib
import importlib.util

from germane.errors import MissingExtra
from germane.protocols import TokenCounter
from germane.tokens_estimate import text_features, weighed
from germane.tokens_exact import ExactCounter

__all__ = ["ClaudeEstimate", "CtokCounter", "claude_counter", "claude_estimate"]


def claude_counter(family: str) -> TokenCounter:
    """The counter of the family: `CtokCounter` where `ctok` is installed, else `ClaudeEstimate`."""
    return claude_estimate(family) if importlib.util.find_spec("ctok") is None else CtokCounter(family)


def claude_estimate(family: str) -> ClaudeEstimate:
    """The upper estimate of the family, whether `ctok` is installed or not."""
    return ClaudeEstimate(family)


class CtokCounter:
    """Counts of `ctok`, less the tokens that frame a message.

    Its authors measured no undercount in 2.3 million texts. It is a reconstruction nevertheless, so a
    margin of one hundredth is kept.
    """

    margin = 0.01

    def __init__(self, family: str) -> None:
        self.name = family
        self._version, self._frame = _CTOK_VERSIONS[family]

    def count(self, text: str) -> int:
        if not text:
            return 0
        try:
            # Loading its vocabulary takes some 150 ms, so it waits for the first text.
            ctok = importlib.import_module("ctok")
        except ImportError as missing:
            raise MissingExtra(feature=f"Counting {self.name} with ctok", extra="claude") from missing
        tokens: int = ctok.token_count(text, self._version) - self._frame
        return max(0, tokens)

    def __repr__(self) -> str:
        return f"CtokCounter({self.name!r})"


class ClaudeEstimate:
    """An upper estimate of Claude's tokens: the exact `o200k` count, times a factor by kind of character.

    One factor for all wouldn't do: against `ctok`, English prose costs 1.2 (claude-4) and 1.6 times
    (claude-4.8) its o200k count, Russian 1.4 and 1.5, Kannada 3.7. Each class of character has its
    own, in the proportion that it has of the text, and a cost for each character, since Claude
    spells out some scripts that o200k knows well; words and numbers add theirs. The estimate comes
    to 1.1 times the true count over all texts held out from the fit, 1.3 times in code and Markdown;
    `margin` is its largest undercount on them: prose in 100 languages, code, tables, random characters.
    """

    def __init__(self, family: str) -> None:
        self.name = f"{family}-estimate"
        self.margin, self._weights = _FITTED[family]
        self._o200k = ExactCounter("o200k", vocabulary="o200k_base")

    def count(self, text: str) -> int:
        if not text:
            return 0
        shapes, classes = text_features(text)
        each = self._o200k.count(text) / len(text)
        return weighed((*shapes, *(each * members for members in classes), *classes), self._weights)

    def __repr__(self) -> str:
        return f"ClaudeEstimate({self.name.removesuffix('-estimate')!r})"


# The version that ctok knows the family by, and how many tokens it adds for the frame of one message.
_CTOK_VERSIONS = {"claude-4": ("3.0", 7), "claude-4.8": ("4.8", 6)}

# Per family: the margin, then a weight for each of SHAPES, a factor upon the o200k count for each of
# CLASSES, and a cost of each character of each of CLASSES, in their order.
_FITTED: dict[str, tuple[float, tuple[float, ...]]] = {
    "claude-4": (0.23, (
        2.148, 0, 0, 0.085, 0.355, 0, 0.206, 0, 0.916, 0.225, 0, 0.128, 0.442, 0.075, 1.013,
        0.875, 1.1, 0.096, 0.885, 0.265, 0, 0, 0.41, 2.414, 2.932, 1.251, 1.015, 0.733,
        0.513, 0.303, 1.512, 1.693, 1.92, 1.044, 0.415, 0.537, 0, 0.647, 0.369, 0.922,
        0.981, 0.725, 0, 0, 0.029, 0.416, 0.125, 0.377, 1.674, 0.157, 0.358, 0.133, 0,
        0.146, 0, 0.385, 0, 0.302, 0, 0.202, 0.079, 1.023, 0.542, 0.49, 0.129, 0.124, 0.116,
        0.423, 1.067, 1.873, 1.987, 0.692, 0.933, 0.516, 0.334, 0.819, 0, 0, 2.857, 1.866,
        2.937, 2.521, 0.318,
    )),
    "claude-4.8": (0.2, (
        2.334, 0, 0, 0, 0.384, 0.391, 0, 0, 0.229, 0, 0, 0, 0, 0, 0.891, 0.97, 0.437, 0.209,
        0.678, 0.333, 0, 0, 0.569, 2.11, 1.284, 1.151, 1.173, 0.311, 0.723, 0, 1.59, 1.803,
        1.989, 0.6, 0.492, 0.79, 0, 0.847, 0.767, 0.862, 0.932, 0.77, 0, 0, 0.021, 0.389, 0,
        0.422, 1.204, 0.26, 1.123, 0.339, 0.671, 0.136, 0, 0.017, 0, 0.665, 0.568, 0.234, 0,
        1.571, 0.446, 0.636, 0.101, 0.047, 0.024, 0.643, 1.014, 1.717, 2.002, 0.589, 0.697,
        0.605, 0.398, 0.722, 0, 0, 2.863, 1.917, 3.241, 2.341, 0.78,
    )),
}  # fmt: skip
