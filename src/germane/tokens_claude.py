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
    """An upper estimate of Claude's tokens: the exact `o200k` count and the text's features, weighed.

    `margin` is the largest undercount against `ctok` on the texts held out from the fit.
    """

    def __init__(self, family: str) -> None:
        self.name = f"{family}-estimate"
        self.margin, self._weights = _FITTED[family]
        self._o200k = ExactCounter("o200k", vocabulary="o200k_base")

    def count(self, text: str) -> int:
        if not text:
            return 0
        return weighed((self._o200k.count(text), *text_features(text)), self._weights)

    def __repr__(self) -> str:
        return f"ClaudeEstimate({self.name.removesuffix('-estimate')!r})"


# The version that ctok knows the family by, and how many tokens it adds for the frame of one message.
_CTOK_VERSIONS = {"claude-4": ("3.0", 7), "claude-4.8": ("4.8", 6)}

# Per family: the margin, then the weights of the o200k count and of FEATURES in their order.
_FITTED: dict[str, tuple[float, tuple[float, ...]]] = {
    "claude-4": (0.64, (
        0.112, 1.197, 1.374, 0.088, 0.0, 2.321, 0.0, 1.942, 0.77, 0.097, 0.001, 0.274, 1.017, 0.0,
        0.357, 1.973, 1.57, 2.031, 1.927, 2.131, 1.21, 2.291, 1.589, 2.051, 2.929, 2.835, 4.206,
    )),
    "claude-4.8": (1.25, (
        0.113, 1.747, 1.766, 0.233, 0.0, 2.348, 0.0, 2.1, 0.695, 0.722, 0.0, 0.0, 0.921, 0.0,
        0.42, 1.97, 1.574, 2.007, 1.919, 2.121, 1.225, 2.239, 1.57, 2.012, 2.901, 2.75, 4.144,
    )),
}  # fmt: skip
