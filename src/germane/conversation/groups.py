"""Which messages belong together: a prompt, and all that answers it.

Level: ranking (imports model). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from germane.model.message import Group, Message, Messages, OpaquePart, Role

__all__ = ["Placed", "current_of", "grouped", "groups_of", "is_always_kept", "opens_group", "placed"]


_SYSTEM = Role.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """New messages with their groups; those of the first `joining` without one join the log's current one."""

    messages: tuple[Message, ...]
    joining: int = 0


def opens_group(message: Message) -> bool:
    """Whether a message is a prompt: the user's, with something of its own in it, and no results."""
    if message.role is not Role.USER or message.results:
        return False
    has_more = any(isinstance(part, OpaquePart) for part in message.parts)
    return has_more or bool(message.own_text.strip()) or message.own_text == message.text


def grouped(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages of a list with a group each: one that is given stays, a prompt opens one, the rest join.

    A result joins its call, however late it comes. System messages, and what comes before the first
    prompt, have none. A group that is opened here is named after its message, by id or number.
    """
    return placed(tuple(messages), ()).messages


def placed(new: Sequence[Message], earlier: Sequence[Message]) -> Placed:
    """The same for messages that continue a log; `earlier` is the log as far as results need it."""
    made: list[Message] = []
    current: str | None = None
    joining = 0
    # The log's current group is known when the messages are written, and not before.
    open_end = True
    for message in new:
        group = message.group
        if group is None and message.role is not Role.SYSTEM:
            if opens_group(message):
                group = message.id or f"#{message.seq}"
            else:
                group = _group_of_calls(message, made, earlier)
                if group is not None:
                    made.append(message.evolve(group=group))
                    continue
                group = current
                if open_end:
                    joining = len(made) + 1
        if group is not None:
            current, open_end = group, False
        made.append(message if group == message.group else message.evolve(group=group))
    return Placed(messages=tuple(made), joining=joining)


def groups_of(messages: Iterable[Message], *, hidden: bool = False) -> tuple[Group, ...]:
    """The groups in the order in which they were opened, the hidden ones if asked.

    What the system says within a group stands apart.
    """
    if not isinstance(messages, Messages):
        return _grouped(messages, hidden=hidden)
    if hidden not in messages.groups:
        messages.groups[hidden] = _grouped(messages, hidden=hidden)
    return messages.groups[hidden]


def current_of(messages: Sequence[Message]) -> str | None:
    """The group being formed: the visible one that was opened last. None where there is none."""
    groups = groups_of(messages)
    return groups[-1].id if groups else None


def is_always_kept(message: Message) -> bool:
    """Whether a message stays in every selection: the system's, and what belongs to no group."""
    return not message.hidden and (message.group is None or message.role is _SYSTEM)


def _group_of_calls(message: Message, new: Sequence[Message], earlier: Sequence[Message]) -> str | None:
    """The group of the latest call that a message answers."""
    wanted = {result.call_id for result in message.results}
    if not wanted:
        return None
    for messages in (new, earlier):
        for before in reversed(messages):
            if before.group is not None and any(call.id in wanted for call in before.calls):
                return before.group
    return None


def _grouped(messages: Iterable[Message], *, hidden: bool) -> tuple[Group, ...]:
    found: dict[str, list[Message]] = {}
    members: list[Message] = []
    latest: str | None = None
    for message in messages:
        name = message.group
        if name is None or message.role is _SYSTEM or (message.hidden and not hidden):
            continue
        if name != latest:
            # Nearly every message follows one of its own group.
            members, latest = found.setdefault(name, []), name
        members.append(message)
    return tuple(Group(id=name, messages=tuple(members)) for name, members in found.items())
