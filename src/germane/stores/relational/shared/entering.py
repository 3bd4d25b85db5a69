"""Lets a member in to a space's memories: every transaction asks the rules first, and tells what it did.

Level: stores (imports the pure rules and model).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from germane.model.space import Right
from germane.spaces import admit
from germane.stores.relational.connection import Connection, Connections, Purged
from germane.stores.relational.shared.happening import EventLog
from germane.stores.relational.shared.membership import KeptSpace, required_space

__all__ = ["Entrance"]


class Entrance(Connections):
    """The connections of a store, as a member of a space uses them.

    The right is looked up in the transaction that it is for. So whoever left can't write or read any
    more, whatever the process believes; and what is written is in the log, or not at all.
    """

    def __init__(self, inner: Connections, *, space: str, agent: str) -> None:
        self._inner = inner
        self._space = space
        self._agent = agent
        self.gate = inner.gate
        self.location = inner.location
        self.read_only = inner.read_only
        self.timeout = inner.timeout
        self.acting = agent

    @contextmanager
    def reading(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:  # noqa: ARG002 - The member it is.
        """A read transaction of a member's. Raises UnknownSpace or NotAllowed."""
        with self._inner.reading(agent, acting=self.acting) as connection:
            self._admitted(connection, Right.READ)
            yield connection

    @contextmanager
    def writing(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:  # noqa: ARG002 - The member it is.
        """A write transaction of a member's, with its events. Raises UnknownSpace or NotAllowed."""
        with self._inner.writing(agent, acting=self.acting) as connection:
            space = self._admitted(connection, Right.WRITE)
            log = EventLog(connection, space, by=self._agent)
            yield connection
            log.note_written()
            log.finish()

    def note_purge(self, connection: Connection, what: Purged = "memories") -> None:
        """Note what has to be erased, as after every purge."""
        self._inner.note_purge(connection, what)

    def erase(self) -> None:
        """Leave nothing of what was purged."""
        self._inner.erase()

    def size(self) -> int:
        """How many bytes the store takes; 0 in memory."""
        return self._inner.size()

    def close(self) -> None:
        """Nothing: the connections belong to the store that was opened."""

    def _admitted(self, connection: Connection, right: Right) -> KeptSpace:
        space = required_space(connection, self._space)
        admit(space.info, self._agent, right)
        return space
