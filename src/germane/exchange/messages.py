"""Messages in the layouts of the OpenAI and Anthropic APIs as turns.

Level: exchange (imports the words of conversations). Pure. It reads what people kept, of whatever origin,
so it asks less of a message than `germane.conversation.formats`, which gives back what it read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from germane.conversation.words import call_in_words, named_fields, result_in_words
from germane.exchange.fields import FieldError, as_moment
from germane.exchange.turns import Turn
from germane.model.recalled import own_text

__all__ = ["STAMPS", "is_message", "message_turns", "messages_in"]

STAMPS = ("created_at", "timestamp", "create_time", "time", "date")
"""Where files keep when a message was sent; no provider knows any of these."""
_TEXTS = frozenset({"text", "input_text", "output_text"})

_MILLISECONDS = 100_000_000_000
"""Seconds since 1970 reach this in the year 5138; a greater stamp counts milliseconds."""


def is_message(value: object) -> bool:
    """Whether a JSON value has the form of a message: a role and what was said or called."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def messages_in(value: object) -> Sequence[Any] | None:
    """The messages of a JSON value, a list of them or an object that holds one; None if it is neither.

    A system prompt beside the list, where Anthropic's layout keeps it, becomes the first message.
    """
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        system = value.get("system")
        opening = [{"role": "system", "content": system}] if system else []
        return [*opening, *value["messages"]]
    if isinstance(value, list) and value and is_message(value[0]):
        return value
    return None


def message_turns(messages: Sequence[Any]) -> Iterator[Turn]:
    """One turn per message that says, calls or returns something, with tool use in readable words.

    A call's name stands beside its result. Raises FieldError, naming the message by its number from
    1, for what is no message.
    """
    reader = _Reader()
    for index, message in enumerate(messages):
        try:
            turn = reader.turn(message, index)
        except FieldError as error:
            raise FieldError(f"in message {index + 1}, {error}") from error
        if turn is not None:
            yield turn


@dataclass(slots=True)
class _Reader:
    """Reads messages in order, since a tool's result names the call before it by id alone."""

    tools: dict[str, str] = field(default_factory=dict)

    def turn(self, message: object, index: int) -> Turn | None:
        """The message as a turn; None when nothing in it was said."""
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise FieldError("an object with a 'role' and a 'content' was expected")
        role: str = message["role"]
        content = message.get("content")
        parts = list(self.parts(content))
        if role in ("tool", "function") and parts:
            name = self.tools.get(str(message.get("tool_call_id")), str(message.get("name") or "tool"))
            parts = [result_in_words(name, "\n".join(parts))]
        parts.extend(self.calls(message))
        text = "\n".join(part for part in parts if part.strip()).strip()
        if not text:
            return None
        if _returns_only(content):
            role = "tool"
        named = message.get("name") if role not in ("tool", "function") else None
        speaker = named if isinstance(named, str) and named else role
        return Turn(speaker=speaker, role=role, text=text, index=index, at=_stamp(message))

    def parts(self, content: object) -> Iterator[str]:
        """The content's parts as texts, in order."""
        if content is None:
            return
        if isinstance(content, str):
            yield own_text(content, whole=False)
            return
        if not isinstance(content, list):
            raise FieldError(f"'content' must be a text or a list of parts, and is {content!r}")
        for part in content:
            yield self.part(part)

    def part(self, part: object) -> str:
        """One part of a content as text; what is no text is named in brackets."""
        if isinstance(part, str):
            return own_text(part, whole=False)
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise FieldError("each part of a content must be an object with a 'type'")
        kind = part["type"]
        if kind in _TEXTS:
            # What came from memory is there already; learned again, it would pass for news.
            return own_text(str(part.get("text") or ""), whole=False)
        if kind.endswith("tool_use"):
            return self.call(part.get("id"), part.get("name"), part.get("input"))
        if kind.endswith("tool_result"):
            name = self.tools.get(str(part.get("tool_use_id")), "tool")
            said = "\n".join(self.parts(part.get("content")))
            return result_in_words(name, said, failed=bool(part.get("is_error")))
        return named_fields(kind, part)

    def calls(self, message: Mapping[str, Any]) -> Iterator[str]:
        """The tool calls that OpenAI's layout keeps beside the content, in its present and its old form."""
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
            raise FieldError("'tool_calls' must be a list of objects")
        for call in calls:
            function = call.get("function") or call.get("custom") or {}
            if not isinstance(function, Mapping):
                raise FieldError("a tool call's 'function' must be an object")
            given = function.get("arguments", function.get("input"))
            yield self.call(call.get("id"), function.get("name"), given)
        old = message.get("function_call")
        if isinstance(old, Mapping):
            yield self.call(None, old.get("name"), old.get("arguments"))

    def call(self, call_id: object, name: object, given: object) -> str:
        """A call in readable words; its name is kept for the result that comes later."""
        named = str(name or "tool")
        if call_id is not None:
            self.tools[str(call_id)] = named
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return call_in_words(named, shown)


def _returns_only(content: object) -> bool:
    """Whether a message only hands over results: Anthropic's layout gives those the user's role."""
    return (
        isinstance(content, list)
        and bool(content)
        and all(
            isinstance(part, Mapping) and str(part.get("type")).endswith("tool_result") for part in content
        )
    )


def _stamp(message: Mapping[str, Any]) -> datetime | None:
    """When the message was sent, if it says so: ISO text, or seconds or milliseconds since 1970."""
    for name in STAMPS:
        value = message.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value >= _MILLISECONDS else value
            try:
                return datetime.fromtimestamp(seconds, UTC)
            except (ValueError, OverflowError, OSError):
                raise FieldError(f"{name!r} must be seconds since 1970, and is {value!r}") from None
        if isinstance(value, str) and value:
            return as_moment(value, name=name, assume_utc=True)
    return None
