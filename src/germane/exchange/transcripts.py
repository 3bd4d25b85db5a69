"""Chat transcripts as drafts, one per turn.

Level: exchange (imports errors).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from germane.exchange.dialogue import dialogue_turns, starts_dialogue
from germane.exchange.fields import FieldError
from germane.exchange.jsonl import parse_object
from germane.exchange.messages import is_message, message_turns, messages_in
from germane.exchange.sources import name_of, numbered_lines, read_text, unreadable
from germane.exchange.turns import turn_draft
from germane.model.draft import Draft
from germane.model.recalled import own_text

__all__ = ["drafts_of_messages", "read_transcript"]

_EXPECTED = (
    'a list of messages ({"role": …, "content": …}), an object with "messages", one of either per line, '
    "or lines such as `user: text` were expected"
)


def read_transcript(path: Path) -> Iterator[Draft]:
    """The turns of a transcript, whichever layout it has; the content decides, not the suffix.

    Accepted are messages of the OpenAI and the Anthropic API (a list, an object with `messages`, or
    one message or one conversation per line) and plain text (see `dialogue_turns`). Each turn is an
    episode tagged `turn` in the session named after the file, or `file/N` where the file holds
    several conversations; a longer transcript read again adds only its new turns. Raises
    UnreadableSource, naming the line or the message, for anything else.
    """
    text = read_text(path)
    if text.lstrip().startswith(("{", "[")) and not starts_dialogue(text):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            if not text.lstrip().startswith("{"):
                raise unreadable(path, f"it is no JSON ({error})") from error
            yield from _of_lines(path)
            return
        messages = messages_in([value] if is_message(value) else value)
        if messages is None:
            raise unreadable(path, _EXPECTED)
        yield from drafts_of_messages(path, messages)
        return
    if not starts_dialogue(text):
        raise unreadable(path, _EXPECTED, line=_first_line(text))
    name = name_of(path)
    for turn in dialogue_turns(own_text(text, whole=False)):
        yield turn_draft(turn, session=path.stem, source=f"{name}#{turn.index}")


def drafts_of_messages(
    path: Path, messages: Sequence[Any], *, conversation: int | None = None
) -> Iterator[Draft]:
    """The drafts of one conversation's messages; `conversation` is its number in a file of several."""
    session = path.stem if conversation is None else f"{path.stem}/{conversation}"
    place = name_of(path) if conversation is None else f"{name_of(path)}#{conversation}"
    try:
        for turn in message_turns(messages):
            yield turn_draft(turn, session=session, source=f"{place}#{turn.index}")
    except FieldError as error:
        raise unreadable(path, str(error), line=conversation) from error


def _of_lines(path: Path) -> Iterator[Draft]:
    """JSON lines: the messages of one conversation, or a conversation on each line."""
    single: list[Any] = []
    for number, line in numbered_lines(path):
        value = parse_object(line, path, number)
        if is_message(value):
            single.append(value)
            continue
        messages = messages_in(value)
        if messages is None or single:
            raise unreadable(path, _EXPECTED, line=number)
        yield from drafts_of_messages(path, messages, conversation=number)
    if single:
        yield from drafts_of_messages(path, single)


def _first_line(text: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if line.strip())
