"""Connections to one PostgreSQL database, and the transactions that run on them.

It knows connections, not queries about memories.
"""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from itertools import count
from threading import local
from typing import Any, Final, Literal, TypeVar

import psycopg
from psycopg.sql import Literal as Quoted

from germane.errors import GermaneError, InvalidInput, StoreError, StoreUnavailable
from germane.forks import Gate
from germane.stores.postgres.connection import (
    PostgresConnection,
    Raw,
    is_lost,
    is_transient,
    translated,
    translation,
    unreachable,
)
from germane.stores.postgres.pool import LEAVE, SECONDS_BETWEEN_SWEEPS, Pool, new_token, sweep, was_committed
from germane.stores.postgres.servers import Notifications, Replica, bytes_spread, is_distributed, notice
from germane.stores.relational.tables import POOL_SIZE, Connection, Purged, Why

Durability = Literal["full", "relaxed"]

# What the server is set to stands for "full": a stricter choice of its operator's isn't weakened.
_SYNCHRONOUS: Final[dict[str, dict[str, str]]] = {"full": {}, "relaxed": {"synchronous_commit": "off"}}

_SIZE: Final = b"""
SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""

_BEGIN_WRITE: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ENTER_TO_READ: Final = b"SELECT enter(%s::text, %s::text, false)"
_ENTER_TO_WRITE: Final = b"SELECT enter(%s::text, %s::text, true)"


class PostgresConnections:
    """Transactions on one database, for any number of threads; `pool_size` connections at most.

    A transaction that failed by no fault of its own raises `TransientFailure`: the way to the server broke,
    the server went down, or two transactions got into each other's way. Nothing of it is stored then, and
    its gate repeats the work. When the way breaks so that nobody knows whether a transaction was committed,
    the server is queried: each write stores a token, which is there if and only if the rest is.
    With a `replica` reads go to that standby, once it has what this process has written and seen.
    """

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "full",
        timeout: float = 30.0,
        read_only: bool = False,
        replica: str | None = None,
        pool_size: int = POOL_SIZE,
    ) -> None:
        if durability not in _SYNCHRONOUS:
            raise InvalidInput(f"durability={durability!r} is unknown. Use 'full' or 'relaxed'.")
        if not timeout >= 0:
            raise InvalidInput(f"timeout={timeout!r} is no time to wait. Use 0 or more seconds.")
        settings = _SYNCHRONOUS[durability] | ({"default_transaction_read_only": "on"} if read_only else {})
        self._primary = Pool(url, timeout=timeout, settings=settings, size=pool_size)
        self._replica = None if replica is None else Replica(replica, timeout=timeout)
        self.notifications = Notifications(self._primary.connect, self._seen)
        self.location = self._primary.location
        self.gate: Gate = RetryingGate(self.location)
        self.read_only = read_only
        self.timeout = timeout
        self._swept = time.monotonic()
        self.acting = ""  # Who writes, where that isn't the agent whose memories they are.

    @contextmanager
    def reading(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[PostgresConnection]:
        """A read transaction: everything read inside comes from one snapshot. Never waits for writers.

        It shows the rows of `agent` alone, None for none; those of a space only where `acting`, when it
        is given, is a member.
        """
        with self.gate, translated(self.location):
            pool, raw, beginning = self._begin_read(agent, acting)
            connection = PostgresConnection(raw, is_spread=pool.is_spread)
            try:
                with connection.after(*beginning):
                    yield connection
            except psycopg.Error as error:
                if pool is self._replica:
                    pool.rest()
                self._again_if_transient(error, raw)
                raise
            finally:
                if connection.is_ahead or connection.is_torn:
                    connection.abandon()
                pool.give(raw)

    @contextmanager
    def writing(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[PostgresConnection]:
        """A write transaction: committed at the end, or rolled back when the block raised.

        Those of one agent come one after another. Statements are sent ahead of their answers, so what one
        raises may come later. Raises StoreBusy when the turn hasn't come within the timeout.
        """
        with self.gate, translated(self.location):
            self._check_writable()
            token = new_token()
            raw = self._taken()
            connection = PostgresConnection(raw, is_spread=self._primary.is_spread)
            try:
                with self._lent(connection, raw):
                    left = self._begin_write(connection, agent, acting, token)
                    try:
                        yield connection
                    except psycopg.Error:
                        raise
                    except Exception:
                        # An error of the database came before it.
                        connection.settle()
                        raise
                    if left.pgresult is None:
                        # A commit can be looked up only by a token that is known to be stored.
                        connection.wait()
                    doubt = self._commit(connection, raw, agent)
            except connection.refusal as error:
                self._explain(connection.whys, error, _read(agent, acting))
                raise
            if doubt is not None and not was_committed(self._primary, token, timeout=self.timeout):
                self._again_if_transient(doubt, raw)
                raise doubt
            note_commit()
            if doubt is not None:
                self._see()

    @contextmanager
    def alone(self, *, session: bool = True) -> Iterator[PostgresConnection]:
        """A connection of its own outside any transaction, without limits of time, for what maintains.

        Raises StoreUnavailable where a pooler stands between, unless it works without a `session`: with
        nothing that outlasts a transaction.
        """
        with self.gate, translated(self.location):
            self._check_writable()
            try:
                raw = self._primary.connect()
            except psycopg.Error as error:
                raise unreachable(error, self.location) from error
            try:
                if not self._primary.is_pooled:
                    raw.execute(b"SET statement_timeout = 0")
                elif session:
                    raise StoreUnavailable(
                        f"A pooler, such as PgBouncer, stands before the server of {self.location}, and this "
                        "takes a session of the server's own. Use the server's own address."
                    )
                yield PostgresConnection(raw)
            finally:
                raw.close()
            self._see()

    @contextmanager
    def transaction(self, connection: PostgresConnection) -> Iterator[Raw]:
        """A transaction on the connection that `alone` gave, without limits of time either."""
        with self._primary.transaction(connection.raw):
            yield connection.raw

    def note_purge(self, connection: Connection, what: Purged = "memories") -> None:
        """Note what is to be erased, for `germane.stores.postgres.maintenance`."""
        # What removes a memory notes it by itself, whichever version of germane calls it.
        if what != "memories":
            connection.run("note_erasure", {"purged": what})

    def erase(self) -> None:
        """Nothing at once: to rewrite tables makes everybody wait, so an operator says when."""

    def size(self) -> int:
        """How many bytes the store's tables and indexes take."""
        with self.reading() as connection:
            raw = connection.raw
            elsewhere = bytes_spread(raw) if self._primary.is_spread and is_distributed(raw) else 0
            return int(raw.execute(_SIZE).fetchall()[0][0]) + elsewhere

    def connected(self) -> tuple[int, int | None]:
        """How many connections of the pool are open, and the most that there may be."""
        return self._primary.connected()

    def close(self) -> None:
        """Close every connection. What another thread is using just now is closed when it is done."""
        self.notifications.close()
        if self._replica is not None:
            self._replica.close()
        self._primary.close()

    def _begin_read(
        self, agent: str | None, acting: str | None
    ) -> tuple[Pool | Replica, Raw, Sequence[tuple[bytes, tuple[str | None, ...]]]]:
        """A connection for a read, whose it is, and how the transaction begins if it hasn't begun."""
        if self._replica is None:
            raw = self._taken()
            if not self._primary.is_pooled:
                entering = () if agent is None else ((_ENTER_TO_READ, (agent, acting)),)
                return self._primary, raw, ((_BEGIN_READ, ()), *entering)
            self._primary.give(raw)
        return *self._begun(_read(agent, acting)), ()

    def _begun(self, beginning: bytes) -> tuple[Pool | Replica, Raw]:
        """The same on which this ran."""
        replica = self._replica
        raw = None if replica is None else replica.begin(beginning)
        if replica is not None and raw is not None:
            return replica, raw
        raw = self._primary.begin(beginning)
        if replica is not None:
            # What was seen here must not be missing in the next read, wherever that goes.
            self._seen(raw.execute(notice(None)).fetchall()[0][0])
        return self._primary, raw

    def _seen(self, place: str) -> None:
        if self._replica is not None:
            self._replica.note(place)

    def _see(self) -> None:
        """Let no read go behind what the primary has by now."""
        if self._replica is None:
            return
        raw = self._primary.begin()
        try:
            self._seen(raw.execute(notice(None)).fetchall()[0][0])
        finally:
            self._primary.give(raw)

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreUnavailable(
                f"The store {self.location} was opened with read_only=True, so nothing can be stored. "
                "Open it without."
            )

    def _again_if_transient(self, error: psycopg.Error, raw: Raw) -> None:
        if is_transient(error, raw):
            raise self._failure(error, raw) from error

    def _failure(self, error: psycopg.Error, raw: Raw) -> TransientFailure:
        # To take a connection waits for the server, and on a cluster for none of the others.
        waits = self._primary.is_spread and is_lost(error, raw)
        return TransientFailure(translation(error, self.location), patience=self.timeout if waits else 0.0)

    def _sweep_is_due(self) -> bool:
        now = time.monotonic()
        due = now - self._swept > SECONDS_BETWEEN_SWEEPS
        if due:
            self._swept = now
        return due

    def _taken(self) -> Raw:
        """A connection that hasn't broken while it lay in the pool, as far as is known without a query."""
        deadline = time.monotonic() + self.timeout
        while True:
            raw = self._primary.begin()
            if not _is_broken(raw) or time.monotonic() >= deadline:
                return raw
            raw.close()
            self._primary.give(raw)

    @contextmanager
    def _lent(self, connection: PostgresConnection, raw: Raw) -> Iterator[None]:
        """Give the connection of a write back at its end, if it is still good for another."""
        try:
            yield
        except psycopg.Error as error:
            again = self._failure(error, raw) if is_transient(error, raw) else None
            # The driver takes statements for prepared that were behind the one that failed.
            connection.abandon()
            if again is not None:
                raise again from error
            raise
        finally:
            # Torn also where a commit failed that is then looked up; on a cluster the way is still open.
            if connection.is_ahead or connection.is_torn:
                connection.abandon()
            # Before any query: there may be no other connection left.
            self._primary.give(raw)

    def _begin_write(
        self, connection: PostgresConnection, agent: str | None, acting: str | None, token: str
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Begin, with the token that the write leaves, and its turn with the agent.

        It is answered with what follows, and so is the leaving of the token, which is returned.
        """
        beginning = self._primary.beginning(_BEGIN_WRITE)
        if beginning == _BEGIN_WRITE:
            connection.send_ahead()
        connection.send(beginning)
        connection.send_ahead()  # Only one by one can statements be sent so.
        if self._sweep_is_due():
            connection.send(sweep(is_spread=self._primary.is_spread))
        left = connection.send(LEAVE, (token,))
        if agent is not None:
            connection.send(_ENTER_TO_WRITE, (agent, acting))
        return left

    def _commit(self, connection: PostgresConnection, raw: Raw, agent: str | None) -> psycopg.Error | None:
        """Commit; what came instead of a clear answer, if anything did."""
        done = notified = None
        connection.send_ahead()
        try:
            done = connection.send(b"COMMIT")
            if agent is not None or self._replica is not None:
                notified = connection.send(notice(agent))
            connection.settle()
        except psycopg.errors.PipelineAborted as error:
            raise self._unnoticed() from error
        except psycopg.Error as error:
            # From here on a lost way says nothing; that a statement before was refused says all.
            if is_lost(error, raw) or (done is not None and done.statusmessage is not None):
                return error
            raise
        if done.statusmessage != "COMMIT":
            raise self._unnoticed()
        if notified is not None:
            self._seen(notified.fetchall()[0][0])
        return None

    def _unnoticed(self) -> StoreError:
        return StoreError(
            f"The store {self.location} rolled a transaction back, because a statement in it had failed "
            "unnoticed. Nothing was stored. Report this."
        )

    def _explain(self, whys: Sequence[Why], error: Exception, beginning: bytes) -> None:
        """Say more of why the database refused a write that is rolled back, where anybody can."""
        if not whys:
            return
        raw = self._primary.begin(beginning)
        try:
            for why in whys:
                why(PostgresConnection(raw, is_spread=self._primary.is_spread), error)
        finally:
            self._primary.give(raw)


def _read(agent: str | None, acting: str | None) -> bytes:
    """The beginning of a read as one text."""
    if agent is None:
        return _BEGIN_READ
    given = ", ".join(Quoted(each).as_string(None) for each in (agent, acting, False))
    return _BEGIN_READ + f";SELECT enter({given})".encode()


def _is_broken(raw: Raw) -> bool:
    """Whether the server or the network has closed the connection."""
    try:
        # The first reads what the server sent before, the second the end of the connection.
        raw.pgconn.consume_input()
        raw.pgconn.consume_input()
    except psycopg.Error:
        return True
    return False


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
