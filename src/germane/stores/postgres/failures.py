"""What the driver and the server raise, in germane's words, and which work is done again.

No message shows a password: what is shown of an address has none, and the server's own words never have.
"""

from __future__ import annotations

import inspect
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from itertools import count
from threading import local
from typing import Any, Final, TypeVar

import psycopg

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreError, StoreUnavailable
from germane.forks import Gate
from germane.stores.postgres.connection import Raw
from germane.stores.relational.tables import storable

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
    "42P01": "A table of the store's is missing. Run `germane db migrate` with the owner's address.",
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


# Doing a store's work again, where the server or the way to it failed and nothing had been committed.

ATTEMPTS: Final = 5
"""How often a piece of work is done at most."""

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5

Done = TypeVar("Done")
Kind = TypeVar("Kind", bound=type)


class TransientFailure(Exception):
    """A transaction failed by no fault of its own, nothing of it is stored, and it may succeed if repeated.

    It never leaves a store: `error` is what to raise when it can't be repeated. It is repeated for `patience`
    seconds, and a few times in any case.
    """

    def __init__(self, error: GermaneError, *, patience: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.patience = patience


class _Commits(local):
    """How many transactions this thread has committed."""

    count = 0


_commits = _Commits()


def note_commit() -> None:
    """Note that the thread has committed: what it does can't be repeated from before that any more."""
    _commits.count += 1


def repeated(work: Callable[[], Done]) -> Done:
    """Do a piece of work, again from its beginning when a transaction in it raises `TransientFailure`.

    It is done at most ATTEMPTS times, or for as long as the failure's `patience`, with growing pauses, so it
    must not change what it was given. Work that has committed something before the failure isn't done again.
    Raises the error of the last failure.
    """
    before = _commits.count
    began = time.monotonic()
    pause = _FIRST_PAUSE
    for attempt in count(1):
        try:
            return work()
        except TransientFailure as again:
            waited = time.monotonic() - began
            is_last = attempt >= ATTEMPTS and waited >= again.patience
            if is_last or _commits.count != before:
                raise again.error from again.__cause__
        # Two that failed together would fail together again if both waited equally long.
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret.
        pause = min(3 * pause, _LONGEST_PAUSE)
    raise AssertionError("The last attempt returns or raises.")


class RetryingGate(Gate):
    """A gate whose work is `repeated`."""

    def run(self, work: Callable[[], Done]) -> Done:
        """Do a piece of work inside the gate, again where a transaction asks for it."""
        return repeated(partial(super().run, work))


def retrying(kind: Kind) -> Kind:
    """Let each public method of a class be `repeated`."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            setattr(kind, name, _retried(method))
    return kind


def _retried(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def retried(*args: Any, **kwargs: Any) -> Any:
        return repeated(partial(method, *args, **kwargs))

    return retried
