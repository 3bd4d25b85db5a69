"""The parts of messages as one JSON text, and back: the same for every database.

Level: stores (imports model).
"""

from __future__ import annotations

import json
from typing import Any

from germane.errors import InvalidInput
from germane.model.message import Message, OpaquePart, Part, TextPart, ToolCall, ToolResult

__all__ = ["WORDS_READ", "indexed_words", "packed_parts", "unpacked_parts"]

WORDS_READ = "words-1"
"""Names what `indexed_words` reads; whoever changes that gives it another name, so that it is read anew."""

_TEXT, _OPAQUE, _CALL, _RESULT = "t", "o", "c", "r"

_read = json.JSONDecoder().raw_decode

_MOST_INDEXED = 8000
"""Characters of one result that the index reads, half from each end: what a result is about shows there."""


def packed_parts(parts: tuple[Part, ...]) -> str:
    """The parts as a JSON list of lists; each begins with what it is."""
    return json.dumps([_packed(part) for part in parts], ensure_ascii=False, separators=(",", ":"))


def unpacked_parts(text: str) -> tuple[Part, ...]:
    """What `packed_parts` packed."""
    # A process that reads a long log does this for each message; json.loads would take twice as long.
    return tuple(map(_unpacked, _read(text)[0]))


def indexed_words(message: Message) -> str:
    """What the index reads of a message: said, called and returned, but for what came from memory."""
    texts = [message.own_text]
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts += [part.name, _ends(part.arguments)]
        elif isinstance(part, ToolResult):
            own = (each for each in part.content if isinstance(each, TextPart) and not each.recalled)
            texts += [_ends(each.text) for each in own]
    return "\n".join(text for text in texts if text)


def _packed(part: Part) -> list[Any]:
    if isinstance(part, TextPart):
        packed: list[Any] = [_TEXT, part.text]
        if part.recalled or part.form or part.extra:
            packed += [int(part.recalled), part.form, part.extra]
        return packed
    if isinstance(part, OpaquePart):
        return [_OPAQUE, part.json, part.form]
    if isinstance(part, ToolCall):
        return [_CALL, part.id, part.name, part.arguments, part.form, part.extra]
    if isinstance(part, ToolResult):
        content = [_packed(each) for each in part.content]
        return [_RESULT, part.call_id, content, part.is_error, part.form, part.extra]
    raise InvalidInput(f"{part!r} is no part of a message: use TextPart, ToolCall, ToolResult or OpaquePart.")


def _unpacked(packed: list[Any]) -> Any:
    kind, *fields = packed
    if kind == _TEXT:
        if len(fields) == 1:
            return TextPart(text=fields[0])
        text, recalled, form, extra = fields
        return TextPart(text=text, recalled=bool(recalled), form=form, extra=extra)
    if kind == _OPAQUE:
        return OpaquePart(json=fields[0], form=fields[1])
    if kind == _CALL:
        call_id, name, arguments, form, extra = fields
        return ToolCall(id=call_id, name=name, arguments=arguments, form=form, extra=extra)
    call_id, content, is_error, form, extra = fields
    parts = tuple(map(_unpacked, content))
    return ToolResult(call_id=call_id, content=parts, is_error=is_error, form=form, extra=extra)


def _ends(text: str) -> str:
    half = _MOST_INDEXED // 2
    return text if len(text) <= _MOST_INDEXED else f"{text[:half]}\n{text[-half:]}"
