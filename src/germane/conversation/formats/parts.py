"""Parts of messages: fields of JSON, tool traffic in words, results beside their calls, and whose
layout a message has.
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
    """The value as JSON text. Raises InvalidInput for what JSON can't hold."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{shown(value)} is no JSON ({error}), and a message is JSON. Use texts, finite numbers, true, "
            "false, None, lists, and mappings with text keys."
        ) from error


def refused(place: str, wanted: str, value: object) -> InvalidInput:
    """The error that says what was expected where."""
    return InvalidInput(f"{place} must be {wanted}, and is {shown(value)}.")


def object_of(value: object, place: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(place, "an object with text keys", value)
    return value


def role_of(fields: Mapping[str, Any], roles: Mapping[str, MessageRole]) -> MessageRole:
    """The role that a provider's word for it means."""
    role = fields.get("role")
    if not isinstance(role, str) or role not in roles:
        raise refused("'role'", f"one of {', '.join(roles)}", role)
    return roles[role]


def rest_of(fields: Mapping[str, Any], *understood: object) -> str:
    """The other fields as a JSON object, for `extra`; empty when there are none.

    `understood` are the names of fields that are stored elsewhere; a value that is no name is ignored.
    """
    rest = {name: value for name, value in fields.items() if name not in understood}
    return to_json(rest) if rest else ""


def extra_fields(extra: str) -> dict[str, Any]:
    """The fields of a value's `extra`, as a new mapping."""
    return json.loads(extra) if extra else {}


def read_content(content: object, place: str, *, texts: Collection[str] = TEXT) -> tuple[ContentPart, ...]:
    """A content that is a text, or a list of parts with a type. `texts` are the types of texts."""
    if isinstance(content, str):
        return (TextPart(text=content, recalled=is_fenced(content)),)
    if content is None:
        return ()
    if not isinstance(content, Sequence):
        raise refused(place, "a text or a list of parts", content)
    return tuple(_part(each, f"{place}[{index}]", texts) for index, each in enumerate(content))


def content_of(parts: Sequence[Part]) -> tuple[ContentPart, ...]:
    """The parts of a message that are content, and no tool traffic."""
    return tuple(part for part in parts if isinstance(part, TextPart | OpaquePart))


def write_content(parts: Sequence[ContentPart], *, text: str = "text") -> str | list[dict[str, Any]]:
    """The content as `read_content` got it; a text part of no form gets the type `text` among several."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, TextPart) and not only.form:
        return only.text
    return [_written(part, text) for part in parts]


def with_content(
    fields: dict[str, Any], key: str, parts: Sequence[ContentPart], *, native: bool, text: str = "text"
) -> dict[str, Any]:
    """The fields with the content under a key, which is added in place.

    A `native` content, one that came from this provider, is written as it came, and not at all where there
    is none; any other is written in words.
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
        return json.loads(part.json)  # type: ignore[no-any-return]  # An object was read.
    return {"type": part.form or text, "text": part.text, **extra_fields(part.extra)}


# Finds out in whose layout a message is.

_OF_OPENAI = ("tool_call_id", "function_call", "refusal", "audio", "name")
_OF_RESPONSES = frozenset({"input_text", "input_image", "input_file", "output_text"})
_OF_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"}
)


def provider_of(fields: Mapping[str, Any]) -> Provider:
    """The provider in whose layout a message is; PLAIN where it could be anybody's.

    Where a list of texts alone leaves it open, it is taken for OpenAI's.
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


# Tool traffic and parts without text in words that a person or any model can read.

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The forms of a model's reasoning, which is no part of the dialogue."""


def in_words(message: Message, names: Mapping[str, str] | None = None) -> str:
    """All of a message as text, in order: texts, calls and results.

    `names` gives the names of earlier calls by their ids, for results; see `names_of_calls`.
    """
    names = names or {}
    texts = [_part_in_words(part, names) for part in message.parts]
    return "\n".join(text for text in texts if text.strip())


def call_in_words(name: str, arguments: str) -> str:
    """A call in brackets, and its arguments where there are any."""
    return f"[called {name}]" if arguments.strip() in ("", "{}", "null") else f"[called {name}] {arguments}"


def result_in_words(name: str, text: str, *, failed: bool = False) -> str:
    """The result of a call, after the call's name in brackets."""
    return f"[{name} {'failed' if failed else 'returned'}] {text}".rstrip()


def named(part: OpaquePart) -> str:
    """The name of a part that has no text, in brackets; empty for reasoning."""
    return "" if part.form in _REASONING else named_fields(part.form, json.loads(part.json))


def named_fields(form: str, fields: Mapping[str, Any]) -> str:
    """The name of a part by its form and fields, in brackets; a refusal in its own words, else empty."""
    if form in _REASONING or form == "refusal":
        return str(fields.get("refusal") or "")
    title = fields.get("title") or fields.get("filename")
    kind = kind_of(form)
    return f"[{kind}: {title}]" if title else f"[{kind}]"


def kind_of(form: str) -> str:
    """The kind of a part in one word that all providers share, such as "image"."""
    return form.removesuffix("_url").removeprefix("input_")


def in_parts(message: Message, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """All of a message as content parts, in order: texts in words, and what has no text as it came.

    `names` gives the names of earlier calls by their ids. A model's reasoning is left out.
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
    """The role and the text in words of each message that has any, with the names of calls for results."""
    names: dict[str, str] = {}
    for message in messages:
        names |= names_of_calls(message)
        if text := in_words(message, names).strip():
            yield message.role.value, text


def content_in_words(parts: Iterable[Part]) -> str:
    """The texts among the parts, each on lines of its own, and what has no text named in brackets."""
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


# Which result answers which call: providers refuse a request in which a result has no call before it.


def without_orphans(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without the results whose call isn't among the messages before them.

    A second result for the same call is one too many, and goes as well. A message of which nothing
    is left is left out; all others are the very same values.
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
