"""Messages of a log as JSON lines, and the evidence that names them.

An invalid line is skipped and reported with its place, its value and what was expected, so that one bad line
of ten thousand doesn't stop a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from germane.evaluation.result import Needle
from germane.importers.dialogue import is_message, message_turns
from germane.importers.sources import (
    FieldError,
    Turn,
    name_of,
    text_of,
    translated_os_errors,
    turn_draft,
)
from germane.model.memory import Draft
from germane.model.text import cut, day_in_words

Line: TypeAlias = tuple[int, Mapping[str, Any]]
"""The number of a line, from 1, and the fields of its object."""

LINES = (".jsonl", ".ndjson")
"""The suffixes of files that hold a JSON object on each line."""

_SESSIONS = ("session", "conversation", "session_id", "conversation_id")
_ALONE = "in message 1, "  # The reader of messages adds this to an error, since each message is read alone.
_BETWEEN = re.compile(r"[;,|\n]")
_AROUND = " \t\"'[]()"
_LOOKED_AT = 20
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLog:
    """The messages of a file, in its order; `ids`, `drafts` and `turns` are parallel.

    `by_name` has the ids of the messages for each name that evidence can use. `until` is the time of the last
    message that has one. `repeated` counts the messages that repeat an earlier one and aren't stored again.
    """

    ids: tuple[str, ...]
    drafts: tuple[Draft, ...]
    turns: tuple[Needle, ...]
    by_name: Mapping[str, Sequence[str]]
    until: datetime | None
    repeated: int


def read_lines(path: Path, left_out: list[str]) -> list[Line]:
    """The objects of a file of JSON lines; unreadable lines are reported in `left_out`.

    Raises UnreadableSource if the file is missing or can't be opened.
    """
    found: list[Line] = []
    with translated_os_errors(path), path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if not data.strip():
                continue
            try:
                found.append((number, _object(data)))
            except FieldError as error:
                left_out.append(misfit(path, number, str(error)))
    return found


def misfit(path: Path, number: int, reason: str) -> str:
    """The report of a skipped line."""
    return f"{path.name}, line {number}: {reason.removeprefix(_ALONE)}."


def shortened(value: object) -> str:
    """A value as quoted in an error."""
    return "nothing" if value is None else cut(repr(value), _SHOWN)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(data.decode("utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise FieldError(
            f"UTF-8 was expected, and byte {error.start + 1} is {data[error.start]:#04x}"
        ) from error
    except UnicodeEncodeError as error:
        raise FieldError(
            f"it holds half of a surrogate pair ({error.object[error.start]!a}), which is no character"
        ) from error
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise FieldError(
            f"a JSON object was expected, and it is no JSON ({reason}): {shortened(data.decode().strip())}"
        ) from error
    if not isinstance(value, dict):
        raise FieldError(f"a JSON object was expected, and it is {shortened(value)}")
    return value


def is_message_log(path: Path) -> bool:
    """Whether the first readable lines of a file contain messages."""
    if path.suffix.lower() not in LINES or not path.is_file():
        return False
    return any(is_message(fields) for _, fields in islice(read_lines(path, []), _LOOKED_AT))


def message_log(files: Iterable[tuple[Path, Sequence[Line]]], left_out: list[str]) -> MessageLog:
    """The messages of files as turns of their sessions; other lines are reported in `left_out`.

    A message with the same words, session and time as an earlier one is a duplicate, and evidence can name it
    by either id.
    """
    seen: dict[tuple[str, str, str, datetime | None], str] = {}
    places: dict[str, int] = {}
    by_name: dict[str, list[str]] = {}
    turns: dict[str, tuple[Draft, Needle]] = {}
    count = repeated = 0
    for path, lines in files:
        for place, (number, fields) in enumerate(lines):
            try:
                session, own, turn = _message(fields, path)
            except FieldError as error:
                left_out.append(misfit(path, number, str(error)))
                continue
            count += 1
            key = (session, turn.speaker, turn.text, turn.at)
            name = seen.get(key)
            if name is None:
                name = f"line {number}" if own is None else own
                name = name if name not in turns else f"{name} ({path.name}, line {number})"
                seen[key] = name
                turns[name] = _stored(
                    replace(turn, index=places.get(session, 0)), session, f"{path.stem}/{name}"
                )
                places[session] = places.get(session, 0) + 1
            else:
                repeated += 1
            for each in dict.fromkeys((own or name, f"line {number}", *_places(path, place))):
                if name not in by_name.setdefault(each, []):
                    by_name[each].append(name)
    return MessageLog(
        ids=tuple(turns),
        drafts=tuple(draft for draft, _ in turns.values()),
        turns=tuple(needle for _, needle in turns.values()),
        by_name=by_name,
        until=max((at for *_, at in seen if at is not None), default=None),
        repeated=repeated,
    )


def _places(path: Path, place: int) -> Iterator[str]:
    """The names of a file and of its message number `place`, with and without leading folders."""
    parts = name_of(path).split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        yield from (tail, f"{tail}#{place}")


def _message(fields: Mapping[str, Any], path: Path) -> tuple[str, str | None, Turn]:
    """The session, the id and the turn of a message. Raises FieldError."""
    if not is_message(fields):
        raise FieldError(
            'a message (an object with "role" and "content") was expected, and its fields are '
            f"{shortened(', '.join(fields))}"
        )
    turn = next(message_turns([fields]), None)
    if turn is None:
        raise FieldError(f"a text as 'content' was expected, and it is {shortened(fields.get('content'))}")
    named = (text_of(fields, each) for each in _SESSIONS)
    return next(filter(None, named), path.stem), text_of(fields, "id"), turn


def _stored(turn: Turn, session: str, source: str) -> tuple[Draft, Needle]:
    draft = turn_draft(turn, session=session, source=source)
    return draft, Needle("" if turn.at is None else day_in_words(turn.at), draft.content, turn.speaker)


def evidence_names(value: object, known: Container[str]) -> list[str]:
    """The distinct names in a question's evidence: a text, a number, a text with several names, or a list.

    A known name is never split. Raises FieldError for any other type.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return list(dict.fromkeys(name for each in value for name in evidence_names(each, known)))
    if isinstance(value, Mapping) and "id" in value:
        return evidence_names(value["id"], known)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FieldError(
            'ids as "evidence" (a text, a number, or a list of them) were expected, and it is '
            f"{shortened(value)}"
        )
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    if text in known:
        return [text]
    parts = list(filter(None, (part.strip(_AROUND) for part in _BETWEEN.split(text))))
    spaced = [word for part in parts for word in part.split()]
    return list(dict.fromkeys(spaced if all(word in known for word in spaced) else parts))
