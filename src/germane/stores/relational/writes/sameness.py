"""When two memories are the same one, and when one follows another.

Level: stores (imports model and errors).
"""

from __future__ import annotations

from collections.abc import Iterable

from germane.errors import InvalidInput
from germane.model.change import Insert
from germane.model.memory import Memory, Status
from germane.model.vector import Vector
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import id_bytes

__all__ = ["check_continues", "explain_taken_id", "is_same", "seen_again"]


def check_continues(memory: Memory, head: Memory) -> None:
    """Raises InvalidInput unless `memory` is the version after `head`."""
    if memory.chain != head.chain or memory.version != head.version + 1:
        raise InvalidInput(
            f"Memory {memory.id!r} is version {memory.version} of the chain {memory.chain!r}, but what "
            f"it revises is version {head.version} of {head.chain!r}. Keep the chain, and count one up."
        )


def explain_taken_id(
    connection: Connection,
    error: Exception,
    *,
    agent: int,
    name: str,
    new: Iterable[tuple[int, Memory, Vector | None]],
) -> None:
    """Raises InvalidInput where what the database refused is an id that another memory has."""
    for num, memory, _ in new:
        holder = connection.run("num", {"agent": agent, "id": id_bytes(memory.id)}).fetchone()
        if holder and holder[0] != num:
            raise InvalidInput(
                f"The id {memory.id!r} is taken by another memory of agent {name!r}. "
                "Give each memory an id of its own."
            ) from error


def is_same(stored: Memory, given: Memory) -> bool:
    """Whether a memory of the same content is the same one."""
    # Two versions of one chain may say the same; an import brings both, and both are kept.
    return stored.id == given.id or stored.chain != given.chain


def seen_again(stored: Memory, insert: Insert) -> Memory:
    """The stored memory after it was said anew."""
    return stored.evolve(
        seen_count=stored.seen_count + 1,
        updated_at=max(stored.updated_at, insert.memory.updated_at),
        status=Status.ACTIVE if stored.status is Status.FORGOTTEN else stored.status,
    )
