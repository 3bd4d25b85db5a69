"""Checks at the door: a value that can't be accepted is refused before anything is stored.

Level: verbs. Each error names the value, the limit and the remedy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from germane.errors import InvalidInput
from germane.model.memory import as_utc
from germane.model.names import is_tenant
from germane.model.query import Filter, TimeRange
from germane.model.recalled import own_text
from germane.protocols import Clock
from germane.retrieval.when import parse_moment

__all__ = [
    "MAX_CONTENT",
    "checked_agent",
    "checked_content",
    "checked_count",
    "checked_filter",
    "checked_flag",
    "checked_id",
    "checked_json",
    "checked_moment",
    "checked_number",
    "checked_sequence",
    "checked_tags",
    "checked_text",
    "checked_time",
    "checked_word",
    "checked_words",
    "settled",
]

MAX_CONTENT = 10_000_000
"""Characters in one memory; more than that is a file, to be imported in parts."""

_SHOWN = 60
# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Word = TypeVar("Word", bound=StrEnum)


def checked_agent(agent: object) -> str:
    """The name of an agent. Raises InvalidInput for none, and for one that is kept for spaces."""
    name = checked_text(agent, name="agent")
    if not name.strip():
        raise InvalidInput(f"agent={name!r} is empty: every memory belongs to a named agent.")
    if is_tenant(name):
        raise InvalidInput(
            f"agent={name!r} can't be taken: names that begin with 'space:' are kept for spaces. "
            "Open the store as a member, and use engine.space(...)."
        )
    return name


def checked_content(content: object) -> str:
    """A text with something in it, storable in UTF-8, of at most MAX_CONTENT characters.

    What stands in the fence of recalled text is left out, so that no memory is learned again as new.
    """
    given = checked_text(content, name="content")
    text = own_text(given)
    if text != given and not text.strip():
        raise InvalidInput(
            f"content={_short(given)} came from memory as a whole, as its fence says, and isn't learned "
            "again. Remember what was concluded from it, or take the fence away."
        )
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise InvalidInput(f"content={_short(text)} is empty: a memory needs at least one visible character.")
    if len(text) > MAX_CONTENT:
        raise InvalidInput(
            f"content has {len(text):,} characters; at most {MAX_CONTENT:,} make one memory. "
            "Split it, or let `germane import` split the file by its headings."
        )
    return text


def checked_text(value: object, *, name: str) -> str:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={_short(value)} is {type(value).__name__}; a text (str) is needed.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name}={_short(value)} holds half of a surrogate pair at character {error.start}, which no "
            "UTF-8 text can. Decode the source with errors='replace'."
        ) from None
    return value


def checked_time(value: object, *, name: str, clock: Clock) -> datetime:
    """A time in UTC: an aware one, or the beginning of what a text names, as "last week", by the clock."""
    if not isinstance(value, str):
        return checked_moment(value, name=name)
    moment = parse_moment(checked_text(value, name=name), now=as_utc(clock(), name="clock"))
    if moment is None:
        raise InvalidInput(
            f"{name}={_short(value)} names no time. Write one such as 2026-11-20, 2026-11-20T12:00Z, "
            "'last week', '3 days ago' or 'May 2023'."
        )
    return moment


def settled(where: Filter, clock: Clock) -> Filter:
    """The filter with the moments that texts in its time range name. Raises InvalidInput."""
    when = where.when
    if when is None or not when.in_words:
        return where
    ends = {
        name: None if end is None else checked_time(end, name=name, clock=clock)
        for name, end in (("since", when.since), ("until", when.until))
    }
    return replace(where, when=TimeRange(**ends))


def checked_filter(where: object) -> Filter:
    """A filter, and not the mapping that would say the same."""
    if not isinstance(where, Filter):
        raise InvalidInput(
            f"where={_short(where)} is {type(where).__name__}; "
            "pass one such as germane.Filter(kinds=['fact'])."
        )
    return where


def checked_id(value: object, *, name: str = "memory_id") -> str:
    """The id of a memory. Whoever passes the memory itself is told so."""
    if not isinstance(value, str) and isinstance(getattr(value, "id", None), str):
        raise InvalidInput(f"{name} is a {type(value).__name__}; pass its id: memory.id.")
    return checked_text(value, name=name)


def checked_number(value: object, low: float, high: float, *, name: str) -> float:
    """A finite number from `low` to `high`, both included."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not low <= number <= high:
        raise InvalidInput(f"{name}={_short(value)} is out of range: take a number from {low:g} to {high:g}.")
    return number


def checked_count(value: object, *, name: str, least: int = 0) -> int:
    """A whole number that is at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name}={_short(value)} can't be used: take a whole number of {least} or more.")
    return value


def checked_words(values: object, *, name: str) -> tuple[str, ...]:
    """Several texts."""
    return tuple(checked_text(value, name=name) for value in checked_sequence(values, name=name))


def checked_sequence(values: object, *, name: str) -> Iterable[object]:
    """Several values; one text alone is refused, since it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name}={_short(values)} is one value; pass a sequence, such as ({_short(values)},)."
        )
    return values


def checked_moment(value: object, *, name: str) -> datetime:
    """An aware time, in UTC."""
    if not isinstance(value, datetime):
        raise InvalidInput(
            f"{name}={_short(value)} is {type(value).__name__}; pass an aware datetime, such as "
            "datetime.fromisoformat('2026-11-21T12:00:00+00:00')."
        )
    return as_utc(value, name=name)


def checked_flag(value: object, *, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}={_short(value)} is {type(value).__name__}; pass True or False.")
    return value


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in the order given, each once; a tag is a path such as 'storage:cache'."""
    kept: dict[str, None] = {}
    for text in checked_words(tags, name="tags"):
        if not all(part.strip() for part in text.split(":")):
            raise InvalidInput(
                f"tag={_short(text)} has an empty part: write words parted by ':', such as 'storage:cache'."
            )
        kept[text] = None
    return tuple(kept)


def checked_word(words: type[Word], value: object, *, name: str) -> Word:
    """A value of a closed list, given as itself or as its text."""
    try:
        return words(str(value))
    except ValueError:
        raise InvalidInput(f"{name}={_short(value)} is unknown: take one of {', '.join(words)}.") from None


def checked_json(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Metadata that JSON can hold, as JSON will give it back, and that nobody can change."""
    try:
        given = dict(metadata)
        if not given:
            return MappingProxyType(given)
        text = _in_json(given)
        held = json.loads(text)
        if not text.isascii():
            checked_text(_in_json(held), name="metadata")
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"metadata={_short(metadata)} can't be stored: {error}. Use texts, numbers, booleans, None, "
            "lists and mappings of them."
        ) from error
    if not all(isinstance(key, str) for key in metadata):
        raise InvalidInput(f"metadata={_short(metadata)} has a key that is no text: JSON would change it.")
    return MappingProxyType(held)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
