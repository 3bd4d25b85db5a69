"""An agent's cache beside a server: the server finds postings and compares vectors, this process scores.

Level: stores (imports retrieval and what is above it). What is kept here is small, some hundred bytes a
memory, so that a process can serve many agents. Scores come from the same code as everywhere: the server
sends what the question's terms have, and the vectors of what may come first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from germane.model.vector import Vector
from germane.retrieval.postings import Postings
from germane.retrieval.vectors import VectorRows
from germane.stores.postgres.halfvecs import unpacked
from germane.stores.relational.cache import ROWS_AT_ONCE, AgentCache
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import span

__all__ = ["ServedCache", "ServedCosines"]

# A server adds the products up in another order than this process, which moves a cosine by far less.
_ROUNDING = 1e-4

# After so many questions an agent is kept whole in this process, with at most so many memories. Loading 1,000
# takes as long as five questions that are answered without.
_OFTEN: Final = 2
_MOST_KEPT: Final = 20_000


class ServedCache(AgentCache):
    """Keeps what filters, orders and sessions need of each memory; asks the server for the rest.

    So the first questions about an agent are answered quickly. Whoever goes on asking has all of it brought
    here, unless it is large: `is_worth_keeping` says when.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._asked = 0

    @property
    def is_worth_keeping(self) -> bool:
        """Whether the agent is asked about often enough, and small enough, to be kept here whole."""
        return self._asked >= _OFTEN and self.columns.used <= _MOST_KEPT

    def postings(self, connection: Connection, hashes: Sequence[int]) -> Postings:
        """The postings of these terms, found by the server's index, with the counts of all."""
        self._asked += 1
        if not self.columns.used:
            # The server has no statistics of an agent that isn't known.
            return Postings()
        keys = sorted({(self.agent << 32) | each for each in hashes})
        values = {"agent": self.agent, "keys": json.dumps(keys)}
        documents, tokens, *packed = connection.run("postings_of", values).fetchone()
        nums, lengths, counts, terms, frequencies = (each or b"" for each in packed)
        return Postings.from_arrays(
            self.columns.ordinals(np.frombuffer(nums, dtype=">i8").astype(np.int64)),
            np.frombuffer(lengths, dtype=">i4").astype(np.int64),
            np.frombuffer(counts, dtype=">i4").astype(np.int64),
            np.frombuffer(terms, dtype="<u4"),
            np.frombuffer(frequencies, dtype=np.uint8),
            whole=(documents, tokens),
        )

    def compared(self, connection: Connection, vector: Vector) -> ServedCosines:
        """How near the agent's vectors are to this one, as the server computes it."""
        return ServedCosines(connection, self, vector)

    def _load(self, connection: Connection) -> None:
        self._take(connection, span(self.agent))

    def _add(self, connection: Connection, place: dict[str, int]) -> None:
        self._take(connection, place)

    def _take(self, connection: Connection, place: dict[str, int]) -> None:
        rows = connection.run("cache_columns", place)
        while some := rows.fetchmany(ROWS_AT_ONCE):
            self.columns.append(some)


class ServedCosines:
    """The server's cosines say which vectors may matter; those are fetched and compared exactly here.

    So a cosine has the same bits as where all vectors are in this process.
    """

    def __init__(self, connection: Connection, cache: ServedCache, vector: Vector) -> None:
        self._connection = connection
        self._cache = cache
        self._asked = np.asarray(vector, dtype=np.float32)
        self._fetched = VectorRows(self._asked.size)
        self._here: set[int] = set()
        self._ordinals, self._rough = self._similarities()

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted memories; more where rounding might decide."""
        among = admitted[self._ordinals]
        ordinals, rough = self._ordinals[among], self._rough[among]
        if len(ordinals) > limit > 0:
            last = np.partition(rough, len(rough) - limit)[len(rough) - limit]
            ordinals = ordinals[rough >= last - _ROUNDING]
        return ordinals

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each memory; NaN for one without a vector."""
        self._fetch(ordinals)
        return self._fetched.compare(self._asked).cosines(ordinals)

    def rough(self, count: int) -> NDArray[np.float64]:
        """The cosine of each of the first `count` memories, but for rounding; NaN for want of a vector."""
        found = np.full(count, np.nan)
        found[self._ordinals] = self._rough
        return found

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine with the weighted sum of the vectors in each row of memories, -1 for none."""
        self._fetch(ordinals[ordinals >= 0])
        return self._fetched.compare(self._asked).mixed(ordinals, weights)

    def _similarities(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        values = {"agent": self._cache.agent, "asked": _literal(self._asked)}
        nums, products = self._connection.run("similarities", values).fetchone()
        ordinals = self._cache.columns.ordinals(np.frombuffer(nums or b"", dtype=">i8").astype(np.int64))
        return ordinals, np.frombuffer(products or b"", dtype=">f4").astype(np.float64)

    def _fetch(self, ordinals: Iterable[Any]) -> None:
        """Make the vectors of these memories be here."""
        missing = sorted(set(map(int, np.asarray(ordinals).ravel().tolist())) - self._here)
        if not missing:
            return
        wanted = json.dumps(self._cache.columns.nums[missing].tolist())
        values = {"agent": self._cache.agent, "nums": wanted}
        nums, vectors = self._connection.run("packed_vectors", values).fetchone()
        if nums:
            found = self._cache.columns.ordinals(np.frombuffer(nums, dtype=">i8").astype(np.int64))
            self._fetched.put(found, unpacked(vectors, len(found)))
        self._here.update(missing)


def _literal(vector: Vector) -> str:
    """A vector as PostgreSQL reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"
