"""What an operator does to a whole store, whatever it is kept in.

Level: stores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from germane.model.database import DatabaseStatus, Erasure, Tell
from germane.stores.opening import exists, is_address, without_driver

__all__ = ["Operations", "operations_on"]


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
            from germane.stores.postgres.operating.operations import PostgresOperations  # noqa: PLC0415 - An extra.
        except ModuleNotFoundError as error:
            raise without_driver() from error
        return PostgresOperations(str(location))
    exists(location)  # Raises for a path that no file can have.
    from germane.stores.sqlite.operations import SqliteOperations  # noqa: PLC0415 - One database is enough.

    return SqliteOperations(location)
