"""Exact cosine search over the vectors of one agent, in memory.

Level: retrieval (imports errors and model only). Pure: no clock, no I/O; what it holds is a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed, InvalidInput
from germane.model.vector import Vector

__all__ = ["Similar", "VectorTable", "normalise", "validate"]

_SPARSE = 4  # Copying a row costs about as much as comparing this many.
_SHORTEST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Similar:
    """The nearest documents: cosine descending, equal ones by ordinal, the newest (largest) first."""

    ordinals: NDArray[np.int64]
    cosines: NDArray[np.float32]


def validate(vectors: object, *, rows: int, dimension: int) -> NDArray[np.float32]:
    """What an embedder returned, as float32 of shape (rows, dimension), each row of unit length.

    Raises EmbeddingFailed for another shape, for what isn't numbers, for NaN and infinity, and for
    a vector of zeros, which points nowhere.
    """
    try:
        table = _numbers(vectors)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(
            f"The embedder returned no numbers ({error}). It has to return one row of floats per text."
        ) from error
    if table.shape != (rows, dimension):
        raise EmbeddingFailed(
            f"The embedder returned an array of shape {table.shape} for {rows} texts and dimension "
            f"{dimension}; it has to be ({rows}, {dimension}). Check the embedder's `dimension`."
        )
    norms = np.sqrt(np.einsum("ij,ij->i", table, table))
    # NaN fails this comparison as well, and so does a vector too long to be squared.
    bad = np.flatnonzero(~((norms > _SHORTEST) & (norms < np.inf)))
    if bad.size:
        raise EmbeddingFailed(
            f"The embedder returned a vector of length {norms[bad[0]]:g} for text {bad[0] + 1} of {rows}, "
            "which has no direction to compare. Leave such texts without a vector, or check the model."
        )
    unit: NDArray[np.float32] = (table / norms[:, np.newaxis]).astype(np.float32)
    return unit


def normalise(vector: object, *, dimension: int) -> Vector:
    """A caller's own vector at unit length, float32 of shape (dimension,).

    Raises InvalidInput where `validate` would raise EmbeddingFailed.
    """
    try:
        unit: Vector = validate([vector], rows=1, dimension=dimension)[0]
    except EmbeddingFailed as error:
        raise InvalidInput(
            f"The vector can't be compared: it has to be {dimension} finite numbers, not all of them zero. "
            "Embed the text with the model that the store was made with."
        ) from error
    return unit


def _numbers(vectors: object) -> NDArray[np.float64]:
    table: NDArray[Any] = np.asarray(vectors)
    if table.dtype.kind not in "fiu":
        raise TypeError(f"their type is {table.dtype}")
    return table.astype(np.float64)


class VectorTable:
    """Unit vectors by ordinal. Threads may share it; each call is one at a time.

    Ordinals are the caller's numbers for documents, 0 or more. Vectors are rounded to float16, as
    stores keep them (a cosine moves by less than 0.001), so a vector just added scores like one
    read back. They are held as float32: converting them would cost ten times the search itself.
    """

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise InvalidInput(f"dimension={dimension} can't hold a vector; it is 1 or more.")
        self.dimension = dimension
        self._lock = Lock()
        self._ordinals = np.empty(0, dtype=np.int64)
        self._table = np.empty((0, dimension), dtype=np.float32)
        self._rows: dict[int, int] = {}

    @classmethod
    def build(cls, ordinals: NDArray[np.int64], vectors: NDArray[np.floating[Any]]) -> VectorTable:
        """A table of these unit vectors, float16 or float32, a row for each of the distinct ordinals.

        Raises InvalidInput when rows and ordinals don't match.
        """
        if vectors.ndim != 2 or len(vectors) != len(ordinals):  # noqa: PLR2004 - Rows and columns.
            raise InvalidInput(
                f"{len(ordinals)} ordinals and vectors of shape {vectors.shape} don't match; "
                "give a row of vectors for each ordinal."
            )
        made = cls(vectors.shape[1])
        made._ordinals = np.array(ordinals, dtype=np.int64)
        made._table = vectors.astype(np.float16).astype(np.float32)
        made._rows = {ordinal: row for row, ordinal in enumerate(made._ordinals.tolist())}
        if len(made._rows) < len(ordinals) or (len(ordinals) and int(made._ordinals.min()) < 0):
            raise InvalidInput("Ordinals are 0 or more, and no two vectors may have the same one.")
        return made

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """About how much memory the table takes, in bytes."""
        return self._table.nbytes + self._ordinals.nbytes + 100 * len(self._rows)

    def add(self, ordinal: int, vector: Vector) -> None:
        """Add a unit vector, or replace the one of this ordinal.

        Raises InvalidInput for a negative ordinal or another dimension.
        """
        if ordinal < 0 or np.shape(vector) != (self.dimension,):
            raise InvalidInput(
                f"Ordinal {ordinal} and a vector of shape {np.shape(vector)} can't be added: ordinals "
                f"are 0 or more, and vectors here have shape ({self.dimension},)."
            )
        with self._lock:
            row = self._rows.get(ordinal)
            if row is None:
                row = len(self._rows)
                if row == len(self._ordinals):
                    self._grow()
                self._rows[ordinal] = row
            self._ordinals[row] = ordinal
            self._table[row] = np.asarray(vector).astype(np.float16)

    def remove(self, ordinal: int) -> None:
        """Remove a vector. An ordinal that the table doesn't hold is no error."""
        with self._lock:
            row = self._rows.pop(ordinal, None)
            if row is None:
                return
            last = len(self._rows)
            if row != last:
                # The last row moves into the gap, so that rows stay dense.
                self._ordinals[row], self._table[row] = self._ordinals[last], self._table[last]
                self._rows[int(self._ordinals[row])] = row
            self._table[last] = 0

    def search(self, vector: Vector, limit: int, admitted: NDArray[np.bool_] | None = None) -> Similar:
        """The `limit` nearest to a unit vector, exactly.

        `admitted[ordinal]` says which may be found (ordinals past its end may not). Raises
        InvalidInput for another dimension or a negative limit.
        """
        if np.shape(vector) != (self.dimension,) or limit < 0:
            raise InvalidInput(
                f"A vector of shape {np.shape(vector)} and a limit of {limit} can't be searched: vectors "
                f"here have shape ({self.dimension},), and a limit is 0 or more."
            )
        with self._lock:
            rows = self._admitted(admitted)
            ordinals = self._ordinals[rows]
            cosines = self._cosines(np.asarray(vector, dtype=np.float32), rows)
        return _best(ordinals, cosines, limit)

    def cosines(self, vector: Vector, ordinals: Sequence[int]) -> NDArray[np.float32]:
        """The cosine of each of these ordinals, in order; NaN for one that has no vector."""
        with self._lock:
            rows = np.array([self._rows.get(each, -1) for each in ordinals], dtype=np.int64)
            found = np.full(len(rows), np.nan, dtype=np.float32)
            found[rows >= 0] = self._cosines(np.asarray(vector, dtype=np.float32), rows[rows >= 0])
        return found

    def _admitted(self, admitted: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        used = len(self._rows)
        if admitted is None:
            return np.arange(used, dtype=np.int64)
        ordinals = self._ordinals[:used]
        inside = np.flatnonzero(ordinals < len(admitted))
        return inside[admitted[ordinals[inside]]]

    def _cosines(self, vector: Vector, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        used = self._table[: len(self._rows)]
        # Row by row, unlike a matrix product, gives a row the same bits wherever it stands.
        if len(rows) * _SPARSE < len(used):
            found = np.einsum("ij,j->i", used[rows], vector)
        else:
            found = np.einsum("ij,j->i", used, vector)[rows]
        cosines: NDArray[np.float32] = np.clip(found, -1.0, 1.0)
        return cosines

    def _grow(self) -> None:
        room = max(64, len(self._ordinals) // 8)
        self._ordinals = np.concatenate([self._ordinals, np.zeros(room, dtype=np.int64)])
        self._table = np.concatenate([self._table, np.zeros((room, self.dimension), dtype=np.float32)])


def _best(ordinals: NDArray[np.int64], cosines: NDArray[np.float32], limit: int) -> Similar:
    if limit < len(cosines):
        # Everything that ties with the last one stays in, so that the order decides, not the partition.
        least = np.partition(cosines, len(cosines) - limit)[len(cosines) - limit] if limit else np.inf
        kept = np.flatnonzero(cosines >= least)
        ordinals, cosines = ordinals[kept], cosines[kept]
    order = np.lexsort((-ordinals, -cosines))[:limit]
    return Similar(ordinals=ordinals[order], cosines=cosines[order])
