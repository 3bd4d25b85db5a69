"""The sources of drafts: text files, fields that a person wrote, and turns of a dialogue."""

from __future__ import annotations

import codecs
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from germane.errors import MissingExtra, UnreadableSource
from germane.model.memory import Draft
from germane.model.text import MONTHS, day_in_words

_Item = TypeVar("_Item")

EXTERNAL = "external"
"""The trust of text from a file, which can claim any speaker and any rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of a source that was skipped, and the reason."""

    source: str
    reason: str


OnSkip: TypeAlias = Callable[[Skipped], None]
"""Receives each part that a reader skips."""


def raise_skipped(skipped: Skipped) -> None:
    """Raise UnreadableSource with the reason: the default of `on_skip`."""
    raise UnreadableSource(skipped.reason)


def read_text(path: Path) -> str:
    """The whole file as text with line feeds as line ends and without a byte order mark.

    Raises UnreadableSource if the file is missing, unreadable, binary, not UTF-8, or blank.
    """
    with translated_os_errors(path):
        data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise unreadable(path, "it is UTF-16, and UTF-8 was expected. Save it as UTF-8")
    if b"\0" in data:
        raise unreadable(path, "it is binary, and text in UTF-8 was expected")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise unreadable(
            path, f"byte {data[error.start]:#04x} is not UTF-8. Save the file as UTF-8", line=line
        ) from error
    if not text.strip():
        raise unreadable(path, "it is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that aren't blank, each with its number from 1, read lazily.

    Lines end with a line feed, or a carriage return and a line feed, since JSON texts can contain all other
    line separators of Unicode. Raises UnreadableSource as `read_text` does.
    """
    with translated_os_errors(path), path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if b"\0" in data:
                raise unreadable(path, "it holds a NUL byte, and text in UTF-8 was expected", line=number)
            try:
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise unreadable(path, "it is not UTF-8. Save the file as UTF-8", line=number) from error
            if line.strip():
                yield number, line.strip()


def name_of(path: Path) -> str:
    """A name for a file that doesn't depend on the spelling of its path.

    Inside a repository it is the path from the repository's root, so that an import of the repository, of a
    folder or of one file gives the same names; elsewhere it is the file's name after its folder's.
    """
    absolute = path.resolve()
    for folder in absolute.parents:
        if (folder / ".git").exists():
            return absolute.relative_to(folder).as_posix()
    return f"{absolute.parent.name}/{absolute.name}" if absolute.parent.name else absolute.name


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of `size`, read lazily; the last may be shorter."""
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


def unreadable(path: Path | str, reason: str, *, line: int | None = None) -> UnreadableSource:
    """The error for a file, or a line of it, that can't be imported."""
    place = f"{path}, line {line}" if line is not None else str(path)
    return UnreadableSource(f"Can't import {place}: {reason}.")


@contextmanager
def translated_os_errors(path: Path) -> Iterator[None]:
    """Raise UnreadableSource for errors of the operating system inside the block."""
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable(path, "there is no such file or folder") from error
    except IsADirectoryError as error:
        raise unreadable(path, "it is a folder, and a file was expected") from error
    except OSError as error:
        raise unreadable(path, f"the system refused to read it ({error.strerror or error})") from error


# Fields in front matter or in a line of JSON as the fields of a draft.

_MOST_VALUES = 10_000
"""A limit far above real metadata: nested aliases in YAML can expand to billions of values."""

_MOST_LEVELS = 100
"""A limit far above real metadata, below Python's recursion limit."""

_MONTHS = tuple(name[:3].lower() for name in MONTHS)
_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DAY = re.compile(
    r"(?<![\d./-])(?:(?P<year>\d{4})(?P<mark>[./-])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})"
    rf"|(?P<before>{_MONTH})\.?\s(?P<of>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<later>\d{{4}})"
    rf"|(?P<first>\d{{1,2}})(?:st|nd|rd|th)?\s(?P<after>{_MONTH})\.?,?\s(?P<last>\d{{4}}))(?!\d)",
    re.IGNORECASE,
)


class FieldError(ValueError):
    """An invalid value of a field; the reader that catches it adds the file and the line."""


def draft_of_fields(fields: Mapping[str, Any], **given: Any) -> Draft:
    """A draft of the fields, except content, trust, source, times of the source and metadata.

    `given` are fields of the draft that the reader sets. Raises FieldError.
    """
    pinned = fields.get("pinned") or False
    if not isinstance(pinned, bool):
        raise FieldError(f"'pinned' must be true or false, and is {pinned!r}")
    tags = (text.lstrip("#") for text in as_texts(fields.get("tags"), name="tags"))
    named: dict[str, Any] = {
        "kind": text_of(fields, "kind") or "note",
        "subject": text_of(fields, "subject"),
        "tags": tuple(dict.fromkeys(filter(None, tags))),
        "scope": text_of(fields, "scope") or "global",
        "importance": number_of(fields, "importance"),
        "confidence": number_of(fields, "confidence"),
        "outcome": text_of(fields, "outcome"),
        "pinned": pinned,
        "session": text_of(fields, "session"),
        "key": text_of(fields, "key"),
        "valid_from": text_of(fields, "valid_from"),
        "valid_until": text_of(fields, "valid_until"),
        "expires_at": text_of(fields, "expires_at"),
        "ttl": number_of(fields, "ttl"),
    }
    return Draft(**(named | given))


def text_of(fields: Mapping[str, Any], name: str) -> str | None:
    """A text field; numbers become their digits, and None and blank texts become None."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FieldError(f"{name!r} must be a text, and is {value!r}")
    return str(value).strip() or None


def number_of(fields: Mapping[str, Any], name: str) -> float | None:
    """A number field. The engine checks its range."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{name!r} must be a number, and is {value!r}")
    if not abs(value) <= sys.float_info.max:
        raise FieldError(f"{name!r} must be a finite number, and is {value!r}")
    return float(value)


def as_texts(value: object, *, name: str) -> tuple[str, ...]:
    """The texts of a list, or of one text with commas, each once and without blanks around it."""
    items = value.split(",") if isinstance(value, str) else () if value is None else value
    if not isinstance(items, list | tuple) or any(isinstance(item, list | dict | bool) for item in items):
        raise FieldError(f"{name!r} must be a list of texts, or one text with commas, and is {value!r}")
    texts = (str(item).strip() for item in items if item is not None)
    return tuple(dict.fromkeys(text for text in texts if text))


def as_moment(value: object, *, name: str, assume_utc: bool) -> datetime | None:
    """An aware time from ISO text, a date, or a time.

    A date is its first moment in UTC. A time without an offset is UTC with `assume_utc`, since documents
    rarely have an offset, and raises FieldError otherwise.
    """
    if value is None or value == "":
        return None
    moment = value
    if isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value.strip())
        assume_utc = assume_utc or len(value.strip()) == len("2024-05-01")
    elif isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    if not isinstance(moment, datetime):
        raise FieldError(f"{name!r} must be a date or time such as 2024-05-01, and is {value!r}")
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    if not assume_utc:
        raise FieldError(f"{name!r} has no time zone: {value!r}. Add an offset, such as Z or +02:00")
    return moment.replace(tzinfo=UTC)


_MILLISECONDS = 100_000_000_000
"""Seconds since 1970 reach this value in the year 5138, so greater values are milliseconds."""


def as_stamp(value: object, *, name: str) -> datetime | None:
    """An aware time from ISO text or from seconds or milliseconds since 1970; None without a time.

    A time without an offset is UTC. Raises FieldError.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS else value, UTC)
        except (ValueError, OverflowError, OSError):
            raise FieldError(f"{name!r} must be seconds since 1970, and is {value!r}") from None
    return as_moment(value, name=name, assume_utc=True)


def day_in(text: str) -> str | None:
    """The first day that a text names, in ISO form: 2024-05-01, 2024/5/1, 2024.5.1 or May 1, 2024."""
    for match in _DAY.finditer(text):
        month = match["month"] or match["before"] or match["after"]
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
        year = match["year"] or match["later"] or match["last"]
        day = match["day"] or match["of"] or match["first"]
        with suppress(ValueError):  # Such as the 31st of February.
            return date(int(year), number, int(day)).isoformat()
    return None


def as_day(text: str | None) -> datetime | None:
    """The first moment of a day in ISO text, in UTC; None if the text names no existing day."""
    try:
        return datetime.combine(date.fromisoformat(text or ""), time(), UTC)
    except ValueError:
        return None


def plain(value: object) -> Any:
    """The value in JSON types: times as ISO text, other containers as lists.

    Raises FieldError for a value with too many parts or too many levels.
    """
    return _plain(value, [_MOST_VALUES], _MOST_LEVELS)


def nearest(name: str, known: tuple[str, ...]) -> str:
    """The most similar known name, as the end of a message; empty if none is similar."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _plain(value: object, left: list[int], levels: int) -> Any:
    left[0] -= 1
    if levels < 0:
        raise FieldError(f"the fields are nested more than {_MOST_LEVELS} levels deep")
    if left[0] < 0:
        raise FieldError(f"the fields hold more than {_MOST_VALUES:,} values")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, left, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(item, left, levels - 1) for item in items]
    return str(value)


# The YAML block that opens a Markdown file.

_FENCE = "---"
_FENCE_ENDS = ("---", "...")


def split_front_matter(text: str, path: Path) -> tuple[Mapping[str, Any], str, int]:
    """The front matter of a document, its body, and the number of lines of the front matter.

    A first line `---` without a closing line, or with only prose before it, is a horizontal rule and no front
    matter. Raises UnreadableSource, naming the line, for a block that isn't YAML or is a list.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return {}, text, 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in _FENCE_ENDS), 0)
    fields = _load("\n".join(lines[1:end]), path) if end else None
    if fields is None:
        return {}, text, 0
    return fields, "\n".join(lines[end + 1 :]), end + 1


def _load(block: str, path: Path) -> Mapping[str, Any] | None:
    """The fields of the block; None if it is prose."""
    try:
        import yaml  # noqa: PLC0415 - An optional dependency, needed only where there is front matter.
    except ImportError as error:
        raise MissingExtra(feature="Reading front matter", extra="cli") from error
    try:
        fields = yaml.safe_load(block)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        reason = f"its front matter is no YAML ({error.problem or error.context})"
        raise unreadable(path, reason, line=line) from error
    except (yaml.YAMLError, ValueError) as error:  # A date such as 2024-13-45 is a ValueError.
        raise unreadable(path, f"its front matter is no YAML ({error})") from error
    except RecursionError as error:
        raise unreadable(path, "its front matter is nested too deeply", line=1) from error
    if fields is None:
        return {}
    if isinstance(fields, str):
        return None
    if not isinstance(fields, dict):
        raise unreadable(path, "its front matter must be `name: value` lines", line=2)
    return {str(name): value for name, value in fields.items()}


# A turn of a dialogue as a draft, for every format of dialogues.

TURN = "turn"
"""The tag of every turn of a dialogue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The words of one speaker; `index` counts the turns of its session from 0.

    `role` is the role of the speaker in a chat interface (user, assistant, tool …), if any.
    """

    speaker: str
    text: str
    index: int
    role: str | None = None
    at: datetime | None = None


def turn_draft(turn: Turn, *, session: str, source: str, metadata: Mapping[str, Any] | None = None) -> Draft:
    """The turn as an episode of its session.

    The content names the speaker. The day, if known, is in the metadata, so that the turn is found by it; a
    context shows it once above all turns of that day.
    """
    named: dict[str, Any] = {"session": session, "index": turn.index, "speaker": turn.speaker}
    named |= {"role": turn.role} if turn.role else {}
    named |= {"day": day_in_words(turn.at)} if turn.at else {}
    return Draft(
        content=f"{turn.speaker}: {turn.text}",
        kind="episode",
        tags=(TURN,),
        scope=f"session:{session}",
        trust=EXTERNAL,
        source=source,
        created_at=turn.at,
        metadata={**named, **(metadata or {})},
    )
