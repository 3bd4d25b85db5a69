"""An agent's cache beside a server: the server finds postings and compares vectors, this process scores.

Level: stores (imports retrieval and what is above it). What is kept here is small, some hundred bytes a
memory, so that a process can serve many agents. Scores come from the same code as everywhere: the server
sends what the question's terms have, and the vectors of what may come first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from germane.model.vector import Vector
from germane.retrieval.postings import Postings
from germane.retrieval.vectors import VectorRows
from germane.stores.postgres.connecting.halfvecs import unpacked
from germane.stores.postgres.operating.vector_indexes import WORTH_IT, marked
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import span
from germane.stores.relational.searches.cache import ROWS_AT_ONCE, AgentCache

__all__ = ["IndexedCosines", "ServedCache", "ServedCosines"]

# A server adds the products up in another order than this process, which moves a cosine by far less.
_ROUNDING = 1e-4

# How many the index is asked for: so many times those that are wanted, for filters leave some of them out.
# The extension gives 1,000 at most, and finds more of the nearest the more it is asked for.
_WIDER: Final = 4
_NARROWEST: Final = 400
_WIDEST: Final = 1000

# After so many questions an agent is kept whole in this process, with at most so many memories. Loading 1,000
# takes as long as five questions that are answered without.
_OFTEN: Final = 2
_MOST_KEPT: Final = 20_000


class ServedCache(AgentCache):
    """Keeps what filters, orders and sessions need of each memory; asks the server for the rest.

    So the first questions about an agent are answered quickly. Whoever goes on asking has all of it brought
    here, unless it is large: `is_worth_keeping` says when.
    """

    def __init__(self, name: str, *, indexed_from: int = WORTH_IT) -> None:
        """An index of the agent's vectors is asked where there are `indexed_from` memories or more."""
        super().__init__(name)
        self._asked = 0
        self._indexed_from = indexed_from
        self._is_indexed: bool | None = None

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
        if self._is_indexed is None and self.columns.used >= self._indexed_from:
            self._is_indexed = connection.run("indexed_vectors", {"agent": self.agent}).fetchone() == (True,)
        if self._is_indexed:
            return IndexedCosines(connection, self, vector)
        return ServedCosines(connection, self, vector)

    def _empty(self) -> None:
        super()._empty()
        self._is_indexed = None

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

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted memories; more where rounding might decide."""
        all_ordinals, all_rough = self.similarities
        among = admitted[all_ordinals]
        ordinals, rough = all_ordinals[among], all_rough[among]
        if len(ordinals) > limit > 0:
            ordinals = ordinals[rough >= _last(rough, limit) - _ROUNDING]
        return ordinals

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each memory; NaN for one without a vector."""
        self._fetch(ordinals)
        return self._fetched.compare(self._asked).cosines(ordinals)

    def rough(self, count: int) -> NDArray[np.float64]:
        """The cosine of each of the first `count` memories, but for rounding; NaN for want of a vector."""
        found = np.full(count, np.nan)
        ordinals, rough = self.similarities
        found[ordinals] = rough
        return found

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine with the weighted sum of the vectors in each row of memories, -1 for none."""
        self._fetch(ordinals[ordinals >= 0])
        return self._fetched.compare(self._asked).mixed(ordinals, weights)

    @cached_property
    def similarities(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Every memory with a vector, and its cosine but for rounding."""
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


class IndexedCosines(ServedCosines):
    """Asks the agent's index for the nearest, and compares with all where that can't be answered by it.

    The index gives the nearest of all memories and may miss a few of them. Where too few of what it gives
    are admitted, nothing is left to the index.
    """

    def __init__(self, connection: Connection, cache: ServedCache, vector: Vector) -> None:
        super().__init__(connection, cache, vector)
        self._width = 0
        self._found = np.empty(0, dtype=np.int64), np.empty(0)

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """About the `limit` nearest admitted memories, or exactly those."""
        # What was read for another slice of the question is there, and exact.
        if "similarities" not in self.__dict__ and 0 < limit <= _WIDEST // _WIDER:
            ordinals, rough = self._by_index(limit * _WIDER)
            edge = rough[-1] if len(rough) else np.inf
            among = admitted[ordinals]
            ordinals, rough = ordinals[among], rough[among]
            if len(ordinals) >= limit and (last := _last(rough, limit) - _ROUNDING) > edge:
                return ordinals[rough >= last]
        return super().nearest(admitted, limit)

    def _by_index(self, width: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest of all, the nearest first; at least so many, if the index finds so many."""
        if width > self._width:
            self._width = max(width, _NARROWEST)
            self._connection.run("set_search_width", {"width": str(self._width)})
            text = marked("nearest_by_index", agent=self._cache.agent, dimension=self._asked.size)
            values = {"asked": _literal(self._asked), "limit": self._width}
            rows = self._connection.run_text(text, values).fetchall()
            nums = np.array([num for num, _ in rows], dtype=np.int64)
            products = np.array([product for _, product in rows], dtype=np.float64)
            self._found = self._cache.columns.ordinals(nums), products
        return self._found


def _last(rough: NDArray[np.float64], limit: int) -> float:
    """The `limit`-th greatest."""
    return float(np.partition(rough, len(rough) - limit)[len(rough) - limit])


def _literal(vector: Vector) -> str:
    """A vector as PostgreSQL reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"
