"""Brings signals of different scales onto one, and several rankings into one.

Level: ranking (imports model and errors; never retrieval or stores). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.trace import Fused

__all__ = [
    "COSINE_FLOOR",
    "RRF_K",
    "evidence_in_column",
    "evidence_of_words",
    "floored_lexical",
    "floored_semantic",
    "fuse_ranks",
    "fuse_scores",
    "share_of",
    "shares_in_column",
]

COSINE_FLOOR = 0.4
"""A best cosine below this is no match to speak of, so it doesn't count as 1."""

RRF_K = 60
"""The constant of Cormack, Clarke and Büttcher (SIGIR 2009)."""

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


def fuse_ranks(
    rankings: Mapping[str, Sequence[Key]], *, k: float = RRF_K, weights: Mapping[str, float] | None = None
) -> dict[Key, Fused]:
    """Fuse named rankings by reciprocal ranks: the sum of weight / (k + rank), best first.

    A ranking lists its keys best first, each once, and ranks count from 1. A key that a ranking doesn't list
    gets nothing from it. Weights are 1 unless given, by the name of the ranking. Ties keep the order in
    which the rankings name the keys. The method is that of Cormack, Clarke and Büttcher, "Reciprocal Rank
    Fusion outperforms Condorcet and individual Rank Learning Methods" (SIGIR 2009), with its k of 60. It
    knows places only, so its scores say nothing of how good a match is. Raises InvalidInput for a key that
    a ranking lists twice, a negative `k`, or a weight that is negative or of no ranking.
    """
    if not 0 <= k < math.inf:
        raise InvalidInput(
            f"k={k} can't fuse rankings. Give a number of 0 or more; the usual one is {RRF_K}."
        )
    weighs = _weights(rankings, weights)
    found: dict[Key, dict[str, float]] = {}
    for name, ranking in rankings.items():
        if len(set(ranking)) < len(ranking):
            raise InvalidInput(f"The ranking {name!r} lists a key twice. List each once, at its best place.")
        for rank, key in enumerate(ranking, start=1):
            found.setdefault(key, {})[name] = weighs[name] / (k + rank)
    return _best_first(found)


def fuse_scores(
    scores: Mapping[str, Mapping[Key, float]],
    *,
    floors: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> dict[Key, Fused]:
    """Fuse named lists of scores by the scores themselves, each list on a scale from 0 to 1, best first.

    Each score is divided by the best of its list, or by that list's floor if that is more. The floor is
    what a good match scores (0.4 for a cosine, say), so that the best of a bad lot isn't a 1. A score of 0
    or less adds nothing, and names no source. Weights are 1 unless given, by the name of the list. Ties
    keep the order in which the lists name the keys. Raises InvalidInput for a score or floor that is no
    finite number, or a weight or floor that is negative or of no list.
    """
    weighs = _weights(scores, weights)
    least = dict.fromkeys(scores, 0.0) | dict(_checked(scores, floors or {}, what="floor"))
    found: dict[Key, dict[str, float]] = {}
    for name, values in scores.items():
        whole = max([least[name], *values.values()])
        for key, value in values.items():
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The score {value} of {key!r} in {name!r} can't be fused: it isn't finite."
                )
            sources = found.setdefault(key, {})
            if value > 0:
                sources[name] = weighs[name] * share_of(value, whole)
    return _best_first(found)


def _weights(lists: Mapping[str, object], weights: Mapping[str, float] | None) -> Mapping[str, float]:
    return dict.fromkeys(lists, 1.0) | dict(_checked(lists, weights or {}, what="weight"))


def _checked(lists: Mapping[str, object], given: Mapping[str, float], *, what: str) -> Mapping[str, float]:
    for name, value in given.items():
        if name not in lists or not 0 <= value < math.inf:
            raise InvalidInput(
                f"The {what} {value} of {name!r} can't be used: each is 0 or more, for one of {list(lists)}."
            )
    return given


def _best_first(found: Mapping[Key, Mapping[str, float]]) -> dict[Key, Fused]:
    fused = {key: Fused(score=math.fsum(each.values()), sources=each) for key, each in found.items()}
    return dict(sorted(fused.items(), key=lambda pair: pair[1].score, reverse=True))
