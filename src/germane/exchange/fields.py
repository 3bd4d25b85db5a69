"""Fields that a person wrote, in front matter or a line of JSON, as the fields of a draft.

Level: exchange (imports errors).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

__all__ = [
    "FieldError",
    "as_day",
    "as_moment",
    "as_tags",
    "day_in",
    "nearest",
    "number_of",
    "plain",
    "text_of",
]

_MOST_VALUES = 10_000
"""Far beyond any metadata; nested aliases in YAML can name billions of values in a few lines."""


_MOST_LEVELS = 100
"""Deeper values are no metadata, and reading them would exceed Python's limit of recursion."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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
    """A field's value isn't what the field holds; the reader that catches it knows the file and line."""


def text_of(fields: Mapping[str, Any], name: str) -> str | None:
    """A text field; numbers are accepted as their digits, None and a blank text are absent."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FieldError(f"{name!r} must be a text, and is {value!r}")
    return str(value).strip() or None


def number_of(fields: Mapping[str, Any], name: str) -> float | None:
    """A number field; its range is the engine's to judge."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{name!r} must be a number, and is {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError(f"{name!r} must be a finite number, and is {value!r}")
    return number


def as_tags(value: object) -> tuple[str, ...]:
    """Tags from a list, or from one text with commas; a leading `#` is no part of a tag."""
    if value is None:
        return ()
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or any(isinstance(item, list | dict | bool) for item in items):
        raise FieldError(f"'tags' must be a list of texts, or one text with commas, and is {value!r}")
    named = (str(item).strip().lstrip("#") for item in items if item is not None)
    return tuple(dict.fromkeys(tag for tag in named if tag))


def as_moment(value: object, *, name: str, assume_utc: bool) -> datetime | None:
    """An aware time from ISO text, a date, or a time.

    A bare date is its first moment in UTC. A time without an offset is read as UTC where
    `assume_utc`, since documents seldom write one, and is a FieldError otherwise.
    """
    if value is None or value == "":
        return None
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise FieldError(
                f"{name!r} must be a date or time such as 2024-05-01, and is {value!r}"
            ) from None
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


def day_in(text: str) -> str | None:
    """The first day that a text names, in ISO form: 2024-05-01, 2024/5/1, 2024.5.1 or May 1, 2024."""
    for match in _DAY.finditer(text):
        month = match["month"] or match["before"] or match["after"]
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
        year = match["year"] or match["later"] or match["last"]
        day = match["day"] or match["of"] or match["first"]
        try:
            return date(int(year), number, int(day)).isoformat()
        except ValueError:  # The 31st of February has the right form and is no day.
            continue
    return None


def as_day(text: str | None) -> datetime | None:
    """The first moment of a day in ISO text, in UTC; None where the text names no day that exists."""
    try:
        return datetime.combine(date.fromisoformat(text or ""), time(), UTC)
    except ValueError:
        return None


def plain(value: object) -> Any:
    """The value in types that JSON has: times as ISO text, other containers as lists.

    Raises FieldError for a value that has too many parts or is nested too deeply.
    """
    return _plain(value, [_MOST_VALUES], _MOST_LEVELS)


def nearest(name: str, known: tuple[str, ...]) -> str:
    """The known name that was probably meant, as the end of a message; empty when none is near."""
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
