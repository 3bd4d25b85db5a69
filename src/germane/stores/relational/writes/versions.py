"""Asks which versions of memories are stored: those of one chain, and those that say the same.

Level: stores (imports model and errors). What asks and what looks at the answer stand apart, so that several
things can be asked at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from germane.errors import NotFound
from germane.stores.relational.connection import Connection, Rows
from germane.stores.relational.rows import named

__all__ = ["Version", "chain_of", "nums_of", "same_texts", "versions"]


class Version(NamedTuple):
    """A version of a memory; `id` is that of its row."""

    num: int
    id: bytes
    is_head: int
    number: int


def versions(connection: Connection, agent: int, memory_id: str) -> Rows:
    """Ask for all versions of a memory."""
    return connection.run("versions", {"agent": agent, **named(memory_id)})


def chain_of(asked: Rows, memory_id: str, name: str) -> list[Version]:
    """The versions that were asked for, in their order. Raises NotFound."""
    chain = list(map(Version._make, asked))
    if not chain:
        raise NotFound(memory_id, name)
    return chain


def same_texts(connection: Connection, agent: int, hashes: set[str]) -> list[Rows]:
    """Ask which versions have these content hashes, superseded ones before heads."""
    wanted = {"agent": agent, "hashes": json.dumps(sorted(hashes))}
    return [connection.run(query, wanted) for query in ("nums_by_past", "nums_by_head")]


def nums_of(asked: Iterable[Rows]) -> list[int]:
    """The numbers that were asked for."""
    return [num for found in asked for (num,) in found]
