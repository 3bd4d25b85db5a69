"""Messages of OpenAI's APIs: chat completions, and the input items of Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from germane.conversation.formats.parts import (
    content_in_words,
    content_of,
    extra_fields,
    object_of,
    read_content,
    refused,
    rest_of,
    role_of,
    to_json,
    with_content,
)
from germane.model.conversation import (
    ContentPart,
    Message,
    MessageRole,
    OpaquePart,
    Part,
    Provider,
    ToolCall,
    ToolResult,
)

_ROLES = {
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "tool": MessageRole.TOOL,
    "function": MessageRole.TOOL,
}
_OLD = "function_call"
"""The form of a deprecated call without an id, whose result is a message of the role function."""
_UNTYPED = "untyped"


def read_chat(fields: Mapping[str, Any]) -> Message:
    """Read one message. Raises InvalidInput, naming the field."""
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'")
    understood = [fields["role"] == role.value and "role", content and "content"]
    parts: tuple[Part, ...] = content
    if role is MessageRole.TOOL:
        call_id, old = fields.get("tool_call_id"), fields["role"] == "function"
        if old or not isinstance(call_id, str):
            call_id = ""
        understood.append(call_id and "tool_call_id")
        parts = (ToolResult(call_id=call_id, content=content, form=_OLD if old else ""),)
    if role is MessageRole.ASSISTANT and fields.get("tool_calls"):
        understood.append("tool_calls")
        parts = (*parts, *_read_calls(fields["tool_calls"]))
    if role is MessageRole.ASSISTANT and fields.get(_OLD):
        understood.append(_OLD)
        name, arguments, rest = _called(object_of(fields[_OLD], f"{_OLD!r}"), "arguments", f"{_OLD!r}")
        extra = to_json(rest) if rest else ""
        parts = (*parts, ToolCall(id="", name=name, arguments=arguments, form=_OLD, extra=extra))
    return Message(role=role, parts=parts, provider=Provider.OPENAI, extra=rest_of(fields, *understood))


def write_chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages for the API: its own messages as they were read, plain messages in its format."""
    return [each for message in messages for each in _written(message)]


def _read_calls(calls: object) -> Iterator[ToolCall]:
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise refused("'tool_calls'", "a list of calls", calls)
    for index, call in enumerate(calls):
        place = f"'tool_calls'[{index}]"
        fields = object_of(call, place)
        form = fields.get("type", "function")
        inside = "custom" if form == "custom" else "function"
        called = object_of(fields.get(inside), f"{place}[{inside!r}]")
        given = "input" if inside == "custom" else "arguments"
        name, arguments, rest = _called(called, given, f"{place}[{inside!r}]")
        call_id = fields["id"] if isinstance(fields.get("id"), str) else ""
        others = {key: value for key, value in fields.items() if key != inside}
        if rest:
            others[inside] = rest
        yield ToolCall(
            id=call_id,
            name=name,
            arguments=arguments,
            form="custom" if inside == "custom" else "" if "type" in fields else _UNTYPED,
            extra=rest_of(others, call_id and "id", form == inside and "type"),
        )


def _called(called: Mapping[str, Any], given: str, place: str) -> tuple[str, str, dict[str, Any]]:
    """The name, the arguments as text, and all other fields."""
    name, arguments = called.get("name"), called.get(given)
    if not isinstance(name, str):
        raise refused(f"{place}['name']", "a text", name)
    if given not in called:
        raise refused(f"{place}[{given!r}]", "the text of the arguments", None)
    rest = {key: value for key, value in called.items() if key not in ("name", given)}
    if isinstance(arguments, str):
        return name, arguments, rest
    # Some local servers send and expect an object instead of a text.
    return name, to_json(arguments), {**rest, given: arguments}


def _written(message: Message) -> Iterator[dict[str, Any]]:
    native = message.provider is Provider.OPENAI
    extra = extra_fields(message.extra) if native else {}
    for result in message.results:
        fields: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
        if native and not result.call_id:
            del fields["tool_call_id"]
        yield {**with_content(fields, "content", result.content, native=native), **extra}
    content, calls = content_of(message.parts), message.calls
    if content or calls or (native and not message.results):
        beside = {} if message.results else extra
        yield {**_spoken(message, content, calls, native=native), **beside}


def _spoken(
    message: Message, content: Sequence[ContentPart], calls: Sequence[ToolCall], *, native: bool
) -> dict[str, Any]:
    fields = with_content({"role": message.role.value}, "content", content, native=native)
    if not content and not native:
        fields["content"] = None
    new = [_written_call(call, native=native) for call in calls if call.form != _OLD]
    if new:
        fields["tool_calls"] = new
    for call in calls:
        if call.form == _OLD:
            fields[_OLD] = {"name": call.name, "arguments": call.arguments, **extra_fields(call.extra)}
    return fields


def _written_call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    extra = extra_fields(call.extra) if native else {}
    inside, given = ("custom", "input") if call.form == "custom" else ("function", "arguments")
    fields: dict[str, Any] = {"id": call.id} if call.id else {}
    if call.form != _UNTYPED:
        fields["type"] = inside
    called = {"name": call.name, given: call.arguments, **extra.pop(inside, {})}
    return {**fields, inside: called, **extra}


# Input items of OpenAI's Responses API: each item is a separate message.

INSTRUCTIONS = "instructions"
"""The form of a message beside the items."""

_ITEM = "item"
"""The form of a message that is one opaque item."""

_ITEMS_ROLES = {
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_FUNCTION = "function_call"
_ARGUMENTS = {_FUNCTION: "arguments", "custom_tool_call": "input"}
"""The fields with the arguments of calls of the caller's own tools."""


def read_items(fields: Mapping[str, Any]) -> Message:
    """Read one item. Raises InvalidInput, naming the field."""
    kind = fields.get("type") or ("message" if "role" in fields else "item_reference")
    if not isinstance(kind, str):
        raise refused("'type'", "the name of a type", kind)
    if kind == "item_reference" and not isinstance(fields.get("id"), str):
        raise refused("an item", "an object with a 'type', or a 'role' and a 'content'", fields)
    if kind == "message":
        role = role_of(fields, _ITEMS_ROLES)
        content = read_content(fields.get("content"), "'content'", texts=_TEXTS)
        extra = rest_of(fields, fields["role"] == role.value and "role", content and "content")
        return Message(role=role, parts=content, provider=Provider.RESPONSES, extra=extra)
    part = _read_tool_part(fields, kind)
    if part is None:
        whole = OpaquePart(json=to_json(fields), form=kind)
        role = MessageRole.TOOL if kind.endswith("_output") else MessageRole.ASSISTANT
        return Message(role=role, parts=(whole,), provider=Provider.RESPONSES, form=_ITEM)
    role = MessageRole.ASSISTANT if isinstance(part, ToolCall) else MessageRole.TOOL
    return Message(role=role, parts=(part,), provider=Provider.RESPONSES)


def read_instructions(text: object) -> Message:
    """Read the instructions beside the items as a system message."""
    if not isinstance(text, str):
        raise refused("'instructions'", "a text", text)
    parts = read_content(text, "'instructions'")
    return Message(role=MessageRole.SYSTEM, parts=parts, provider=Provider.RESPONSES, form=INSTRUCTIONS)


def write_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The items: items of this API as they were read, plain messages in its format."""
    return [each for message in messages if message.form != INSTRUCTIONS for each in _items_written(message)]


def write_instructions(messages: Sequence[Message]) -> str | None:
    """The instructions beside the items; None without any."""
    beside = [content_in_words(message.parts) for message in messages if message.form == INSTRUCTIONS]
    return "\n\n".join(beside) if beside else None


def _read_tool_part(fields: Mapping[str, Any], kind: str) -> ToolCall | ToolResult | None:
    """A call, or a result with the id of its call; None for other items, which become opaque parts."""
    call_id = fields.get("call_id")
    if not isinstance(call_id, str):
        return None
    if kind.endswith("_output"):
        output = fields.get("output")
        content: tuple[ContentPart, ...] = ()
        if isinstance(output, str) or (isinstance(output, list) and kind == f"{_FUNCTION}_output"):
            content = read_content(output, "'output'", texts=_TEXTS)
        rest = rest_of(fields, "type", "call_id", content and "output")
        return ToolResult(call_id=call_id, content=content, form=kind, extra=rest)
    if kind in _ARGUMENTS:
        given = _ARGUMENTS[kind]
        name, arguments = fields.get("name"), fields.get(given)
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise refused(f"a {kind}", f"an object with a text 'name' and a text {given!r}", fields)
        rest = rest_of(fields, "type", "call_id", "name", given)
        return ToolCall(id=call_id, name=name, arguments=arguments, form=kind, extra=rest)
    if not kind.endswith("_call"):
        return None
    done = to_json(fields.get("action", fields.get("operation", {})))
    rest = rest_of(fields, "type", "call_id")
    return ToolCall(id=call_id, name=kind.removesuffix("_call"), arguments=done, form=kind, extra=rest)


def _items_written(message: Message) -> Iterator[dict[str, Any]]:
    native = message.provider is Provider.RESPONSES
    if message.form == _ITEM:
        yield from (json.loads(part.json) for part in message.parts if isinstance(part, OpaquePart))
        return
    # Results first: the answer to a call comes before further text.
    for result in message.results:
        kind = result.form if native and result.form else f"{_FUNCTION}_output"
        fields: dict[str, Any] = {"type": kind, "call_id": result.call_id}
        if not result.form:
            fields["output"] = ""
        with_content(fields, "output", result.content, native=native, text="input_text")
        yield {**fields, **extra_fields(result.extra)} if native else fields
    content = content_of(message.parts)
    if content or (native and not message.calls and not message.results):
        text = "output_text" if message.role is MessageRole.ASSISTANT else "input_text"
        fields = with_content({"role": message.role.value}, "content", content, native=native, text=text)
        yield {**fields, **extra_fields(message.extra)} if native else fields
    for call in message.calls:
        kind = call.form if native and call.form else _FUNCTION
        fields = {"type": kind, "call_id": call.id}
        if kind in _ARGUMENTS:
            fields |= {"name": call.name, _ARGUMENTS[kind]: call.arguments}
        yield {**fields, **extra_fields(call.extra)} if native else fields
