"""Memories and their history as JSON objects, and back without loss; as lines, hand-written ones too."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from germane.errors import GermaneError, InvalidInput
from germane.importers.sources import (
    EXTERNAL,
    MARKER,
    FieldError,
    as_moment,
    as_tags,
    check_format,
    exact_count,
    exact_flag,
    exact_moment,
    exact_number,
    exact_object,
    exact_text,
    exact_word,
    moment_to_json,
    name_of,
    nearest,
    number_of,
    numbered_lines,
    optional_text,
    plain,
    text_of,
    unreadable,
)
from germane.model.change import UsageHistory, UsageRecord
from germane.model.learning import Example, OutcomeRecord
from germane.model.memory import (
    Cause,
    Draft,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Rendition,
    Renditions,
    Scope,
    Stage,
    split_id,
)

__all__ = [
    "EXPERIENCE_FORMAT",
    "FORMAT",
    "MARKER",
    "RECORD",
    "Learns",
    "Line",
    "RenditionsOf",
    "experienced_from_json",
    "known_by",
    "lifecycle_state_from_json",
    "memory_from_json",
    "memory_to_json",
    "parse_object",
    "read_export",
    "read_jsonl",
    "read_lines",
    "read_memories",
    "usage_history_to_json",
]

FORMAT = 1
"""The format of a memory that is written here, and the newest that can be read."""

RenditionsOf: TypeAlias = Callable[[Draft], Renditions]
"""Makes the renditions of a memory anew."""

_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")


def memory_to_json(memory: Memory, state: LifecycleState | None = None) -> dict[str, Any]:
    """Every field of a memory in types that JSON has, except its agent, which is whoever reads it.

    `life` is what is counted of it in its `standing`, null where that is nothing. Times are ISO text in
    UTC with microseconds. Renditions are written out, since a summarizer's can't be made twice.
    """
    life = None if state is None else _life_to_json(state)
    return {MARKER: FORMAT, **{name: _to_json(getattr(memory, name)) for name in _WRITTEN}, "life": life}


def _to_json(value: Any) -> Any:
    """The value of a field of a memory in types that JSON has."""
    if isinstance(value, Renditions):
        levels = {name: _rendition_to_json(getattr(value, name)) for name in ("micro", "summary", "full")}
        return {**levels, "counter": value.counter}
    if isinstance(value, datetime):
        return moment_to_json(value)
    if isinstance(value, StrEnum | Scope):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def memory_from_json(
    fields: Mapping[str, Any], *, agent: str, renditions_of: RenditionsOf | None = None
) -> Memory:
    """The memory that `memory_to_json` wrote, as `agent`'s.

    `renditions_of` makes what a line lacks of renditions. Raises FieldError for what is no exported
    memory, and for a newer format's.
    """
    check_format(fields, newest=FORMAT)
    found = {name: read(fields, name, _DEFAULTS[name]) for name, read in _READERS.items()}
    # A line of before had an id for each version, and named the memory by that of the first.
    memory_id = exact_text(fields, "chain", found["id"])
    if found["superseded_by"] is not None and "chain" in fields:
        found["superseded_by"] = f"{memory_id}@{found['version'] + 1}"
    updated = exact_moment(fields, "updated_at") if fields.get("updated_at") else found["created_at"]
    apart = {
        "id": memory_id,
        "updated_at": updated,
        "content_hash": exact_text(fields, "content_hash"),
        "renditions": _renditions(fields, renditions_of),
    }
    return Memory(agent=agent, **{**found, **apart})


def _reader(hint: Any) -> Callable[[Mapping[str, Any], str, Any], Any]:
    """What reads a field of this type from an object, by its name and the default where it is absent."""
    optional = NoneType in get_args(hint)
    kind = get_args(hint)[0] if optional else get_origin(hint) or hint
    if issubclass(kind, StrEnum):
        return lambda fields, name, default: exact_word(fields, name, kind, default)
    read = _BY_TYPE[kind]
    if not optional:
        return read
    return lambda fields, name, default: None if fields.get(name) is None else read(fields, name, default)


_BY_TYPE: Final[Mapping[Any, Callable[[Mapping[str, Any], str, Any], Any]]] = {
    str: exact_text,
    int: exact_count,
    float: exact_number,
    bool: lambda fields, name, _: exact_flag(fields, name),
    datetime: lambda fields, name, _: exact_moment(fields, name),
    tuple: lambda fields, *_: _tags(fields),
    Mapping: lambda fields, name, _: MappingProxyType(exact_object(fields, name)),
    Scope: lambda fields, name, default: Scope.parse(exact_text(fields, name, str(default))),
}

_WRITTEN: Final = tuple(each.name for each in dataclass_fields(Memory) if each.name != "agent")
_DEFAULTS: Final = {
    each.name: None if each.default is MISSING else each.default for each in dataclass_fields(Memory)
}
_READERS: Final = {
    name: _reader(hint)
    for name, hint in get_type_hints(Memory).items()
    # A line may lack the second and the third; the fourth has a default, and a line must have it.
    if name not in ("agent", "updated_at", "renditions", "content_hash")
}


def lifecycle_state_from_json(fields: Mapping[str, Any]) -> LifecycleState | None:
    """What `memory_to_json` wrote of a life; None where nothing is counted. Raises FieldError."""
    life = fields.get("life")
    if life is None:
        return None
    counted = exact_object(fields, "life", required=True)
    unknown = sorted(set(counted) - {*_COUNTS, "renewed_at"})
    if unknown:
        raise FieldError(f"'life' has an unknown field {unknown[0]!r}")
    standing = LifecycleState(
        stage=exact_word(fields, "stage", Stage, None),
        **{name: exact_count(counted, name, 0) for name in _COUNTS},
        renewed_at=None if counted.get("renewed_at") is None else exact_moment(counted, "renewed_at"),
    )
    if standing.false_alarms > standing.triggers:
        raise FieldError(
            f"'false_alarms' must be among the {standing.triggers} 'triggers', and is {standing.false_alarms}"
        )
    return standing


def _life_to_json(state: LifecycleState) -> dict[str, Any] | None:
    counts: dict[str, Any] = {name: getattr(state, name) for name in _COUNTS}
    if state.renewed_at is None and not any(counts.values()):
        return None
    return {**counts, "renewed_at": moment_to_json(state.renewed_at) if state.renewed_at else None}


def _rendition_to_json(rendition: Rendition) -> dict[str, Any]:
    return {"text": rendition.text, "tokens": rendition.tokens}


def _renditions(fields: Mapping[str, Any], renditions_of: RenditionsOf | None) -> Renditions:
    if "renditions" not in fields and renditions_of is not None:
        return renditions_of(
            Draft(
                content=exact_text(fields, "content"),
                kind=exact_text(fields, "kind"),
                subject=optional_text(fields, "subject"),
                tags=_tags(fields),
                confidence=exact_number(fields, "confidence", 1.0),
                outcome=text_of(fields, "outcome"),
                metadata=exact_object(fields, "metadata"),
            )
        )
    written = exact_object(fields, "renditions", required=True)
    return Renditions(
        micro=_rendition(written, "micro"),
        summary=_rendition(written, "summary"),
        full=_rendition(written, "full"),
        counter=exact_text(written, "counter"),
    )


def _rendition(written: Mapping[str, Any], level: str) -> Rendition:
    fields = exact_object(written, level, required=True)
    return Rendition(text=exact_text(fields, "text"), tokens=exact_count(fields, "tokens", None))


def _tags(fields: Mapping[str, Any]) -> tuple[str, ...]:
    value = fields.get("tags", [])
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise FieldError(f"'tags' must be a list of texts, and is {value!r}")
    return tuple(value)


# What an agent went through with its memories as JSON objects, and back without loss.

RECORD: Final = "record"
"""The field that says what a line is, where it is no memory."""

EXPERIENCE_FORMAT: Final = 2
"""The format of such lines: one more than a memory's, so that who knows only memories says what is needed."""

Learns: TypeAlias = bool
"""Whether learning was on: what a line says that is about no memory."""

_KEY_DIGITS: Final = 32
_DIGITS: Final = frozenset("0123456789abcdef")

_Word = TypeVar("_Word", bound=StrEnum)

_LEARNING, _SHOWING, _OUTCOME, _EVENT = "learning", "showing", "outcome", "event"


def usage_history_to_json(
    usage_history: UsageHistory, *, agent: str | None, ids: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A JSON object for each part of it that speaks of the memories of these `ids`.

    `agent` is whose it is: what happened by itself says so without its name.
    """
    if usage_history.learns:
        yield {MARKER: EXPERIENCE_FORMAT, RECORD: _LEARNING, "on": True}
    latest: int | None = None
    for showing in usage_history.showings:
        if showing.memory_id in ids:
            later = 1 if latest is None else max(1, showing.given - latest)
            latest = showing.given
            yield {**_head(showing), **_fields(showing, agent, ids), "later": later}
    rest: tuple[UsageRecord, ...] = (*usage_history.outcomes, *usage_history.events)
    for kept in rest:
        if kept.memory_id in ids:
            yield {**_head(kept), **_fields(kept, agent, ids)}


def experienced_from_json(fields: Mapping[str, Any], *, agent: str) -> UsageRecord | Learns:
    """What `usage_history_to_json` wrote, as `agent`'s. Raises FieldError, for a newer format's as well.

    A showing's `given` is by how many numbers it was told later than the one before it.
    """
    check_format(fields, newest=EXPERIENCE_FORMAT)
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
        return OutcomeRecord(
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


def known_by(kept: UsageRecord, ids: Mapping[str, str]) -> UsageRecord | None:
    """The same of the memories as they are called here; None where the memory that it is about isn't here."""
    if kept.memory_id not in ids:
        return None
    called = ids[kept.memory_id]
    if isinstance(kept, LifecycleEvent):
        memory_id, version = split_id(called)
        other = None if kept.other is None else ids.get(kept.other)
        return replace(kept, memory_id=memory_id, version=version or 1, other=other and split_id(other)[0])
    return replace(kept, memory_id=called)


def _head(kept: UsageRecord) -> dict[str, Any]:
    return {MARKER: EXPERIENCE_FORMAT, "memory": kept.memory_id}


def _fields(kept: UsageRecord, agent: str | None, ids: Collection[str]) -> dict[str, Any]:
    if isinstance(kept, Example):
        parts = {name: float(part) for name, part in kept.parts.items()}
        return {RECORD: _SHOWING, "context": kept.context, "used": kept.used, "parts": parts}
    if isinstance(kept, OutcomeRecord):
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


def _event(fields: Mapping[str, Any], agent: str) -> LifecycleEvent:
    return LifecycleEvent(
        number=0,
        memory_id=exact_text(fields, "memory"),
        sign=_word(fields, "sign", LifecycleSignal),
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


# JSON lines of memories: hand-written ones as drafts, exported ones as they were.

Line: TypeAlias = "tuple[Memory, LifecycleState | None] | UsageRecord | Learns"
"""What a line of an export says."""

_FIELDS = (
    "content",
    "text",
    "kind",
    "subject",
    "tags",
    "scope",
    "importance",
    "confidence",
    "outcome",
    "trust",
    "source",
    "created_at",
    "updated_at",
    "pinned",
    "metadata",
)


def read_jsonl(path: Path) -> Iterator[Draft]:
    """One draft per line, read as they are asked for; blank lines are passed over.

    A line is an object with `content` (or `text`) and any other field of a draft. Without a
    `source` it is the file and the text is trusted as a document's; a line that names its source may
    name its `trust` too. An exported line is accepted as well and gives up its id, status and counts
    (`read_memories` keeps them); what was gone through with memories is passed over. Raises
    UnreadableSource, naming the line, for anything else.
    """
    name = name_of(path)
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        if MARKER in fields and RECORD in fields:
            continue
        try:
            yield _draft(fields, name)
        except (FieldError, InvalidInput) as error:
            raise unreadable(path, str(error), line=number) from error


def read_memories(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Memory]:
    """The memories of an export as they were: ids, versions, status, times and counts.

    They become `agent`'s. `renditions_of` makes the renditions of lines that lost theirs. Raises
    UnreadableSource, naming the line, for a line that is no exported memory.
    """
    for memory, _ in read_export(path, agent=agent, renditions_of=renditions_of):
        yield memory


def read_export(
    path: Path, *, agent: str, renditions_of: RenditionsOf | None = None
) -> Iterator[tuple[Memory, LifecycleState | None]]:
    """The memories of an export as they were, each with what was counted of its life.

    None stands where nothing was, and where an older germane wrote the line. Raises UnreadableSource.
    """
    for line in read_lines(path, agent=agent, renditions_of=renditions_of):
        if isinstance(line, tuple):
            yield line


def read_lines(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Line]:
    """All that an export holds: memories as `read_export` gives them, and what was gone through with them.

    Raises UnreadableSource, naming the line.
    """
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        try:
            if RECORD in fields:
                yield experienced_from_json(fields, agent=agent)
                continue
            memory = memory_from_json(fields, agent=agent, renditions_of=renditions_of)
            yield memory, lifecycle_state_from_json(fields)
        except (FieldError, GermaneError) as error:
            raise unreadable(path, str(error).rstrip("."), line=number) from error


def parse_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """The JSON object on a line. Raises UnreadableSource for anything else."""
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is no JSON ({error})", line=number) from error
    if not isinstance(value, dict):
        raise unreadable(path, f"one JSON object was expected, and this is {line[:40]}", line=number)
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _draft(fields: Mapping[str, Any], file: str) -> Draft:
    exported = MARKER in fields
    unknown = () if exported else [name for name in fields if name not in _FIELDS]
    if unknown:
        hint = nearest(unknown[0], _FIELDS) or "."
        raise FieldError(f"unknown field {unknown[0]!r}{hint} Fields of your own go under 'metadata'")
    content = fields.get("content", fields.get("text"))
    if not isinstance(content, str) or not content.strip():
        raise FieldError(f"'content' must be a text that isn't blank, and is {content!r}")
    metadata = fields.get("metadata") or {}
    pinned = fields.get("pinned") or False
    if not isinstance(metadata, dict) or not isinstance(pinned, bool):
        raise FieldError("'metadata' must be an object, and 'pinned' true or false")
    source = text_of(fields, "source")
    return Draft(
        content=content,
        kind=text_of(fields, "kind") or "note",
        subject=text_of(fields, "subject"),
        tags=as_tags(fields.get("tags")),
        scope=text_of(fields, "scope") or "global",
        importance=number_of(fields, "importance"),
        confidence=number_of(fields, "confidence"),
        outcome=text_of(fields, "outcome"),
        trust=text_of(fields, "trust") or (None if exported else EXTERNAL),
        source=source or (None if exported else file),
        created_at=as_moment(fields.get("created_at"), name="created_at", assume_utc=False),
        updated_at=as_moment(fields.get("updated_at"), name="updated_at", assume_utc=False),
        pinned=pinned,
        metadata=plain(metadata),
    )
