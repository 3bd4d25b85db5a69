"""Messages of Anthropic's API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from germane.conversation.formats.parts import (
    content_in_words,
    content_of,
    extra_fields,
    read_content,
    refused,
    rest_of,
    role_of,
    to_json,
    with_content,
    write_content,
)
from germane.model.conversation import (
    ContentPart,
    Message,
    MessageRole,
    OpaquePart,
    Part,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
)

SYSTEM = "system"
"""The form of a system message beside the list, where the API expects it."""

_ROLES = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT, "system": MessageRole.SYSTEM}
_CALL, _RESULT = "tool_use", "tool_result"


def read(fields: Mapping[str, Any]) -> Message:
    """Read one message; a message with results only has the role of a tool. Raises InvalidInput."""
    role = role_of(fields, _ROLES)
    parts = tuple(_tool_part(part) for part in read_content(fields.get("content"), "'content'"))
    if role is MessageRole.USER and parts and all(isinstance(part, ToolResult) for part in parts):
        role = MessageRole.TOOL
    extra = rest_of(fields, "role", parts and "content")
    return Message(role=role, parts=parts, provider=Provider.ANTHROPIC, extra=extra)


def read_system(system: object) -> Message:
    """Read the system prompt beside the list as a system message."""
    parts = read_content(system, "'system'")
    extra = "" if parts else to_json({"system": system})
    return Message(
        role=MessageRole.SYSTEM, parts=parts, provider=Provider.ANTHROPIC, form=SYSTEM, extra=extra
    )


def write(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of the list: messages of this API as they were read, plain messages in its format.

    Consecutive plain results become one message, as the API requires for parallel calls.
    """
    written: list[dict[str, Any]] = []
    joins = False
    for message in messages:
        if _is_beside(message):
            continue
        made = _written(message)
        plain = message.provider is Provider.PLAIN
        if plain and not made["content"]:
            continue
        if joins and plain and message.role is MessageRole.TOOL:
            written[-1]["content"] += made["content"]
        else:
            written.append(made)
        joins = plain and message.role is MessageRole.TOOL
    return written


def write_system(messages: Sequence[Message]) -> str | list[dict[str, Any]] | None:
    """The system prompt beside the list; None without one."""
    beside = [message for message in messages if _is_beside(message)]
    if len(beside) == 1 and beside[0].form == SYSTEM and beside[0].extra:
        return extra_fields(beside[0].extra)["system"]  # type: ignore[no-any-return]  # As it was read.
    parts: list[ContentPart] = []
    for message in beside:
        if message.form == SYSTEM:
            parts += content_of(message.parts)
        elif text := content_in_words(message.parts):
            parts.append(TextPart(text=text))
    return write_content(parts) if parts else None


def _is_beside(message: Message) -> bool:
    return message.role is MessageRole.SYSTEM and (
        message.provider is Provider.PLAIN or message.form == SYSTEM
    )


def _tool_part(part: TextPart | OpaquePart) -> Part:
    """The part as a call or a result of a tool, if it is one."""
    if isinstance(part, TextPart) or part.form not in (_CALL, _RESULT):
        return part
    fields = json.loads(part.json)
    if part.form == _CALL:
        call_id, name = fields.get("id"), fields.get("name")
        if not isinstance(call_id, str) or not isinstance(name, str) or "input" not in fields:
            raise refused("a tool_use", "an object with a text 'id', a text 'name' and an 'input'", fields)
        rest = rest_of(fields, "type", "id", "name", "input")
        return ToolCall(id=call_id, name=name, arguments=to_json(fields["input"]), form=_CALL, extra=rest)
    call_id, failed = fields.get("tool_use_id"), fields.get("is_error")
    if not isinstance(call_id, str):
        raise refused("'tool_use_id'", "a text", call_id)
    content = read_content(fields.get("content"), "'content' of a tool_result")
    if not isinstance(failed, bool):
        failed = None
    rest = rest_of(fields, "type", "tool_use_id", content and "content", failed is not None and "is_error")
    return ToolResult(call_id=call_id, content=content, is_error=failed, form=_RESULT, extra=rest)


def _written(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "user" if message.role is MessageRole.TOOL else message.role.value}
    native, parts = message.provider is Provider.ANTHROPIC, message.parts
    if not (message.calls or message.results):
        with_content(fields, "content", content_of(parts), native=native)
    else:
        if not native:
            # Results must come first in the message after a call.
            parts = (*message.results, *(part for part in parts if not isinstance(part, ToolResult)))
        fields["content"] = [block for part in parts for block in _blocks(part, native=native)]
    # Other fields of another format have no meaning here, and could replace the content.
    return {**fields, **extra_fields(message.extra)} if native else fields


def _blocks(part: Part, *, native: bool) -> list[dict[str, Any]]:
    if isinstance(part, ToolCall | ToolResult):
        if isinstance(part, ToolCall):
            fields: dict[str, Any] = {"type": _CALL, "id": part.id, "name": part.name, "input": _input(part)}
        else:
            fields = {"type": _RESULT, "tool_use_id": part.call_id}
            with_content(fields, "content", part.content, native=native)
            fields |= {} if part.is_error is None else {"is_error": part.is_error}
        return [{**fields, **extra_fields(part.extra)} if native else fields]
    if not native:
        text = content_in_words((part,))
        return [{"type": "text", "text": text}] if text.strip() else []
    if isinstance(part, TextPart) and not part.form:
        return [{"type": "text", "text": part.text}] if part.text else []
    return write_content([part])  # type: ignore[return-value]  # Only a text of no form is written as one.


def _input(call: ToolCall) -> Any:
    """The arguments as an object, as the API requires, unless the API itself sent another value."""
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = call.arguments
    return given if call.form == _CALL or isinstance(given, dict) else {"input": given}
