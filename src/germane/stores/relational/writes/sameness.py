"""When two memories are the same one, and when one follows another.

Level: stores (imports model and errors).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from germane.errors import InvalidInput
from germane.model.change import Insert
from germane.model.memory import Memory, Status, day_of
from germane.model.vector import Vector
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import named

__all__ = ["check_continues", "explain_taken_id", "is_same", "recognised", "seen_again"]


def check_continues(memory: Memory, head: Memory) -> None:
    """Raises InvalidInput unless `memory` is the version after `head`."""
    if memory.id != head.id:
        raise InvalidInput(
            f"Memory {memory.version_id!r} doesn't follow {head.version_id!r}. Keep the id, and count one up."
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
        holder = connection.run("num", {"agent": agent, **named(memory.version_id)}).fetchone()
        if holder and holder[0] != num:
            raise InvalidInput(
                f"The id {memory.version_id!r} is taken by another memory of agent {name!r}. "
                "Give each memory an id of its own."
            ) from error


def is_same(stored: Memory, insert: Insert) -> bool:
    """Whether a memory of the same content is the same one."""
    given = insert.memory
    if stored.id == given.id:
        # Two versions of one memory may say the same; an import brings both, and both are kept.
        return stored.version == given.version
    return not insert.dated or day_of(stored) == day_of(given)


def recognised(
    insert: Insert, known: dict[str, list[tuple[int, Memory]]]
) -> tuple[Insert, list[tuple[int, Memory]]]:
    """The insert by the hash under which it is stored, or will be, and what is known by that hash."""
    same = known.setdefault(insert.memory.content_hash, [])
    if not insert.dated or not same or any(is_same(stored, insert) for _, stored in same):
        return insert, same
    memory = insert.memory.evolve(content_hash=insert.dated)
    return replace(insert, memory=memory), known.setdefault(insert.dated, [])


def seen_again(stored: Memory, insert: Insert) -> Memory:
    """The stored memory after it was said anew."""
    return stored.evolve(
        seen_count=stored.seen_count + 1,
        updated_at=max(stored.updated_at, insert.memory.updated_at),
        status=Status.ACTIVE if stored.status is Status.FORGOTTEN else stored.status,
    )
