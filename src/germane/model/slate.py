"""Candidates whose signals are columns of numbers, so that hundreds can be judged without an object for each.

Level: model (imports nothing above it). Pure: the same candidates are made each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from germane.model.deferred import Deferred
from germane.model.memory import Memory
from germane.model.query import Candidate

__all__ = ["Slate"]


class Slate(Deferred[Candidate]):
    """A sequence of candidates, each made when it is asked for, and all when all are looked at.

    `memories` are theirs, and `signals` has a column for each signal, where NaN stands for a memory that
    doesn't have it.
    """

    __slots__ = ("_made", "memories", "signals")

    def __init__(
        self,
        memories: Sequence[Memory],
        signals: Mapping[str, NDArray[np.float64]],
        *,
        made: tuple[Candidate, ...] | None = None,
    ) -> None:
        """`made` are the candidates, where they were made before."""
        super().__init__(
            len(memories), partial(_candidate, memories, signals) if made is None else made.__getitem__
        )
        self.memories, self.signals, self._made = memories, signals, made

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> Slate:
        """The same candidates with their signals in columns.

        A signal that is no number stands there as infinite: it is there, and it can't be ranked.
        """
        if isinstance(candidates, Slate):
            return candidates
        names = dict.fromkeys(name for one in candidates for name in one.signals)
        columns = {name: [one.signals.get(name) for one in candidates] for name in names}
        signals = {
            name: np.array([_held(value) for value in column], dtype=np.float64)
            for name, column in columns.items()
        }
        return cls([one.memory for one in candidates], signals, made=tuple(candidates))

    def at(self, places: Sequence[int]) -> Slate:
        """The candidates at these places, which ascend, each named once."""
        if len(places) == len(self):
            return self
        chosen = np.array(places, dtype=np.int64)
        return Slate(
            [self.memories[place] for place in places],
            {name: column[chosen] for name, column in self.signals.items()},
            made=None if self._made is None else tuple([self._made[place] for place in places]),
        )

    def __iter__(self) -> Iterator[Candidate]:
        if self._made is None:
            self._made = _candidates(self.memories, self.signals)
        return iter(self._made)


def _candidate(
    memories: Sequence[Memory], signals: Mapping[str, NDArray[np.float64]], place: int
) -> Candidate:
    values = {name: column.item(place) for name, column in signals.items()}
    held = {name: value for name, value in values.items() if not math.isnan(value)}
    return Candidate(memory=memories[place], signals=held)


def _candidates(
    memories: Sequence[Memory], signals: Mapping[str, NDArray[np.float64]]
) -> tuple[Candidate, ...]:
    found: list[dict[str, float]] = [{} for _ in memories]
    for name, column in signals.items():
        for each, value in zip(found, column.tolist(), strict=True):
            # NaN is not itself.
            if value == value:  # noqa: PLR0124 - the fastest test for NaN in a loop over hundreds.
                each[name] = value
    return tuple([Candidate(memory=one, signals=held) for one, held in zip(memories, found, strict=True)])


def _held(value: float | None) -> float:
    if value is None:
        return np.nan
    return np.inf if math.isnan(value) else value
