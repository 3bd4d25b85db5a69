"""A connection to a PostgreSQL server that runs named queries, and what it sends."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import chain, count
from typing import Any, Final, Self

import numpy as np
import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

from germane.stores.relational.tables import Dialect, Why
from germane.stores.sql import queries

# Many rows in few statements: an INSERT of one row, written as one of many.
#
# A server spends more on each statement than on each row. COPY would be as fast, and isn't allowed where
# policies keep agents apart.

SIZES: Final = (64, 8)
"""How many rows a statement takes; more gain nothing, and of what is left over few go one by one."""

Row = tuple[Any, ...]

_INSERT: Final = re.compile(
    r"(?P<head>INSERT INTO \w+ \((?P<columns>[\w\s,]+)\)\s+VALUES )(?P<row>\(%s(?:, %s)*\))(?P<tail>.*)",
    re.DOTALL,
)
_TARGET: Final = re.compile(r"ON CONFLICT \((?P<columns>[\w\s,]+)\) DO UPDATE")


def in_batches(query: str, rows: Sequence[Row]) -> tuple[list[tuple[str, list[Row]]], Sequence[Row]]:
    """Statements for many rows each, with the values of every repetition; and the rows that are left."""
    found: list[tuple[str, list[Row]]] = []
    if can_be_batched(query, rows):
        for size in SIZES:
            whole = len(rows) - len(rows) % size
            values = [tuple(chain.from_iterable(rows[at : at + size])) for at in range(0, whole, size)]
            found += [(batched(query, size) or query, values)] if values else []
            rows = rows[whole:]
    return found, rows


@cache
def batched(query: str, size: int) -> str | None:
    """The same statement for so many rows; None for one that isn't a plain INSERT of one row.

    Its placeholders are the server's own, $1 and so on: the driver would take milliseconds to write those
    into so long a text, each time.
    """
    found = _INSERT.fullmatch(query)
    if found is None or "%" in found["tail"]:
        return None
    numbers = count(1)
    rows = ", ".join([found["row"]] * size)
    return found["head"] + re.sub("%s", lambda _: f"${next(numbers)}", rows) + found["tail"]


def can_be_batched(query: str, rows: Sequence[Row]) -> bool:
    """Whether the rows can go together: one statement can't update a row that it has inserted itself."""
    if len(rows) < SIZES[-1] or batched(query, SIZES[-1]) is None:
        return False
    keys = _keys(query)
    return keys is None or len({tuple(row[at] for at in keys) for row in rows}) == len(rows)


@cache
def _keys(query: str) -> tuple[int, ...] | None:
    """Where in a row the columns are whose conflict leads to an update; None where none does."""
    insert, target = _INSERT.fullmatch(query), _TARGET.search(query)
    if insert is None or target is None:
        return None
    columns = _names(insert["columns"])
    return tuple(columns.index(each) for each in _names(target["columns"]))


def _names(columns: str) -> list[str]:
    return [each.strip() for each in columns.split(",")]


# Vectors between their two forms: float16 in little endian, as every store has them, and pgvector's own.
#
# pgvector sends a halfvec as its length in 16 bits, 16 unused bits, and each number as float16, all in big
# endian.

_HEAD: Final = struct.Struct(">HH")


class HalfVector(bytes):
    """A vector's float16 in little endian, to be sent as a halfvec and not as bytes."""

    __slots__ = ()


class HalfVectorDumper(Dumper):
    """Sends a `HalfVector`. The server knows by the column what type it is."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: HalfVector) -> Buffer:
        """The bytes that pgvector receives."""
        return _HEAD.pack(len(obj) // 2, 0) + np.frombuffer(obj, dtype="<u2").byteswap().tobytes()


class HalfVectorLoader(Loader):
    """Makes bytes of a halfvec that comes in its binary form."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """Float16 in little endian."""
        return np.frombuffer(data, dtype=">u2", offset=_HEAD.size).astype("<u2").tobytes()


def unpacked(sent: bytes, count: int) -> list[bytes]:
    """So many vectors of one length, sent one after another, each as float16 in little endian."""
    table = np.frombuffer(sent, dtype=">u2").reshape(count, -1)[:, _HEAD.size // 2 :].astype("<u2")
    return [row.tobytes() for row in table]


# Agents' numbers in place of their names, where a statement has to say by itself which server it is for.
#
# A cluster chooses the server before it evaluates a function, and servers don't ask each other while they
# answer.

NUMBER: Final = b"SELECT agent FROM agents WHERE name = %s"
"""What asks for the number of a name."""

_LOOK_UP: Final = re.compile(rb"number_of\(%\((\w+)\)s\)")


@cache
def numbered(query: bytes) -> tuple[bytes, dict[str, str]]:
    """A query without look-ups of names, and which value each has instead, by that of the name."""
    names = sorted({name.decode() for name in _LOOK_UP.findall(query)})
    return _LOOK_UP.sub(rb"%(number_of_\1)s::bigint", query), {name: f"number_of_{name}" for name in names}


Raw = psycopg.Connection[tuple[Any, ...]]
"""The driver's connection."""

_REPLANNED_AFTER: Final = 1000
_REPLANNED_AT: Final = 4
"""After so many rows of one transaction statements are replanned, and again at so many times as many."""


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
    """A `Connection` of the relational stores. Bytes, whole numbers, floats and text are as in SQLite.

    After `send_ahead` statements are sent without waiting for the answers of those before. One waits where an
    answer is looked at; what failed is raised there, or by `settle`, and nothing behind it is done. In a
    block `after` a beginning that lasts until the first answer is looked at.
    """

    dialect: Final[Dialect] = "postgres"
    refusal = psycopg.IntegrityError

    def __init__(self, raw: Raw, *, is_spread: bool = False) -> None:
        """`is_spread` says that the tables may lie on several servers."""
        self._is_spread = is_spread
        self.whys: list[Why] = []
        self._raw = raw
        self._ahead = ExitStack()
        self._pipeline: psycopg.Pipeline | None = None
        self._answer: type[_Answer] = _Answer
        self._wait = self.wait
        self._rows = 0
        self._planned_up_to = _REPLANNED_AFTER
        self.is_torn = False
        """Whether something failed that others were sent behind, which the driver may take for done."""

    @property
    def raw(self) -> Raw:
        """The driver's connection, on which every statement that was sent is answered."""
        self.settle()
        return self._raw

    @property
    def is_ahead(self) -> bool:
        """Whether something may be sent that isn't answered."""
        return self._pipeline is not None

    def send_ahead(self) -> None:
        """From here on wait for answers only where they are looked at."""
        if self._pipeline is None:
            self._pipeline = self._ahead.enter_context(self._raw.pipeline())

    def wait(self) -> None:
        """Wait for every answer. Raises what the first statement that failed did."""
        if self._pipeline is not None:
            self._pipeline.sync()

    def settle(self) -> None:
        """The same, and from here on wait for the answer of each statement."""
        if self._pipeline is not None:
            self._pipeline = None
            self._answer, self._wait = _Answer, self.wait
            self.is_torn = True
            try:
                self._ahead.close()
            except psycopg.Error as error:
                raise _first(error) from None
            self.is_torn = False

    @contextmanager
    def after(self, *beginning: tuple[bytes, Sequence[Any]]) -> Iterator[Self]:
        """A block whose first questions go with these statements; at its end every answer is there.

        What was sent fails before what the block raises itself.
        """
        if beginning:
            # Each statement that is sent ahead costs the process more than one that is waited for. So it pays
            # for those whose answers nobody looks at, and not after them.
            self.send_ahead()
            self._answer, self._wait = _FirstAnswer, self.settle
            for statement, values in beginning:
                self.send(statement, values)
        try:
            yield self
        except psycopg.Error:
            # It may be what an earlier statement failed by; those behind that say nothing of their own.
            raise
        except Exception:
            self.settle()
            raise
        self.settle()

    def abandon(self) -> None:
        """Close the connection, whatever is still to be answered."""
        self._raw.close()
        self._pipeline = None
        with suppress(psycopg.Error):
            # It can't be left in good order, and would say so in a log.
            self._ahead.close()

    def send(self, statement: bytes, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """What a statement without a name does, one of those that begin or end a transaction."""
        return self._raw.cursor().execute(statement, values, prepare=None if values else False)

    def run(
        self, name: str, values: Mapping[str, Any] | Sequence[Any] = (), /
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """What the query of this name finds or does."""
        return self._ask(_query(name), values)

    def run_text(self, text: str, values: Mapping[str, Any], /) -> psycopg.Cursor[tuple[Any, ...]]:
        """The same for the text of a named query, with the conditions of a filter in place."""
        return self._ask(text.encode(), values)

    def expect(self, rows: int, /) -> None:
        """Prepare for about so many rows more."""
        # The server goes on with the plans that it made when a table was small, one row after the other.
        if rows >= SIZES[0]:
            self._replan()

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order, without waiting in between."""
        query = queries("postgres")[name]
        if name in ("insert_vector", "carry_vectors"):
            rows = [(*row, HalfVector(vector)) for *row, vector in rows]
        self._rows += len(rows)
        if self._rows >= self._planned_up_to:
            self._planned_up_to = _REPLANNED_AT * self._rows
            self._replan()
        together, rows = in_batches(query, rows)
        for text, values in together:
            with psycopg.RawCursor(self._raw) as cursor:
                cursor.executemany(text.encode(), values)
        if rows:
            with self._raw.cursor() as cursor:
                cursor.executemany(_query(name), rows)

    @contextmanager
    def attempt(self, why: Why) -> Iterator[None]:
        """A block whose refusal `why` may explain, once the transaction is rolled back."""
        self.whys.append(why)
        yield

    def _replan(self) -> None:
        self._raw.cursor().execute(b"DISCARD PLANS")

    def _ask(
        self, query: bytes, values: Mapping[str, Any] | Sequence[Any]
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        if self._is_spread and isinstance(values, Mapping):
            query, names = numbered(query)
            values = {**values, **{name: self._number(values[key]) for key, name in names.items()}}
        return self._answer(self._raw, self._wait).execute(query, values)

    def _number(self, name: str) -> int:
        found = self._answer(self._raw, self._wait).execute(NUMBER, (name,)).fetchone()
        # No agent has the number 0. With NULL in its place a cluster would query every server.
        return 0 if found is None else int(found[0])


def _first(error: BaseException) -> BaseException:
    """What failed first: the driver raises the last of several failures, which may only follow from that."""
    while isinstance(error.__context__, psycopg.Error):
        error = error.__context__
    return error


class _Answer(psycopg.Cursor[tuple[Any, ...]]):
    """What a statement did; its number of rows is waited for as the rows are."""

    def __init__(self, raw: Raw, wait: Callable[[], None]) -> None:
        super().__init__(raw)
        # In their binary form values come and go without being written out and read again.
        self.format = psycopg.pq.Format.BINARY
        self._wait = wait

    @property
    def rowcount(self) -> int:
        if self.pgresult is None:
            self._wait()
        return super().rowcount


class _FirstAnswer(_Answer):
    """One for which everything that was sent is waited for together."""

    @property
    def rowcount(self) -> int:
        self._wait()
        return super().rowcount

    @property
    def description(self) -> list[psycopg.Column] | None:
        self._wait()
        return super().description

    def fetchone(self) -> tuple[Any, ...] | None:
        self._wait()
        return super().fetchone()

    def fetchmany(self, size: int = 0) -> list[tuple[Any, ...]]:
        self._wait()
        return super().fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        self._wait()
        return super().fetchall()

    def __iter__(self) -> Self:
        self._wait()
        return super().__iter__()


@cache
def _query(name: str) -> bytes:
    return queries("postgres")[name].encode()
