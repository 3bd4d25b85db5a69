"""One agent from one store to another: whole and proved to be the same, or not at all.

Level: stores (imports errors and what copies rows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from germane.errors import EmbedderMismatch, InvalidInput, StoreBusy, StoreError
from germane.model.names import is_removed
from germane.stores.relational.agents.carrying import Carried, begin, digest_of, is_empty, put_in, taken_out
from germane.stores.relational.agents.everyone import all_of_them, everyone
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.settings import store_embedding, stored_embedding

__all__ = ["AgentCopy", "copy_agent", "numbers_of", "settle_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCopy:
    """What became of an agent: how many rows it has, their digest, and whether nothing was left to copy."""

    agent: str
    rows: int
    sha256: str
    was_there: bool


def settle_names(source: Connections, target: Connections) -> None:
    """Make the source's agents and the model of its vectors known to the target, before anything is copied.

    Raises EmbedderMismatch where another model has made the target's vectors, and StoreBusy where an agent
    is half removed, whom what is left may name.
    """
    with source.reading() as connection:
        wanted = stored_embedding(dict(connection.run("settings").fetchall()))
        if any(is_removed(each.name) for each in all_of_them(connection, source.location)):
            raise StoreBusy(
                f"An agent of {source.location} is half removed. Let `germane db remove` finish it first."
            )
        names = [each.name for each in everyone(connection, source.location)]
    with target.writing() as connection:
        present = stored_embedding(dict(connection.run("settings").fetchall()))
        if present is not None and wanted is not None and present != wanted:
            raise EmbedderMismatch(stored=str(present), given=str(wanted))
        if present is None and wanted is not None:
            store_embedding(connection, wanted)
        known = {each.name for each in everyone(connection, target.location)}
        for name in names:
            if name not in known:
                connection.run("add_agent", {"name": name})


def numbers_of(connections: Connections) -> Mapping[str, int]:
    """The number of every agent of a store, by its name."""
    with connections.reading() as connection:
        return {each.name: each.agent for each in everyone(connection, connections.location)}


def copy_agent(
    source: Connections,
    target: Connections,
    name: str,
    tables: Sequence[str],
    *,
    numbers: tuple[Mapping[str, int], Mapping[str, int]],
) -> AgentCopy:
    """Copy what these tables hold of an agent, in one transaction; one that is there already is compared.

    `numbers` are those of all agents in both stores. Raises InvalidInput where the target holds something
    else of the agent, and StoreError where the copy differs; then nothing of it is stored.
    """
    theirs, ours = numbers
    with source.reading(name) as out:
        given = Carried.of(out, name, theirs)
        rows, digest = digest_of(out, given, tables)
        with target.writing(name) as into:
            present = Carried.of(into, name, ours)
            if not _has_none(into, present, tables):
                if digest_of(into, present, tables)[1] != digest:
                    raise _differs(name, target.location)
                return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=True)
            if "memories" in tables:
                present = begin(out, given, into, ours, name)
            for table in tables:
                put_in(into, present, table, taken_out(out, given, table))
            if digest_of(into, present, tables) != (rows, digest):
                raise StoreError(
                    f"What was copied of agent {name!r} to {target.location} isn't what {source.location} "
                    "holds, so nothing of it was stored. Run `germane doctor` on both, and report this."
                )
    return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=not rows)


def _has_none(connection: Connection, numbers: Carried, tables: Sequence[str]) -> bool:
    if "memories" in tables:
        return is_empty(connection, numbers.agent)
    return not any(next(taken_out(connection, numbers, table), None) for table in tables)


def _differs(name: str, location: str) -> InvalidInput:
    return InvalidInput(
        f"Agent {name!r} is in {location} already, with other contents, and a copy never mixes two. "
        "Copy to another store, name other agents, or export and import to unite them."
    )
