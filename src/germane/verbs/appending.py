"""Appends messages to a conversation's log: reads what is given, and finds each one's group.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from germane.conversation.formats import plain, read_message
from germane.conversation.groups import placed
from germane.errors import InvalidInput
from germane.model.log import Append
from germane.model.memory import as_utc
from germane.model.message import Message, Provider, ToolCall, ToolResult
from germane.protocols import Conversing
from germane.verbs.checks import checked_moment
from germane.verbs.session import Session

__all__ = ["Call", "Result", "append", "message_of"]

Call: TypeAlias = ToolCall | Mapping[str, Any]
"""A call, as itself or as an object with `id`, `name` and `arguments`."""

Result: TypeAlias = ToolResult | Mapping[str, Any]
"""A result, as itself or as an object with `call_id`, `content` and maybe `is_error`."""


def message_of(
    message: str | Mapping[str, Any] | Message,
    content: str | Sequence[Mapping[str, Any]] | None,
    tool_calls: Sequence[Call],
    tool_results: Sequence[Result],
    provider: Provider | None,
) -> Message:
    """The message that was given in one of the forms that `append` takes. Raises InvalidInput."""
    if not isinstance(message, str):
        if content is not None or tool_calls or tool_results:
            raise InvalidInput(
                "A whole message was given and more beside it. Put all into the message, or name a role."
            )
        return message if isinstance(message, Message) else read_message(message, provider)
    fields: dict[str, Any] = {"role": message, "tool_calls": tool_calls, "tool_results": tool_results}
    if content is not None:
        fields["content"] = content
    given = plain.read({name: value for name, value in fields.items() if value != ()})
    if not given.parts:
        raise InvalidInput(
            f"A message of the role {message!r} was given without content, calls or results. Give any."
        )
    return given if provider is None else given.evolve(provider=provider)


def append(
    session: Session,
    log: Conversing,
    name: str,
    messages: Sequence[Message],
    *,
    group: str | None = None,
    at: datetime | None = None,
) -> tuple[Message, ...]:
    """Store messages at the end of a conversation, each under an id of its own, and return them as stored."""
    if not messages:
        return ()
    now = as_utc(session.clock(), name="clock")
    moment = None if at is None else checked_moment(at, name="created_at")
    new = [
        message.evolve(
            id=session.ids.next(now),
            group=group if group is not None else message.group,
            created_at=moment or message.created_at or now,
            hidden=False,
        )
        for message in messages
    ]
    # Only a result needs what was said before: it belongs to the group of its call.
    returns = any(message.results and message.group is None for message in new)
    earlier = log.messages(session.agent, name, hidden=True) if returns else ()
    joined = placed(new, earlier)
    return log.converse(session.agent, name, [Append(messages=joined.messages, joining=joined.joining)])
