"""Groups what is related, so that it stands together. Pure; the same input gives the same groups.

Level: ranking (imports errors and model only; never retrieval or stores).

Leader clustering (Hartigan 1975), in rank order: the best item that stands in no group leads the
next one, and takes in everything ungrouped that is like it. Groups come in the order of their best
members, and members in rank order. It is an approximation: likeness is to the leader and not between
all members, and a member goes to the first group that takes it. Only `MOST_GROUPS` groups are looked
for. What is left then stands alone, and that is what ranks last.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import chain
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.vector import Vector

__all__ = ["LEAST_COSINE", "LEAST_OVERLAP", "MOST_GROUPS", "ClusterBy", "Terms", "cluster"]

ClusterBy: TypeAlias = Literal["auto", "vectors", "terms"]

LEAST_COSINE = 0.5
"""From this cosine on two memories are about the same thing."""

LEAST_OVERLAP = 0.12
"""From this share of common terms on (Jaccard) they are, as surely as from that cosine on: among the 315
memories of the demonstration, half of the pairs beyond either share a subject or a tag."""

MOST_GROUPS = 128
_BLOCK = 32
_WITHOUT_THREADS = 1 << 18
"""Multiplications in a product for which OpenBLAS starts no threads."""
_LARGEST_TABLE = 1_000_000
"""Numbers; up to here a table of items by terms is quicker than lists of the items that have a term."""

Terms: TypeAlias = Collection[Hashable] | NDArray[np.uint32]
"""The terms of a memory, or an array of their hashes, each once."""

_Floats: TypeAlias = NDArray[np.float32]


def cluster(
    ids: Sequence[str],
    *,
    vectors: Mapping[str, Vector] | None = None,
    terms: Mapping[str, Terms] | None = None,
    by: ClusterBy = "auto",
    least_cosine: float = LEAST_COSINE,
    least_overlap: float = LEAST_OVERLAP,
) -> list[list[str]]:
    """The ids in groups: groups by their best member, members in the order given, which is rank order.

    `vectors` are of unit length, `terms` the words of each; either may lack some ids or all. "auto"
    goes by vectors, and then by terms for what none of their groups took in, against their leaders as
    well; without any vectors by terms alone. What has neither stands alone. Raises InvalidInput for
    an unknown `by`, for ids that repeat, for a least likeness that isn't above 0 and at most 1, and
    for vectors of different lengths.
    """
    _check(ids, by, {"least_cosine": least_cosine, "least_overlap": least_overlap})
    found = _Groups(len(ids))
    if by != "terms" and vectors:
        known = [place for place, name in enumerate(ids) if name in vectors and len(vectors[name])]
        if known:
            found.gather(_Directions([vectors[ids[place]] for place in known]), known, least_cosine)
    if by != "vectors" and terms:
        known = [place for place, name in enumerate(ids) if len(terms.get(name, ()))]
        if known:
            found.gather(_Words([terms[ids[place]] for place in known]), known, least_overlap)
    groups: dict[int, list[str]] = {}
    for place, leader in enumerate(found.leaders()):
        groups.setdefault(leader, []).append(ids[place])
    # By terms, an item can join a leader that ranks below it; groups go by the best member all the same.
    return list(groups.values())


def _check(ids: Sequence[str], by: str, least: Mapping[str, float]) -> None:
    if by not in get_args(ClusterBy):
        raise InvalidInput(f"Unknown cluster_by {by!r}. Known: {', '.join(get_args(ClusterBy))}.")
    if len(set(ids)) < len(ids):
        raise InvalidInput("A memory stands twice among those to be clustered; each is in a set once.")
    for name, value in least.items():
        if not 0.0 < value <= 1.0:
            raise InvalidInput(f"{name}={value} is no likeness to ask for. Give a number above 0, at most 1.")


class _Likeness(Protocol):
    """How alike items are, by their places among those that it knows."""

    def to(self, places: NDArray[np.int64]) -> _Floats:
        """A row for each of these places, a column for each item; 1 for what is the same."""
        ...


class _Groups:
    """Who leads whom. A leader leads itself, and an item without a group has leader -1."""

    def __init__(self, count: int) -> None:
        self._leader = np.full(count, -1, dtype=np.int64)
        self._found = 0

    def gather(self, likeness: _Likeness, known: Sequence[int], least: float) -> None:
        """Let the leaders so far take in what is like them; then the others lead, in rank order."""
        places = np.asarray(known, dtype=np.int64)
        own = self._leader[places]
        leading = np.flatnonzero(own == places)
        for start in range(0, len(leading), _BLOCK):
            self._take_in(likeness, places, leading[start : start + _BLOCK], least, found=True)
        while self._found < MOST_GROUPS:
            ungrouped = np.flatnonzero(self._leader[places] < 0)[:_BLOCK]
            if not len(ungrouped):
                return
            self._take_in(likeness, places, ungrouped, least, found=False)

    def _take_in(
        self,
        likeness: _Likeness,
        places: NDArray[np.int64],
        leading: NDArray[np.int64],
        least: float,
        *,
        found: bool,
    ) -> None:
        alike = likeness.to(leading) >= least
        # Most items are like none but themselves, and need no further look.
        many = (alike.sum(axis=1) > 1).tolist()
        for row, place, has_others in zip(alike, places[leading].tolist(), many, strict=True):
            if not found:
                if self._leader[place] >= 0:
                    continue  # A better one of the same block took it in.
                if self._found == MOST_GROUPS:
                    return
                self._found += 1
                self._leader[place] = place
            if has_others:
                taken = places[row]
                self._leader[taken[self._leader[taken] < 0]] = place

    def leaders(self) -> list[int]:
        """The leader of each item; what no group took in leads itself."""
        own = np.arange(len(self._leader))
        leaders: list[int] = np.where(self._leader < 0, own, self._leader).tolist()
        return leaders


class _Directions:
    """Likeness by cosine."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        lengths = sorted({len(vector) for vector in vectors})
        if len(lengths) > 1:
            raise InvalidInput(
                f"Vectors of {' and '.join(map(str, lengths))} dimensions can't be compared. "
                "All have to be made by one model."
            )
        self._rows = np.concatenate(vectors).reshape(len(vectors), -1)

    def to(self, places: NDArray[np.int64]) -> _Floats:
        return _products(self._rows[places], self._rows)


class _Words:
    """Likeness by the share of terms in common (Jaccard)."""

    def __init__(self, terms: Sequence[Terms]) -> None:
        self._lengths, flat = _numbered(terms)
        items = np.repeat(np.arange(len(terms)), self._lengths)
        # A term that only one of them has is in no intersection.
        shared = np.bincount(flat) > 1
        width = int(shared.sum())
        self._table: _Floats | None = None
        if width * len(terms) <= _LARGEST_TABLE:
            self._table = np.zeros((len(terms), width), dtype=np.float32)
            among = shared[flat]
            self._table[items[among], (np.cumsum(shared) - 1)[flat[among]]] = 1.0
        else:
            by_term = np.argsort(flat, kind="stable")
            self._items = items[by_term]
            self._starts = np.searchsorted(flat[by_term], np.arange(len(shared) + 1))
            self._own = np.split(flat, np.cumsum(self._lengths)[:-1])

    def to(self, places: NDArray[np.int64]) -> _Floats:
        if self._table is not None:
            common = _products(self._table[places], self._table)
        else:
            common = np.stack([self._common(place) for place in places.tolist()]).astype(np.float32)
        either = (self._lengths + self._lengths[places][:, None]).astype(np.float32) - common
        alike: _Floats = np.divide(common, either, dtype=np.float32)
        return alike

    def _common(self, place: int) -> NDArray[np.int64]:
        own = self._own[place]
        bounds = zip(self._starts[own].tolist(), self._starts[own + 1].tolist(), strict=True)
        having = [self._items[start:end] for start, end in bounds]
        return np.bincount(np.concatenate(having), minlength=len(self._own))


def _products(some: _Floats, rows: _Floats) -> _Floats:
    """The product of each of some rows with each of all rows."""
    # A large product wakes a thread for each processor. On a busy machine, waiting for them costs many
    # times the work; products as small as these are made without, and gain nearly nothing by them.
    width = max(1, _WITHOUT_THREADS // max(1, some.size))
    parts = [some @ rows[start : start + width].T for start in range(0, len(rows), width)]
    return np.concatenate(parts, axis=1)


def _numbered(terms: Sequence[Terms]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many terms each item has, and all of them one after another, numbered from 0."""
    hashed = [each for each in terms if isinstance(each, np.ndarray)]
    if len(hashed) == len(terms):
        _, flat = np.unique(np.concatenate(hashed), return_inverse=True)
        return np.fromiter(map(len, hashed), dtype=np.int64, count=len(hashed)), flat
    numbers: dict[Hashable, int] = {}
    own = [[numbers.setdefault(term, len(numbers)) for term in _distinct(each)] for each in terms]
    lengths = np.fromiter(map(len, own), dtype=np.int64, count=len(own))
    return lengths, np.fromiter(chain.from_iterable(own), dtype=np.int64)


def _distinct(terms: Terms) -> Collection[Hashable]:
    return set(terms.tolist() if isinstance(terms, np.ndarray) else terms)
