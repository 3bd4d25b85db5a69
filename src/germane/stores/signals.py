"""The signals of a search: which memories each puts first, and what it says of any memory.

Level: stores (imports retrieval and what is above it). Over the arrays of one agent's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from germane.retrieval.postings import UNIT, Scores
from germane.retrieval.sessions import Sessions

__all__ = ["Cosines", "Coverage", "Lexical", "Semantic", "Signal", "WindowSemantic"]


class Cosines(Protocol):
    """The cosines of a question with an agent's memories, by ordinal, as retrieval's `Compared` has them."""

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]: ...

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]: ...

    def rough(self, count: int) -> NDArray[np.float64]: ...

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]: ...


class Signal(Protocol):
    """One signal of a search. A value of NaN says that a memory doesn't have it."""

    @property
    def name(self) -> str: ...

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Admitted ordinals and their values: at least the best `limit`, where there are so many."""
        ...

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value of each of these ordinals."""
        ...


class Lexical:
    """BM25, of memories or of windows. `members` restricts it to those that have the signal."""

    def __init__(self, name: str, scores: Scores, members: NDArray[np.bool_] | None = None) -> None:
        self.name = name
        self._scores = scores
        self._members = members

    def nearest(
        self,
        admitted: NDArray[np.bool_],
        limit: int,  # noqa: ARG002 - What shares a term is given whole; choosing costs as much here as later.
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted memories that share a term with the question, with their scores."""
        mask = admitted if self._members is None else admitted & self._members
        kept = mask[self._scores.ordinals]
        return self._scores.ordinals[kept], self._scores.scores[kept] / UNIT

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score of each, 0.0 for one that shares no term with the question."""
        found = np.zeros(len(ordinals))
        having = self._scores.ordinals
        if len(having):
            places = np.searchsorted(having, ordinals)
            places[places == len(having)] = 0
            present = having[places] == ordinals
            found[present] = self._scores.scores[places[present]] / UNIT
        if self._members is not None:
            found[~self._members[ordinals]] = np.nan
        return found


class Coverage:
    """The share of the question's information that stands in a memory. It judges and finds nothing."""

    name = "coverage"

    def __init__(
        self,
        shares: NDArray[np.float64],
        postings: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
        count: int,
    ) -> None:
        """`shares` has one number for each term's postings; `count` is the number of ordinals."""
        found = [ordinals for ordinals, _ in postings]
        together = np.concatenate([np.empty(0, dtype=np.int64), *found])
        covered = np.bincount(together, np.repeat(shares, list(map(len, found))), minlength=count)
        # Without any posting numpy counts in integers.
        self._covered = covered.astype(np.float64, copy=False)

    def nearest(
        self,
        admitted: NDArray[np.bool_],  # noqa: ARG002 - It finds nothing by itself.
        limit: int,  # noqa: ARG002 - As above.
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Nothing: what shares a term is found by the lexical signal."""
        return np.empty(0, dtype=np.int64), np.empty(0)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of each, from 0 to 1."""
        return self._covered[ordinals]


class Semantic:
    """The cosine of a memory's own vector with the question's."""

    name = "semantic"

    def __init__(self, compared: Cosines) -> None:
        self._compared = compared

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest admitted memories, with their cosines."""
        near = self._compared.nearest(admitted, limit)
        return near, self._compared.cosines(near)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each."""
        return self._compared.cosines(ordinals)


class WindowSemantic:
    """The cosine of the question's vector with the summed vectors of a turn's window."""

    name = "window_semantic"

    def __init__(self, compared: Cosines, sessions: Sessions, members: NDArray[np.bool_]) -> None:
        self._compared = compared
        self._sessions = sessions
        self._members = members
        self._rough = sessions.smoothed(compared.rough(len(members)))

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted turns whose windows are nearest, with their cosines.

        The mean of a window's cosines chooses, with a margin for what it leaves out and for the
        rounding of its sums; the exact cosine ranks.
        """
        kept = np.flatnonzero(admitted & self._members & ~np.isnan(self._rough))
        if len(kept) > 2 * limit > 0:
            rough = self._rough[kept]
            last = np.partition(rough, len(rough) - 2 * limit)[len(rough) - 2 * limit]
            kept = kept[rough >= np.round(last, 4) - 1e-4]
        return kept, self.values(kept)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each turn's window; NaN for what is no turn or has no vector around it."""
        members, weights = self._sessions.around(ordinals)
        found = self._compared.mixed(members, weights)
        found[~self._members[ordinals]] = np.nan
        return found
