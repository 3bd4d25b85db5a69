"""Spaces: named memories that agents share, who is in them, what is done to them and what happened there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

__all__ = [
    "Create",
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
    REPEAT = "repeat"  # What is stored was said again, or shared again, or used.
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
class Create:
    """Make a space; `by` becomes its first member, active, with the right to write."""

    by: str
    at: datetime
    admits: Right | None = Right.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Make an agent a member: `by` itself, or one that `by` lets in."""

    agent: str
    by: str
    at: datetime
    rights: Right = Right.WRITE
    role: Role = Role.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Make an agent no member any more: `by` itself, or one that `by` puts out."""

    agent: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """Make a passive member active."""

    agent: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Demote:
    """Make an active member passive; it keeps its place in the order."""

    agent: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOver:
    """Let the first passive member take over from an active one, which goes to the end of the order."""

    agent: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Disband:
    """End a space, with every memory in it."""

    by: str
    at: datetime


SpaceAct = Create | Join | Leave | Promote | Demote | FailOver | Disband


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
