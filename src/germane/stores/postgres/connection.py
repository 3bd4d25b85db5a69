"""A connection to a PostgreSQL server that runs named queries.

Level: stores (imports the named queries only).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, Final

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.types.numeric import Int8BinaryDumper

from germane.stores.postgres.batches import ROWS_AT_ONCE, batched, can_be_batched
from germane.stores.postgres.halfvecs import HalfVector, HalfVectorDumper, HalfVectorLoader
from germane.stores.relational.connection import Dialect
from germane.stores.sql import queries

__all__ = ["ADAPTERS", "PostgresConnection", "Raw"]

Raw = psycopg.Connection[tuple[Any, ...]]
"""The driver's connection."""


class _Adapters:
    """What the driver makes of values; it reads the attribute alone."""

    def __init__(self) -> None:
        self.adapters = AdaptersMap(psycopg.adapters)
        self.connection = None
        # The driver would send each whole number as the narrowest type that holds it, and so prepare a
        # statement once for each mixture of them. The truth of something is a number, as in SQLite.
        self.adapters.register_dumper(int, Int8BinaryDumper)
        self.adapters.register_dumper(bool, Int8BinaryDumper)
        self.adapters.register_dumper(HalfVector, HalfVectorDumper)
        # Vectors are the only type of the store's that the driver doesn't know.
        self.adapters.register_loader(0, HalfVectorLoader)


ADAPTERS: Final = _Adapters()


class PostgresConnection:
    """A `Connection` of the relational stores. Bytes, whole numbers, floats and text are as in SQLite."""

    dialect: Final[Dialect] = "postgres"
    refusal = psycopg.IntegrityError

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def run(
        self, name: str, values: Mapping[str, Any] | Sequence[Any] = (), /
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """What the query of this name finds or does."""
        return self._ask(_query(name), values)

    def run_text(self, text: str, values: Mapping[str, Any], /) -> psycopg.Cursor[tuple[Any, ...]]:
        """The same for the text of a named query, with the conditions of a filter in place."""
        return self._ask(text.encode(), values)

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order, without waiting in between."""
        query = queries("postgres")[name]
        if name == "insert_vector":
            rows = [(*row, HalfVector(vector)) for *row, vector in rows]
        if can_be_batched(query, rows):
            whole = len(rows) - len(rows) % ROWS_AT_ONCE
            batches = [_flat(rows[at : at + ROWS_AT_ONCE]) for at in range(0, whole, ROWS_AT_ONCE)]
            with psycopg.RawCursor(self.raw) as cursor:
                cursor.executemany((batched(query) or query).encode(), batches)
            rows = rows[whole:]
        if rows:
            with self.raw.cursor() as cursor:
                cursor.executemany(_query(name), rows)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A block after whose refusal the transaction can still be asked why, before it is rolled back."""
        self.raw.execute(b"SAVEPOINT attempt")
        try:
            yield
        except psycopg.IntegrityError:
            self.raw.execute(b"ROLLBACK TO SAVEPOINT attempt")
            raise
        self.raw.execute(b"RELEASE SAVEPOINT attempt")

    def _ask(
        self, query: bytes, values: Mapping[str, Any] | Sequence[Any]
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        # In their binary form values come and go without being written out and read again.
        return self.raw.cursor(binary=True).execute(query, values)


def _flat(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(rows))


@cache
def _query(name: str) -> bytes:
    return queries("postgres")[name].encode()
