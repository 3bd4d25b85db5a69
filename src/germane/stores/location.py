"""From a location to a store: a path names a SQLite file, a URL a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, current_thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

from germane.errors import InvalidInput, MissingExtra, StoreUnavailable, shown
from germane.forks import renewed
from germane.ledger import DatabaseStatus, EmbeddingIdentity, Erasure, Tell

if TYPE_CHECKING:
    from germane.model.conversation import LastGroups
    from germane.stores.relational.store import RelationalStore

__all__ = [
    "Following",
    "Look",
    "NotifyingStore",
    "Operations",
    "RecentGroupsStore",
    "exists",
    "is_address",
    "location_of",
    "open_store",
    "operations_on",
    "without_driver",
]

_SCHEMES: Final = ("postgresql://", "postgres://")


def open_store(
    location: str | Path,
    *,
    embedding: EmbeddingIdentity | None,
    durability: Literal["full", "relaxed"] = "full",
    read_only: bool = False,
    replace_embedding: bool = False,
    replica: str | None = None,
) -> RelationalStore:
    """The store at a location, which is made when it isn't there.

    Raises InvalidInput for another URL than PostgreSQL's and for a replica of a file, MissingExtra where the
    driver isn't installed, and what the store itself raises.
    """
    if is_address(location):
        try:
            from germane.stores.postgres import PostgresStore  # noqa: PLC0415 - The driver is an extra.
        except ModuleNotFoundError as error:
            raise without_driver() from error
        return PostgresStore(
            str(location),
            embedding=embedding,
            durability=durability,
            read_only=read_only,
            replace_embedding=replace_embedding,
            replica=replica,
        )
    if replica is not None:
        raise InvalidInput(
            f"A replica can't answer for the file {location}. Give one with the "
            "address of a PostgreSQL server whose standby it is."
        )
    from germane.stores.sqlite import SqliteStore  # noqa: PLC0415 - One database is enough for a process.

    return SqliteStore(
        location,
        embedding=embedding,
        durability=durability,
        read_only=read_only,
        replace_embedding=replace_embedding,
    )


def exists(location: str | Path) -> bool:
    """Whether a store may be there: a file can be looked for, a server is asked when the store is opened.

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
    """Whether a location is a server's, not a path. Raises InvalidInput for another URL, or a NUL in it."""
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


# What an operator does to a whole store, whatever it is kept in.


class Operations(Protocol):
    """Each opens the store for itself and closes it again. An interrupted one can be called again."""

    def status(self) -> DatabaseStatus:
        """How the store is doing; nothing is changed."""
        ...

    def migrate(self, *, partitions: int, role: str | None) -> tuple[str, ...]:
        """Bring the store to this version's schema, and return the names of the migrations applied."""
        ...

    def reindex(self, tell: Tell) -> None:
        """Build the indexes anew."""
        ...

    def vacuum(self, tell: Tell) -> None:
        """Give back room that isn't used any more."""
        ...

    def erase(self, tell: Tell) -> Erasure:
        """Leave no bytes of what was purged, and say where some may be left all the same."""
        ...


def operations_on(location: str | Path) -> Operations:
    """Those for the store at a location. Raises MissingExtra where the driver isn't installed."""
    if is_address(location):
        try:
            from germane.stores.postgres.maintenance import PostgresOperations  # noqa: PLC0415 - An extra.
        except ModuleNotFoundError as error:
            raise without_driver() from error
        return PostgresOperations(str(location))
    exists(location)  # Raises for a path that no file can have.
    from germane.stores.sqlite.store import SqliteOperations  # noqa: PLC0415 - One database is enough.

    return SqliteOperations(location)


# What a store of conversations may do besides, to spare a window the rest of a long log.


@runtime_checkable
class RecentGroupsStore(Protocol):
    """Reads the end of a conversation without what stands before it."""

    def last_groups(self, agent: str, session: str, count: int) -> LastGroups | None:
        """What a window of the last `count` groups shows, exactly as `messages` has it.

        None where reading all is as good: much of it is asked for, or it is in memory already.
        """
        ...


# Stores that hear of what other processes write.


@runtime_checkable
class NotifyingStore(Protocol):
    """What only some stores can do: tell at once that something was written, by whatever process.

    What is told is no more than that; what happened is in the logs, by its number. So who is woken looks,
    and nothing is lost when a word is.
    """

    @property
    def hears(self) -> bool:
        """Whether the store hears of writes just now; where it doesn't, only looking helps."""
        ...

    def awake(self, tenant: str, wake: Callable[[], object]) -> Callable[[], None]:
        """Have `wake` called after each write for a tenant, until what is returned is called.

        It is called on any thread, must be quick, may be called for no reason, and is called whenever
        something may have been missed.
        """
        ...


# Tells a caller of everything that a log gets, also of what other processes add to it.
#
# Whoever starts it says how to look: a look asks for the log's latest number, which costs next to nothing,
# and reads the log only where that number has grown.

T = TypeVar("T")

Look = Callable[[int], tuple[int, Sequence[T]]]
"""From the number of the last entry that was told to that of the last there is, and the entries between."""

_GOODBYE: Final = 5.0

_UNHEARD: Final = 5.0
"""Seconds until a look where the store hears of writes: the last word of who died then may be missing."""


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
        store: object = None,
        tenant: str = "",
    ) -> None:
        self.error: Exception | None = None
        self._look = look
        self._callback = callback
        self._since = since
        self._every = every
        self._store = store if isinstance(store, NotifyingStore) else None
        self._tenant = tenant
        self._stopped = renewed(Event())
        self._due = renewed(Event())
        self._thread = Thread(target=self._run, name=f"germane-follow-{name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether entries are still told."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it. A callback that is under way is waited for, 5 seconds at most. Closing twice is fine."""
        self._stopped.set()
        self._due.set()
        if current_thread() is not self._thread:
            self._thread.join(_GOODBYE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        except Exception as error:  # noqa: BLE001 - whatever it is, `error` tells of it; a thread can't raise.
            self.error = error

    @contextmanager
    def _woken(self) -> Iterator[None]:
        if self._store is None:
            yield
            return
        sleep = self._store.awake(self._tenant, self._due.set)
        try:
            yield
        finally:
            sleep()

    def _patience(self) -> float:
        if self._store is None or not self._store.hears:
            return self._every
        return max(self._every, _UNHEARD)
