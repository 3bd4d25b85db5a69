"""Cosines of a question with an agent's vectors where these stay in the database: few of them are read.

Quantised vectors, or the server, say which may be near; those are read and compared exactly. So a
cosine has the same bits as where all vectors are in this process.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.model.memory import Vector
from germane.retrieval.vectors import QuantisedRows, VectorRows, exact_cosines
from germane.stores.relational.signals import Columns
from germane.stores.relational.tables import Connection


class FetchedCosines(ABC):
    """Reads the vectors whose cosines are needed, each once; which are near is for a subclass to say."""

    def __init__(self, connection: Connection, agent: int, columns: Columns, vector: Vector) -> None:
        """`connection` is in the transaction in which the columns caught up."""
        self._connection, self._agent, self._columns = connection, agent, columns
        self._query = np.asarray(vector, dtype=np.float32)
        self._vectors: list[tuple[NDArray[np.int64], list[bytes]]] = []
        self._read = np.zeros(columns.used, dtype=np.bool_)
        self._exact = np.full(columns.used, np.nan)

    @abstractmethod
    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted memories; more where rounding might decide."""

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each memory; NaN for one without a vector."""
        self._fetch(ordinals)
        return self._exact[ordinals]

    def rough(self, count: int) -> NDArray[np.float64]:
        """The cosine of each of the first `count` memories; NaN for want of a vector."""
        return self.cosines(np.arange(count))

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine with the weighted sum of the vectors in each row of memories, -1 for none."""
        self._fetch(ordinals[ordinals >= 0])
        rows = VectorRows(self._query.size)
        for there, packed in self._vectors:
            rows.put(there, packed)
        return rows.compare(self._query).mixed(ordinals, weights)

    def _fetch(self, ordinals: NDArray[np.int64]) -> None:
        """Read the vectors of these memories that weren't read yet."""
        wanted = np.zeros(len(self._read), dtype=np.bool_)
        wanted[ordinals] = True
        missing = np.flatnonzero(wanted & ~self._read)
        self._read[missing] = True
        if not len(missing):
            return
        nums = {"agent": self._agent, "nums": json.dumps(self._columns.nums[missing].tolist())}
        if found := list(self._packed(nums)):
            known, packed = zip(*found, strict=True)
            there = self._columns.ordinals(np.array(known, dtype=np.int64))
            vectors = np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(there), -1)
            self._exact[there] = exact_cosines(vectors, self._query)
            self._vectors.append((there, list(packed)))

    def _packed(self, nums: dict[str, Any]) -> Iterable[tuple[int, bytes]]:
        """The vectors of these memories in float16, each behind its num."""
        return self._connection.run("vectors", nums)


class QuantisedCosines(FetchedCosines):
    """Quantised vectors in this process say which are near."""

    def __init__(
        self, connection: Connection, agent: int, columns: Columns, vector: Vector, codes: QuantisedRows
    ) -> None:
        super().__init__(connection, agent, columns, vector)
        self._codes = codes

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted memories; more where rounding might decide."""
        return self._codes.nearest(self._query, admitted, limit)
