"""Spaces: their members, rights and events, and the rules of who may do what. Values in, values out.

No clock and no store: a store calls these rules inside the transaction that reads the members and
writes the result.

A space is an agent of its own in a store, under a name that no agent can take. A member *leads* when
it is active and may write; of those a space has at least one as long as it exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from germane import errors
from germane.model.text import checked_name

__all__ = [
    "Create",
    "Decided",
    "Demote",
    "Disband",
    "FailOver",
    "Join",
    "Leave",
    "Member",
    "Promote",
    "Right",
    "Role",
    "SpaceAct",
    "SpaceEvent",
    "SpaceEventKind",
    "SpaceInfo",
    "admit",
    "decide",
]


class Right(StrEnum):
    """What a member may do in a space; who may write may read as well."""

    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """Whether a member takes part now. A passive one reads along, and is ready to take over."""

    ACTIVE = "active"
    PASSIVE = "passive"


class SpaceEventKind(StrEnum):
    """What can happen in a space: to its members, to its memories, and to what it holds in working sets."""

    CREATE = "create"
    JOIN = "join"
    LEAVE = "leave"
    PROMOTE = "promote"
    DEMOTE = "demote"
    FAIL_OVER = "fail_over"  # A member that was active failed, and stands at the end of those who wait.
    REMEMBER = "remember"
    REPEAT = "repeat"  # A stored memory was remembered again, shared again, or used.
    REVISE = "revise"
    ARCHIVE = "archive"
    FORGET = "forget"
    RESTORE = "restore"
    PURGE = "purge"
    ADD = "add"
    TOUCH = "touch"
    PIN = "pin"
    UNPIN = "unpin"
    EVICT = "evict"
    REMOVE = "remove"
    CLEAR = "clear"
    RESIZE = "resize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An agent in a space. `order` counts the joinings; those who wait are promoted in that order."""

    agent: str
    rights: Right
    role: Role
    joined_at: datetime
    order: int

    @property
    def leads(self) -> bool:
        """Whether it may write now, and decide who is in the space."""
        return self.role is Role.ACTIVE and self.rights is Right.WRITE

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceInfo:
    """A space as it is: its members in their order, and the most that an agent may give itself by joining.

    `admits` None means that only a member can let others in. `joined` counts all joinings there were.
    """

    name: str
    created_at: datetime
    admits: Right | None
    members: tuple[Member, ...] = ()
    joined: int = 0

    def member(self, agent: str) -> Member | None:
        """The member of that name; None where the agent is none."""
        return next((one for one in self.members if one.agent == agent), None)

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceAct:
    """Something that the agent `by` does to a space or to its members."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(SpaceAct):
    """Make a space; `by` becomes its first member, active, with the right to write."""

    admits: Right | None = Right.WRITE


class Disband(SpaceAct):
    """End a space, with every memory in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAct(SpaceAct):
    """Something that changes the membership of `agent`."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(MemberAct):
    """Make an agent a member: `by` itself, or one that `by` lets in."""

    rights: Right = Right.WRITE
    role: Role = Role.ACTIVE


class Leave(MemberAct):
    """Make an agent no member any more: `by` itself, or one that `by` puts out."""


class Promote(MemberAct):
    """Make a passive member active."""


class Demote(MemberAct):
    """Make an active member passive; it keeps its place in the order."""


class FailOver(MemberAct):
    """Let the first passive member take over from an active one, which goes to the end of the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceEvent:
    """One thing that happened in a space, without any text; `number` counts them from 1.

    `by` is who did it. `memory_id` names the memory it happened to, `agent` the member; `former_id` the
    version that a revision replaced, as `id@n`. `working_set` names the set in which it
    happened. `at` is None where only the memory itself tells the time.
    """

    number: int
    what: SpaceEventKind
    by: str
    memory_id: str | None = None
    former_id: str | None = None
    agent: str | None = None
    working_set: str | None = None
    at: datetime | None = None


# The rules of who may do what.

_MOST: Final = {None: 0, Right.READ: 1, Right.WRITE: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The result of an act: the space afterwards, None when it ended, and the events with their agents."""

    space: SpaceInfo | None
    events: tuple[tuple[SpaceEventKind, str], ...]


def admit(space: SpaceInfo, agent: str, right: Right) -> Member:
    """The member that may now read or write in the space. Raises NotAllowed for an agent that may not."""
    member = space.member(agent)
    if member is not None and (right is Right.READ or member.leads):
        return member
    why = _hindrance(member)
    raise errors.NotAllowed(space=space.name, agent=agent, wants=right, why=why, remedy=_REMEDIES[why])


def decide(name: str, space: SpaceInfo | None, act: SpaceAct) -> Decided:
    """What an act makes of a space, None where there is none of the name.

    Raises UnknownSpace, SpaceTaken, NotAllowed, DuplicateMember, NotAMember, LastActive, or
    InvalidInput for a role that doesn't go with the rights.
    """
    if isinstance(act, Create):
        return _create(name, space, act)
    if space is None:
        raise errors.UnknownSpace(name)
    if not isinstance(act, MemberAct):
        _lead(space, act.by, "disband it")
        return Decided(space=None, events=())
    if isinstance(act, Join):
        return _join(space, act)
    if isinstance(act, Leave):
        return _leave(space, act)
    if isinstance(act, Promote):
        return _promote(space, act)
    return _demote(space, act) if isinstance(act, Demote) else _fail_over(space, act)


_REMEDIES: Final = {
    "is no member of it": "It joins by engine.space(name).join(), or is let in by a member.",
    "may only read": "An active member that may write can let it leave and join again.",
    "is passive": "It takes part once it is promoted, or takes over by fail_over.",
}


def _create(name: str, space: SpaceInfo | None, act: Create) -> Decided:
    if space is not None:
        raise errors.SpaceTaken(name)
    first = Member(agent=act.by, rights=Right.WRITE, role=Role.ACTIVE, joined_at=act.at, order=1)
    made = SpaceInfo(
        name=checked_name(name, name="space"),
        created_at=act.at,
        admits=act.admits,
        members=(first,),
        joined=1,
    )
    return Decided(space=made, events=((SpaceEventKind.CREATE, act.by),))


def _join(space: SpaceInfo, act: Join) -> Decided:
    if space.member(act.agent) is not None:
        raise errors.DuplicateMember(space=space.name, agent=act.agent)
    if act.agent != act.by:
        _lead(space, act.by, f"let {act.agent!r} in")
    elif _MOST[act.rights] > _MOST[space.admits]:
        raise errors.NotAllowed(
            space=space.name,
            agent=act.agent,
            wants=f"join with the right to {act.rights}",
            why=f"may give itself no more than {space.admits}" if space.admits else "can't let itself in",
            remedy=f"An active member that may write can let it in: space.join({act.agent!r}, ...).",
        )
    if act.role is Role.PASSIVE and act.rights is Right.READ:
        raise errors.InvalidInput(
            f"role='passive' with rights='read' can't be: a passive member of space {space.name!r} is "
            "ready to take over the writing. Join with rights='write', or as an active reader."
        )
    order = space.joined + 1
    joins = Member(agent=act.agent, rights=act.rights, role=act.role, joined_at=act.at, order=order)
    return Decided(
        space=space.evolve(members=(*space.members, joins), joined=order),
        events=((SpaceEventKind.JOIN, act.agent),),
    )


def _leave(space: SpaceInfo, act: MemberAct) -> Decided:
    if act.agent != act.by:
        _lead(space, act.by, f"put {act.agent!r} out")
    leaves = _member(space, act.agent)
    left = space.evolve(members=tuple(one for one in space.members if one is not leaves))
    return _replaced(left, leaves, (SpaceEventKind.LEAVE, act.agent), wanted="leave")


def _promote(space: SpaceInfo, act: MemberAct) -> Decided:
    _lead(space, act.by, f"promote {act.agent!r}")
    member = _member(space, act.agent)
    if member.role is Role.ACTIVE:
        raise errors.InvalidInput(
            f"{act.agent!r} is active in space {space.name!r} already; only a passive member is promoted."
        )
    promoted = _with(space, member.evolve(role=Role.ACTIVE))
    return Decided(space=promoted, events=((SpaceEventKind.PROMOTE, act.agent),))


def _demote(space: SpaceInfo, act: MemberAct) -> Decided:
    if act.agent != act.by:
        _lead(space, act.by, f"demote {act.agent!r}")
    member = _leading(space, act.agent, "demoted")
    demoted = _with(space, member.evolve(role=Role.PASSIVE))
    return _replaced(demoted, member, (SpaceEventKind.DEMOTE, act.agent), wanted="become passive")


def _fail_over(space: SpaceInfo, act: MemberAct) -> Decided:
    caller = space.member(act.by)
    if caller is None or caller.rights is not Right.WRITE:
        remedy = "Any other member that may write, active or passive, can do it."
        wants = f"fail over from {act.agent!r}"
        why = _hindrance(caller)
        raise errors.NotAllowed(space=space.name, agent=act.by, wants=wants, why=why, remedy=remedy)
    member = _leading(space, act.agent, "failed over from")
    order = space.joined + 1
    failed = _with(space, member.evolve(role=Role.PASSIVE, order=order)).evolve(joined=order)
    event = (SpaceEventKind.FAIL_OVER, act.agent)
    return _replaced(failed, member, event, wanted="fail over", always=True)


def _replaced(
    space: SpaceInfo,
    gone: Member,
    event: tuple[SpaceEventKind, str],
    *,
    wanted: str,
    always: bool = False,
) -> Decided:
    """The space after a member that led doesn't any more: who waits first takes over where none leads.

    With `always` that one takes over even where others lead. Raises LastActive where nobody can.
    """
    has_leader = any(one.leads for one in space.members)
    if not gone.leads or (has_leader and not always):
        return Decided(space=space, events=(event,))
    waits = [one for one in space.members if one.role is Role.PASSIVE and one.agent != gone.agent]
    if not waits:
        if has_leader:
            return Decided(space=space, events=(event,))
        raise errors.LastActive(space=space.name, agent=gone.agent, wanted=wanted)
    follows = min(waits, key=lambda one: one.order)
    taken_over = _with(space, follows.evolve(role=Role.ACTIVE))
    return Decided(space=taken_over, events=(event, (SpaceEventKind.PROMOTE, follows.agent)))


def _with(space: SpaceInfo, member: Member) -> SpaceInfo:
    """The space with this member as it is now, all in their order."""
    others = [one for one in space.members if one.agent != member.agent]
    return space.evolve(members=tuple(sorted((*others, member), key=lambda one: one.order)))


def _member(space: SpaceInfo, agent: str) -> Member:
    member = space.member(agent)
    if member is None:
        raise errors.NotAMember(space=space.name, agent=agent)
    return member


def _leading(space: SpaceInfo, agent: str, what: str) -> Member:
    member = _member(space, agent)
    if not member.leads:
        why = _hindrance(member).replace("passive", "passive already")
        raise errors.InvalidInput(
            f"{agent!r} {why} in space {space.name!r}; only an active member that may write can be {what}."
        )
    return member


def _lead(space: SpaceInfo, agent: str, wanted: str) -> None:
    """Raise NotAllowed unless the agent is an active member that may write."""
    member = space.member(agent)
    if member is None or not member.leads:
        remedy = "An active member that may write can do it."
        why = _hindrance(member)
        raise errors.NotAllowed(space=space.name, agent=agent, wants=wanted, why=why, remedy=remedy)


def _hindrance(member: Member | None) -> str:
    """Why a member can't write: a key of `_REMEDIES`."""
    if member is None:
        return "is no member of it"
    return "may only read" if member.rights is Right.READ else "is passive"
