"""What is asked of a store to write of a conversation: changes as values, and what is known of a session.

Level: model (imports model only).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from germane.model.message import Message

__all__ = [
    "Append",
    "ConversationChange",
    "ConversationInfo",
    "LastGroups",
    "PurgeMessages",
    "RemoveGroup",
    "RemoveMessage",
    "SetAnchor",
    "SetHidden",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add messages at the end of the log; each gets the next number of the session as its `seq`.

    Of the first `joining` messages, those without a group that aren't the system's join the group that
    was opened last. What joins a hidden group is hidden.
    """

    messages: tuple[Message, ...]
    joining: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHidden:
    """Take a group out of its conversation, or put it back. Raises NotSaid where there is no such group."""

    group: str
    hidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroup:
    """Delete the messages of a group. Raises NotSaid where there is no such group."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMessage:
    """Delete one message. Raises NotSaid when the session has no such message."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMessages:
    """Delete a group, or with None the whole conversation and its anchors, from every form.

    Raises NotSaid where there is no such group or conversation.
    """

    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAnchor:
    """Store a text that stands outside any window, in place of the one of the same name; none removes it."""

    name: str
    text: str


ConversationChange: TypeAlias = Append | SetHidden | RemoveGroup | RemoveMessage | PurgeMessages | SetAnchor


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation at a glance; `messages` counts the hidden ones as well, of which there are `hidden`.

    `first_at` and `last_at` are when its first and latest message were made; None without any.
    """

    session: str
    messages: int
    hidden: int
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGroups:
    """The end of a conversation: the messages of its last visible groups, and all that is always kept.

    `opened` are the names of all visible groups, in the order of their opening.
    """

    messages: tuple[Message, ...] = ()
    opened: tuple[str, ...] = ()
