"""Dialogues, transcripts and messages of provider APIs, as turns or as the log of a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from germane.conversation.formats import read_messages
from germane.conversation.formats.parts import call_in_words, named_fields, result_in_words
from germane.errors import InvalidInput
from germane.importers.chat_exports import (
    claude_memories,
    custom_instructions,
    export_product,
    exported_conversations,
    exported_values,
    is_chat_export,
    is_claude_memory,
)
from germane.importers.foreign import LeaveOut, uncounted
from germane.importers.host_transcripts import read_host_transcript
from germane.importers.records import parse_object
from germane.importers.sources import (
    FieldError,
    Turn,
    as_moment,
    as_stamp,
    name_of,
    numbered_lines,
    read_text,
    turn_draft,
    unreadable,
)
from germane.model.conversation import Message, MessageRole, Provider, TextPart
from germane.model.memory import Draft
from germane.model.text import own_text

_EXPECTED = (
    'a list of messages ({"role": …, "content": …}), an object with "messages" or "input", one of either per '
    "line, or lines such as `user: text` were expected"
)
_LISTS = ("messages", "input")
"""The fields with the messages of a conversation in the formats of providers."""
# In a dialogue the result of a tool is plain text, without a call that it answers.
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "model", "tool", "function"})
_SYSTEMS = frozenset({"system", "developer"})


def read_conversations(
    path: Path, provider: str | Provider | None = None, *, leave_out: LeaveOut = uncounted
) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """The conversations of a transcript, each with a name: the file's, or `file/N` if there are several.

    Messages retain the fields of their provider, and their times if any. In a dialogue between names, the
    first speaker is the user. A host's transcript is read as `read_host_transcript` has it. Those of a data
    export of ChatGPT or Claude are named by their ids; the export may also be a zip file or its folder, and
    `leave_out` counts what isn't taken over of it. Raises UnreadableSource, naming the line, if the file
    isn't a transcript.
    """
    if is_chat_export(path):
        for name, value in exported_values(path):
            if export_product(value) is None or is_claude_memory(value):
                leave_out(f"file {name}, which has no conversations")
                continue
            for each in exported_conversations(value, path, leave_out):
                yield each.id, _read(path, {"messages": each.with_attachments()}, provider, line=None)
        return
    text = read_text(path)
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{") and '"sessionId"' in first:
        yield path.stem, read_host_transcript(path)
        return
    if starts_dialogue(text):
        yield path.stem, _of_dialogue(list(dialogue_turns(text)))
        return
    for number, line, value in _json_conversations(path, text):
        if export_product(value) is None:
            yield path.stem + number, _read(path, value, provider, line=line)
            continue
        for each in exported_conversations(value, path, leave_out):
            yield each.id, _read(path, {"messages": each.with_attachments()}, provider, line=line)


def _json_conversations(path: Path, text: str) -> Iterator[tuple[str, int | None, Any]]:
    """Each conversation of a file as JSON, with `/N` if there are several, and its line, if it has one."""
    if not text.lstrip().startswith(("{", "[")):
        raise unreadable(path, _EXPECTED, line=text[: len(text) - len(text.lstrip())].count("\n") + 1)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith("{"):
            raise unreadable(path, f"it is no JSON ({error})") from error
        yield from _of_lines(path)
        return
    if isinstance(value, list) and value and all(_is_conversation(each) for each in value):
        for number, each in enumerate(value, start=1):
            yield f"/{number}", None, each
    else:
        yield "", None, value


def _of_lines(path: Path) -> Iterator[tuple[str, int | None, Any]]:
    """JSON lines: the messages of one conversation, or a conversation on each line."""
    single: list[Any] = []
    for number, line in numbered_lines(path):
        value = parse_object(line, path, number)
        if _is_conversation(value) and not single:
            yield f"/{number}", number, value
        elif "role" in value or "type" in value:
            single.append(value)
        else:
            raise unreadable(path, _EXPECTED, line=number)
    if single:
        yield "", None, single


def _is_conversation(value: object) -> bool:
    return isinstance(value, Mapping) and any(name in value for name in _LISTS) and "role" not in value


def _read(
    path: Path, value: Any, provider: str | Provider | None, *, line: int | None
) -> tuple[Message, ...]:
    name = next((key for key in _LISTS if isinstance(value, Mapping) and key in value), "")
    given: Any = value[name] if name else [value] if isinstance(value, Mapping) else value
    moments: list[datetime | None] = []
    try:
        if isinstance(given, list):
            moments = [_stamp(each) if is_message(each) else None for each in given]
            bare = [_without_stamps(each) for each in given]
            value = {**value, name: bare} if name else bare
        messages = read_messages(value, provider)
    except (FieldError, InvalidInput) as error:
        raise unreadable(path, str(error), line=line) from error
    # A system prompt beside the list comes first, and has no time.
    before: list[datetime | None] = [None] * (len(messages) - len(moments))
    return tuple(
        message if moment is None else message.evolve(created_at=moment)
        for message, moment in zip(messages, before + moments, strict=True)
    )


def _without_stamps(message: object) -> object:
    """The message without the fields that no provider accepts."""
    if not isinstance(message, Mapping):
        return message
    return {key: value for key, value in message.items() if key not in STAMPS}


def _of_dialogue(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """The turns as plain messages; a speaker with a name and no role is also named in the text."""
    first = turns[0].speaker if turns else ""
    made = []
    for number, turn in enumerate(turns, start=1):
        role = _role(turn, first)
        text = turn.text if turn.role else f"{turn.speaker}: {turn.text}"
        made.append(Message(role=role, parts=(TextPart(text=text),), seq=number, created_at=turn.at))
    return tuple(made)


def _role(turn: Turn, first: str) -> MessageRole:
    if not turn.role:
        return MessageRole.USER if turn.speaker == first else MessageRole.ASSISTANT
    name = turn.role.lower()
    if name in _SYSTEMS:
        return MessageRole.SYSTEM
    return MessageRole.ASSISTANT if name in _ASSISTANTS else MessageRole.USER


# Chat transcripts as drafts, one per turn.


def read_transcript(path: Path) -> Iterator[Draft]:
    """The turns of a transcript as drafts; the format is detected by the content, not by the suffix.

    The formats are messages of the OpenAI and the Anthropic API (a list, an object with `messages`, or one
    message or conversation per line) and plain text (see `dialogue_turns`). Each turn is an episode with the
    tag `turn`, in the session named after the file, or `file/N` if the file has several conversations. So a
    longer transcript adds only its new turns. Raises UnreadableSource, naming the line or the message, for
    anything else.
    """
    text, name = read_text(path), name_of(path)
    if starts_dialogue(text):
        for turn in dialogue_turns(own_text(text, whole=False)):
            yield turn_draft(turn, session=path.stem, source=f"{name}#{turn.index}")
        return
    for number, line, value in _json_conversations(path, text):
        messages = messages_in([value] if is_message(value) else value)
        if messages is None:
            raise unreadable(path, _EXPECTED, line=line)
        source = name + number.replace("/", "#")
        try:
            for turn in message_turns(messages):
                yield turn_draft(turn, session=path.stem + number, source=f"{source}#{turn.index}")
        except FieldError as error:
            raise unreadable(path, str(error), line=line) from error


def read_chat_export(path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The turns of a data export of ChatGPT or Claude as episodes in the sessions of its conversations.

    Custom instructions and memories are drafts too. `path` is a folder, a zip file, or one of its files.
    Raises UnreadableSource, naming the file and the conversation.
    """
    for name, value in exported_values(path):
        product = export_product(value)
        if product is None:
            leave_out(f"file {name}, which has neither conversations nor memories")
        elif is_claude_memory(value):
            yield from claude_memories(value, path, leave_out)
        else:
            for each in exported_conversations(value, path, leave_out):
                about = {"title": each.title} if each.title else {}
                for turn in message_turns(each.messages):
                    source = f"{product}:{each.id}#{turn.index}"
                    yield turn_draft(turn, session=each.id, source=source, metadata=about)
                yield from each.notes()
            yield from custom_instructions(value)


# Messages in the formats of the OpenAI and Anthropic APIs as turns.
#
# Files come from many tools, so this reader is more lenient than `germane.conversation.formats`, which
# returns messages exactly as they were read.

STAMPS = ("created_at", "timestamp", "create_time", "time", "date")
"""The fields with the time of a message in files; no provider has such a field."""
_TEXTS = frozenset({"text", "input_text", "output_text"})


def is_message(value: object) -> bool:
    """Whether a JSON value is a message: an object with a role, and content or calls."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def is_transcript(value: object) -> bool:
    """Whether a JSON value is a message, a conversation, or a list of either, by its first item."""
    first = value[0] if isinstance(value, list) and value else value
    return is_message(first) or messages_in(first) is not None


def messages_in(value: Any) -> Sequence[Any] | None:
    """The messages of a JSON list, or of an object with such a list; None for any other value.

    A system prompt beside the list, as in Anthropic's format, becomes the first message.
    """
    for name in _LISTS if isinstance(value, Mapping) else ():
        if isinstance(value.get(name), list):
            system = value.get("system")
            opening = [{"role": "system", "content": system}] if system else []
            return [*opening, *value[name]]
    if isinstance(value, list) and value and is_message(value[0]):
        return value
    return None


def message_turns(messages: Sequence[Any]) -> Iterator[Turn]:
    """One turn per message with text, a call or a result, with tool use in readable words.

    A result names its tool. Raises FieldError for an invalid message, with its number from 1.
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
    """Reads messages in order, since a tool's result names its call by id only."""

    tools: dict[str, str] = field(default_factory=dict)

    def turn(self, message: object, index: int) -> Turn | None:
        """The message as a turn; None if it has no text."""
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
        # In Anthropic's format a message with results only has the role of the user.
        if content and isinstance(content, list) and all(map(_is_result, content)):
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
        """One part of a content as text; a part without text becomes its name in brackets."""
        if isinstance(part, str):
            return own_text(part, whole=False)
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise FieldError("each part of a content must be an object with a 'type'")
        kind = part["type"]
        if kind in _TEXTS:
            # Text from memory is stored already, and would be imported as new.
            return own_text(str(part.get("text") or ""), whole=False)
        if kind.endswith("tool_use"):
            return self.call(part.get("id"), part.get("name"), part.get("input"))
        if kind.endswith("tool_result"):
            name = self.tools.get(str(part.get("tool_use_id")), "tool")
            text = "\n".join(self.parts(part.get("content")))
            return result_in_words(name, text, failed=bool(part.get("is_error")))
        return named_fields(kind, part)

    def calls(self, message: Mapping[str, Any]) -> Iterator[str]:
        """The tool calls beside the content in OpenAI's format, current and deprecated."""
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
        """A call in readable words; its name is stored for the result."""
        named = str(name or "tool")
        if call_id is not None:
            self.tools[str(call_id)] = named
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return call_in_words(named, shown)


def _is_result(part: object) -> bool:
    return isinstance(part, Mapping) and str(part.get("type")).endswith("tool_result")


def _stamp(message: Mapping[str, Any]) -> datetime | None:
    """The time of the message, from ISO text or seconds or milliseconds since 1970; None without a time."""
    for name in STAMPS:
        value = message.get(name)
        if isinstance(value, int | float | str) and not isinstance(value, bool) and value != "":
            return as_stamp(value, name=name)
    return None


# Dialogues as `Name: text` lines.

_TURN = re.compile(
    r"(?:\[?(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]?"
    r"\s{0,8}[-\u2013]?\s{0,8})?"
    r"(?:\*\*|<)?(?P<name>[^\W\d_][\w.'\u2019()&-]*(?: [\w.'\u2019()&-]+){0,3})(?:\*\*|>)?:"
    r"(?:\*\*)?(?:\s+(?P<text>.*)|$)"
)
_ROLES = frozenset(
    {"user", "assistant", "system", "developer", "tool", "function", "human", "ai", "bot", "agent", "model"}
)
_LABELS = frozenset(
    {"note", "notes", "todo", "warning", "error", "example", "examples", "hint", "tip", "ps", "p.s", "p.s."}
    | {"edit", "update", "re", "fwd", "subject", "date", "from", "to", "cc", "source", "output", "input"}
    | {"result", "results", "answer", "question", "traceback", "http", "https", "file", "e.g", "e.g.", "i.e."}
)
"""Words before a colon that begin a remark within a turn and aren't names."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def starts_dialogue(text: str) -> bool:
    """Whether the first line that isn't blank is a turn."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    match = _TURN.fullmatch(first.rstrip())
    return match is not None and _is_name(match)


def dialogue_turns(text: str) -> Iterator[Turn]:
    """The turns of a text in which each turn begins with its speaker, as `user: …` or `Ann Lee: …`.

    A day and time can precede the name, with or without brackets; without an offset it is UTC. Other lines
    belong to the turn above. The first turn decides which lines begin turns: if its speaker is a role, only
    roles; if it has a time, only lines with a time. Indented lines, lines in code blocks and labels such as
    `Note:` never begin a turn. Text before the first turn is skipped; see `starts_dialogue`.
    """
    speaker, stamp, lines, index = "", None, list[str](), 0
    counts, fence = _is_name, ""
    for line in text.split("\n"):
        match = None if fence else _TURN.fullmatch(line.rstrip())
        fence = _fence_after(line, fence)
        if match is None or not counts(match):
            lines.append(line.rstrip())
            continue
        if not speaker:
            counts = _has_stamp if match["stamp"] else _is_role if _is_role(match) else _is_name
        elif spoken := "\n".join(lines).strip():
            yield _turn(speaker, stamp, spoken, index)
        index += bool(speaker)
        speaker, stamp, lines = match["name"], match["stamp"], [match["text"] or ""]
        fence = _fence_after(lines[0], "")
    if speaker and (spoken := "\n".join(lines).strip()):
        yield _turn(speaker, stamp, spoken, index)


def _has_stamp(line: re.Match[str]) -> bool:
    return line["stamp"] is not None


def _is_role(line: re.Match[str]) -> bool:
    return line["name"].lower() in _ROLES


def _is_name(line: re.Match[str]) -> bool:
    return line["name"].lower() not in _LABELS


def _fence_after(line: str, fence: str) -> str:
    """The fence of the code block that is open after the line; empty if none is open."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    mark = match[1]
    if not fence:
        return mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and line.strip() == mark
    return "" if closes else fence


def _turn(speaker: str, stamp: str | None, text: str, index: int) -> Turn:
    role = speaker.lower() if speaker.lower() in _ROLES else None
    at = None
    with suppress(FieldError):  # The 31st of February has the right form and is no day.
        at = as_moment(stamp, name="the time", assume_utc=True)
    return Turn(speaker=speaker, role=role, text=text, index=index, at=at)
