"""Fields of a line that an export wrote: what was written there, or an error that names the field.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from germane.exchange.fields import FieldError, as_moment, number_of

__all__ = [
    "MARKER",
    "check_format",
    "exact_count",
    "exact_flag",
    "exact_moment",
    "exact_number",
    "exact_object",
    "exact_text",
    "exact_word",
    "moment_to_json",
    "optional_text",
]

MARKER = "germane"
"""The field by which a line is known to be an export's; its value is the format's number."""

_Word = TypeVar("_Word", bound=StrEnum)


def check_format(fields: Mapping[str, Any], *, newest: int) -> None:
    """Raise FieldError for a line of no format, or of one that is newer than the newest that is known."""
    found = fields.get(MARKER)
    if found is None:
        raise FieldError(f"an exported memory was expected, with the field {MARKER!r}: {newest}")
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise FieldError(f"{MARKER!r} must be the format's number {newest}, and is {found!r}")
    if found > newest:
        raise FieldError(
            f"a newer germane wrote it (format {found}, and this one reads up to {newest}). Upgrade germane"
        )


def exact_text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text, or the default where there is none."""
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise FieldError(f"{name!r} must be a text, and is {value!r}")
    return value


def optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    """A text, or None."""
    return None if fields.get(name) is None else exact_text(fields, name)


def exact_moment(fields: Mapping[str, Any], name: str) -> datetime:
    """A time with an offset, which must be there."""
    moment = as_moment(fields.get(name), name=name, assume_utc=False)
    if moment is None:
        raise FieldError(f"{name!r} is missing")
    return moment


def moment_to_json(moment: datetime) -> str:
    """A time as ISO text in UTC with microseconds, as `exact_moment` reads it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def exact_count(fields: Mapping[str, Any], name: str, default: int | None) -> int:
    """A number of things, or the default where there is none."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FieldError(f"{name!r} must be a count, and is {value!r}")
    return value


def exact_number(fields: Mapping[str, Any], name: str, default: float) -> float:
    """A finite number, or the default where there is none."""
    value = number_of(fields, name)
    return default if value is None else value


def exact_flag(fields: Mapping[str, Any], name: str) -> bool:
    """True or false, and false where there is nothing."""
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise FieldError(f"{name!r} must be true or false, and is {value!r}")
    return value


def exact_object(fields: Mapping[str, Any], name: str, *, required: bool = False) -> dict[str, Any]:
    """An object, empty where there is none and none is required."""
    value = fields.get(name, None if required else {})
    if not isinstance(value, dict):
        raise FieldError(f"{name!r} must be an object, and is {value!r}")
    return value


def exact_word(fields: Mapping[str, Any], name: str, names: type[_Word], default: _Word | None) -> Any:
    """One of some words, or the default where there is none."""
    value = fields.get(name)
    if value is None:
        return default
    try:
        return names(value)
    except ValueError:
        raise FieldError(f"{name!r} must be one of {', '.join(names)}, and is {value!r}") from None
