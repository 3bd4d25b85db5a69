"""All agents of a store, for what is about every one of them.

Level: stores (imports model and errors only).
"""

from __future__ import annotations

from typing import NamedTuple

from germane.errors import StoreUnavailable
from germane.model.names import is_removed
from germane.stores.relational.connection import Connection

__all__ = ["Someone", "all_of_them", "everyone"]


class Someone(NamedTuple):
    """An agent's number, the number of its latest change, its name, and the language of its words."""

    agent: int
    seq: int
    name: str
    language: str


def everyone(connection: Connection, location: str) -> tuple[Someone, ...]:
    """Every agent, in the order in which they first wrote; none whose removal has begun.

    Raises StoreUnavailable as `all_of_them` does.
    """
    return tuple(each for each in all_of_them(connection, location) if not is_removed(each.name))


def all_of_them(connection: Connection, location: str) -> tuple[Someone, ...]:
    """The same with those whose removal has begun.

    Raises StoreUnavailable where the connection may see one agent at a time only: what was then done to all
    would have been done to none.
    """
    found = tuple(map(Someone._make, connection.run("agents")))
    if any(each.seq is None for each in found):
        raise StoreUnavailable(
            f"The user of {location} may see one agent at a time, and this is about all of them. Use the "
            "address of the user who owns the tables."
        )
    return found
