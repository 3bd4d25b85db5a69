"""From a location to a store: a path names a SQLite file, a URL a PostgreSQL database.

Level: stores.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from germane.errors import InvalidInput, MissingExtra, StoreUnavailable, shown
from germane.model.stats import EmbeddingIdentity

if TYPE_CHECKING:
    from germane.stores.relational.store import RelationalStore

__all__ = ["exists", "is_address", "location_of", "open_store", "without_driver"]

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
        from germane.stores.postgres.connecting import pool  # noqa: PLC0415 - The driver is an extra.
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
