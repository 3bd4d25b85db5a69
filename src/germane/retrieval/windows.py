"""Where each memory stands in its conversation, and how well what stands around it matches.

Pure: no clock, no I/O; what it holds is a cache.

A turn of dialogue seldom says alone what it is about: "Yes, last week!" answers the turn before.
So a turn is also scored by its window: itself and the turns next to it in the same session.
Nothing of windows is stored; they are added up from the turns' own postings when a question comes.
A memory outside any session is a window of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.retrieval.bm25 import K1, UNIT, Scores, TermPostings, bound, idf, summed

_AT_ONCE = 1 << 13
"""Postings that are added up together, so that neither many terms nor many postings take long or much."""

RADIUS = 2
"""Turns to each side of a window. On labelled conversations 1 to 4 came out within half a point."""

_NEIGHBOUR = 0.5
"""What a neighbour's vector weighs in a window's, beside the 1.0 of the turn itself."""

_TERM_SHIFT = 40
_PLACE_MASK = (1 << _TERM_SHIFT) - 1
"""The lower bits of a key are a place, the upper ones the number of a term."""

_OFFSETS = np.arange(-RADIUS, RADIUS + 1, dtype=np.int64)
_WEIGHTS = np.where(_OFFSETS == 0, 1.0, _NEIGHBOUR)


class Sessions:
    """The order of memories in their sessions. Places count through all sessions, one after another."""

    def __init__(
        self,
        sessions: NDArray[np.int64] | NDArray[np.int32],
        created: NDArray[np.int64],
        ids: NDArray[np.bytes_],
        admitted: NDArray[np.bool_],
    ) -> None:
        """Order the admitted memories; the arrays have a row per ordinal.

        `sessions` numbers the sessions, and is negative for a memory that belongs to none. Within
        a session the older comes first, then the smaller id.
        """
        members = np.flatnonzero(admitted)
        alone = sessions[members] < 0
        # A session of its own for each memory that has none.
        owner = np.where(alone, -1 - members, sessions[members])
        order = np.lexsort((ids[members], created[members], owner))
        self._at: NDArray[np.int64] = members[order]
        self._place = np.full(len(admitted), -1, dtype=np.int64)
        self._place[self._at] = np.arange(len(members))
        owner = owner[order]
        starts = (
            np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))) if len(members) else members
        )
        lengths = np.diff(np.append(starts, len(members)))
        self._first = np.repeat(starts, lengths)
        self._last = np.repeat(starts + lengths - 1, lengths)

    def score(self, found: TermPostings) -> Scores:
        """BM25 of the windows for the terms' postings, by the turn amid.

        The idf counts windows. Lengths are left out of the formula (b = 0): windows are of nearly
        one length, and their counting would need a second index.
        """
        windows = len(self._at)
        empty = np.empty(0, dtype=np.int64)
        keys, values, having = [empty], [empty], np.zeros(found.distinct, dtype=np.int64)
        for part in _whole_terms(found.terms):
            places = self._place[found.ordinals[part]]
            inside = places >= 0
            targets, sources = self._around(places[inside])
            first = int(found.terms[part][0])
            terms = found.terms[part][inside][sources].astype(np.int64) - first
            documents, often = summed(
                terms << _TERM_SHIFT | targets, found.frequencies[part][inside][sources]
            )
            terms, documents = documents >> _TERM_SHIFT, documents & _PLACE_MASK
            counts = np.bincount(terms)
            having[first : first + counts.size] = counts
            scale = np.array([idf(windows, each) * (K1 + 1.0) * UNIT for each in counts.tolist()])[terms]
            damped = often.astype(np.float64)
            keys.append(documents)
            values.append(np.rint(scale * damped / (damped + K1)).astype(np.int64))
        places, scores = summed(np.concatenate(keys), np.concatenate(values))
        ordinals = self._at[places]
        order = np.argsort(ordinals)
        bounds = bound(windows, having.tolist())
        return Scores(ordinals=ordinals[order], scores=scores[order], bound=bounds)

    def smoothed(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """By ordinal, the weighted mean of the cosines in the window; NaN outside, and without any vector.

        `cosines` has a row per ordinal, NaN for a memory without a vector. It is the cosine with the
        window's summed vector but for that vector's length, so it orders windows well and cheaply.
        """
        known = cosines[self._at]
        total = np.zeros(len(known))
        weight = np.zeros(len(known))
        for offset, share in zip(_OFFSETS.tolist(), _WEIGHTS.tolist(), strict=True):
            places = np.arange(len(known)) + offset
            inside = np.flatnonzero((places >= self._first) & (places <= self._last))
            near = known[places[inside]]
            has = ~np.isnan(near)
            total[inside[has]] += share * near[has]
            weight[inside[has]] += share
        found = np.full(len(self._place), np.nan)
        with_vectors = weight > 0
        found[self._at[with_vectors]] = total[with_vectors] / weight[with_vectors]
        return found

    def around(self, ordinals: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The windows of these memories: the ordinals in each, and their weights; -1 and 0.0 pad.

        Both have a row per memory and 2 * RADIUS + 1 columns.
        """
        places = self._place[ordinals]
        near = places[:, np.newaxis] + _OFFSETS
        if not len(self._at):
            # Where none is admitted, none has a window, whatever else is requested.
            return np.full(near.shape, -1), np.zeros(near.shape)
        inside = (
            (places[:, np.newaxis] >= 0)
            & (near >= self._first[places][:, np.newaxis])
            & (near <= self._last[places][:, np.newaxis])
        )
        found = np.where(inside, self._at[np.where(inside, near, 0)], -1)
        return found, np.where(inside, _WEIGHTS, 0.0)

    def _around(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places in whose windows these places stand, and which of them stands in each."""
        near = places[:, np.newaxis] + _OFFSETS
        inside = (near >= self._first[places][:, np.newaxis]) & (near <= self._last[places][:, np.newaxis])
        sources = np.broadcast_to(np.arange(len(places))[:, np.newaxis], near.shape)
        return near[inside], sources[inside]


def _whole_terms(terms: NDArray[Any]) -> Iterator[slice]:
    """Slices of ascending terms, each of about `_AT_ONCE` at most or of one term, which split none."""
    start = 0
    while start < terms.size:
        stop = terms.size
        if start + _AT_ONCE < stop:
            term = terms[start + _AT_ONCE]
            before = int(np.searchsorted(terms, term))
            stop = before if before > start else int(np.searchsorted(terms, term, side="right"))
        yield slice(start, stop)
        start = stop
