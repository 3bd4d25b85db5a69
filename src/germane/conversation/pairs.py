"""Which result answers which call.

Level: ranking (imports model). Pure.

Providers refuse a request in which a result stands without its call before it. A call without its
result is in flight, or its result is lost; both are told here and judged by whoever sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from germane.model.message import Message, Part, ToolCall, ToolResult

__all__ = ["orphans", "unanswered", "without_orphans"]


def without_orphans(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without the results whose call isn't among the messages before them.

    A second result for the same call is one too many, and goes as well. A message of which nothing
    is left is left out; all others are the very same values.
    """
    called: Counter[str] = Counter()
    kept = []
    for message in messages:
        parts = tuple(part for part in message.parts if _belongs(part, called))
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(message.evolve(parts=parts))
    return tuple(kept)


def orphans(messages: Iterable[Message]) -> tuple[ToolResult, ...]:
    """The results that `without_orphans` leaves out."""
    called: Counter[str] = Counter()
    return tuple(
        part
        for message in messages
        for part in message.parts
        if not _belongs(part, called) and isinstance(part, ToolResult)
    )


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls that no result among the messages after them answers, in order."""
    waiting: dict[str, list[ToolCall]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(part)
            elif isinstance(part, ToolResult) and waiting.get(part.call_id):
                waiting[part.call_id].pop(0)
    left = {id(call) for calls in waiting.values() for call in calls}
    return tuple(call for message in messages for call in message.calls if id(call) in left)


def _belongs(part: Part, called: Counter[str]) -> bool:
    if isinstance(part, ToolCall):
        called[part.id] += 1
    elif isinstance(part, ToolResult):
        if not called[part.call_id]:
            return False
        called[part.call_id] -= 1
    return True
