"""Transcripts as messages: the files that `import` reads, for the log of a conversation.

Level: exchange (imports errors, model and conversation).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from germane.conversation.formats import read_messages
from germane.errors import InvalidInput
from germane.exchange.dialogue import dialogue_turns, starts_dialogue
from germane.exchange.fields import FieldError
from germane.exchange.jsonl import parse_object
from germane.exchange.messages import STAMPS, is_message, message_turns
from germane.exchange.sources import numbered_lines, read_text, unreadable
from germane.exchange.turns import Turn
from germane.model.message import Message, Provider, Role, TextPart

__all__ = ["read_conversations"]

_EXPECTED = (
    'a list of messages ({"role": …, "content": …}), an object with "messages" or "input", one of either per '
    "line, or lines such as `user: text` were expected"
)
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "model"})
_SYSTEMS = frozenset({"system", "developer"})


def read_conversations(
    path: Path, provider: str | Provider | None = None
) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """The conversations of a transcript, each with a name: the file's, or `file/N` where there are several.

    Messages keep what their provider needs, and a moment where they have one. In a dialogue between names,
    the first to speak is the user. Raises UnreadableSource, naming the line, for what is no transcript.
    """
    text = read_text(path)
    if starts_dialogue(text):
        yield path.stem, _of_dialogue(list(dialogue_turns(text)))
        return
    if not text.lstrip().startswith(("{", "[")):
        raise unreadable(path, _EXPECTED)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith("{"):
            raise unreadable(path, f"it is no JSON ({error})") from error
        yield from _of_lines(path, provider)
        return
    if isinstance(value, list) and value and all(_is_conversation(each) for each in value):
        for number, each in enumerate(value, start=1):
            yield f"{path.stem}/{number}", _read(path, each, provider)
    else:
        yield path.stem, _read(path, value, provider)


def _of_lines(path: Path, provider: str | Provider | None) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """JSON lines: the messages of one conversation, or a conversation on each line."""
    single: list[Any] = []
    for number, line in numbered_lines(path):
        value = parse_object(line, path, number)
        if not _is_conversation(value):
            single.append(value)
        elif single:
            raise unreadable(path, _EXPECTED, line=number)
        else:
            yield f"{path.stem}/{number}", _read(path, value, provider)
    if single:
        yield path.stem, _read(path, single, provider)


def _is_conversation(value: object) -> bool:
    return isinstance(value, Mapping) and ("messages" in value or "input" in value) and "role" not in value


def _read(path: Path, value: Any, provider: str | Provider | None) -> tuple[Message, ...]:
    name = next((key for key in ("messages", "input") if isinstance(value, Mapping) and key in value), "")
    given: Any = value[name] if name else [value] if isinstance(value, Mapping) else value
    stamped = [_moment(path, each) for each in given] if isinstance(given, list) else []
    if stamped:
        bare = [_without_stamps(each) for each in given]
        value = {**value, name: bare} if name else bare
    try:
        messages = read_messages(value, provider)
    except InvalidInput as error:
        raise unreadable(path, str(error)) from error
    # What stands beside the list comes first, and has no moment.
    moments = [None] * (len(messages) - len(stamped)) + stamped
    return tuple(
        message if moment is None else message.evolve(created_at=moment)
        for message, moment in zip(messages, moments, strict=True)
    )


def _without_stamps(message: object) -> object:
    """The message as its provider would have it."""
    if not isinstance(message, Mapping):
        return message
    return {key: value for key, value in message.items() if key not in STAMPS}


def _moment(path: Path, message: object) -> Any:
    if not is_message(message):
        return None
    try:
        return next((turn.at for turn in message_turns([message])), None)
    except FieldError as error:
        raise unreadable(path, str(error)) from error


def _of_dialogue(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Plain messages; who is named, and by no role, is named in the text as well."""
    first = turns[0].speaker if turns else ""
    made = []
    for number, turn in enumerate(turns, start=1):
        role = _role(turn, first)
        said = turn.text if turn.role else f"{turn.speaker}: {turn.text}"
        made.append(Message(role=role, parts=(TextPart(text=said),), seq=number, created_at=turn.at))
    return tuple(made)


def _role(turn: Turn, first: str) -> Role:
    name = (turn.role or "").lower()
    if name in _SYSTEMS:
        return Role.SYSTEM
    if name:
        # What a tool returned stands in words, and no call is there for it.
        return Role.ASSISTANT if name in _ASSISTANTS or name in ("tool", "function") else Role.USER
    return Role.USER if turn.speaker == first else Role.ASSISTANT
