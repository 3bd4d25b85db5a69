"""Vectors of one agent in memory, compared exactly; and the checks of what an embedder returned.

Pure: no clock, no I/O; what it holds is a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed
from germane.model.memory import Vector

_SHORTEST = 1e-12

# A product of a whole matrix may round a row differently at different places, by less than this.
# What comes within it of the last place is computed again, row by row, before it is ranked.
_ROUNDING = 1e-4

_EIGHT_BITS_FROM: Final = 128
"""From so many dimensions on, 8 bits for each give the cosine of two vectors to a few thousandths."""

_SPARE: Final = np.float32(128 / 127.5)
"""By this the largest number stays below a power of two: 127.5 is rounded to 128, too much for 8 bits."""

_FEW = 64
"""Rows whose products are in memory at once: so few that the process needs no new memory for them."""

# Cosines are given to this many decimals; float16 holds no more.
_DECIMALS = 6


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows at unit length. Raises EmbeddingFailed for one too short to have a direction."""
    table = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", table, table))
    bad = np.flatnonzero(norms <= _SHORTEST)
    if bad.size:
        raise EmbeddingFailed(
            f"The embedder returned a vector of length {norms[bad[0]]:g} for text {bad[0] + 1} of "
            f"{len(table)}, which has no direction to compare. Leave such texts without a vector, or check "
            "the model."
        )
    unit: NDArray[np.float32] = (table / norms[:, np.newaxis]).astype(np.float32)
    return unit


class ScaledRows(NamedTuple):
    """Vectors as small numbers, each row with a power of two to multiply it by.

    Of 128 dimensions or more they have 8 bits a number, of fewer 16; 32 where comparing has to be quick.
    """

    numbers: NDArray[np.int8] | NDArray[np.float16] | NDArray[np.float32]
    scales: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.floating[Any]]) -> ScaledRows:
        """These vectors, rounded; rounding them again changes nothing.

        Each number becomes a multiple, by at most 127, of the smallest power of two that allows it.
        """
        if small_numbers(vectors.shape[1]) == np.float16:
            return cls(vectors.astype(np.float16), np.ones(len(vectors), dtype=np.float32))
        wide = vectors.astype(np.float32)
        most = np.maximum(wide.max(axis=1), -wide.min(axis=1))
        scales = np.ldexp(np.float32(1), np.frexp(most * _SPARE)[1] - 7)
        wide /= scales[:, np.newaxis]
        with np.errstate(invalid="ignore"):  # NaN of a damaged vector becomes some number.
            return cls(np.rint(wide, out=wide).astype(np.int8), scales)

    def at(self, rows: slice | NDArray[np.int64]) -> ScaledRows:
        """Some of the rows."""
        return ScaledRows(self.numbers[rows], self.scales[rows])

    def wide(self) -> NDArray[np.float32]:
        """The vectors in 32 bits a number."""
        wide: NDArray[np.float32] = self.numbers * self.scales[:, np.newaxis]
        return wide


def small_numbers(dimension: int) -> np.dtype[Any]:
    """The type that the numbers of a vector of so many dimensions have in memory."""
    return np.dtype(np.int8 if dimension >= _EIGHT_BITS_FROM else np.float16)


def as_stored(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float16]:
    """Vectors as a store has them: float16, little endian, which `ScaledRows` give back exactly."""
    return ScaledRows.of(vectors).wide().astype("<f2")


class VectorRows:
    """One row per document that has a vector. `ordinals` are the documents' numbers in the agent's cache.

    `capacity` is the number of rows to allocate at once; unused ones take no memory.
    """

    def __init__(self, dimension: int, *, capacity: int = 0) -> None:
        self._dimension = dimension
        numbers = np.zeros((capacity, dimension), small_numbers(dimension))
        self._rows = ScaledRows(numbers, np.zeros(capacity, dtype=np.float32))
        self._ordinals = np.full(capacity, -1, dtype=np.int64)  # The document of each row, -1 for a free one.
        self._row_of = np.full(capacity, -1, dtype=np.int64)  # The row of each document, -1 for none.
        self._used = 0

    @property
    def nbytes(self) -> int:
        """How much memory the rows take. What is read-only beside them is shared by all."""
        places = (self._ordinals, self._row_of)
        rows = sum(each.nbytes for each in self._rows)
        return rows + sum(each.nbytes for each in places if each.flags.writeable)

    def put(self, ordinals: NDArray[np.int64], packed: list[bytes]) -> None:
        """Add or replace vectors, given as float16 in little endian."""
        if not packed:
            return
        given = np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(packed), self._dimension)
        rows: Any = self._rows_for(ordinals)
        if rows[-1] - rows[0] == len(rows) - 1 and np.all(np.diff(rows) == 1):
            # As all are that are loaded at once: a slice takes half as long.
            rows = slice(int(rows[0]), int(rows[-1]) + 1)
        self._make_writable()
        new = ScaledRows.of(given)
        if self._rows.numbers.dtype == np.float32:
            new = _widened(new)
        self._rows.numbers[rows], self._rows.scales[rows] = new
        self._ordinals[rows] = ordinals
        self._row_of[ordinals] = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def take(self, ordinals: NDArray[np.int64], rows: ScaledRows) -> None:
        """Set the vectors of the first documents that get any, without a copy of `rows`.

        Raises ValueError for another number of documents.
        """
        if len(ordinals) != len(rows.scales):
            raise ValueError(f"{len(rows.scales)} vectors can't be those of {len(ordinals)} documents.")
        self._rows, self._used = rows, len(ordinals)
        self._ordinals = self._row_of = _counting(len(ordinals))
        if not np.array_equal(ordinals, self._ordinals):
            self._ordinals = ordinals.copy()
            self._row_of = np.full(int(ordinals.max(initial=-1)) + 1, -1, dtype=np.int64)
            self._row_of[ordinals] = np.arange(len(ordinals))

    def widen(self) -> None:
        """Use 32 bits a number: up to four times the memory, and less time to compare with some thousands."""
        if self._rows.numbers.dtype != np.float32:
            self._rows = _widened(self._rows)

    def remove(self, ordinal: int) -> None:
        """Forget a document's vector, if it has one."""
        if ordinal < len(self._row_of) and self._row_of[ordinal] >= 0:
            row = self._row_of[ordinal]
            self._make_writable()
            self._rows.numbers[row], self._ordinals[row], self._row_of[ordinal] = 0, -1, -1

    def compare(self, vector: Vector) -> VectorComparison:
        """What is needed to rank documents by their cosine with this vector."""
        query = np.asarray(vector, dtype=np.float32)
        return VectorComparison(
            rows=self._rows.at(slice(self._used)),
            ordinals=self._ordinals[: self._used],
            row_of=self._row_of,
            query=query,
        )

    def _make_writable(self) -> None:
        if not all(each.flags.writeable for each in self._rows):
            self._rows = ScaledRows(self._rows.numbers.copy(), self._rows.scales.copy())
        for name in ("_ordinals", "_row_of"):
            if not (array := getattr(self, name)).flags.writeable:
                setattr(self, name, array.copy())

    def _rows_for(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        needed = int(ordinals.max()) + 1
        if needed > len(self._row_of):
            spare = np.full(max(needed, 2 * len(self._row_of)) - len(self._row_of), -1, dtype=np.int64)
            self._row_of = np.concatenate([self._row_of, spare])
        rows = self._row_of[ordinals]
        fresh = rows < 0
        added = int(fresh.sum())
        if self._used + added > len(self._ordinals):
            size = max(self._used + added, len(self._ordinals) * 3 // 2)
            numbers = np.zeros((size, self._dimension), dtype=self._rows.numbers.dtype)
            scales = np.zeros(size, dtype=np.float32)
            numbers[: self._used] = self._rows.numbers[: self._used]
            scales[: self._used] = self._rows.scales[: self._used]
            self._rows = ScaledRows(numbers, scales)
            spare = np.full(size - len(self._ordinals), -1, dtype=np.int64)
            self._ordinals = np.concatenate([self._ordinals, spare])
        rows[fresh] = np.arange(self._used, self._used + added)
        self._used += added
        return rows


def _counting(count: int) -> NDArray[np.int64]:
    """0, 1, 2 and so on, read-only: most agents have a vector for each memory, and share these arrays."""
    return _counting_to(1 << count.bit_length())[:count]


@cache
def _counting_to(most: int) -> NDArray[np.int64]:
    numbers = np.arange(most, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def _widened(rows: ScaledRows) -> ScaledRows:
    return ScaledRows(rows.wide(), np.ones(len(rows.scales), dtype=np.float32))


def exact_cosines(rows: ScaledRows, query: Vector) -> NDArray[np.float64]:
    """The cosines of unit vectors with another, each the same whichever rows stand beside its own."""
    found = np.empty(len(rows.scales))
    for start in range(0, len(found), _FEW):
        some = slice(start, start + _FEW)
        found[some] = (rows.at(some).wide() * query).sum(axis=1, dtype=np.float64)
    return np.round(found, _DECIMALS)


class VectorComparison:
    """The cosines of one question with an agent's vectors."""

    def __init__(
        self,
        *,
        rows: ScaledRows,
        ordinals: NDArray[np.int64],
        row_of: NDArray[np.int64],
        query: Vector,
    ) -> None:
        self._rows = rows
        self._ordinals = ordinals
        self._row_of = row_of
        self._query = query

    @cached_property
    def _rough(self) -> NDArray[np.float32]:
        # Only choosing among all of them needs it. einsum stays in this thread: BLAS starts others, which
        # spin where processes share the cores.
        found: NDArray[np.float32] = np.einsum("ij,j->i", self._rows.numbers, self._query)
        found *= self._rows.scales
        return found

    @cached_property
    def _exact(self) -> NDArray[np.float64]:
        # By row, the cosines computed so far, read again: first to select by, then to return.
        return np.full(len(self._rows.scales), np.nan)

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted documents; more where rounding might decide."""
        rows = self._row_of[np.flatnonzero(admitted[: len(self._row_of)])]
        rows = rows[rows >= 0]
        if len(rows) > limit > 0:
            rough = self._rough[rows]
            last = np.partition(rough, len(rough) - limit)[len(rough) - limit]
            rows = rows[rough >= last - _ROUNDING]
        return self._ordinals[rows]

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each document, the same wherever its row lies; NaN for one without a vector."""
        found = np.full(len(ordinals), np.nan)
        inside = np.flatnonzero(ordinals < len(self._row_of))
        rows = self._row_of[ordinals[inside]]
        present = rows >= 0
        rows = rows[present]
        new = rows[np.isnan(self._exact[rows])]
        self._exact[new] = exact_cosines(self._rows.at(new), self._query)
        found[inside[present]] = self._exact[rows]
        return found

    def rough(self, count: int) -> NDArray[np.float64]:
        """The cosine of each of the first `count` documents, but for rounding; NaN for want of a vector."""
        found = np.full(count, np.nan)
        live = self._ordinals >= 0
        found[self._ordinals[live]] = self._rough[live]
        return found

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine with the weighted sum of the vectors in each row of documents.

        Both arrays have one shape; an ordinal of -1, or one without a vector, adds nothing. NaN where
        nothing adds.
        """
        rows = np.full(ordinals.shape, -1, dtype=np.int64)
        inside = (ordinals >= 0) & (ordinals < len(self._row_of))
        rows[inside] = self._row_of[ordinals[inside]]
        shares = np.where(rows >= 0, weights, 0.0).astype(np.float32)
        total = np.zeros((len(rows), len(self._query)), dtype=np.float32)
        if len(self._rows.scales):  # Row -1, which stands for no vector, is some row of a table that has any.
            for row, share in zip(rows.T, shares.T, strict=True):
                total += self._rows.numbers[row] * (share * self._rows.scales[row])[:, np.newaxis]
        length = np.sqrt((total * total).sum(axis=1, dtype=np.float64))
        product = (total * self._query).sum(axis=1, dtype=np.float64)
        found = np.full(len(rows), np.nan)
        some = length > 0
        found[some] = np.round(product[some] / length[some], _DECIMALS)
        return found


# Checks what an embedder returned before anything is stored or compared.


def as_vectors(returned: object, *, name: str, texts: int, dimension: int) -> NDArray[np.float32]:
    """`returned` as float32 of shape (texts, dimension): a copy, contiguous, every number finite.

    Raises EmbeddingFailed naming the embedder and what was wrong: not numbers, rows of unequal
    length, another count or dimension, a number that is NaN, infinite or too large for float32.
    """
    rows = list(returned) if isinstance(returned, Iterator) else returned
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} that is no table of numbers: {error}. "
            "Every text needs one vector, all of the same length."
        ) from error
    if array.dtype.kind not in "fiu":
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} of {array.dtype} where numbers are "
            "needed. Every text needs one vector of numbers."
        )
    if array.ndim != 2:  # noqa: PLR2004 - a table has two axes.
        raise EmbeddingFailed(
            f"Embedder {name!r} returned numbers of shape {array.shape} for {texts} texts. "
            f"The shape has to be ({texts}, {dimension}), for a single text too."
        )
    if array.shape[0] != texts:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {array.shape[0]} vectors for {texts} texts. "
            "Every text needs one vector, in the order of the texts."
        )
    if array.shape[1] != dimension:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned vectors of {array.shape[1]} numbers, and declares a dimension of "
            f"{dimension}. Declare the dimension that the model has."
        )
    return _finite(array, name)


def _finite(array: NDArray[np.generic], name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.array(array, dtype=np.float32, order="C")
    wrong = ~np.isfinite(vectors).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise EmbeddingFailed(
            f"Embedder {name!r} returned NaN, an infinite number or one beyond float32 in vector {row} "
            f"({int(wrong.sum())} of {len(vectors)} vectors are affected). Nothing was stored."
        )
    return vectors
