"""A connection to a SQLite file that runs named queries.

Level: stores (imports the named queries only).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from germane.stores.relational.connection import Dialect, Why
from germane.stores.sql import queries

__all__ = ["SqliteConnection"]


class SqliteConnection(sqlite3.Connection):
    """A `Connection` of the relational stores, and all that SQLite's own is."""

    dialect: Final[Dialect] = "sqlite"
    refusal = sqlite3.IntegrityError

    def run(self, name: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> sqlite3.Cursor:
        """What the query of this name finds or does."""
        return self.execute(queries("sqlite")[name], values)

    def run_text(self, text: str, values: Mapping[str, Any], /) -> sqlite3.Cursor:
        """The same for the text of a named query, with the conditions of a filter in place."""
        return self.execute(text, values)

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order."""
        self.executemany(queries("sqlite")[name], rows)

    def expect(self, rows: int, /) -> None:
        """Nothing to prepare: a plan here doesn't go by sizes."""

    @contextmanager
    def attempt(self, why: Why, /) -> Iterator[None]:
        """A block whose refusal `why` may explain; it leaves the rest of the transaction as it was."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            why(self, error)
            raise
