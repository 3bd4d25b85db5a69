"""Tool traffic and parts without text in words that a person or any model can read.

Level: ranking (imports nothing of the package but model). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from germane.model.message import Message, OpaquePart, Part, TextPart, ToolCall, ToolResult

__all__ = [
    "call_in_words",
    "content_in_words",
    "in_parts",
    "in_words",
    "kind_of",
    "named",
    "named_fields",
    "names_of_calls",
    "result_in_words",
]

_UNSAID = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""What a model thought was never said to anybody, so it is no part of the dialogue."""


def in_words(message: Message, names: Mapping[str, str] | None = None) -> str:
    """All of a message as text, in order: what was said, called and returned.

    `names` gives the names of earlier calls by their ids, for results; see `names_of_calls`.
    """
    names = names or {}
    said = [_part_in_words(part, names) for part in message.parts]
    return "\n".join(text for text in said if text.strip())


def call_in_words(name: str, arguments: str) -> str:
    """A call in brackets, and its arguments where there are any."""
    return f"[called {name}]" if arguments.strip() in ("", "{}", "null") else f"[called {name}] {arguments}"


def result_in_words(name: str, text: str, *, failed: bool = False) -> str:
    """What a call gave back, after its name in brackets."""
    return f"[{name} {'failed' if failed else 'returned'}] {text}".rstrip()


def named(part: OpaquePart) -> str:
    """The name of a part that has no text, in brackets; empty for what nobody was told."""
    return "" if part.form in _UNSAID else named_fields(part.form, json.loads(part.json))


def named_fields(form: str, fields: Mapping[str, Any]) -> str:
    """The same for the fields of a part; what a model refused to say is said in its words."""
    if form in _UNSAID or form == "refusal":
        return str(fields.get("refusal") or "")
    title = fields.get("title") or fields.get("filename")
    kind = kind_of(form)
    return f"[{kind}: {title}]" if title else f"[{kind}]"


def kind_of(form: str) -> str:
    """What a part of that form is, in one word that all providers share, such as "image"."""
    return form.removesuffix("_url").removeprefix("input_")


def in_parts(message: Message, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """All of a message as content parts, in order: texts in words, and what has no text as it came.

    `names` as in `in_words`. What a model thought is left out.
    """
    made: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, OpaquePart):
            made += _whole(part)
        elif text := _part_in_words(part, names or {}):
            made.append({"type": "text", "text": text})
        if isinstance(part, ToolResult):
            made += [each for more in part.content if isinstance(more, OpaquePart) for each in _whole(more)]
    return made


def _whole(part: OpaquePart) -> list[dict[str, Any]]:
    return [] if part.form in _UNSAID else [json.loads(part.json)]


def names_of_calls(message: Message) -> dict[str, str]:
    """The names of the calls in a message by their ids."""
    return {call.id: call.name for call in message.calls}


def content_in_words(parts: Iterable[Part]) -> str:
    """The texts among the parts, each on lines of its own, and what has no text named in brackets."""
    said = []
    for part in parts:
        if isinstance(part, TextPart):
            said.append(part.text)
        elif isinstance(part, OpaquePart) and (name := named(part)):
            said.append(name)
    return "\n".join(said)


def _part_in_words(part: TextPart | OpaquePart | ToolCall | ToolResult, names: Mapping[str, str]) -> str:
    if isinstance(part, ToolCall):
        return call_in_words(part.name, part.arguments)
    if isinstance(part, ToolResult):
        name = names.get(part.call_id, "tool")
        return result_in_words(name, content_in_words(part.content), failed=bool(part.is_error))
    return content_in_words((part,))
