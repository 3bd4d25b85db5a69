"""Lets a member in to a space's memories: every transaction asks the rules first, and tells what it did.

Level: stores (imports the pure rules and model).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from germane.model.space import Right
from germane.spaces import admit
from germane.stores.sqlite.connections import Connections
from germane.stores.sqlite.happening import EventLog
from germane.stores.sqlite.membership import KeptSpace, required_space

__all__ = ["Entrance"]


class Entrance(Connections):
    """The connections of a store, as a member of a space uses them.

    The right is looked up in the transaction that it is for. So whoever left can't write or read any
    more, whatever the process believes; and what is written is in the log, or not at all.
    """

    def __init__(self, inner: Connections, *, space: str, agent: str) -> None:
        # Nothing that the connections keep is kept here as well: there is one writer to a file.
        self._inner = inner
        self._space = space
        self._agent = agent
        self.in_memory = inner.in_memory
        self.location = inner.location
        self.read_only = inner.read_only
        self.timeout = inner.timeout
        self.acting = agent

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction of a member's. Raises UnknownSpace or NotAllowed."""
        with self._inner.reading() as connection:
            self._admitted(connection, Right.READ)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction of a member's, with its events. Raises UnknownSpace or NotAllowed."""
        with self._inner.writing() as connection:
            space = self._admitted(connection, Right.WRITE)
            log = EventLog(connection, space.number, space.happened, by=self._agent)
            yield connection
            log.note_written()
            log.finish()

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writing connection outside any transaction."""
        with self._inner.alone() as connection:
            yield connection

    def rewrite(self) -> None:
        """Write the whole file anew, as after every purge."""
        self._inner.rewrite()

    def truncate_log(self, *, timeout: float) -> bool:
        """Move the whole write-ahead log into the file and cut it to no bytes; False if readers hold it."""
        return self._inner.truncate_log(timeout=timeout)

    def size(self) -> int:
        """How many bytes the file and its log take; 0 in memory."""
        return self._inner.size()

    def close(self) -> None:
        """Nothing: the connections belong to the store that was opened."""

    def _admitted(self, connection: sqlite3.Connection, right: Right) -> KeptSpace:
        space = required_space(connection, self._space)
        admit(space.info, self._agent, right)
        return space
