"""The servers of a database besides the one that is written to: standbys, notifications, and a Citus
cluster.

A server's writes have places in its log, which grow. A standby answers a read if it has replayed the log
up to the place that this process knows of; else the primary does.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from threading import Event, Lock, Thread
from typing import Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg.sql import Identifier, Literal

from germane.errors import StoreError, StoreUnavailable
from germane.forks import renewed
from germane.ledger import Progress
from germane.model.text import REMOVED, USER_PREFIX
from germane.stores.postgres.connection import Raw
from germane.stores.postgres.pool import Pool, is_between
from germane.stores.sql import schema, script

_LONGEST_WAIT: Final = 1.0
_REST_SECONDS: Final = 5.0


def place_of(text: str) -> int:
    """A place in the log as a number, of its form of two hexadecimal halves: 16/B374D848."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


class Replica:
    """A standby, or several at one address. One that fails isn't used again for five seconds."""

    def __init__(self, url: str, *, timeout: float) -> None:
        self._pool = Pool(url, timeout=min(timeout, _LONGEST_WAIT))
        self._guard = Lock()
        self._needed = 0
        self._rests_until = 0.0
        # How far each connection's server had come. A server never goes back behind that.
        self._reached: WeakKeyDictionary[Raw, int] = WeakKeyDictionary()

    @property
    def location(self) -> str:
        """The address without its password."""
        return self._pool.location

    def note(self, place: str) -> None:
        """From now on only a server answers that has come to this place in the log."""
        with self._guard:
            self._needed = max(self._needed, place_of(place))

    def begin(self, beginning: bytes) -> Raw | None:
        """A connection on which this ran; `give` it back. None where the primary has to be used."""
        if time.monotonic() < self._rests_until:
            return None
        needed = self._needed
        raw = None
        try:
            raw = self._pool.begin()
            if self._pool.is_pooled:
                if _came_to(needed, raw, self._pool.beginning(beginning)):
                    return raw
            # Before the transaction: its snapshot would be older than what is learned inside it.
            elif self._has_reached(raw, needed):
                raw.execute(beginning, prepare=False)
                return raw
        except (psycopg.Error, StoreError):
            # The primary answers instead, and says what is wrong if it can't.
            self.rest()
        if raw is not None:
            self._pool.give(raw)
        return None

    @property
    def is_spread(self) -> bool:
        """As of a `Pool`."""
        return self._pool.is_spread

    def give(self, raw: Raw) -> None:
        """Take a connection back."""
        self._pool.give(raw)

    def rest(self) -> None:
        """Use the primary alone for a while: a read failed here, or the replay of the log cancelled it."""
        self._rests_until = time.monotonic() + _REST_SECONDS

    def close(self) -> None:
        """Close every connection to it."""
        self._pool.close()

    def _has_reached(self, raw: Raw, needed: int) -> bool:
        reached = self._reached.get(raw)
        if reached is None or reached < needed:
            # A server that never was a standby has no such place, and isn't one.
            (place,) = raw.execute(b"SELECT pg_last_wal_replay_lsn()::text").fetchall()[0]
            if place is None:
                return False
            reached = self._reached[raw] = place_of(str(place))
        return reached >= needed


def _came_to(needed: int, raw: Raw, beginning: bytes) -> bool:
    """Whether the server has come that far. Sent with the beginning: a pooler may use several servers."""
    parts = (b"BEGIN", b"SELECT pg_last_wal_replay_lsn()::text", b"COMMIT", beginning)
    results = raw.execute(b";".join(parts), prepare=False)
    results.nextset()
    (place,) = results.fetchall()[0]
    return place is not None and place_of(str(place)) >= needed


# Hearing of what other processes write, on any machine, as soon as it is committed.
#
# What is heard only wakes: what happened is read from the tables, where it has its number. So nothing
# depends on every word being heard.
#
# A notification is sent right behind a commit and not inside the transaction. Inside, the server would let
# the transactions that notify commit one at a time, each until its bytes are on the disk.

_CHANNEL: Final = "germane"
_TURN_SECONDS: Final = 0.2
_GOODBYE: Final = 5.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0

Wake = Callable[[], object]


def notice(agent: str | None) -> bytes:
    """The statement that notifies listeners of a write for an agent, if it was for one.

    It finds the place in the server's log behind which it was written.
    """
    notify = "NULL" if agent is None else f"pg_notify('{_CHANNEL}', '{_key(agent)} ' || place)"
    return f"SELECT place::text, {notify} FROM pg_current_wal_insert_lsn() AS place".encode()


class Notifications:
    """Calls back when something was written for an agent, by whomever, and now and then for no reason.

    A thread with a connection of its own listens as long as anybody wants to be woken. When its
    connection breaks it opens another, and wakes everybody, since something may have been missed. Before
    anybody is woken, `heard` is called with the place of the write in the server's log.
    """

    def __init__(self, connect: Callable[[], Raw], heard: Callable[[str], object]) -> None:
        self._connect = connect
        self._heard = heard
        self._guard = renewed(Lock())
        self._process = os.getpid()
        self._wakes: dict[str, list[Wake]] = {}
        self._thread: Thread | None = None
        self._stopped = renewed(Event())
        self._hears = renewed(Event())

    def subscribe(self, agent: str, wake: Wake) -> Callable[[], None]:
        """Have `wake` called, which must be quick, until what is returned is called.

        It is called once as soon as the server is listened to, and never where a pooler stands between.
        """
        if self._process != os.getpid():
            # The thread stayed with the parent process, and so did its subscribers.
            self._guard, self._process, self._wakes, self._thread = renewed(Lock()), os.getpid(), {}, None
        key = _key(agent)
        with self._guard:
            self._wakes.setdefault(key, []).append(wake)
            if self._thread is None:
                self._stopped, self._hears = renewed(Event()), renewed(Event())
                self._thread = Thread(
                    target=self._run, args=(self._stopped, self._hears), name="germane-listen", daemon=True
                )
                self._thread.start()
            hears = self._hears.is_set()
        if hears:
            wake()

        def remove() -> None:
            with self._guard:
                with suppress(ValueError):
                    self._wakes.get(key, []).remove(wake)
                if not self._wakes.get(key):
                    self._wakes.pop(key, None)
                if not self._wakes:
                    self._stopped.set()
                    self._thread = None

        return remove

    @property
    def hears(self) -> bool:
        """Whether the server tells of what is written just now; else only looking helps."""
        return self._hears.is_set()

    def close(self) -> None:
        """Stop listening, and wake everybody for the last time."""
        with self._guard:
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None and self._process == os.getpid():
            thread.join(_GOODBYE)
        self._wake_all()

    def _run(self, stopped: Event, hears: Event) -> None:
        pause = _FIRST_PAUSE
        while not stopped.is_set():
            try:
                with self._connect() as raw:
                    if is_between(raw):
                        # The pooler would pass notifications to another client.
                        return
                    raw.execute(f"LISTEN {_CHANNEL}".encode())
                    pause = _FIRST_PAUSE
                    self._heard(raw.execute(notice(None)).fetchall()[0][0])
                    self._wake_all(hears)
                    while not stopped.is_set():
                        for each in raw.notifies(timeout=_TURN_SECONDS):
                            self._wake(each.payload)
            except psycopg.Error:
                # A broken connection is replaced; a server that is down is tried again at growing intervals.
                hears.clear()
                stopped.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret.
                pause = min(2 * pause, _LONGEST_PAUSE)
        hears.clear()

    def _wake(self, payload: str) -> None:
        key, _, place = payload.partition(" ")
        with self._guard:
            wakes = tuple(self._wakes.get(key, ()))
        if wakes:
            self._heard(place)
        for each in wakes:
            each()

    def _wake_all(self, hears: Event | None = None) -> None:
        with self._guard:
            # Who is added from here on sees that, and isn't woken twice.
            if hears is not None:
                hears.set()
            wakes = tuple(each for some in self._wakes.values() for each in some)
        for each in wakes:
            each()


def _key(agent: str) -> str:
    """Short, whatever the name's length, and without the name."""
    return blake2b(agent.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


# Spreads the tables over the servers of a Citus cluster, all rows of an agent on one of them.
#
# What a cluster takes and what it refuses was read in the sources of Citus, and stands in docs/decisions
# beside what follows from it.

# Used by this server alone. That of tokens is declared to Citus all the same: what writes to it and to
# another server is then committed in two phases, so that a token stands if and only if the rest does.
_STAYS: Final = frozenset({"commits", "erasures", "replies"})
_LOCAL: Final = ("commits", "SELECT citus_add_local_table_to_metadata('commits')")

# A table, and the mark of one that is partitioned by agent.
_TABLES: Final = re.compile(r"^CREATE TABLE (\w+) \($.*?^\)( \{partitioned\})?;$", re.MULTILINE | re.DOTALL)

_FIRST: Final = "states"
_BY_SPACE: Final = "space_events"

# From then on there are identity columns, and outer joins from what is everywhere to what is spread.
_OLDEST: Final = (11, 2)

_STATE: Final = b"""
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'citus'),
       EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('states') AND relkind = 'p'),
       to_regclass('pg_dist_partition') IS NOT NULL
"""

_DONE: Final = b"SELECT logicalrelid::text FROM pg_dist_partition"

_KEYS: Final = b"""
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), confdeltype = 'n'
FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY (%s::text[]::regclass[]) ORDER BY oid
"""


def distribute(raw: Raw, location: str, progress: Progress, *, text: str | None = None) -> tuple[str, ...]:
    """Spread the tables by agent, and return those that weren't before; all of them, or none.

    They are those of the schema `text`, which is this version's if it isn't given. The directories go to
    every server. Raises StoreUnavailable without the extension `citus`, with one before version 11.2, where
    the cluster doesn't know its coordinator, and where the tables have partitions, which it can't spread.
    """
    version, is_partitioned, _ = raw.execute(_STATE).fetchall()[0]
    _check(raw, location, version, is_partitioned=is_partitioned)
    done = {name for (name,) in raw.execute(_DONE).fetchall()}
    left = [(table, step) for table, step in (_LOCAL, *steps(text)) if table not in done]
    if left:
        with raw.transaction():
            # What refers to a table that is everywhere has to go from server to server one after another.
            raw.execute(b"SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
            raw.execute(script("postgres", "spread").encode(), prepare=False)
            _spread(raw, left, progress)
    return tuple(table for table, _ in left)


def steps(text: str | None = None) -> tuple[tuple[str, str], ...]:
    """Each table with the statement that spreads it; what others refer to comes before them."""
    found = []
    for table, is_by_agent in _TABLES.findall(text or schema("postgres")):
        name = Literal(table).as_string()
        if is_by_agent or table == _BY_SPACE:
            column = Literal("space" if table == _BY_SPACE else "agent").as_string()
            beside = "" if table == _FIRST else f", colocate_with => {Literal(_FIRST).as_string()}"
            found.append((table, f"SELECT create_distributed_table({name}, {column}{beside})"))
        elif table not in _STAYS:
            found.append((table, f"SELECT create_reference_table({name})"))
    return tuple(found)


def is_distributed(raw: Raw) -> bool:
    """Whether the tables of the store are spread over a cluster."""
    _, _, has_citus = raw.execute(_STATE).fetchall()[0]
    query = b"SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('states')"
    return bool(has_citus) and bool(raw.execute(query).fetchall())


def require_one_server(raw: Raw, location: str, what: str) -> None:
    """Raise StoreUnavailable where the tables are spread, for `what` a cluster can't do."""
    if is_distributed(raw):
        raise StoreUnavailable(
            f"The tables of {location} are spread over a cluster, which can't {what}. "
            "docs/how-to/operate-postgresql.md says what a cluster can't do, and why."
        )


def bytes_spread(raw: Raw) -> int:
    """How many bytes the tables that are spread take on all servers, with their indexes."""
    query = b"SELECT coalesce(sum(citus_total_relation_size(logicalrelid)), 0)::bigint FROM pg_dist_partition"
    return int(raw.execute(query).fetchall()[0][0])


def counted(raw: Raw) -> tuple[int, int, int, int]:
    """The numbers of agents, of users, of agents that are being removed, and of memories."""
    count = b"count(*) FILTER (WHERE starts_with(name, %s))"
    query = b"SELECT %s, %s, count(*) FROM agents" % (count, count)
    ((users, removing, names),) = raw.execute(query, (USER_PREFIX, REMOVED)).fetchall()
    ((memories,),) = raw.execute(b"SELECT coalesce(sum(memories), 0)::bigint FROM states").fetchall()
    return names - users - removing, users, removing, memories


def _check(raw: Raw, location: str, version: str | None, *, is_partitioned: bool) -> None:
    if version is None:
        raise StoreUnavailable(
            f"The database of {location} doesn't have the extension `citus`, which spreads tables over "
            "several servers. Install Citus on them and run CREATE EXTENSION citus. Without it, give a new "
            "database partitions (`germane db migrate --partitions N`), or each of several servers a part "
            "of the agents, as docs/how-to/operate-postgresql.md shows."
        )
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
        raise StoreUnavailable(
            f"The extension `citus` of {location} is version {version}, and the tables need 11.2 or later. "
            "Upgrade it on every server, and run ALTER EXTENSION citus UPDATE."
        )
    if is_partitioned:
        raise StoreUnavailable(
            f"The tables of {location} have hash partitions, which Citus can't spread. Make a database "
            "without (`germane db migrate`), distribute that one, and copy the store to it "
            "(`germane db copy`)."
        )
    if not raw.execute(b"SELECT FROM pg_dist_node WHERE groupid = 0").fetchall():
        raise StoreUnavailable(
            f"The cluster of {location} doesn't know its coordinator, and couldn't commit what is written "
            "there together with the rest. Run SELECT citus_set_coordinator_host('NAME'), with the name by "
            "which the other servers reach it."
        )


def _spread(raw: Raw, left: Sequence[tuple[str, str]], progress: Progress) -> None:
    """Spread tables that refer to nothing meanwhile, so that the order of those keys doesn't matter."""
    keys = raw.execute(_KEYS, ([table for table, _ in left],)).fetchall()
    for table, name, _, _ in keys:
        _do(raw, f"ALTER TABLE {table} DROP CONSTRAINT {Identifier(name).as_string()}")
    for number, (_, step) in enumerate(left, start=1):
        _do(raw, step)
        progress(number, len(left))
    for table, name, words, sets_null in keys:
        # A cluster refuses a key that sets a part of itself to NULL where it names the agent. What refers to
        # a memory that is gone is left as it is then, and is read as referring to none.
        if not sets_null:
            _do(raw, f"ALTER TABLE {table} ADD CONSTRAINT {Identifier(name).as_string()} {words}")


def _do(raw: Raw, statement: str) -> None:
    raw.execute(statement.encode(), prepare=False)
