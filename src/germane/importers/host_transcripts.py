"""Transcripts of hosts that copy Claude Code's: one record a line, of which some have a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from germane.conversation.formats import anthropic
from germane.errors import InvalidInput
from germane.importers.records import parse_object
from germane.importers.sources import FieldError, as_moment, numbered_lines, unreadable
from germane.model.conversation import Message

_WITHOUT = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
"""Marks of records that neither the user nor the assistant of this conversation wrote."""
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def read_host_transcript(path: Path) -> tuple[Message, ...]:
    """The messages of the user, the assistant and its tools, with their times, in order.

    Records of other kinds are left out, and so are thoughts, summaries of compactions, and the messages of
    subagents. A last line that is being written is left out as well. Raises UnreadableSource, naming the
    line, for what is no such transcript.
    """
    lines = list(numbered_lines(path))
    read: list[Message] = []
    for place, (number, line) in enumerate(lines, start=1):
        if place == len(lines) and not line.rstrip().endswith("}"):
            break
        message = _message(parse_object(line, path, number), path, number)
        if message is not None:
            read.append(message.evolve(seq=len(read) + 1))
    return tuple(read)


def _message(record: Mapping[str, Any], path: Path, number: int) -> Message | None:
    given = record.get("message")
    if record.get("type") not in ("user", "assistant") or any(record.get(name) for name in _WITHOUT):
        return None
    if not isinstance(given, Mapping):
        raise unreadable(path, "a record of a message has none", line=number)
    content = given.get("content")
    if isinstance(content, list):
        content = [
            part for part in content if not (isinstance(part, Mapping) and part.get("type") in _THOUGHTS)
        ]
    if not content:
        return None
    try:
        message = anthropic.read({"role": given.get("role"), "content": content})
        return message.evolve(
            created_at=as_moment(record.get("timestamp"), name="timestamp", assume_utc=True)
        )
    except (FieldError, InvalidInput) as error:
        raise unreadable(path, str(error), line=number) from error
