"""A connection to a SQLite file that runs named queries.

Level: stores (imports the named queries only).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from germane.stores.relational.connection import Dialect
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

    def attempt(self) -> AbstractContextManager[None]:
        """Nothing to do: a refused statement leaves the rest of a transaction as it was."""
        return nullcontext()
