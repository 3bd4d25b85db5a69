"""What an operator does to a whole store: status, migrations, indexes, vacuum, distribution.

Level: verbs. Unlike the other verbs they aren't one agent's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from germane.errors import InvalidInput, StoreUnavailable
from germane.model.database import AgentFigures, DatabaseStatus, Erasure
from germane.stores.opening import exists, is_address, open_store
from germane.stores.operating import operations_on
from germane.stores.relational.agents.listing import listed
from germane.verbs.checks import checking
from germane.verbs.embedding import Progress

if TYPE_CHECKING:
    from germane.stores.postgres.operating.operations import PostgresOperations

__all__ = [
    "distribute_store",
    "erase_purged",
    "index_vectors",
    "migrate_store",
    "reindex_store",
    "store_agents",
    "store_status",
    "vacuum_store",
]


@checking
def store_status(location: str | Path) -> DatabaseStatus:
    """What a store is kept in, by which schema, and how much it holds. Nothing is changed.

    Raises StoreUnavailable where there is none, and SchemaTooNew for one of a newer version.
    """
    return operations_on(_there(location)).status()


@checking
def store_agents(location: str | Path) -> tuple[AgentFigures, ...]:
    """Whose memories a store holds, how many, and when each last wrote one; in order of their first write.

    Spaces are among them. A user of PostgreSQL who may see one agent at a time gets the names alone. Raises
    StoreUnavailable where there is none, and SchemaTooNew for one of a newer version.
    """
    store = open_store(_there(location), embedding=None, read_only=True)
    try:
        return store.doing(listed)
    finally:
        store.close()


@checking
def migrate_store(location: str | Path, *, partitions: int = 0, role: str | None = None) -> tuple[str, ...]:
    """Make a store, or bring it to this version's schema; the names of the migrations applied.

    In PostgreSQL the tables of a new store get `partitions` hash partitions by agent, 0 for none; and `role`
    is a database role that may then use the store, one agent at a time, and nothing else. Opening a store
    migrates it too, where the user may do that. Raises InvalidInput for partitions or a role of a file,
    SchemaTooNew, and StoreUnavailable.
    """
    return operations_on(location).migrate(partitions=partitions, role=role)


@checking
def reindex_store(location: str | Path, *, progress: Progress | None = None) -> None:
    """Index the words anew if an older tokenizer did it, and build every index of the database anew.

    In PostgreSQL nobody waits for it. `progress` is told how many tables are done, and of how many. An
    interrupted call is repaired by the next. Raises StoreUnavailable or StoreBusy.
    """
    operations_on(_there(location)).reindex(progress or _unheard)


@checking
def vacuum_store(location: str | Path, *, progress: Progress | None = None) -> None:
    """Give back the room of what was deleted: a file is rewritten, a server's tables are vacuumed.

    Servers do it by themselves as well. Raises StoreUnavailable or StoreBusy.
    """
    operations_on(_there(location)).vacuum(progress or _unheard)


@checking
def erase_purged(location: str | Path, *, progress: Progress | None = None) -> Erasure:
    """Leave no bytes of what was purged in the store's files, and say where some may be left all the same.

    In PostgreSQL a purge deletes rows, whose bytes stay until the server puts others in their place. This
    writes the tables anew that purges have noted (`VACUUM FULL`), of the partitions of those agents alone,
    renews the planner's statistics, which quote values, and closes the write-ahead log. Who needs a
    table waits while it is written. A purge of a file is erased at once; this finishes what it couldn't.
    `progress` is told how many steps are done, and of how many; after an interruption the next call does the
    rest. Raises StoreBusy where somebody doesn't let go within half a minute, and StoreUnavailable.
    """
    return operations_on(_there(location)).erase(progress or _unheard)


@checking
def index_vectors(
    location: str, agent: str, *, remove: bool = False, progress: Progress | None = None
) -> int:
    """Give the vectors of one agent in PostgreSQL an index (HNSW), or take it away; how many there are.

    It is asked from 20,000 memories on, and finds nearly all of the nearest, so results may differ from the
    exact ones that an agent without it gets. Building takes a minute for each 100,000 or so, and nobody
    waits for it; a call after an interrupted one builds it anew. `progress` is told how many blocks of the
    table are in it, and of how many. Raises InvalidInput for a file or an agent without vectors, NotFound,
    and StoreBusy.
    """
    server = _server(location, "An index of an agent's vectors")
    return server.unindex(agent) if remove else server.index(agent, progress or _unheard)


@checking
def distribute_store(location: str, *, progress: Progress | None = None) -> tuple[str, ...]:
    """Spread a store's tables over a Citus cluster by agent; the tables that weren't spread before.

    All of them are, or none. Raises StoreUnavailable without the extension `citus` or with partitions,
    and InvalidInput for a file.
    """
    return _server(location, "Distribution over servers").distribute(progress or _unheard)


def _there(location: str | Path) -> str | Path:
    if not exists(location):
        raise StoreUnavailable(
            f"There is no store at {location}. `germane db migrate` makes one, as opening it does."
        )
    return location


def _server(location: str, what: str) -> PostgresOperations:
    if not is_address(location):
        raise InvalidInput(
            f"{what} is for PostgreSQL, and {location} is a file. Name a database by its address "
            "(postgresql://…); `germane db copy` moves a file there."
        )
    operations_on(location)  # It says what is missing where the driver isn't there.
    from germane.stores.postgres.operating.operations import PostgresOperations  # noqa: PLC0415 - The driver is an extra.

    return PostgresOperations(location)


def _unheard(done: int, total: int) -> None:
    """Nobody asked how far it is."""
