"""An agent's cache that holds its postings and vectors as well, so that nothing of them is read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from germane.model.memory import Outcome, Status, Vector
from germane.model.query import Filter
from germane.retrieval.bm25 import Postings
from germane.retrieval.tokenizer import Forward
from germane.retrieval.vectors import VectorRows
from germane.stores.relational.cache import OFTEN, AgentCache, as_array
from germane.stores.relational.checksums import REPAIR, check_intact
from germane.stores.relational.memory_blocks import (
    block_of,
    block_rows,
    read_memories,
    read_vectors,
    unusual_among,
)
from germane.stores.relational.signals import Cosines
from germane.stores.relational.tables import UNREADABLE, Connection, damaged, span

_WIDENED: Final = range(4097, 32769)
"""Agents of so many memories are compared in 32 bits: fewer take no time, and with more it saves little."""

_USABLE: Final = Filter(without=(Outcome.ABANDONED,))
"""What most questions are about."""

_DATED: Final = replace(_USABLE, statuses=(Status.ACTIVE, Status.ARCHIVED))
"""What those are about that name a time."""


class ResidentCache(AgentCache):
    """The cache of a database in the same process, which is quick to read whole and scores nothing itself."""

    def _empty(self) -> None:
        super()._empty()
        self._postings = Postings()
        self._vectors: VectorRows | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory the cache takes."""
        vectors = 0 if self._vectors is None else self._vectors.nbytes
        return super().nbytes + self._postings.nbytes + vectors

    def _shed(self) -> None:
        self._vectors = None

    def postings(
        self,
        connection: Connection,  # noqa: ARG002 - All of them are here.
        hashes: Sequence[int],  # noqa: ARG002 - As above.
    ) -> Postings:
        """The agent's whole index."""
        return self._postings

    def compared(self, connection: Connection, vector: Vector) -> Cosines:
        """How near the agent's vectors are to this one."""
        if self._vectors is None:
            vectors = VectorRows(vector.size)
            # No query for rows after the last memory of this snapshot.
            last = int(self.columns.nums[: self.columns.used].max(initial=0))
            place = {**span(self.agent), "below": last + 1}
            nums, rows = read_vectors(connection, place, vector.size)
            with self._readable():
                vectors.take(self.columns.ordinals(nums), rows)
            self._vectors = vectors
        if self._uses >= OFTEN and self.columns.used in _WIDENED:
            self._vectors.widen()
        return self._vectors.compare(vector)

    def _load(self, connection: Connection) -> None:
        blocks, unusual = read_memories(connection, self.agent)
        late = [np.empty(0, dtype=np.bool_)]
        for block in blocks:
            self.columns.append_block(block.rows, block.kinds, block.sessions)
            late.append(block.rows["late"])
        self._postings = Postings.of_blocks([each.words for each in blocks])
        ordinals = self.columns.ordinals(unusual.nums)
        self.columns.set_expiry(ordinals, unusual.expires)
        active = np.ones(self.columns.used, dtype=np.bool_)
        active[ordinals] = unusual.active
        digests = {num: digest for block in blocks for num, digest in block.digests.items()}
        self._long = self.columns.ordinals(np.array([*digests], dtype=np.int64))
        self._digests = np.array([*digests.values()], dtype="S32")
        readable_late = np.concatenate(late)
        readable_late[self._long] = True
        withdrawn = [num for block in blocks for num in block.withdrawn]
        self._withdrawn = frozenset(self.columns.ordinals(np.array(withdrawn, dtype=np.int64)).tolist())
        readable_late &= active
        readable_late[ordinals] &= unusual.current
        usable, dated = active.copy(), active.copy()
        usable[ordinals] &= unusual.usable
        dated[ordinals] = (unusual.active | unusual.archived) & unusual.usable
        self._masks = {Filter(): active, _USABLE: usable, _DATED: dated, None: readable_late}

    def _add(self, connection: Connection, place: dict[str, int]) -> None:
        rows, unusual = (
            block_rows(connection, place).fetchall(),
            unusual_among(connection, place),
        )
        block = block_of(rows)
        ordinals = self.columns.append_block(block.rows, block.kinds, block.sessions)
        self.columns.set_expiry(self.columns.ordinals(unusual.nums), unusual.expires)
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
            ordinals = self.columns.ordinals(np.array([num for num, *_ in found], dtype=np.int64))
            with self._readable():
                check_intact((packed, checksum) for _, packed, checksum in found)
                self._vectors.put(ordinals, [packed for _, packed, _ in found])

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise StoreUnavailable for vectors that can't be read."""
        try:
            yield
        except UNREADABLE as error:
            raise damaged(f"The vectors of agent {self.name!r}", error, REPAIR) from error
