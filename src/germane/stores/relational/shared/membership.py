"""Who is in a space, as rows: read whole, and written as the rules have decided.

Level: stores (imports the pure rules and model).
"""

from __future__ import annotations

from dataclasses import dataclass

from germane.errors import UnknownSpace
from germane.model.space import Member, Right, Role, SpaceInfo
from germane.spaces import tenant_of
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import microseconds, moment

__all__ = ["KeptSpace", "keep_members", "kept_space", "required_space"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSpace:
    """A space with the number that stands for it, and the number of its latest event.

    `seq` and `moved` say how far its memories and working sets have come, where it is the agent entered.
    """

    number: int
    happened: int
    info: SpaceInfo
    seq: int = 0
    moved: int = 0


def kept_space(connection: Connection, name: str) -> KeptSpace | None:
    """The space of that name; None where there is none, or none any more."""
    asked = [connection.run(each, {"name": tenant_of(name)}) for each in ("space", "members_of")]
    row, rows = asked[0].fetchone(), asked[1].fetchall()
    if row is None or not rows:
        return None
    number, admits, created_at, joined, happened, seq, moved = row
    info = SpaceInfo(
        name=name,
        created_at=moment(created_at),
        admits=Right(admits) if admits else None,
        members=tuple(_member(each) for each in rows),
        joined=joined,
    )
    return KeptSpace(number=number, happened=happened, info=info, seq=seq or 0, moved=moved or 0)


def required_space(connection: Connection, name: str) -> KeptSpace:
    """The space of that name. Raises UnknownSpace."""
    known = kept_space(connection, name)
    if known is None:
        raise UnknownSpace(name)
    return known


def keep_members(connection: Connection, before: SpaceInfo | None, after: SpaceInfo) -> None:
    """Store what differs between a space as it was, None for a new one, and as it is now."""
    tenant = tenant_of(after.name)
    for name in (tenant, *(one.agent for one in after.members)):
        connection.run("add_agent", {"name": name})
    values = {
        "name": tenant,
        "admits": after.admits,
        "created_at": microseconds(after.created_at, name="created_at"),
        "joined": after.joined,
    }
    connection.run("set_space", values)
    (number, *_) = connection.run("space", {"name": tenant}).fetchone()
    known = set(before.members) if before else set()
    for gone in {one.agent for one in known} - {one.agent for one in after.members}:
        connection.run("remove_member", {"space": number, "name": gone})
    for one in after.members:
        if one not in known:
            connection.run("set_member", {"space": number, **_values(one)})


def _member(row: tuple[str, str, str, int, int]) -> Member:
    agent, rights, role, joined_at, place = row
    return Member(
        agent=agent, rights=Right(rights), role=Role(role), joined_at=moment(joined_at), order=place
    )


def _values(member: Member) -> dict[str, str | int]:
    return {
        "name": member.agent,
        "rights": member.rights,
        "role": member.role,
        "joined_at": microseconds(member.joined_at, name="joined_at"),
        "place": member.order,
    }
