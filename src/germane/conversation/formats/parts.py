"""Parts of messages: JSON fields, tool calls and results as text, matching results with calls, and detection
of the format of a message.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from germane.errors import InvalidInput, shown
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
from germane.model.text import is_fenced

TEXT = frozenset({"text"})


def to_json(value: object) -> str:
    """The value as JSON text. Raises InvalidInput for values that JSON can't represent."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{shown(value)} is no JSON ({error}), and a message is JSON. Use texts, finite numbers, true, "
            "false, None, lists, and mappings with text keys."
        ) from error


def refused(place: str, wanted: str, value: object) -> InvalidInput:
    """The error for an invalid value: its place, what was expected, and the value."""
    return InvalidInput(f"{place} must be {wanted}, and is {shown(value)}.")


def object_of(value: object, place: str) -> Mapping[str, Any]:
    """The value as a JSON object. Raises InvalidInput for other values."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(place, "an object with text keys", value)
    return value


def role_of(fields: Mapping[str, Any], roles: Mapping[str, MessageRole]) -> MessageRole:
    """The role in the fields, by the provider's names of roles. Raises InvalidInput."""
    role = fields.get("role")
    if not isinstance(role, str) or role not in roles:
        raise refused("'role'", f"one of {', '.join(roles)}", role)
    return roles[role]


def rest_of(fields: Mapping[str, Any], *understood: object) -> str:
    """The other fields as a JSON object, for `extra`; empty if there are none.

    `understood` are the names of fields that are stored elsewhere; other values in it are ignored.
    """
    rest = {name: value for name, value in fields.items() if name not in understood}
    return to_json(rest) if rest else ""


def extra_fields(extra: str) -> dict[str, Any]:
    """The fields of a value's `extra`, as a new mapping."""
    return json.loads(extra) if extra else {}


def read_content(content: object, place: str, *, texts: Collection[str] = TEXT) -> tuple[ContentPart, ...]:
    """The parts of a content: a text, or a list of typed parts. `texts` are the types of text parts."""
    if isinstance(content, str):
        return (TextPart(text=content, recalled=is_fenced(content)),)
    if content is None:
        return ()
    if not isinstance(content, Sequence):
        raise refused(place, "a text or a list of parts", content)
    return tuple(_part(each, f"{place}[{index}]", texts) for index, each in enumerate(content))


def content_of(parts: Sequence[Part]) -> tuple[ContentPart, ...]:
    """The content of a message, without calls and results."""
    return tuple(part for part in parts if isinstance(part, TextPart | OpaquePart))


def write_content(parts: Sequence[ContentPart], *, text: str = "text") -> str | list[dict[str, Any]]:
    """The inverse of `read_content`; among several parts, a text part without a form gets the type `text`."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, TextPart) and not only.form:
        return only.text
    return [_written(part, text) for part in parts]


def with_content(
    fields: dict[str, Any], key: str, parts: Sequence[ContentPart], *, native: bool, text: str = "text"
) -> dict[str, Any]:
    """The fields with the content, which is added in place under `key`.

    A `native` content, which this provider sent, is written as it was read, or omitted if there is none; any
    other content is written as text.
    """
    if not native:
        fields[key] = content_in_words(parts)
    elif parts:
        fields[key] = write_content(parts, text=text)
    return fields


def _part(part: object, place: str, texts: Collection[str]) -> ContentPart:
    fields = object_of(part, place)
    form = fields.get("type")
    if not isinstance(form, str) or not form:
        raise refused(f"{place}['type']", "the name of a type", form)
    text = fields.get("text")
    if form in texts and isinstance(text, str):
        extra = rest_of(fields, "type", "text")
        return TextPart(text=text, recalled=is_fenced(text), form=form, extra=extra)
    return OpaquePart(json=to_json(fields), form=form)


def _written(part: ContentPart, text: str) -> dict[str, Any]:
    if isinstance(part, OpaquePart):
        return json.loads(part.json)  # type: ignore[no-any-return]  # Only objects are read.
    return {"type": part.form or text, "text": part.text, **extra_fields(part.extra)}


# Detection of the format of a message.

_OF_OPENAI = ("tool_call_id", "function_call", "refusal", "audio", "name")
_OF_RESPONSES = frozenset({"input_text", "input_image", "input_file", "output_text"})
_OF_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"}
)


def provider_of(fields: Mapping[str, Any]) -> Provider:
    """The provider of a message's format; PLAIN if all providers share it.

    A list with texts only is ambiguous, and read as OpenAI's format.
    """
    if "role" not in fields or fields.get("type") == "message":
        return Provider.RESPONSES
    if "tool_results" in fields:
        return Provider.PLAIN
    calls = fields.get("tool_calls")
    if isinstance(calls, list) and calls:
        plain = all(isinstance(call, Mapping) and "name" in call for call in calls)
        return Provider.PLAIN if plain else Provider.OPENAI
    if fields["role"] in ("tool", "function", "developer") or any(name in fields for name in _OF_OPENAI):
        return Provider.OPENAI
    content = fields.get("content")
    if isinstance(content, list):
        return _provider_of_parts([part for part in content if isinstance(part, Mapping)])
    return Provider.PLAIN


def _provider_of_parts(parts: list[Mapping[str, Any]]) -> Provider:
    kinds = {part.get("type") for part in parts}
    if kinds & _OF_RESPONSES:
        return Provider.RESPONSES
    if kinds & _OF_ANTHROPIC or any(str(kind).endswith(("_tool_use", "_tool_result")) for kind in kinds):
        return Provider.ANTHROPIC
    if any("cache_control" in part or "citations" in part for part in parts):
        return Provider.ANTHROPIC
    return Provider.OPENAI


# Calls, results and parts without text as text that people and all models can read.

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The forms of a model's reasoning, which isn't part of the dialogue."""


def in_words(message: Message, names: Mapping[str, str] | None = None) -> str:
    """All of a message as text, in order: texts, calls and results.

    `names` are the names of earlier calls by their ids, for results; see `names_of_calls`.
    """
    names = names or {}
    texts = [_part_in_words(part, names) for part in message.parts]
    return "\n".join(text for text in texts if text.strip())


def call_in_words(name: str, arguments: str) -> str:
    """The name of a call in brackets, and its arguments, if any."""
    return f"[called {name}]" if arguments.strip() in ("", "{}", "null") else f"[called {name}] {arguments}"


def result_in_words(name: str, text: str, *, failed: bool = False) -> str:
    """The result of a call after the name of the call in brackets."""
    return f"[{name} {'failed' if failed else 'returned'}] {text}".rstrip()


def named(part: OpaquePart) -> str:
    """The name of a part without text in brackets; empty for reasoning."""
    return "" if part.form in _REASONING else named_fields(part.form, json.loads(part.json))


def named_fields(form: str, fields: Mapping[str, Any]) -> str:
    """The name of a part in brackets, by its form and fields; the text of a refusal; empty for reasoning."""
    if form in _REASONING or form == "refusal":
        return str(fields.get("refusal") or "")
    title = fields.get("title") or fields.get("filename")
    kind = kind_of(form)
    return f"[{kind}: {title}]" if title else f"[{kind}]"


def kind_of(form: str) -> str:
    """The kind of a part in a word that is independent of the provider, such as "image"."""
    return form.removesuffix("_url").removeprefix("input_")


def in_parts(message: Message, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """All of a message as content parts in order: text, and parts without text unchanged.

    `names` are the names of earlier calls by their ids. A model's reasoning is omitted.
    """
    made: list[dict[str, Any]] = []
    for part in message.parts:
        if not isinstance(part, OpaquePart) and (text := _part_in_words(part, names or {})):
            made.append({"type": "text", "text": text})
        several = part.content if isinstance(part, ToolResult) else (part,)
        opaque = (each for each in several if isinstance(each, OpaquePart))
        made += [json.loads(each.json) for each in opaque if each.form not in _REASONING]
    return made


def names_of_calls(message: Message) -> dict[str, str]:
    """The names of the calls in a message by their ids."""
    return {call.id: call.name for call in message.calls}


def spoken_lines(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """The author and the text of each message with text, with the names of calls for results."""
    names: dict[str, str] = {}
    for message in messages:
        names |= names_of_calls(message)
        if text := in_words(message, names).strip():
            yield message.author, text


def content_in_words(parts: Iterable[Part]) -> str:
    """The texts of the parts on separate lines, and the names of parts without text in brackets."""
    texts = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, OpaquePart) and (name := named(part)):
            texts.append(name)
    return "\n".join(texts)


def _part_in_words(part: TextPart | OpaquePart | ToolCall | ToolResult, names: Mapping[str, str]) -> str:
    if isinstance(part, ToolCall):
        return call_in_words(part.name, part.arguments)
    if isinstance(part, ToolResult):
        name = names.get(part.call_id, "tool")
        return result_in_words(name, content_in_words(part.content), failed=bool(part.is_error))
    return content_in_words((part,))


# Providers refuse a request with a result without an earlier call.


def without_orphans(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without results whose call isn't in an earlier message.

    Second results for the same call are removed too. Empty messages are dropped; others are unchanged.
    """
    called: Counter[str] = Counter()
    sent = []
    for message in messages:
        parts = tuple(part for part in message.parts if _belongs(part, called))
        if len(parts) == len(message.parts):
            sent.append(message)
        elif parts:
            sent.append(message.evolve(parts=parts))
    return tuple(sent)


def _belongs(part: Part, called: Counter[str]) -> bool:
    if isinstance(part, ToolCall):
        called[part.id] += 1
    elif isinstance(part, ToolResult):
        if not called[part.call_id]:
            return False
        called[part.call_id] -= 1
    return True
