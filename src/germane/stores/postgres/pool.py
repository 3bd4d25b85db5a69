"""A process's connections to one server, the pooler that may stand between, and the token of each commit."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from secrets import token_hex
from threading import Lock
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.sql import Identifier, Literal
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreUnavailable
from germane.stores.postgres.connection import ADAPTERS, Raw, is_final, is_lost, unreachable
from germane.stores.relational.tables import POOL_SIZE

_CONNECT_SECONDS: Final = 10
_STATEMENT_SECONDS: Final = 300
_IDLE_IN_TRANSACTION_SECONDS: Final = 120

# A connection that nobody needed for this long is closed, and none grows older than the other.
_IDLE_SECONDS: Final = 300.0
_LIFE_SECONDS: Final = 3600.0

# A statement for several servers of a cluster goes from one to the next. After one that went to all at once,
# a cluster refuses what follows in the transaction: "parallel operation on a distributed table".
_IN_CLUSTER: Final = ("citus.multi_shard_modify_mode", "sequential")

# Who answers, and whether the tables may lie on several servers. If so the session gets the setting above,
# unless a pooler stands between, which would pass it on to other clients.
_MET: Final = b"""
SELECT pg_backend_pid(), (
    SELECT set_config(%s, %s, pg_backend_pid() <> %s) FROM pg_extension WHERE extname = 'citus'
) IS NOT NULL
"""

# Under this name are the settings that the address gives, as it gives them.
_OWN: Final = "options"

# How soon a lost peer is noticed: after 30 s of silence it is probed three times, 10 s apart.
_KEEPALIVES: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

_SLICE_SECONDS: Final = 0.1

# More than there are named queries, whose filters make several texts of some.
_PREPARED: Final = 500

# Errors of the pool's threads are raised where a connection is requested, so they needn't be logged as well.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

# Left alone in a child process, because closing them there would end them for the parent.
_INHERITED: Final[list[ConnectionPool[Raw] | None]] = []


class Pool:
    """Connections to one server, shared by the threads of a process. A child process opens its own.

    What isn't in `url` is set here: how long to wait for the server to answer (10 s to connect, `timeout`
    for a lock or a free connection, five minutes for a statement), that a transaction left alone for two
    minutes ends, and that a broken way to the server is noticed within a minute. Where a pooler stands
    between, each transaction sets this for itself, and nothing is prepared that wouldn't be found again.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        settings: Mapping[str, str] | None = None,
        size: int = POOL_SIZE,
    ) -> None:
        self.location = location_of(url)
        self._timeout = timeout
        self._size = size
        self._settings = _settings(url, timeout, settings or {})
        self._with_options, self._without = (_target(url, each) for each in (self._settings, None))
        self._takes_options = True
        # Both are seen with the first connection.
        self.is_pooled = False
        self.is_spread = False
        self._guard = Lock()
        self._process = os.getpid()
        self._closed = False
        self._pool: ConnectionPool[Raw] | None = None
        self._reached = False
        self._failure: psycopg.Error | None = None

    def connect(self) -> Raw:
        """A connection outside the pool, which the caller closes. Raises the driver's error at once."""
        try:
            raw = psycopg.connect(self._target, **_HOW)
        except psycopg.OperationalError as error:
            if not self._takes_options or not refuses_options(error):
                raise
            self._takes_options = False
            raw = psycopg.connect(self._target, **_HOW)
        self._configure(raw)
        return raw

    @contextmanager
    def transaction(self, raw: Raw) -> Iterator[None]:
        """A transaction on a connection from `connect`, without a limit of time for a statement."""
        with raw.transaction():
            if self.is_pooled:
                raw.execute(local(self._in_transaction() | {"statement_timeout": "0"}), prepare=False)
            yield

    def beginning(self, text: bytes) -> bytes:
        """The same statements, of which the first is BEGIN, with what the connection itself doesn't know."""
        if not self.is_pooled or not text.startswith(b"BEGIN"):
            return text
        head, _, rest = text.partition(b";")
        return b";".join(each for each in (head, local(self._in_transaction()), rest) if each)

    def _in_transaction(self) -> dict[str, str]:
        """What each transaction sets for itself through a pooler."""
        return _inside(self._settings) | (dict([_IN_CLUSTER]) if self.is_spread else {})

    def begin(self, *beginning: bytes) -> Raw:
        """A connection on which this ran, with a transaction open; `give` it back.

        Connections that broke while they lay in the pool are passed over, and a server that restarts is
        waited for, until the timeout. Raises StoreUnavailable or StoreBusy.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            raw = self._take(deadline)
            try:
                for each in beginning:
                    raw.execute(self.beginning(each), prepare=False)
            except psycopg.Error as error:
                self.give(raw)
                if not is_lost(error, raw) or time.monotonic() >= deadline:
                    raise
            except BaseException:
                self.give(raw)
                raise
            else:
                return raw

    def give(self, raw: Raw) -> None:
        """Take a connection back, and roll back what is left of a transaction on it."""
        if not raw.closed and raw.pgconn.pipeline_status != PipelineStatus.OFF:
            # It broke between statements that were sent together, and nobody can say where.
            raw.close()
        if not raw.closed and raw.pgconn.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                # One that can't be rolled back is broken, and the pool replaces it.
                # Past the driver, whose own way costs as much as a small question.
                raw.pgconn.exec_(b"ROLLBACK")
        pool = self._pool
        if pool is None or self._process != os.getpid():
            raw.close()
        else:
            pool.putconn(raw)

    def connected(self) -> tuple[int, int]:
        """How many connections are open, and the most that there may be."""
        pool = self._pool
        return 0 if pool is None else pool.get_stats()["pool_size"], self._size

    def close(self) -> None:
        """Close what lies in the pool; what is being used is closed when it is given back."""
        with self._guard:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.close()

    def _take(self, deadline: float) -> Raw:
        while True:
            pool = self._opened()
            try:
                # In slices, so that a failure that waiting doesn't mend shows at once.
                return pool.getconn(min(max(deadline - time.monotonic(), 0.001), _SLICE_SECONDS))
            except PoolTimeout as error:
                if time.monotonic() >= deadline:
                    raise self._unheard() from error
            except PoolClosed as error:
                if self._closed:
                    raise self._is_closed() from error
            failure = self._failure
            if failure is not None and self._takes_options and refuses_options(failure):
                self._takes_options = False
                self._give_up(pool)
            elif failure is not None and (is_final(failure) or not self._reached):
                self._give_up(pool)
                raise unreachable(failure, self.location) from failure

    def _give_up(self, pool: ConnectionPool[Raw]) -> None:
        """Drop a pool, so that the next caller opens another: what failed may be repaired by then."""
        with self._guard:
            if self._pool is pool:
                self._pool = None
            self._failure = None
        pool.close(timeout=0)

    @property
    def _target(self) -> str:
        return self._with_options if self._takes_options else self._without

    def _configure(self, raw: Raw) -> None:
        raw.prepared_max = _PREPARED
        try:
            self._meet(raw)
        except psycopg.Error as error:
            self._heard(error)
            raise

    def _meet(self, raw: Raw) -> None:
        """Find out whether a pooler or a cluster answers."""
        values = (*_IN_CLUSTER, raw.info.backend_pid)
        ((process, self.is_spread),) = raw.execute(_MET, values, prepare=False).fetchall()
        if process != raw.info.backend_pid:
            self.is_pooled = True
            if not keeps_statements(raw):
                raw.prepare_threshold = None

    def _heard(self, failure: psycopg.Error | None) -> None:
        self._failure = failure
        self._reached = self._reached or failure is None

    def _unheard(self) -> GermaneError:
        """Why there was no connection in time."""
        try:
            self.connect().close()
        except psycopg.Error as error:
            return unreachable(error, self.location)
        return StoreBusy(
            f"All {self._size} connections that this process keeps to {self.location} were in use for "
            f"{self._timeout:g} s. Use fewer threads, or germane.connect(..., pool_size={2 * self._size})."
        )

    def _is_closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"The store {self.location} is closed. Open it again.")

    def _opened(self) -> ConnectionPool[Raw]:
        if self._process != os.getpid():
            # Another thread of the parent may have owned the lock when this process began.
            _INHERITED.append(self._pool)
            self._guard, self._pool, self._process = Lock(), None, os.getpid()
        with self._guard:
            if self._closed:
                raise self._is_closed()
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._target,
                    kwargs=_HOW,
                    connection_class=_telling(self._heard),
                    configure=self._configure,
                    min_size=0,
                    max_size=self._size,
                    timeout=self._timeout,
                    max_idle=_IDLE_SECONDS,
                    max_lifetime=_LIFE_SECONDS,
                    num_workers=2,
                    name=f"germane {self.location}",
                    open=True,
                )
            return self._pool


_HOW: Final[dict[str, Any]] = {"autocommit": True, "context": ADAPTERS, "prepare_threshold": 2}


def _telling(heard: Callable[[psycopg.Error | None], None]) -> type[Raw]:
    """Connections that tell how connecting went; the pool's threads keep that to themselves."""

    class Telling(psycopg.Connection[tuple[Any, ...]]):
        @classmethod
        def connect(cls, conninfo: str = "", **how: Any) -> Raw:  # type: ignore[override]  # The pool calls it so.
            try:
                raw = super().connect(conninfo, **how)
            except psycopg.Error as error:
                heard(error)
                raise
            heard(None)
            return raw

    return Telling


def location_of(url: str) -> str:
    """The address without its password, to be shown. Raises InvalidInput for what is no address."""
    parts = _parts(url)
    host, port = parts.get("host", "localhost"), parts.get("port", "5432")
    user = f"{parts['user']}@" if "user" in parts else ""
    return f"postgresql://{user}{host}:{port}/{parts.get('dbname', parts.get('user', ''))}"


def _parts(url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The driver's own words repeat parts of the address, and may repeat a password.
        raise InvalidInput(
            "The address of the store can't be read. Write it as postgresql://user:password@host:5432/database"
            " with special characters of the password in percent form, such as %40 for @."
        ) from None


def _settings(url: str, timeout: float, settings: Mapping[str, str]) -> dict[str, str]:
    """What a session is set to; what the address says itself is `_OWN`, and stands."""
    limits = {
        "statement_timeout": round(max(_STATEMENT_SECONDS, timeout) * 1000),
        "lock_timeout": max(round(timeout * 1000), 1),
        "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION_SECONDS * 1000,
    }
    given = {name: str(value) for name, value in limits.items()}
    return {**given, **settings, _OWN: str(_parts(url).get("options") or "")}


def _inside(settings: Mapping[str, str]) -> dict[str, str]:
    """The same, with those of the address one by one."""
    ours = {name: value for name, value in settings.items() if name != _OWN}
    return ours | settings_of(settings[_OWN])


def _target(url: str, settings: Mapping[str, str] | None) -> str:
    parts = _parts(url)
    parts.pop("options", None)
    own = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "germane",
        "client_encoding": "UTF8",
        **_KEEPALIVES,
    }
    options = {}
    if settings is not None:
        given = " ".join(f"-c {name}={value}" for name, value in settings.items() if name != _OWN)
        # Of two settings of one name the server takes the later.
        options = {"options": f"{given} {settings[_OWN]}".strip()}
    return make_conninfo(**{**own, **parts, **options})


# A pooler, such as PgBouncer, between this process and the server: seen, and what it keeps from working.
#
# A pooler that gives a server's connection to another client after each transaction keeps nothing of a
# session: no setting, no lock, no statement that was prepared, no listening.

_REFUSED: Final = "unsupported startup parameter"

# What may be written between a setting's value and what comes before it in libpq's `options`.
_OPTION: Final = re.compile(r"(?:-c|--)(?P<name>[\w.-]+)=(?P<value>.*)", re.DOTALL)

# What these name is a list, of which each part is quoted.
_LISTS: Final = frozenset({"search_path", "temp_tablespaces", "datestyle"})

# A transaction has begun by then.
_INSIDE: Final = {"default_transaction_read_only": "transaction_read_only"}


def is_between(raw: Raw) -> bool:
    """Whether another process than the one that this connection was opened to carries out what it asks."""
    return bool(
        raw.execute(b"SELECT pg_backend_pid()", prepare=False).fetchall() != [(raw.info.backend_pid,)]
    )


def keeps_statements(raw: Raw) -> bool:
    """Whether the pooler finds what was prepared again, on whichever connection of the server's.

    One that does gives statements names of its own.
    """
    name = f"germane_{token_hex(8)}"
    found = f"SELECT FROM pg_prepared_statements WHERE name = '{name}'".encode()
    with raw.transaction():
        if raw.pgconn.prepare(name.encode(), b"SELECT 1").status != ExecStatus.COMMAND_OK:
            # It refuses them, and the transaction is rolled back by its end.
            return False
        is_there = bool(raw.execute(found, prepare=False).rowcount)
        if is_there:
            raw.execute(f"DEALLOCATE {name}".encode(), prepare=False)
        return not is_there


def refuses_options(error: BaseException) -> bool:
    """Whether a connection was refused because it would have begun with settings, as PgBouncer does."""
    return _REFUSED in str(error)


def settings_of(options: str) -> dict[str, str]:
    """The settings in libpq's `options`, in which a backslash keeps the next character what it is.

    Raises InvalidInput for anything else than settings, which only the server itself can be given.
    """
    settings = {}
    parts = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r"(?:\\.|\S)+", options)]
    for part in _joined(parts):
        found = _OPTION.fullmatch(part)
        if found is None:
            raise InvalidInput(
                f"options={options!r} in the address of the store can't go through a pooler. Give settings "
                "alone, each as -cNAME=VALUE, or use the server's own address."
            )
        settings[found["name"].replace("-", "_")] = found["value"]
    return settings


def local(settings: Mapping[str, str]) -> bytes:
    """The statements that set these until the transaction ends."""
    return ";".join(_set(name, value) for name, value in settings.items()).encode()


def _set(name: str, value: str) -> str:
    values = [each.strip().strip('"') for each in value.split(",")] if name.lower() in _LISTS else [value]
    # A setting of an extension's has two parts.
    named = Identifier(*_INSIDE.get(name, name).split(".")).as_string()
    return f"SET LOCAL {named} = {', '.join(Literal(each).as_string() for each in values)}"


def _joined(parts: Iterable[str]) -> Iterable[str]:
    """The same with `-c` and what follows it as one."""
    before = ""
    for part in parts:
        if part == "-c":
            before = part
        else:
            yield before + part
            before = ""
    if before:
        yield before


# The token that each write leaves, by which a commit whose answer was lost is looked up.

SECONDS_BETWEEN_SWEEPS: Final = 60.0
"""How often a process removes tokens that nobody can ask for any more."""

LEAVE: Final = b"INSERT INTO commits (token) VALUES (%s::uuid)"

_STAYS: Final = "10 minutes"  # As in `sweep_commits`.
_LONGEST_QUERY: Final = 300.0  # Seconds; well within what tokens stay.

_SWEEP: Final = b"SELECT sweep_commits()"

# A cluster locks no rows in a subquery for sure; a concurrent sweep waits.
_SWEEP_SPREAD: Final = f"DELETE FROM commits WHERE at < now() - interval '{_STAYS}'".encode()


def new_token() -> str:
    """A UUID that begins with the time, so that those of one time lie together in the index."""
    return f"{time.time_ns() // 1_000_000:012x}{token_hex(10)}"


def was_committed(pool: Pool, token: str, *, timeout: float) -> bool:
    """Whether the transaction that left this token is committed; waits for it to end.

    Raises the driver's error where the server can't be reached within `timeout` seconds.
    """
    deadline = time.monotonic() + min(timeout, _LONGEST_QUERY)
    while True:
        raw = pool.begin(b"BEGIN")
        try:
            # Who wants to leave a token that is being left waits until it is known to stand.
            left = raw.execute(LEAVE + b" ON CONFLICT DO NOTHING", (token,), prepare=False)
        except psycopg.Error as error:
            if not is_lost(error, raw) or time.monotonic() >= deadline:
                raise
        else:
            return left.rowcount == 0
        finally:
            pool.give(raw)


def sweep(*, is_spread: bool) -> bytes:
    """The statement that removes old tokens."""
    return _SWEEP_SPREAD if is_spread else _SWEEP
