"""What an agent went through with its memories as JSON objects, and back without loss.

Level: exchange (imports errors and model). They stand after the memories of an export, a line each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from germane.exchange.exact import (
    MARKER,
    check_format,
    exact_count,
    exact_flag,
    exact_moment,
    exact_number,
    exact_object,
    exact_text,
    exact_word,
    moment_to_json,
    optional_text,
)
from germane.exchange.fields import FieldError
from germane.model.experience import Experience, Experienced
from germane.model.learning import Attested, Example
from germane.model.memory import split_id
from germane.model.stage import Cause, LifeEvent, Sign, Stage

__all__ = ["FORMAT", "RECORD", "Learns", "experience_to_json", "experienced_from_json", "known_by"]

RECORD: Final = "record"
"""The field that says what a line is, where it is no memory."""

FORMAT: Final = 2
"""The format of such lines: one more than a memory's, so that who knows only memories says what is needed."""

Learns: TypeAlias = bool
"""Whether learning was on: what a line says that is about no memory."""

_KEY_DIGITS: Final = 32
_DIGITS: Final = frozenset("0123456789abcdef")

_Word = TypeVar("_Word", bound=StrEnum)

_LEARNING, _SHOWING, _OUTCOME, _EVENT = "learning", "showing", "outcome", "event"


def experience_to_json(
    experience: Experience, *, agent: str | None, ids: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A JSON object for each part of it that speaks of the memories of these `ids`.

    `agent` is whose it is: what happened by itself says so without its name.
    """
    if experience.learns:
        yield {MARKER: FORMAT, RECORD: _LEARNING, "on": True}
    latest: int | None = None
    for showing in experience.showings:
        if showing.memory_id in ids:
            later = 1 if latest is None else max(1, showing.given - latest)
            latest = showing.given
            yield {**_head(showing), **_fields(showing, agent, ids), "later": later}
    rest: tuple[Experienced, ...] = (*experience.outcomes, *experience.events)
    for kept in rest:
        if kept.memory_id in ids:
            yield {**_head(kept), **_fields(kept, agent, ids)}


def experienced_from_json(fields: Mapping[str, Any], *, agent: str) -> Experienced | Learns:
    """What `experience_to_json` wrote, as `agent`'s. Raises FieldError, for a newer format's as well.

    A showing's `given` is by how many numbers it was told later than the one before it.
    """
    check_format(fields, newest=FORMAT)
    record = fields.get(RECORD)
    if record == _LEARNING:
        return _flag(fields, "on")
    if record == _SHOWING:
        return Example(
            context=_key(fields),
            memory_id=exact_text(fields, "memory"),
            used=_flag(fields, "used"),
            parts=_parts(fields),
            given=exact_count(fields, "later", 1),
        )
    if record == _OUTCOME:
        return Attested(
            context=_key(fields),
            memory_id=exact_text(fields, "memory"),
            worth=_number(fields, "worth"),
            weight=_number(fields, "weight"),
            at=exact_moment(fields, "at"),
        )
    if record == _EVENT:
        return _event(fields, agent)
    known = f"{_LEARNING}, {_SHOWING}, {_OUTCOME} or {_EVENT}"
    raise FieldError(f"{RECORD!r} must be {known}, and is {record!r}")


def known_by(kept: Experienced, ids: Mapping[str, str]) -> Experienced | None:
    """The same of the memories as they are called here; None where the memory that it is about isn't here."""
    if kept.memory_id not in ids:
        return None
    called = ids[kept.memory_id]
    if isinstance(kept, LifeEvent):
        memory_id, version = split_id(called)
        other = None if kept.other is None else ids.get(kept.other)
        return replace(kept, memory_id=memory_id, version=version or 1, other=other and split_id(other)[0])
    return replace(kept, memory_id=called)


def _head(kept: Experienced) -> dict[str, Any]:
    return {MARKER: FORMAT, "memory": kept.memory_id}


def _fields(kept: Experienced, agent: str | None, ids: Collection[str]) -> dict[str, Any]:
    if isinstance(kept, Example):
        parts = {name: float(part) for name, part in kept.parts.items()}
        return {RECORD: _SHOWING, "context": kept.context, "used": kept.used, "parts": parts}
    if isinstance(kept, Attested):
        worths = {"worth": float(kept.worth), "weight": float(kept.weight)}
        return {RECORD: _OUTCOME, "context": kept.context, **worths, "at": moment_to_json(kept.at)}
    return {
        RECORD: _EVENT,
        "sign": str(kept.sign),
        "before": str(kept.before),
        "after": str(kept.after),
        "cause": str(kept.cause),
        "by": None if kept.by == agent else kept.by,
        "other": kept.other if kept.other in ids else None,
        "at": moment_to_json(kept.at),
    }


def _event(fields: Mapping[str, Any], agent: str) -> LifeEvent:
    return LifeEvent(
        number=0,
        memory_id=exact_text(fields, "memory"),
        sign=_word(fields, "sign", Sign),
        before=_word(fields, "before", Stage),
        after=_word(fields, "after", Stage),
        cause=_word(fields, "cause", Cause),
        by=optional_text(fields, "by") or agent,
        at=exact_moment(fields, "at"),
        other=optional_text(fields, "other"),
    )


def _key(fields: Mapping[str, Any]) -> str:
    key = exact_text(fields, "context")
    if len(key) != _KEY_DIGITS or not set(key) <= _DIGITS:
        raise FieldError(f"'context' must be {_KEY_DIGITS} hexadecimal digits, and is {key!r}")
    return key


def _parts(fields: Mapping[str, Any]) -> dict[str, float]:
    parts = exact_object(fields, "parts")
    return {name: _number(parts, name) for name in parts}


def _number(fields: Mapping[str, Any], name: str) -> float:
    _required(fields, name)
    return exact_number(fields, name, 0.0)


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    _required(fields, name)
    return exact_flag(fields, name)


def _word(fields: Mapping[str, Any], name: str, words: type[_Word]) -> Any:
    _required(fields, name)
    return exact_word(fields, name, words, None)


def _required(fields: Mapping[str, Any], name: str) -> None:
    if fields.get(name) is None:
        raise FieldError(f"{name!r} is missing")
