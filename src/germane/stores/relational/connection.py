"""What the tables of every database are read and written through: named queries, inside transactions.

Level: stores (imports errors only). Each database brings its own; everything else here is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

__all__ = ["Connection", "Connections", "Dialect", "Rows"]

Dialect = Literal["sqlite", "postgres"]


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
    """Runs named queries. What it gives out holds within one transaction, from one snapshot."""

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

    def attempt(self) -> AbstractContextManager[None]:
        """A block after whose refusal the transaction can still be asked why, before it is rolled back."""
        ...


class Connections(Protocol):
    """Opens what is needed and keeps it. Every transaction ends with its `with` block."""

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

    def note_purge(self, connection: Connection) -> None:
        """Note inside a purge's transaction what `erase` has to do after it, should nobody come to do it."""
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
