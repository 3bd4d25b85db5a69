"""Messages of OpenAI's chat completions.

Level: ranking (imports errors and model). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from germane.conversation.formats.fields import (
    content_of,
    extra_fields,
    object_of,
    read_content,
    refused,
    rest_of,
    role_of,
    to_json,
    write_content,
)
from germane.conversation.words import content_in_words
from germane.model.message import ContentPart, Message, Part, Provider, Role, ToolCall, ToolResult

__all__ = ["read", "write"]

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_OLD = "function_call"
"""The form of a call as it was before calls had ids; its result is a message of the role function."""
_UNTYPED = "untyped"


def read(fields: Mapping[str, Any]) -> Message:
    """One message. Raises InvalidInput, naming the field, for what is none."""
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'")
    understood = {"content"} if content else set()
    if fields["role"] == role.value:
        understood.add("role")
    parts: tuple[Part, ...] = content
    if role is Role.TOOL:
        call_id = fields.get("tool_call_id")
        old = fields["role"] == "function"
        if old or not isinstance(call_id, str):
            call_id = ""
        elif call_id:
            understood.add("tool_call_id")
        parts = (ToolResult(call_id=call_id, content=content, form=_OLD if old else ""),)
    if role is Role.ASSISTANT and fields.get("tool_calls"):
        understood.add("tool_calls")
        parts = (*parts, *_read_calls(fields["tool_calls"]))
    if role is Role.ASSISTANT and fields.get(_OLD):
        understood.add(_OLD)
        parts = (*parts, _read_old(fields[_OLD]))
    return Message(role=role, parts=parts, provider=Provider.OPENAI, extra=rest_of(fields, understood))


def write(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as they go to the API: those that came from it as they came, plain ones in its layout."""
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
        call_id = fields.get("id")
        understood = {inside, *({"id"} if call_id and isinstance(call_id, str) else ())}
        if form == inside and "type" in fields:
            understood.add("type")
        extra = {key: value for key, value in fields.items() if key not in understood}
        if rest:
            extra[inside] = rest
        yield ToolCall(
            id=call_id if isinstance(call_id, str) else "",
            name=name,
            arguments=arguments,
            form="custom" if inside == "custom" else "" if "type" in fields else _UNTYPED,
            extra=to_json(extra) if extra else "",
        )


def _read_old(call: object) -> ToolCall:
    name, arguments, rest = _called(object_of(call, f"{_OLD!r}"), "arguments", f"{_OLD!r}")
    return ToolCall(id="", name=name, arguments=arguments, form=_OLD, extra=to_json(rest) if rest else "")


def _called(called: Mapping[str, Any], given: str, place: str) -> tuple[str, str, dict[str, Any]]:
    """The name, the arguments as text, and all that these two don't keep."""
    name, arguments = called.get("name"), called.get(given)
    if not isinstance(name, str):
        raise refused(f"{place}['name']", "a text", name)
    if given not in called:
        raise refused(f"{place}[{given!r}]", "the text of the arguments", None)
    rest = {key: value for key, value in called.items() if key not in ("name", given)}
    if isinstance(arguments, str):
        return name, arguments, rest
    # Some local servers give an object in place of its text, and want the same back.
    return name, to_json(arguments), {**rest, given: arguments}


def _written(message: Message) -> Iterator[dict[str, Any]]:
    native = message.provider is Provider.OPENAI
    extra = extra_fields(message.extra) if native else {}
    for result in message.results:
        yield {**_written_result(result, native=native), **extra}
    said, calls = content_of(message.parts), message.calls
    if said or calls or (native and not message.results):
        beside = {} if message.results else extra
        yield {**_spoken(message, said, calls, native=native), **beside}


def _written_result(result: ToolResult, *, native: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
    if native and not result.call_id:
        del fields["tool_call_id"]
    if not native:
        fields["content"] = content_in_words(result.content)
    elif result.content:
        fields["content"] = write_content(result.content)
    return fields


def _spoken(
    message: Message, said: Sequence[ContentPart], calls: Sequence[ToolCall], *, native: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role.value}
    if said:
        fields["content"] = write_content(said) if native else content_in_words(said)
    elif not native:
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
