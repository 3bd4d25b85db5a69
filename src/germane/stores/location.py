"""From a location to a store: a path names a SQLite file, a URL a PostgreSQL database."""

from __future__ import annotations

import os
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import (
    TYPE_CHECKING,
    Final,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from germane.errors import InvalidInput, MissingExtra, StoreUnavailable, shown
from germane.forks import renewed

if TYPE_CHECKING:
    from germane.model.query import EmbeddingIdentity
    from germane.stores.postgres.maintenance import PostgresOperations
    from germane.stores.postgres.servers import Notifications
    from germane.stores.relational.conversations import ConversationTables
    from germane.stores.relational.learning_runs import LearningTables
    from germane.stores.relational.ledger import LedgerTables
    from germane.stores.relational.lifecycle import FeedbackTables, LifecycleTables
    from germane.stores.relational.settings import MaintenanceTables
    from germane.stores.relational.spaces import SpaceTables
    from germane.stores.relational.store import RelationalStore
    from germane.stores.relational.working_sets import WorkingSetTables
    from germane.stores.sqlite.store import SqliteOperations

_SCHEMES: Final = ("postgresql://", "postgres://")

MEMORY: Final = ":memory:"
"""The location of a store that is in no file."""

TIMEOUT: Final = 30.0
"""Seconds to wait for other writers, and for a connection or a server that restarts."""


class StoreOptions(TypedDict, total=False):
    """How a store is opened; those who open one in the same way share it."""

    embedding: EmbeddingIdentity | None
    durability: Literal["full", "relaxed"]
    read_only: bool
    replace_embedding: bool
    timeout: float


def open_store(
    location: str | Path,
    *,
    replica: str | None = None,
    pool_size: int | None = None,
    cache_bytes: int | None = None,
    key: bytes | str | None = None,
    **options: Unpack[StoreOptions],
) -> RelationalStore:
    """The store at a location, which is made when it isn't there. None is the default of a number.

    Raises InvalidInput for another URL than PostgreSQL's and for a replica of a file, MissingExtra where the
    driver isn't installed, and what the store itself raises.
    """
    given = {"pool_size": pool_size, "cache_bytes": cache_bytes}
    limits = {name: value for name, value in given.items() if value is not None}
    raw = key_bytes(key)
    if is_address(location):
        try:
            from germane.stores.postgres.store import PostgresStore  # noqa: PLC0415 - The driver is an extra.
        except ModuleNotFoundError as error:
            raise without_driver() from error
        return PostgresStore(str(location), replica=replica, key=raw, **options, **limits)
    if replica is not None:
        raise InvalidInput(
            f"A replica can't answer for the file {location}. Give one with the "
            "address of a PostgreSQL server whose standby it is."
        )
    from germane.stores.sqlite.store import SqliteStore  # noqa: PLC0415 - One database is enough.

    return SqliteStore(location, key=raw, **options, **limits)


# The stores that are open in this process, each shared by all who open the same address in the same way.


Limits: TypeAlias = "tuple[int | None, int | None]"
"""The most connections and the most bytes of caches; None for the default."""


_Key: TypeAlias = "tuple[object, ...]"
"""The place of a store first, then how it is opened."""


@dataclass(eq=False, slots=True)
class _Open:
    store: RelationalStore
    file: tuple[int, int] | None
    limits: Limits
    leases: int = 0


_OPEN: Final[dict[_Key, _Open]] = {}
_GUARD: Final = renewed(Lock())
# Leases that nobody closed; they are collected at any time, also while this very thread has the guard.
_COLLECTED: Final[deque[tuple[_Key, _Open]]] = deque()


def shared_store(
    location: str | Path,
    *,
    replica: str | None = None,
    pool_size: int | None = None,
    cache_bytes: int | None = None,
    key: bytes | str | None = None,
    **options: Unpack[StoreOptions],
) -> RelationalStore:
    """A lease of the store at a location, which this process opens once; closing the last lease closes it.

    A store in memory, and a file that took the place of another, are opened anew. Raises what `open_store`
    raises, and InvalidInput for a size that differs from that of the store that is open.
    """
    raw = key_bytes(key) or b""
    limits = (pool_size, cache_bytes)
    opened = partial(
        open_store,
        location,
        replica=replica,
        pool_size=pool_size,
        cache_bytes=cache_bytes,
        key=raw,
        **options,
    )
    if str(location) == MEMORY:
        return opened()
    place = (_place(location), replica, raw, *sorted(options.items()))
    found = _leased(place, location, limits)
    if found is not None:
        return found
    store = opened()
    with _GUARD:
        rival = _OPEN.get(place)
        is_first = rival is None or rival.file != _file_at(location)
        if is_first:
            _OPEN[place] = _Open(store, _file_at(location), limits)
    if not is_first:
        store.close()
    found = _leased(place, location, limits)
    if found is None:
        raise StoreUnavailable(f"The file {location} was replaced while it was being opened. Open it again.")
    return found


def stores_in_use(location: object) -> tuple[RelationalStore, ...]:
    """The stores that this process shares at a location, however each was opened; none in memory."""
    if not isinstance(location, str | Path):
        return ()
    place = _place(location)
    with _GUARD:
        _drop_collected()
        return tuple(known.store for (at, *_), known in _OPEN.items() if at == place)


def _place(location: str | Path) -> str:
    """What is the same for all who open one store."""
    return str(location) if is_address(location) else os.path.realpath(location)


def _leased(key: _Key, location: str | Path, limits: Limits) -> RelationalStore | None:
    """A lease of the open store of that key, or None where there is none of the file that is there now."""
    with _GUARD:
        _drop_collected()
        known = _OPEN.get(key)
        if known is None or known.file != _file_at(location):
            return None
        for name, given, in_use in zip(("pool_size", "cache_bytes"), limits, known.limits, strict=True):
            if given is not None and given != in_use:
                raise InvalidInput(
                    f"{name}={given} can't be used: this process has {location_of(location)} open with "
                    f"{'the default' if in_use is None else in_use}. Close it first, or leave {name} out."
                )
        known.leases += 1
    return known.store.lease(partial(_release, key, known), partial(_COLLECTED.append, (key, known)))


def _release(key: _Key, known: _Open) -> None:
    with _GUARD:
        _drop_collected()
        last = _drop(key, known)
    if last:
        known.store.close()


def _drop(key: _Key, known: _Open) -> bool:
    """Count one lease less; whether it was the last one, whose store is then no more to be had here."""
    known.leases -= 1
    if not known.leases and _OPEN.get(key) is known:
        del _OPEN[key]
    return not known.leases


def _drop_collected() -> None:
    """Let go of the stores whose engines nobody closed: their connections close as they are collected."""
    while _COLLECTED:
        _drop(*_COLLECTED.popleft())


def _file_at(location: str | Path) -> tuple[int, int] | None:
    """Which file a path names; None for an address, and where there is none."""
    if is_address(location):
        return None
    try:
        status = Path(location).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def exists(location: str | Path) -> bool:
    """Whether a store may be there: a file can be looked for, a server is contacted when the store is opened.

    Raises StoreUnavailable for a path that no file can have, such as one that is too long.
    """
    try:
        return is_address(location) or Path(location).exists()
    except OSError as error:
        raise StoreUnavailable(
            f"No store can be at {shown(str(location))}: {error.strerror or error}. Name another path."
        ) from error


def location_of(location: str | Path) -> str:
    """A location as it may be shown: an address without its password.

    Raises InvalidInput for an address that can't be read, and MissingExtra without the driver.
    """
    if not is_address(location):
        return str(location)
    try:
        from germane.stores.postgres import pool  # noqa: PLC0415 - The driver is an extra.
    except ModuleNotFoundError as error:
        raise without_driver() from error
    return pool.location_of(str(location))


def is_address(location: str | Path) -> bool:
    """Whether a location is a server's, not a path. Raises InvalidInput for what is neither."""
    if not isinstance(location, str | Path):
        raise InvalidInput(
            f"location={shown(location)} is {type(location).__name__}; pass the path of a file, or a URL "
            "that begins with postgresql://."
        )
    if "\0" in str(location):
        raise InvalidInput(f"location={shown(str(location))} holds a NUL character, which no path can.")
    if isinstance(location, Path):
        return False
    if location.startswith(_SCHEMES):
        return True
    scheme, separator, _ = location.partition("://")
    if separator and scheme.isalnum():
        raise InvalidInput(
            f"A store can't be opened at {scheme}://…; give the path of a file, or a URL that begins with "
            "postgresql://."
        )
    return False


def without_driver() -> MissingExtra:
    """What to raise where an address is given and the driver isn't installed."""
    return MissingExtra(feature="A store in PostgreSQL", extra="postgres")


# What an operator does to a whole store, in a file or on a server.


def operations_on(
    location: str | Path, key: bytes | str | None = None
) -> PostgresOperations | SqliteOperations:
    """What an operator does to the store at a location, which `key` decrypts if it is encrypted.

    Each operation opens the store for itself and closes it. An interrupted one can be called again. Raises
    MissingExtra without the driver, and InvalidInput for what is no key.
    """
    if is_address(location):
        try:
            from germane.stores.postgres.maintenance import PostgresOperations  # noqa: PLC0415 - An extra.
        except ModuleNotFoundError as error:
            raise without_driver() from error
        return PostgresOperations(str(location), key=key_bytes(key))
    exists(location)  # Raises for a path that no file can have.
    from germane.stores.sqlite.store import SqliteOperations  # noqa: PLC0415 - One database is enough.

    return SqliteOperations(location, key=key_bytes(key))


# The key of an encrypted store, as callers give it.

KEY_BYTES: Final = 32
_VARIABLE: Final = "GERMANE_KEY"
_FILE: Final = "file:"
_KEYRING: Final = "keyring:"


def key_bytes(key: bytes | str | None, *, name: str = "key") -> bytes | None:
    """The 32 bytes of a store's key; None for a store that isn't encrypted.

    `key` is the bytes themselves, or a text: 64 hexadecimal digits, base64, "file:PATH" for a file with
    either, or "keyring:SERVICE/NAME" for a password of the system's keyring. None takes the environment
    variable GERMANE_KEY, and an empty text means no key. Raises InvalidInput for anything else, which names
    `name` and shows nothing of the key, and MissingExtra for a keyring without the extra `keyring`.
    """
    given: object = os.environ.get(_VARIABLE, "") if key is None else key
    if isinstance(given, str):
        given = _from_text(given.strip(), name)
    if not isinstance(given, bytes) or len(given) not in (0, KEY_BYTES):
        raise _no_key(name)
    return given or None


def _from_text(text: str, name: str) -> bytes:
    if text.startswith(_FILE):
        text = _from_file(Path(text.removeprefix(_FILE)), name)
    elif text.startswith(_KEYRING):
        text = _from_keyring(text.removeprefix(_KEYRING), name)
    try:
        return bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else b64decode(text, validate=True)
    except ValueError:
        # The error would show the key.
        raise _no_key(name) from None


def _from_file(path: Path, name: str) -> str:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        # The error would show what is in the file, where that isn't ASCII.
        why = error.strerror if isinstance(error, OSError) else "it isn't ASCII"
        raise InvalidInput(f"{name} can't be read from the file {str(path)!r}: {why}.") from None
    if not text:
        raise InvalidInput(f"{name}: the file {str(path)!r} is empty, and should have the key of a store.")
    return text


def _from_keyring(entry: str, name: str) -> str:
    """The password of an entry "SERVICE/NAME"; the service may contain slashes."""
    try:
        import keyring  # noqa: PLC0415 - An extra.
        from keyring.errors import KeyringError  # noqa: PLC0415 - As above.
    except ModuleNotFoundError as error:
        raise MissingExtra(feature="Reading the system's keyring", extra="keyring") from error
    service, slash, user = entry.rpartition("/")
    if not (service and slash and user):
        raise InvalidInput(f"{name} is {_KEYRING + entry!r}, and should be {_KEYRING}SERVICE/NAME.")
    try:
        text = keyring.get_password(service, user)
    except KeyringError as error:
        raise InvalidInput(f"{name} can't be read from the system's keyring: {error}.") from error
    if not text:
        raise InvalidInput(
            f"{name}: the system's keyring has no password of {user!r} for {service!r}. "
            f"`openssl rand -hex 32 | keyring set {service} {user}` stores a new key."
        )
    return text.strip()


def _no_key(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is no key of an encrypted store, which is {KEY_BYTES} random bytes: give them as bytes, as "
        f"{2 * KEY_BYTES} hexadecimal digits, in base64, as file:PATH with either in that file, or as "
        f"{_KEYRING}SERVICE/NAME. `openssl rand -hex 32` makes one."
    )


# Following a log, also what other processes add to it.
#
# A look reads the latest number of the log, which costs next to nothing, and the log only where that number
# has grown.

T = TypeVar("T")

Look = Callable[[int], tuple[int, Sequence[T]]]
"""From the number of the last known entry: the number of the latest, and the entries in between."""

_GOODBYE: Final = 5.0

_UNHEARD: Final = 5.0
"""Seconds between looks where the store sends notifications: one of a process that died may be missing."""


class Following(Generic[T]):
    """A thread that calls back with each entry of a log in order, each once, until it is closed.

    What the callback raises ends it, and so does a log that can't be read any more; `error` is then
    what ended it. Where the store hears of writes for the `tenant`, it looks at once when there was one,
    and else but now and then.
    """

    def __init__(
        self,
        look: Look[T],
        callback: Callable[[T], object],
        *,
        name: str,
        since: int,
        every: float,
        notifications: Notifications | None = None,
        tenant: str = "",
    ) -> None:
        self.error: Exception | None = None
        self._look = look
        self._callback = callback
        self._since = since
        self._every = every
        self._notifications = notifications
        self._tenant = tenant
        self._stopped = renewed(Event())
        self._due = renewed(Event())
        self._thread = Thread(target=self._run, name=f"germane-follow-{name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether entries are still delivered."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it. A callback that is under way is waited for, 5 seconds at most. Closing twice is fine."""
        self._stopped.set()
        self._due.set()
        if current_thread() is not self._thread:
            self._thread.join(_GOODBYE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            # From before the first look on, so that nothing falls between.
            with self._woken():
                while not self._stopped.is_set():
                    self._due.clear()
                    self._since, entries = self._look(self._since)
                    for entry in entries:
                        if self._stopped.is_set():
                            return
                        self._callback(entry)
                    # An end that came while it was cleared shows here.
                    if not self._stopped.is_set():
                        self._due.wait(self._patience())
        except Exception as error:  # noqa: BLE001 - a thread can't raise, so `error` holds it.
            self.error = error

    @contextmanager
    def _woken(self) -> Iterator[None]:
        if self._notifications is None:
            yield
            return
        unsubscribe = self._notifications.subscribe(self._tenant, self._due.set)
        try:
            yield
        finally:
            unsubscribe()

    def _patience(self) -> float:
        if self._notifications is None or not self._notifications.hears:
            return self._every
        return max(self._every, _UNHEARD)


# What a store may offer besides the six methods of `Store`: sub-stores, each an attribute of the store.
#
# `docs/how-to/write-a-store.md` lists the methods of each. A store leaves out the attributes that it doesn't
# offer, or sets them to None.

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class SubStore(Generic[Part]):
    """The attribute of a store that has the sub-store, and what a store without it does not do."""

    attribute: str
    without: str

    def of(self, store: object) -> Part | None:
        """The sub-store of a store; None where the store doesn't offer it."""
        part: Part | None = getattr(store, self.attribute, None)
        return part

    def required(self, store: object) -> Part:
        """The sub-store of a store. Raises InvalidInput where the store doesn't offer it."""
        part = self.of(store)
        if part is None:
            name = type(getattr(store, "inner", store)).__name__
            raise InvalidInput(
                f"The store {name} {self.without}: it has no sub-store "
                f"`{self.attribute}`. Open a file or a PostgreSQL database, or give the store an attribute "
                f"`{self.attribute}` as docs/how-to/write-a-store.md describes."
            )
        return part


CONVERSATIONS: Final[SubStore[ConversationTables]] = SubStore("conversations", "keeps no conversations")
FEEDBACK: Final[SubStore[FeedbackTables]] = SubStore("feedback", "keeps no feedback")
LEARNING: Final[SubStore[LearningTables]] = SubStore("learning", "keeps no log of what was learned")
LEDGER: Final[SubStore[LedgerTables]] = SubStore("ledger", "keeps no ledger of assemblies")
LIFECYCLE: Final[SubStore[LifecycleTables]] = SubStore("lifecycle", "keeps no lifecycles of memories")
MAINTENANCE: Final[SubStore[MaintenanceTables]] = SubStore("maintenance", "offers no maintenance")
NOTIFICATIONS: Final[SubStore[Notifications]] = SubStore("notifications", "sends no notifications")
SPACES: Final[SubStore[SpaceTables]] = SubStore("spaces", "keeps no spaces")
WORKING_SETS: Final[SubStore[WorkingSetTables]] = SubStore("working_sets", "keeps no working sets")
