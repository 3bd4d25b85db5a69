"""A connection to a PostgreSQL server that runs named queries, what it sends, and what its errors mean."""

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

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreError, StoreUnavailable
from germane.stores.relational.checksums import Ciphertext
from germane.stores.relational.tables import Dialect, Why, storable
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
            rows = [
                (num, agent, vector if isinstance(vector, Ciphertext) else HalfVector(vector), checksum)
                for num, agent, vector, checksum in rows
            ]
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


# Errors of the driver and the server as errors of germane.
#
# No message shows a password: what is shown of an address has none, and the server's own words never have.

# The server ends the connection, or can't take one just now: a shutdown, a crash, a start that goes on.
_LOST: Final = frozenset(
    {"57P01", "57P02", "57P03", "57P05", "08000", "08001", "08003", "08004", "08006", "08007", "08P01"}
)

# A coordinator reports a worker that it can't reach, or lost, with one of the codes above, or as an internal
# error in words of its own or of libpq's: `ReportConnectionError` and `ReportResultError` in Citus's
# `connection/remote_commands.c`, and `MarkRemoteTransactionFailed` in `transaction/remote_transaction.c`.
_INTERNAL: Final = "XX000"
_WORKER_LOST: Final = re.compile(
    r"connection to the remote node |connection error: |failure on connection marked as essential: "
    r"|could not establish any connections to the node |server closed the connection unexpectedly"
    r"|connection not open|no connection to the server|could not (?:receive data from|send data to) server"
    r"|connection has been closed unexpectedly"
)

# Two transactions got into each other's way, and one of them was chosen to be rolled back.
_CHOSEN: Final = frozenset({"40001", "40P01"})

_BUSY: Final = {
    "57014": "The server cancelled a statement, because it took too long or because somebody requested it, "
    "and nothing was stored. Try again.",
    "55P03": "Another transaction locks what this one needs for longer than the timeout. Try again later, or "
    "raise the timeout.",
    "53300": "The server has no connection left. Close some, raise its max_connections, or put a pooler such "
    "as PgBouncer before it.",
    "25P03": "A transaction did nothing for so long that the server ended it. Nothing of it was stored.",
    "53400": "A limit of the server's configuration is reached. Try again later, or raise the limit.",
}

_REFUSED: Final = {
    "54000": "A name, tag or scope of over 2,700 bytes doesn't fit an index of PostgreSQL's. Shorten it.",
    "22021": "The database can't write that character. Use one whose encoding is UTF8.",
    "22P05": "The database can't write that character. Use one whose encoding is UTF8.",
    "22": "A value is out of its range or form. Correct it.",
    "23": "A value breaks a rule of the tables. Correct it.",
}

_UNAVAILABLE: Final = {
    "28P01": "The password is wrong. Correct it in the address, or in PGPASSWORD or ~/.pgpass.",
    "28000": "The server doesn't let this user in. Correct the user, or the server's pg_hba.conf.",
    "TLS": "The way there isn't encrypted, or the server not proved, as the address asks for. Correct "
    "sslmode and sslrootcert in the address, the name of the host, or the server's certificate.",
    "POOL": "The pooler hands a connection on after each statement, and no transaction can go through it. "
    "Set its pool_mode to transaction or session.",
    "3D000": "There is no such database. Create it with createdb, or correct the address.",
    "3F000": "There is no such schema. Create it, or correct the search_path in the address.",
    "42501": "The user lacks a right. Let the owner of the tables run `germane db migrate --role USER`, or "
    "use the owner's address for what changes the tables.",
    "42P01": "A table of the store's is missing. Run `germane db migrate` with the owner's address. After a "
    "restore it may be incomplete: look for errors in the output of pg_restore.",
    "42703": "A column of the store's is missing. Run `germane db migrate` with the owner's address.",
    "42883": "A function of the store's is missing. Run `germane db migrate` with the owner's address.",
    "42704": "The extension `vector` is missing. Install pgvector on the server, and let a superuser run "
    "CREATE EXTENSION vector in this database.",
    "25006": "The server only reads: it is a replica, or configured so. Use the address of the primary, or "
    "open the store with read_only=True.",
    "53100": "The server's disk is full, so nothing was stored. Free space and try again.",
    "53200": "The server has no memory left, so nothing was stored. Try again later, or store less at once.",
    "58030": "The server can't read or write its files. Look into its log, and check its disk.",
    "XX001": "The server finds its data damaged. Look into its log, and restore the database from a backup.",
    "XX002": "The server finds an index damaged. Run `germane db reindex`.",
    "57P04": "The database was dropped while it was in use. Create it anew, or use another one.",
}

# A server that refuses a connection says why in words alone, which the driver hands on.
_WORDS: Final = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("pg_hba.conf", "28000"),
    ("is not permitted to log in", "28000"),
    ('role "', "28000"),
    ("permission denied for database", "42501"),
    ('database "', "3D000"),
    ("too many clients", "53300"),
    ("too many connections", "53300"),
    ("connection slots", "53300"),
    ("no more connections", "53300"),
    ("server does not support SSL", "TLS"),
    ("certificate", "TLS"),
    ("statement pooling", "POOL"),
    ("not accept", "57P03"),
    ("is starting up", "57P03"),
    ("is shutting down", "57P03"),
    ("in recovery mode", "57P03"),
)

_NOT_THERE: Final = (
    "No server answers there. Check host and port, that it runs, and that no firewall blocks the connection."
)


def is_lost(error: BaseException, raw: Raw) -> bool:
    """Whether the way to the server broke, or the server is going down or coming up."""
    if not isinstance(error, psycopg.Error):
        return False
    # What the driver fails at by itself has no code; a broken way may not have closed the connection yet.
    return raw.closed or _is_broken(error)


def _is_broken(error: psycopg.Error) -> bool:
    return error.sqlstate in _LOST or _is_the_drivers(error) or _is_of_worker(error)


def _is_of_worker(error: psycopg.Error) -> bool:
    """Whether a coordinator lost a worker, and reports it without a code of its own."""
    return error.sqlstate == _INTERNAL and _WORKER_LOST.search(_server_message(error)) is not None


def _is_the_drivers(error: psycopg.Error) -> bool:
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError)


def is_transient(error: BaseException, raw: Raw) -> bool:
    """Whether a transaction that raised this may succeed when it is repeated from its beginning."""
    return isinstance(error, psycopg.Error) and (is_lost(error, raw) or error.sqlstate in _CHOSEN)


def is_final(error: psycopg.Error) -> bool:
    """Whether waiting doesn't help after a refused connection: a wrong password, for instance."""
    code = _code_of(error)
    return code is not None and code not in _LOST and code not in _BUSY


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Raise what the driver raises inside as an error of germane's, chained to it."""
    try:
        with storable():
            yield
    except GermaneError:
        raise
    except psycopg.Error as error:
        raise translation(error, location) from error


def unreachable(error: psycopg.Error, location: str) -> GermaneError:
    """The error to raise for an error of the driver at connecting."""
    code = _code_of(error)
    if code in _LOST:
        return StoreUnavailable(f"The store {location}: the server is starting or stopping. Try again soon.")
    if code is None:
        return StoreUnavailable(f"The store {location}: {_NOT_THERE} ({_server_message(error)})")
    return _by_code(code, error, location)


def translation(error: psycopg.Error, location: str) -> GermaneError:
    """The error to raise for an error of the driver."""
    code = error.sqlstate
    if _is_broken(error):
        return StoreUnavailable(
            f"The store {location}: the connection to the server was lost, and nothing was half written. "
            f"Try again. ({_server_message(error)})"
        )
    if code in _CHOSEN:
        return StoreBusy(
            f"The store {location}: others wrote the same again and again, and nothing was stored. Try again."
        )
    if code is not None:
        return _by_code(code, error, location)
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return InvalidInput(
            "A text holds the character NUL (U+0000), which PostgreSQL can't keep, and nothing was stored. "
            "Remove it: text.replace('\\x00', '')."
        )
    if isinstance(error, psycopg.DataError):
        return InvalidInput(
            f"The store {location} can't keep a value: {_server_message(error)}. Nothing was stored."
        )
    return StoreError(f"The store {location} failed: {_server_message(error)}. Nothing was half written.")


def _code_of(error: psycopg.Error) -> str | None:
    """The code of what was raised instead of a connection, as far as its words tell."""
    words = str(error)
    known = next((code for part, code in _WORDS if part in words), None)
    # A pooler says all that it has to say as 08P01.
    return known or error.sqlstate if error.sqlstate in (None, "08P01") else error.sqlstate


def _by_code(code: str, error: psycopg.Error, location: str) -> GermaneError:
    message = _server_message(error)
    if code in _BUSY:
        return StoreBusy(f"The store {location}: {_BUSY[code]} (PostgreSQL: {message})")
    # The code is also that of an operator, which shows no parentheses: a mistake in a statement.
    if code in _UNAVAILABLE and not (code == "42883" and "(" not in message):
        return StoreUnavailable(f"The store {location}: {_UNAVAILABLE[code]} (PostgreSQL: {message})")
    refused = _REFUSED.get(code) or _REFUSED.get(code[:2])
    if refused:
        return InvalidInput(f"The store {location} can't keep this: {message}. {refused} Nothing was stored.")
    return StoreError(f"The store {location} failed: {message} ({code}). Nothing was half written.")


def _server_message(error: psycopg.Error) -> str:
    """The server's message, on one line. Its details are left out: they quote what was to be stored."""
    return " ".join((error.diag.message_primary or str(error)).split())
