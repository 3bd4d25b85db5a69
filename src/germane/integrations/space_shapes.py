"""A space as JSON, its members and its events.

Level: integrations. Documented in docs/reference/json.md like the shapes of `shapes`, by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.integrations.shapes import Shape

if TYPE_CHECKING:
    from germane import Member, SpaceEvent, SpaceInfo

__all__ = ["event_shape", "member_shape", "space_shape"]


def space_shape(space: SpaceInfo) -> Shape:
    """A space with its members."""
    return {
        "name": space.name,
        "created_at": space.created_at.isoformat(),
        "admits": None if space.admits is None else str(space.admits),
        "members": [member_shape(member) for member in space.members],
    }


def member_shape(member: Member) -> Shape:
    """An agent in a space."""
    return {
        "agent": member.agent,
        "rights": str(member.rights),
        "role": str(member.role),
        "joined_at": member.joined_at.isoformat(),
        "order": member.order,
    }


def event_shape(event: SpaceEvent) -> Shape:
    """One thing that happened in a space."""
    return {
        "number": event.number,
        "what": str(event.what),
        "by": event.by,
        "memory_id": event.memory_id,
        "former_id": event.former_id,
        "agent": event.agent,
        "working_set": event.working_set,
        "at": None if event.at is None else event.at.isoformat(),
    }
