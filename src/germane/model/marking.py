"""Marks what Anthropic's prompt cache shall keep: the ends of what stays from one request to the next.

Level: model (imports nothing). Pure.

A mark says that everything up to it is worth keeping; at most four are taken. https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["MOST_MARKS", "with_marks"]

MOST_MARKS: Final = 4

_MARK: Final = "cache_control"
_MARKABLE: Final = frozenset(
    {"text", "image", "document", "search_result", "tool_use", "tool_result", "server_tool_use"}
)


def with_marks(arguments: Mapping[str, Any], *, stable: int) -> dict[str, Any]:
    """The arguments of Anthropic's client with marks; nothing given is changed.

    Marked are the last message, the last of the first `stable` ones, the system and the tools. Marks that
    the caller set on system and tools stay and count; those of messages are from requests that are past,
    so they go.
    """
    marked = dict(arguments)
    system, tools = marked.get("system"), marked.get("tools")
    given = _marks_in(system)
    messages = [_unmarked(message) for message in marked.get("messages", ())]
    left = MOST_MARKS - given - _marks_in(tools)
    ends = {_last_markable(messages[:end]) for end in (len(messages), stable)} - {None}
    for place in sorted((place for place in ends if place is not None), reverse=True)[: max(left, 0)]:
        messages[place] = {**messages[place], "content": _marked_content(messages[place]["content"])}
        left -= 1
    marked["messages"] = messages
    if left > 0 and system and not given:
        marked["system"] = _marked_content(system)
        left -= 1
    # A mark that lasts longer must stand before those that don't, so none is put before the caller's.
    if left > 0 and tools and not given and not _marks_in(tools):
        marked["tools"] = [*tools[:-1], _marked(tools[-1])]
    return marked


def _marks_in(value: object) -> int:
    """How many marks are set already, wherever they stand."""
    if isinstance(value, Mapping):
        return (_MARK in value) + sum(map(_marks_in, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sum(map(_marks_in, value))
    return 0


def _last_markable(messages: Sequence[Mapping[str, Any]]) -> int | None:
    for place in range(len(messages) - 1, -1, -1):
        if _markable_block(messages[place]["content"]) is not None:
            return place
    return None


def _unmarked(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    blocks = [{key: value for key, value in block.items() if key != _MARK} for block in content]
    return {**message, "content": blocks}


def _marked_content(content: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A content as blocks, the last of those that can be marked with a mark."""
    if isinstance(content, str):
        return [_marked({"type": "text", "text": content})]
    place = _markable_block(content)
    return [_marked(block) if number == place else dict(block) for number, block in enumerate(content)]


def _markable_block(content: str | Sequence[Mapping[str, Any]]) -> int | None:
    """The place of the last block that the API lets be marked: no thought, and no empty text."""
    if isinstance(content, str):
        return 0 if content.strip() else None
    for place in range(len(content) - 1, -1, -1):
        block = content[place]
        kind = block.get("type")
        if kind in _MARKABLE and (kind != "text" or str(block.get("text", "")).strip()):
            return place
    return None


def _marked(block: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, _MARK: {"type": "ephemeral"}}
