"""How a database that holds memories is doing, as whoever operates it asks.

Level: model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from germane.model.stats import EmbeddingIdentity

__all__ = ["AgentFigures", "DatabaseStatus", "Erasure", "Tell", "VectorIndex"]

Tell = Callable[[int, int], None]
"""Called with how much of a piece of work is done, and of how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """An agent of a store: how many memories it has, of any status, and the latest `updated_at` of them.

    A space is listed among them as `space:` and its name. `memories` is None where the user may not see them,
    `written_at` then too, and where there are none.
    """

    name: str
    memories: int | None
    written_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """The index of one agent's vectors: how many there are, and its size. One that isn't valid isn't used."""

    agent: str
    vectors: int
    bytes: int
    valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    """What a store is kept in, by which schema, and how much it holds; nothing of it is about one agent.

    `engine` is the database and its version. `schema_version` is the store's, 0 where there is no schema
    yet, and `newest_version` that of this germane; `pending` are the migrations in between. `memories` is
    None where the user may not see those of all agents. `standby` says that a server repeats what another
    one does, and `replicas` how many do so with this one; `distributed` that Citus spreads the tables. A file
    has none of these, and no `partitions`, `extensions` or `indexes`. `due` counts the agents of whom
    something was purged that isn't erased yet, and is 1 for a file that has to be rewritten; it is None where
    the user may not see it. `removing` counts the agents whose removal was interrupted.
    """

    location: str
    engine: str
    schema_version: int
    newest_version: int
    pending: tuple[str, ...]
    agents: int
    memories: int | None
    bytes: int
    embedding: EmbeddingIdentity | None
    extensions: tuple[tuple[str, str], ...] = ()
    partitions: int = 0
    replicas: int = 0
    standby: bool = False
    distributed: bool = False
    indexes: tuple[VectorIndex, ...] = ()
    due: int | None = 0
    removing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was done so that nothing is left of purges: the tables of a server that were written anew.

    `left` says where bytes of it may be all the same, each with what helps: sentences for who operates it.
    """

    tables: tuple[str, ...]
    left: tuple[str, ...]
