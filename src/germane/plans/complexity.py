"""Tells how much a question asks for, and lets the shares of a frame follow.

Level: plans (imports model, packing and errors). Pure.

    simple    at most 6 words, none of them of design: each share that relevance fills is halved
    usual     the shares are the frame's
    complex   more than 40 words, or two questions, or two phrases of design: decisions and
              procedures get half as much again

What is halved lowers the total where nobody asked for one. What grows takes first what no section
has a claim to, then from the others in proportion; the total is never raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from germane.plans.wording import count_words, has, said

__all__ = ["FEW_WORDS", "MANY_WORDS", "Complexity", "complexity_of", "scaled"]

FEW_WORDS, MANY_WORDS = 6, 40

_DESIGN = (
    "architecture*|architectural|design|redesign*",
    "trade-off*|tradeoff*|pros and cons|versus|vs|alternative*|compare*",
    "migrat*|rewrite|rearchitect*|replace",
    "scale|scales|scaling|scalab*|consisten*|availability|fault-toleran*|latency budget",
    "long-term|long term|consequence*|irreversible|constraint*|requirement*",
)
_MANY = 2
_GROWING = ("decisions", "procedures")


class Complexity(StrEnum):
    """How much a question asks for."""

    SIMPLE = "simple"
    USUAL = "usual"
    COMPLEX = "complex"


def complexity_of(text: str) -> Complexity:
    """How much a text asks for; an empty one is usual, since it says nothing of it."""
    words = said(text)
    count, designs = count_words(words), sum(has(pattern, words) for pattern in _DESIGN)
    if count > MANY_WORDS or designs >= _MANY or words.count(" ?") >= _MANY:
        return Complexity.COMPLEX
    return Complexity.SIMPLE if 0 < count <= FEW_WORDS and not designs else Complexity.USUAL


def scaled(shares: Mapping[str, int], complexity: Complexity) -> dict[str, int]:
    """The tokens of each section that relevance fills, before they are made to fit a total."""
    if complexity is Complexity.SIMPLE:
        return {name: tokens // 2 for name, tokens in shares.items()}
    if complexity is Complexity.COMPLEX:
        return {name: tokens * 3 // 2 if name in _GROWING else tokens for name, tokens in shares.items()}
    return dict(shares)
