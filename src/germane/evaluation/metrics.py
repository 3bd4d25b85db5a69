"""What is measured of one question, and how many of them become one figure.

Level: evaluation. Pure: the seed of the bootstrap is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from germane.packing.render import fence

__all__ = [
    "RESAMPLES",
    "Needle",
    "bootstrap_interval",
    "cluster_interval",
    "holds",
    "holds_phrase",
    "mean",
    "percentile",
    "recall_at",
    "reciprocal_rank",
]

RESAMPLES = 2000
"""Resamples of the bootstrap; the ends of the interval then move by a few tenths of a point between seeds."""

_COVERAGE = 95.0
_BULLET = re.compile(r"^[-*+]\s+")
_ESCAPE = re.compile(r"\\(?=[<#=\-`~_*>|])")


@dataclass(frozen=True, slots=True)
class Needle:
    """What has to stand in a context for a turn to stand there: its day and who said what, whole.

    Without a day it is a memory's content, which may stand amid what its kind's wording adds to it.
    """

    day: str
    said: str


def holds(context: str, needles: Sequence[Needle]) -> list[bool]:
    """Whether each of the turns stands whole in the context.

    What was said stands fenced, on lines of its own, and its day either before it on the first of
    them or in the heading above it. Bullets and indents are no part of it and are looked past; a
    turn that was cut, that stands under another day, or inside a longer line, doesn't count.
    """
    parts = _parts(context)
    found = []
    for each in needles:
        said = "\n".join(_BULLET.sub("", line.strip()) for line in fence(each.said))
        if not each.day:
            found.append(bool(said) and any(_stands_in(said, body) for _, body in parts))
            continue
        said += "\n"
        dated = f"\n{each.day} {said}"
        found.append(
            any(dated in body or (each.day in heading and f"\n{said}" in body) for heading, body in parts)
        )
    return found


def holds_phrase(context: str, phrase: str) -> bool:
    """Whether a context has the words of a phrase in their order, wherever its lines break.

    Case, bullets and the escapes of fencing don't matter.
    """
    wanted = _in_one_line("\n".join(fence(phrase)))
    return bool(wanted) and _stands_in(wanted, f" {_in_one_line(context)} ")


def _in_one_line(text: str) -> str:
    words = " ".join(_BULLET.sub("", line.strip()) for line in text.split("\n")).split()
    return _ESCAPE.sub("", " ".join(words)).casefold()


def _stands_in(said: str, body: str) -> bool:
    """Whether the words stand there as words: no letter of another word touches them."""
    place = body.find(said)
    while place >= 0:
        if not body[place - 1].isalnum() and not body[place + len(said)].isalnum():
            return True
        place = body.find(said, place + 1)
    return False


def _parts(context: str) -> list[tuple[str, str]]:
    """The text under each heading, with the heading; every line of it between two line ends."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in context.split("\n"):
        if line.startswith("#"):
            parts.append((line, []))
        else:
            parts[-1][1].append(_BULLET.sub("", line.removeprefix("- ").strip()))
    return [(heading, "\n" + "\n".join(lines) + "\n") for heading, lines in parts]


def recall_at(ranking: Sequence[str], wanted: Collection[str], k: int) -> float:
    """The share of the wanted ids among the first `k` of a ranking."""
    return len(set(ranking[:k]) & set(wanted)) / len(set(wanted))


def reciprocal_rank(ranking: Sequence[str], wanted: Collection[str]) -> float:
    """1 / rank of the first wanted id, ranks counted from 1; 0 when the ranking holds none."""
    places = (place for place, each in enumerate(ranking, start=1) if each in wanted)
    first = next(places, None)
    return 0.0 if first is None else 1.0 / first


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return float(np.mean(values)) if len(values) else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of a hundred lie, interpolated linearly; 0 of nothing."""
    return float(np.percentile(values, percent)) if len(values) else 0.0


def bootstrap_interval(
    values: Sequence[float], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The 95 % percentile interval of the mean (Efron, 1979); (0, 0) of nothing.

    The same seed and number of values draw the same resamples, so two retrievers that answered
    the same questions are resampled in pairs.
    """
    if not len(values):
        return 0.0, 0.0
    sample: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, sample.size, size=(resamples, sample.size))
    tail = (100.0 - _COVERAGE) / 2.0
    low, high = np.percentile(sample[drawn].mean(axis=1), [tail, 100.0 - tail])
    return float(low), float(high)


def cluster_interval(
    values: Sequence[float], clusters: Sequence[int], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean when whole clusters are drawn, not single values.

    Questions about one conversation rise and fall together, so this is the honest interval for
    other conversations. None for fewer than two clusters, which say nothing about others.
    """
    names = sorted(set(clusters))
    if len(names) < 2:  # noqa: PLR2004 - One conversation has no spread.
        return None
    sample = np.asarray(values, dtype=np.float64)
    owners = np.searchsorted(names, clusters)
    sums = np.bincount(owners, weights=sample)
    sizes = np.bincount(owners)
    drawn = np.random.default_rng(seed).integers(0, len(names), size=(resamples, len(names)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = (100.0 - _COVERAGE) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail])
    return float(low), float(high)
