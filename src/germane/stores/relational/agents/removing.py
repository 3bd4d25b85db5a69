"""Removes a whole agent: first its name, at once, then all that is kept of it, in batches.

Level: stores (imports the pure rules and model). From the moment on in which an agent has the name of one
that is being removed nobody finds it, and whoever writes under its old name begins a new agent. What is left
to do shows in that name, so whoever removes next goes on with it.

What an agent did in spaces stays there, in the space's own name. Only members act in what isn't theirs, so
nothing of it is anywhere else.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from germane.model.names import is_removed, removed_name, space_of
from germane.model.space import Leave, SpaceInfo
from germane.spaces import decide
from germane.stores.relational.agents.everyone import all_of_them
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.shared.membership import required_space

__all__ = [
    "BATCHES",
    "disown",
    "left_over",
    "others_spaces",
    "remove_row",
    "remove_some",
    "rename",
    "shared_by",
]

_ROWS_AT_ONCE: Final = 1000

BATCHES: Final = (
    "remove_assemblies",
    "remove_memories",
    "remove_messages",
    "remove_conversations",
    "remove_changes",
    "remove_moves",
)
"""What is removed in batches, in this order: each with what its foreign keys take along."""


def shared_by(
    connections: Connections, name: str, at: datetime
) -> tuple[tuple[SpaceInfo, ...], tuple[SpaceInfo, ...]]:
    """The spaces that an agent has to leave, and those that go with it since nobody else is in them.

    Raises LastActive where others are in a space, and none of them could lead it.
    """
    with connections.reading(name) as connection:
        tenants = connection.run("spaces_of", {"name": name}).fetchall()
        spaces = [required_space(connection, space_of(tenant)).info for (tenant,) in tenants]
    ends = tuple(space for space in spaces if len(space.members) == 1)
    leaves = tuple(space for space in spaces if len(space.members) > 1)
    for space in leaves:
        decide(space.name, space, Leave(agent=name, by=name, at=at))
    return leaves, ends


def rename(connections: Connections, name: str, *, only_member: str | None = None) -> bool:
    """Take an agent's name away, if it is in no space; whether there is none of that name any more.

    With `only_member` it is a space's, and taken away if nobody else is in it.
    """
    with connections.writing(name) as connection:
        row = connection.run("number", {"name": name}).fetchone()
        if row is None:
            return True
        (number,) = row
        members = {member for member, *_ in connection.run("members", {"space": number})}
        if members - {only_member} or connection.run("spaces_of", {"name": name}).fetchall():
            return False
        connection.run("remove_members", {"space": number})
        connection.run("rename_agent", {"agent": number, "name": removed_name(number)})
        connections.note_purge(connection, "agent")
    return True


def left_over(connections: Connections) -> dict[int, int]:
    """The agents whose removal has begun: how many rows there are of each to remove in batches."""
    with connections.reading() as connection:
        numbers = [
            each.agent for each in all_of_them(connection, connections.location) if is_removed(each.name)
        ]
        counts = (connection.run("count_rows", {"agent": each}).fetchone() for each in numbers)
        return {number: int(count) for number, (count,) in zip(numbers, counts, strict=True)}


def others_spaces(connections: Connections, agent: int) -> tuple[str, ...]:
    """The spaces in which an agent may have done something, by the names of their agents."""
    with connections.reading() as connection:
        rows = connection.run("every_space").fetchall()
        return tuple(
            name
            for space, name in rows
            if space != agent
            and connection.run("has_acted", {"space": space, "agent": space, "gone": agent}).fetchone()[0]
        )


def disown(connections: Connections, tenant: str, agent: int) -> None:
    """Let what an agent did in a space be the space's own doing."""
    with connections.writing(tenant) as connection:
        for (number,) in connection.run("number", {"name": tenant}).fetchall():
            connection.run("disown_events", {"space": number, "gone": agent})
            connection.run("disown_moves", {"agent": number, "gone": agent})
            connection.run("disown_life_events", {"agent": number, "gone": agent})


def remove_some(connections: Connections, agent: int, batch: str) -> int:
    """Remove one batch of an agent's rows, and return how many; 0 where none are left."""
    with connections.writing(removed_name(agent)) as connection:
        if batch == "remove_memories" and connection.run("is_space", {"space": agent}).fetchone()[0]:
            return _take_back(connection, agent)
        return len(connection.run(batch, {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall())


def remove_row(connections: Connections, agent: int) -> None:
    """Remove what is left of an agent once there are no rows of it to remove in batches any more."""
    with connections.writing(removed_name(agent)) as connection:
        connection.run("remove_working_sets", {"agent": agent})
        connection.run("remove_memberships", {"agent": agent})
        for each in ("remove_members", "remove_events", "remove_space"):
            connection.run(each, {"space": agent})
        connections.note_purge(connection, "agent")
        connection.run("retire_number", {"agent": agent})
        connection.run("remove_agent", {"agent": agent})


def _take_back(connection: Connection, agent: int) -> int:
    """Remove some memories of a space, also from what others assembled with them."""
    nums = connection.run("some_memories", {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall()
    for (num,) in nums:
        connection.run("purge_memory", {"agent": agent, "num": num})
    return len(nums)
