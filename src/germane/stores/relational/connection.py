"""What the tables of every database are read and written through: named queries, inside transactions.

Level: stores (imports errors only). Each database brings its own; everything else here is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from germane.forking import Gate

__all__ = ["Connection", "Connections", "Dialect", "Purged", "Rows", "Why"]

Dialect = Literal["sqlite", "postgres"]

Purged = Literal["memories", "conversations", "agent"]
"""What is purged: some of an agent's memories, some of its conversations, or all that there is of it."""


class Rows(Protocol):
    """What a query found; it can be gone through once."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Runs named queries. What it gives out holds within one transaction, from one snapshot.

    Statements are done in order. In a write transaction one may be done only when an answer is looked at, its
    own or a later one's, or at the end; what it raises is raised then, and nothing behind it is done. So what
    doesn't need an answer is run without looking at any, and what can be asked together before the first
    answer is looked at.
    """

    @property
    def dialect(self) -> Dialect:
        """The folder of the queries that it runs."""
        ...

    @property
    def refusal(self) -> type[Exception]:
        """What the driver raises when a constraint of a table refuses a row."""
        ...

    def run(self, name: str, values: Mapping[str, Any] | Sequence[Any] = ..., /) -> Rows:
        """What the query of this name finds or does."""
        ...

    def run_text(self, text: str, values: Mapping[str, Any], /) -> Rows:
        """The same for the text of a named query, with the conditions of a filter in place."""
        ...

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order."""
        ...

    def expect(self, rows: int, /) -> None:
        """Prepare for about so many rows more, which the statements to come look for or write."""
        ...

    def attempt(self, why: Why, /) -> AbstractContextManager[None]:
        """A block whose refusal by a constraint `why` may explain.

        It is given a connection that can be asked and the refusal, and raises what says more, or returns.
        What the transaction had done by then it may find there or not.
        """
        ...


Why = Callable[[Connection, Exception], None]
"""Asks why a row was refused, and raises what says more than the refusal; see `Connection.attempt`."""


class Connections(Protocol):
    """Opens what is needed and keeps it. Every transaction ends with its `with` block."""

    gate: Gate
    """What calls go through, so that none is under way when the process forks."""
    location: str
    read_only: bool
    timeout: float
    acting: str
    """Who reads and writes, where that isn't the agent whose memories they are."""

    def reading(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A read transaction: everything read inside comes from one snapshot.

        A database that keeps agents apart shows the rows of `agent` alone, None for none of them; and those
        of a space only where `acting`, when it is given, is a member.
        """
        ...

    def writing(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A write transaction: committed at the end, or rolled back when the block raised.

        Those of one agent come one after another.
        """
        ...

    def note_purge(self, connection: Connection, what: Purged = "memories") -> None:
        """Note inside a purge's transaction what has to be erased after it, should nobody come to do it.

        It is of the agent that the transaction is about.
        """
        ...

    def erase(self) -> None:
        """Leave nothing of what was purged, as far as the database can; see the store's own promise."""
        ...

    def size(self) -> int:
        """How many bytes the store takes; 0 in memory."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
