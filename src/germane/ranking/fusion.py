"""Brings signals of different scales onto one, and several rankings into one.

Level: ranking (imports errors only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput

__all__ = [
    "COSINE_FLOOR",
    "RRF_K",
    "evidence_in_column",
    "evidence_of_words",
    "floored_lexical",
    "floored_semantic",
    "reciprocal_rank_fusion",
    "share_of",
    "shares_in_column",
]

COSINE_FLOOR = 0.4
"""A best cosine below this is no match to speak of, so it doesn't count as 1."""

RRF_K = 60
"""The constant of Cormack, Clarke and Büttcher (2009)."""

_CHANCE = 8.0
"""Nats that words shared by chance reach: one word of two senses, such as one text in 3,000 has."""
_CERTAIN = 12.0
"""Nats that no chance explains: two words of that kind together, or one as rare as a name."""
_MOST = 0.5
"""A memory that shares more than this of what is asked has to do with it, however little was asked."""

Key = TypeVar("Key", bound=Hashable)


def floored_lexical(bm25: float, *, top: float, bound: float) -> float:
    """A BM25 score from 0 to 1: relative to the best one, or to the score of a full match if that is more.

    Min-max scaling would make the best of a bad lot a 1; with the floor, 1 means a good match.
    """
    return share_of(bm25, max(top, bound))


def floored_semantic(cosine: float, *, top: float) -> float:
    """A cosine from 0 to 1: relative to the best one, or to `COSINE_FLOOR` if that is more."""
    return share_of(cosine, max(top, COSINE_FLOOR))


def share_of(value: float, whole: float) -> float:
    """What both of these come to, for many values of one whole: the part of it, from 0 to 1."""
    # Anything below zero says "unlike", and that is worth as much as having nothing in common.
    # Written out, since it is asked twice for every candidate and calling min costs as much again.
    if value <= 0 or whole <= 0:
        return 0.0
    return value / whole if value < whole else 1.0


def evidence_of_words(share: float, information: float) -> float:
    """How much it says, from 0 to 1, that a memory has this share of a question of so many nats.

    One common word in common says nothing that the meaning doesn't say better: it may stand there in
    another sense. The words count fully where they are too rare for chance, or are all that was asked.
    """
    by_rarity = (share * information - _CHANCE) / (_CERTAIN - _CHANCE)
    by_share = (share - _MOST) / (1.0 - _MOST)
    strongest = max(by_rarity, by_share)
    if strongest <= 0:
        return 0.0
    return strongest if strongest < 1 else 1.0


def shares_in_column(values: NDArray[np.float64], whole: float) -> NDArray[np.float64]:
    """`share_of` of each value; NaN stays NaN."""
    if whole <= 0:
        return np.where(np.isnan(values), np.nan, 0.0)
    # Adding nothing makes a zero below zero one above it.
    return np.clip(values, 0.0, whole) / whole + 0.0


def evidence_in_column(shares: NDArray[np.float64], information: float) -> NDArray[np.float64]:
    """`evidence_of_words` of each share; NaN stays NaN."""
    by_rarity = (shares * information - _CHANCE) / (_CERTAIN - _CHANCE)
    by_share = (shares - _MOST) / (1.0 - _MOST)
    return np.clip(np.maximum(by_rarity, by_share), 0.0, 1.0) + 0.0


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Key]], *, k: float = RRF_K, weights: Sequence[float] | None = None
) -> Mapping[Key, float]:
    """The sum over the rankings of weight / (k + rank), ranks counted from 1, for every key in any of them.

    A ranking lists its keys best first, each once; a key counts nothing for a ranking it isn't in. Weights
    are 1 unless given. Raises InvalidInput for a doubled key, a negative `k`, or weights that don't match.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    if k < 0 or len(weights) != len(rankings) or not all(weight >= 0 for weight in weights):
        raise InvalidInput(
            f"k={k} and weights {list(weights)} can't fuse {len(rankings)} rankings: k is 0 or more, "
            "and each ranking needs one weight of 0 or more."
        )
    fused: dict[Key, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        if len(set(ranking)) < len(ranking):
            raise InvalidInput("A ranking names a key twice; each stands in a ranking once.")
        for rank, key in enumerate(ranking, start=1):
            fused[key] = fused.get(key, 0.0) + weight / (k + rank)
    return fused
