"""Input items of OpenAI's Responses API: each item is a message of its own.

Level: ranking (imports errors and model). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from germane.conversation.formats.fields import (
    content_of,
    extra_fields,
    read_content,
    refused,
    rest_of,
    role_of,
    to_json,
    write_content,
)
from germane.conversation.words import content_in_words
from germane.model.message import ContentPart, Message, OpaquePart, Part, Provider, Role, ToolCall, ToolResult

__all__ = ["INSTRUCTIONS", "read", "read_instructions", "write", "write_instructions"]

INSTRUCTIONS = "instructions"
"""The form of a message that stands beside the items."""

_ITEM = "item"
"""The form of a message that is one opaque item as a whole."""

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_FUNCTION = "function_call"
_ARGUMENTS = {_FUNCTION: "arguments", "custom_tool_call": "input"}
"""Where the calls that the caller's own tools answer have their arguments."""


def read(fields: Mapping[str, Any]) -> Message:
    """One item. Raises InvalidInput, naming the field, for what is none."""
    kind = fields.get("type") or ("message" if "role" in fields else "item_reference")
    if not isinstance(kind, str):
        raise refused("'type'", "the name of a type", kind)
    if kind == "item_reference" and not isinstance(fields.get("id"), str):
        raise refused("an item", "an object with a 'type', or a 'role' and a 'content'", fields)
    if kind == "message":
        return _read_message(fields)
    part = _read_tool_part(fields, kind)
    if part is None:
        whole = OpaquePart(json=to_json(fields), form=kind)
        role = Role.TOOL if kind.endswith("_output") else Role.ASSISTANT
        return Message(role=role, parts=(whole,), provider=Provider.RESPONSES, form=_ITEM)
    role = Role.ASSISTANT if isinstance(part, ToolCall) else Role.TOOL
    return Message(role=role, parts=(part,), provider=Provider.RESPONSES)


def read_instructions(text: object) -> Message:
    """What stands beside the items as a system message."""
    if not isinstance(text, str):
        raise refused("'instructions'", "a text", text)
    parts = read_content(text, "'instructions'")
    return Message(role=Role.SYSTEM, parts=parts, provider=Provider.RESPONSES, form=INSTRUCTIONS)


def write(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The items: those that came from the API as they came, plain messages in its layout."""
    return [each for message in messages if message.form != INSTRUCTIONS for each in _written(message)]


def write_instructions(messages: Sequence[Message]) -> str | None:
    """What stands beside the items; None where there is nothing."""
    beside = [content_in_words(message.parts) for message in messages if message.form == INSTRUCTIONS]
    return "\n\n".join(beside) if beside else None


def _read_message(fields: Mapping[str, Any]) -> Message:
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'", texts=_TEXTS)
    understood = {"content"} if content else set()
    if fields["role"] == role.value:
        understood.add("role")
    return Message(role=role, parts=content, provider=Provider.RESPONSES, extra=rest_of(fields, understood))


def _read_tool_part(fields: Mapping[str, Any], kind: str) -> ToolCall | ToolResult | None:
    """A call or a result that names its call; None for any other item, which is kept whole."""
    call_id = fields.get("call_id")
    if not isinstance(call_id, str):
        return None
    if kind.endswith("_output"):
        output = fields.get("output")
        content: tuple[ContentPart, ...] = ()
        if isinstance(output, str) or (isinstance(output, list) and kind == f"{_FUNCTION}_output"):
            content = read_content(output, "'output'", texts=_TEXTS)
        understood = {"type", "call_id", *(("output",) if content else ())}
        return ToolResult(call_id=call_id, content=content, form=kind, extra=rest_of(fields, understood))
    if kind in _ARGUMENTS:
        given = _ARGUMENTS[kind]
        name, arguments = fields.get("name"), fields.get(given)
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise refused(f"a {kind}", f"an object with a text 'name' and a text {given!r}", fields)
        rest = rest_of(fields, ("type", "call_id", "name", given))
        return ToolCall(id=call_id, name=name, arguments=arguments, form=kind, extra=rest)
    if not kind.endswith("_call"):
        return None
    done = to_json(fields.get("action", fields.get("operation", {})))
    rest = rest_of(fields, ("type", "call_id"))
    return ToolCall(id=call_id, name=kind.removesuffix("_call"), arguments=done, form=kind, extra=rest)


def _written(message: Message) -> Iterator[dict[str, Any]]:
    native = message.provider is Provider.RESPONSES
    if message.form == _ITEM:
        yield from (json.loads(part.json) for part in message.parts if isinstance(part, OpaquePart))
        return
    # Results first: what answers a call comes before what is said next.
    yield from (_written_result(result, native=native) for result in message.results)
    said = content_of(message.parts)
    if said or (native and not message.calls and not message.results):
        yield _spoken(message, said, native=native)
    yield from (_written_call(call, native=native) for call in message.calls)


def _spoken(message: Message, said: Sequence[Part], *, native: bool) -> dict[str, Any]:
    if not native:
        return {"role": message.role.value, "content": content_in_words(said)}
    text = "output_text" if message.role is Role.ASSISTANT else "input_text"
    content = {"content": write_content(content_of(said), text=text)} if said else {}
    return {"role": message.role.value, **content, **extra_fields(message.extra)}


def _written_call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    kind = call.form if native and call.form else _FUNCTION
    fields = {"type": kind, "call_id": call.id}
    if kind in _ARGUMENTS:
        fields |= {"name": call.name, _ARGUMENTS[kind]: call.arguments}
    return {**fields, **extra_fields(call.extra)} if native else fields


def _written_result(result: ToolResult, *, native: bool) -> dict[str, Any]:
    kind = result.form if native and result.form else f"{_FUNCTION}_output"
    fields: dict[str, Any] = {"type": kind, "call_id": result.call_id}
    if not native:
        fields["output"] = content_in_words(result.content)
        return fields
    if result.content:
        fields["output"] = write_content(result.content, text="input_text")
    elif not result.form:
        fields["output"] = ""
    return {**fields, **extra_fields(result.extra)}
