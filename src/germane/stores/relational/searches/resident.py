"""An agent's cache that holds its postings and vectors as well, so that nothing of them is read again.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from germane.model.vector import Vector
from germane.retrieval.postings import Postings
from germane.retrieval.terms import Forward
from germane.retrieval.vectors import Compared, VectorRows
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import span
from germane.stores.relational.searches.cache import ROWS_AT_ONCE, AgentCache, as_array

__all__ = ["ResidentCache"]


class ResidentCache(AgentCache):
    """The cache of a database in the same process, which is quick to read whole and scores nothing itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._postings = Postings()
        self._vectors: VectorRows | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory the cache takes."""
        vectors = self._vectors.nbytes if self._vectors is not None else 0
        return super().nbytes + self._postings.nbytes + vectors

    def postings(
        self,
        connection: Connection,  # noqa: ARG002 - All of them are here.
        hashes: Sequence[int],  # noqa: ARG002 - As above.
    ) -> Postings:
        """The agent's whole index."""
        return self._postings

    def compared(self, connection: Connection, vector: Vector) -> Compared:
        """How near the agent's vectors are to this one; they are loaded when they are first asked for."""
        vectors = self._vectors
        if vectors is None:
            vectors = self._vectors = VectorRows(vector.size, room=self.columns.used)
            rows = connection.run("cache_vectors", span(self.agent))
            while some := rows.fetchmany(ROWS_AT_ONCE):
                self._put_vectors(some)
        return vectors.compare(vector)

    def _empty(self) -> None:
        super()._empty()
        self._postings = Postings()
        self._vectors = None

    def _load(self, connection: Connection) -> None:
        rows = connection.run("cache_rows", span(self.agent))
        lengths: list[int] = []
        hashes: list[bytes] = []
        frequencies: list[bytes] = []
        while some := rows.fetchmany(ROWS_AT_ONCE):
            *columns, its_lengths, its_hashes, its_frequencies = zip(*some, strict=True)
            self.columns.append_columns(columns)
            lengths += its_lengths
            hashes += its_hashes
            frequencies += its_frequencies
        self._postings = Postings.from_arrays(
            np.arange(self.columns.used, dtype=np.int64),
            np.array(lengths, dtype=np.int64),
            np.fromiter(map(len, frequencies), dtype=np.int64, count=len(frequencies)),
            np.frombuffer(b"".join(hashes), dtype="<u4"),
            np.frombuffer(b"".join(frequencies), dtype=np.uint8),
        )

    def _add(self, connection: Connection, place: dict[str, int]) -> None:
        rows = connection.run("cache_rows", place).fetchall()
        ordinals = self.columns.append([columns for *columns, _, _, _ in rows])
        for ordinal, (*_, length, hashes, frequencies) in zip(ordinals.tolist(), rows, strict=True):
            forward = Forward(
                hashes=np.frombuffer(hashes, dtype="<u4"),
                frequencies=np.frombuffer(frequencies, dtype=np.uint8),
                length=length,
            )
            self._postings.add(ordinal, forward)

    def _lose(self, ordinal: int) -> None:
        self._postings.remove(ordinal)
        if self._vectors is not None:
            self._vectors.remove(ordinal)

    def _embedded(self, connection: Connection, renewed: set[int], added: set[int]) -> None:
        if self._vectors is None:
            return
        for ordinal in self.columns.ordinals(as_array(renewed)).tolist():
            # It may have none any more.
            self._vectors.remove(ordinal)
        values = {"agent": self.agent, "nums": json.dumps(sorted(renewed | added))}
        self._put_vectors(connection.run("vectors", values))

    def _put_vectors(self, rows: Iterable[tuple[Any, ...]]) -> None:
        found = list(rows)
        if found and self._vectors is not None:
            ordinals = self.columns.ordinals(np.array([num for num, _ in found], dtype=np.int64))
            self._vectors.put(ordinals, [packed for _, packed in found])
