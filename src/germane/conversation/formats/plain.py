"""Messages in germane's own layout, which belongs to no provider and can be sent to each.

Level: ranking (imports errors and model). Pure.

    {"role": "user", "content": "Is it raining in Paris?"}
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "weather", "arguments": "{}"}]}
    {"role": "tool", "tool_results": [{"call_id": "1", "content": "21 degrees", "is_error": false}]}
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
from germane.model.message import Message, Provider, Role, ToolCall, ToolResult

__all__ = ["calls_of", "read", "results_of", "write"]

_ROLES = {role.value: role for role in Role}


def read(fields: Mapping[str, Any]) -> Message:
    """One message. Raises InvalidInput, naming the field, for what is none."""
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'")
    calls = tuple(calls_of(fields.get("tool_calls") or ()))
    results = tuple(results_of(fields.get("tool_results") or ()))
    if calls and role is not Role.ASSISTANT:
        raise refused("'role' of a message with 'tool_calls'", "assistant", role.value)
    if results and role not in (Role.TOOL, Role.USER):
        raise refused("'role' of a message with 'tool_results'", "tool or user", role.value)
    if role is Role.TOOL and (content or not results):
        raise refused("a tool's message", "one with 'tool_results', and without 'content'", fields)
    understood = {"role"}
    for name, parts in (("content", content), ("tool_calls", calls), ("tool_results", results)):
        if parts:
            understood.add(name)
    return Message(role=role, parts=(*results, *content, *calls), extra=rest_of(fields, understood))


def write(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in germane's own layout, whichever they came in; what has no text there is named."""
    return [_written(message) for message in messages]


def calls_of(calls: object) -> Iterator[ToolCall]:
    """Calls, given as themselves or as objects with `id`, `name` and `arguments` (a text or an object)."""
    for index, call in enumerate(_listed(calls, "'tool_calls'")):
        if isinstance(call, ToolCall):
            yield call
            continue
        place = f"'tool_calls'[{index}]"
        fields = object_of(call, place)
        call_id, name = _text(fields, "id", place), _text(fields, "name", place)
        arguments = fields.get("arguments", "{}")
        understood = {"id", "name", *(("arguments",) if isinstance(arguments, str) else ())}
        # An object is kept beside its text, so that the same is given back.
        text = arguments if isinstance(arguments, str) else to_json(arguments)
        absent = "" if "arguments" in fields else "none"
        yield ToolCall(id=call_id, name=name, arguments=text, form=absent, extra=rest_of(fields, understood))


def results_of(results: object) -> Iterator[ToolResult]:
    """Results, given as themselves or as objects with `call_id`, `content` and maybe `is_error`."""
    for index, result in enumerate(_listed(results, "'tool_results'")):
        if isinstance(result, ToolResult):
            yield result
            continue
        place = f"'tool_results'[{index}]"
        fields = object_of(result, place)
        content = read_content(fields.get("content"), f"{place}['content']")
        failed = fields.get("is_error")
        if not (failed is None or isinstance(failed, bool)):
            raise refused(f"{place}['is_error']", "true or false", failed)
        understood = {
            "call_id",
            *(("content",) if content else ()),
            *(() if failed is None else ("is_error",)),
        }
        yield ToolResult(
            call_id=_text(fields, "call_id", place),
            content=content,
            is_error=failed,
            extra=rest_of(fields, understood),
        )


def _written(message: Message) -> dict[str, Any]:
    plain = message.provider is Provider.PLAIN
    fields: dict[str, Any] = {"role": message.role.value}
    said = content_of(message.parts)
    if said:
        fields["content"] = write_content(said) if plain else content_in_words(said)
    if message.calls:
        fields["tool_calls"] = [_written_call(call, plain=plain) for call in message.calls]
    if message.results:
        fields["tool_results"] = [_written_result(result, plain=plain) for result in message.results]
    return {**fields, **extra_fields(message.extra)} if plain else fields


def _written_call(call: ToolCall, *, plain: bool) -> dict[str, Any]:
    fields = {"id": call.id, "name": call.name}
    if call.form != "none":
        fields["arguments"] = call.arguments
    return {**fields, **extra_fields(call.extra)} if plain else fields


def _written_result(result: ToolResult, *, plain: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"call_id": result.call_id}
    if result.content:
        fields["content"] = write_content(result.content) if plain else content_in_words(result.content)
    if result.is_error is not None:
        fields["is_error"] = result.is_error
    return {**fields, **extra_fields(result.extra)} if plain else fields


def _listed(value: object, place: str) -> Sequence[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise refused(place, "a list", value)
    return value


def _text(fields: Mapping[str, Any], name: str, place: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise refused(f"{place}[{name!r}]", "a text", value)
    return value
