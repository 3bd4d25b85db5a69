"""Memories and their usage history as JSON lines without loss, and hand-written JSON lines as drafts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, replace
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from germane.errors import GermaneError, InvalidInput
from germane.importers.sources import (
    EXTERNAL,
    FieldError,
    as_moment,
    draft_of_fields,
    name_of,
    nearest,
    number_of,
    numbered_lines,
    plain,
    text_of,
    unreadable,
)
from germane.model.change import UsageHistory, UsageRecord
from germane.model.extraction import LearningRun, run_from_text, run_to_text
from germane.model.learning import Example, OutcomeRecord
from germane.model.memory import (
    Cause,
    Draft,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Outcome,
    Rendition,
    Renditions,
    Scope,
    Stage,
    Status,
    Trust,
    split_id,
)

MARKER: Final = "germane"
"""The field that marks a line of an export; its value is the number of the format."""

FORMAT = 1
"""The number of the format of memories that is written, and the newest that can be read."""

HISTORY_FORMAT: Final = 2
"""The format of usage records, above FORMAT so that readers of memories only demand an upgrade."""

RECORD: Final = "record"
"""The field with the type of a usage record; memories don't have it."""

RenditionsOf: TypeAlias = Callable[[Draft], Renditions]
"""Makes the renditions of a memory without them."""

Learns: TypeAlias = bool
"""Whether learning was on, as stored in one line of an export."""

_Made = TypeVar("_Made")
_LEARNING: Final = "learning"
_RUN: Final = "learning_run"
_RECORDS: Final[Mapping[str, type[UsageRecord]]] = {
    "showing": Example,
    "outcome": OutcomeRecord,
    "event": LifecycleEvent,
}
_NAMES: Final = {"memory_id": "memory", "given": "later"}
"""The names of fields in JSON that differ from their names in Python."""
_CONTEXT_KEY: Final = re.compile("[0-9a-f]{32}")


def memory_to_json(memory: Memory, state: LifecycleState | None = None) -> dict[str, Any]:
    """Every field of a memory in JSON types except its agent, which is the importing agent.

    `life` has the counts of its lifecycle `state`, or null if all counts are zero. Times are ISO text in UTC
    with microseconds. Renditions are included, since a summarizer may not return the same text twice.
    """
    counts = {} if state is None else _to_json(state, without=("stage",))
    life = counts if any(counts.values()) else None
    return {MARKER: FORMAT, **_to_json(memory, without=("agent",)), "life": life}


def memory_from_json(
    fields: Mapping[str, Any], *, agent: str, renditions_of: RenditionsOf | None = None
) -> Memory:
    """The memory of an exported line, with the agent `agent`.

    `renditions_of` makes the renditions of a line without them. Raises FieldError for anything but an
    exported memory, and for a newer format.
    """
    _check_format(fields, newest=FORMAT)
    given = {**fields, "agent": agent, "updated_at": fields.get("updated_at") or fields.get("created_at")}
    if "chain" in fields:  # An older line has an id for each version, and that of the first as its chain.
        given["id"] = fields["chain"]
        if fields.get("superseded_by") is not None:
            given["superseded_by"] = f"{fields['chain']}@{_count({'version': 1, **fields}, 'version') + 1}"
    if fields.get("content_hash") is None:
        raise FieldError("'content_hash' is missing")
    if "renditions" not in fields and renditions_of is not None:
        given["renditions"] = _to_json(renditions_of(_draft(fields, file="")))
    return _from_json(Memory, given)


def lifecycle_state_from_json(fields: Mapping[str, Any]) -> LifecycleState | None:
    """The lifecycle state of an exported memory; None if all its counts are zero. Raises FieldError."""
    if fields.get("life") is None:
        return None
    counts = _object(fields, "life")
    known = {each.name for each in dataclass_fields(LifecycleState)} - {"stage"}
    for name in sorted(set(counts) - known):
        raise FieldError(f"'life' has an unknown field {name!r}")
    state = _from_json(LifecycleState, {**counts, "stage": fields.get("stage")})
    if state.false_alarms > state.triggers:
        raise FieldError(
            f"'false_alarms' must be among the {state.triggers} 'triggers', and is {state.false_alarms}"
        )
    return state


def usage_history_to_json(
    usage_history: UsageHistory, *, agent: str | None, ids: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A JSON object for each usage record of the memories with these `ids`.

    The field `by` of an event is null if `agent` caused it; the importing agent takes its place.
    """
    head = {MARKER: HISTORY_FORMAT}
    if usage_history.learns:
        yield {**head, RECORD: _LEARNING, "on": True}
    latest: int | None = None
    types = {cls: name for name, cls in _RECORDS.items()}
    several: tuple[UsageRecord, ...] = (*usage_history.showings, *usage_history.outcomes)
    for record in (*several, *usage_history.events):
        if record.memory_id not in ids:
            continue
        fields = {**head, RECORD: types[type(record)], **_to_json(record, without=("number", "version"))}
        if isinstance(record, Example):
            fields["later"] = 1 if latest is None else max(1, record.given - latest)
            latest = record.given
        elif isinstance(record, LifecycleEvent):
            fields["by"] = None if record.by == agent else record.by
            fields["other"] = record.other if record.other in ids else None
        yield fields
    for run in usage_history.runs:
        yield {**head, RECORD: _RUN, "run": json.loads(run_to_text(run))}


def usage_record_from_json(fields: Mapping[str, Any], *, agent: str) -> UsageRecord | LearningRun | Learns:
    """The usage record of an exported line, for `agent`. Raises FieldError, also for a newer format.

    The field `given` of an Example is the difference from the previous Example.
    """
    _check_format(fields, newest=HISTORY_FORMAT)
    name = fields.get(RECORD)
    if name == _LEARNING:
        return _flag(fields, "on")
    if name == _RUN:
        return run_from_text(json.dumps(_object({"run": None, **fields}, "run")))
    if not isinstance(name, str) or name not in _RECORDS:
        known = ", ".join([_LEARNING, *_RECORDS, _RUN]).replace(f", {_RUN}", f" or {_RUN}")
        raise FieldError(f"{RECORD!r} must be {known}, and is {name!r}")
    given = {"later": 1, "number": 0, **fields, "by": fields.get("by") or agent}
    record = _from_json(_RECORDS[name], given)
    if not isinstance(record, LifecycleEvent) and not _CONTEXT_KEY.fullmatch(record.context):
        raise FieldError(f"'context' must be 32 hexadecimal digits, and is {record.context!r}")
    return record


def known_by(record: UsageRecord, ids: Mapping[str, str]) -> UsageRecord | None:
    """The usage record with its memories' ids in this store; None if its memory isn't in this store."""
    if record.memory_id not in ids:
        return None
    ref = ids[record.memory_id]
    if isinstance(record, LifecycleEvent):
        memory_id, version = split_id(ref)
        other = None if record.other is None else ids.get(record.other)
        return replace(record, memory_id=memory_id, version=version or 1, other=other and split_id(other)[0])
    return replace(record, memory_id=ref)


def run_known_by(run: LearningRun, ids: Mapping[str, str]) -> LearningRun:
    """The run with its memories' ids in this store; a memory that isn't here keeps its id."""

    def own(memory: str | None) -> str | None:
        return memory and (split_id(ids[memory])[0] if memory in ids else memory)

    return run.evolve(
        decisions=tuple(
            replace(
                each,
                memory=own(each.memory),
                other=own(each.other),
                effects=tuple(replace(one, memory=own(one.memory) or one.memory) for one in each.effects),
            )
            for each in run.decisions
        )
    )


def _check_format(fields: Mapping[str, Any], *, newest: int) -> None:
    number = fields.get(MARKER)
    if number is None:
        raise FieldError(f"an exported memory was expected, with the field {MARKER!r}: {newest}")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise FieldError(f"{MARKER!r} must be the format's number {newest}, and is {number!r}")
    if number > newest:
        raise FieldError(
            f"a newer germane wrote it (format {number}, and this one reads up to {newest}). Upgrade germane"
        )


# Lossless conversion of dataclasses of the model to and from JSON objects, by their annotations.


def _to_json(value: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    written = {}
    for each in dataclass_fields(value):
        if each.name not in without:
            write, _ = _FORMS[_kind(each)[0]]
            field_value = getattr(value, each.name)
            written[_NAMES.get(each.name, each.name)] = None if field_value is None else write(field_value)
    return written


def _from_json(cls: type[_Made], fields: Mapping[str, Any]) -> _Made:
    """A null or missing field has the default of its class, or None if that is allowed."""
    made = {}
    for each in dataclass_fields(cls):  # type: ignore[arg-type]  # Called for dataclasses alone.
        kind, is_optional = _kind(each)
        name = _NAMES.get(each.name, each.name)
        if fields.get(name) is not None:
            _, read = _FORMS[kind]
            made[each.name] = read(fields, name)
        elif is_optional:
            made[each.name] = None
        elif each.default is MISSING and each.default_factory is MISSING:
            raise FieldError(f"{name!r} is missing")
    return cls(**made)


def _kind(each: Field[Any]) -> tuple[str, bool]:
    kind, _, optional = str(each.type).partition(" | ")
    return kind, bool(optional)


def _of_type(fields: Mapping[str, Any], name: str, of: type[_Made], wanted: str) -> _Made:
    value = fields[name]
    # True is an int in Python but no number in JSON.
    if not isinstance(value, of) or (isinstance(value, bool) and of is not bool):
        raise FieldError(f"{name!r} must be {wanted}, and is {value!r}")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    return _of_type(fields, name, str, "a text")


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = _of_type(fields, name, int, "a count")
    if value < 0:
        raise FieldError(f"{name!r} must be a count, and is {value!r}")
    return value


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    return _of_type(fields, name, bool, "true or false")


def _object(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    return _of_type(fields, name, dict, "an object")


def _tags(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = _of_type(fields, name, list, "a list of texts")
    if not all(isinstance(tag, str) for tag in value):
        raise FieldError(f"{name!r} must be a list of texts, and is {value!r}")
    return tuple(value)


def _word(words: type[StrEnum]) -> _Form:
    def read(fields: Mapping[str, Any], name: str) -> StrEnum:
        try:
            return words(fields[name])
        except ValueError:
            raise FieldError(f"{name!r} must be one of {', '.join(words)}, and is {fields[name]!r}") from None

    return str, read


def _moment(fields: Mapping[str, Any], name: str) -> datetime:
    moment = as_moment(fields[name], name=name, assume_utc=False)
    if moment is None:
        raise FieldError(f"{name!r} is missing")
    return moment


_Form: TypeAlias = tuple[Callable[[Any], Any], Callable[[Mapping[str, Any], str], Any]]
_FORMS: Final[Mapping[str, _Form]] = {
    "str": (str, _text),
    "int": (int, _count),
    "float": (float, number_of),
    "bool": (bool, _flag),
    "datetime": (lambda moment: moment.astimezone(UTC).isoformat(timespec="microseconds"), _moment),
    "tuple[str, ...]": (list, _tags),
    "Mapping[str, Any]": (dict, lambda fields, name: MappingProxyType(_object(fields, name))),
    "Mapping[str, float]": (
        lambda parts: {name: float(part) for name, part in parts.items()},
        lambda fields, name: {each: number_of(fields[name], each) or 0.0 for each in _object(fields, name)},
    ),
    "Scope": (str, lambda fields, name: Scope.parse(_text(fields, name))),
    "Rendition": (_to_json, lambda fields, name: _from_json(Rendition, _object(fields, name))),
    "Renditions": (_to_json, lambda fields, name: _from_json(Renditions, _object(fields, name))),
    **{each.__name__: _word(each) for each in (Cause, LifecycleSignal, Outcome, Stage, Status, Trust)},
}
"""The functions that write and read a value, by its annotation."""


# JSON lines of memories: hand-written lines as drafts, exported lines without loss.

Line: TypeAlias = "tuple[Memory, LifecycleState | None] | UsageRecord | LearningRun | Learns"
"""The value of one line of an export."""

_FIELDS = ("text", *(each.name for each in dataclass_fields(Draft)))


def read_jsonl(path: Path) -> Iterator[Draft]:
    """One draft per line, read lazily; blank lines are skipped.

    A line is an object with `content` (or `text`) and any other field of a draft. The default `source` is the
    file, and the default `trust` is a document's. An exported line loses its id, status and counts
    (`read_memories` returns them), and usage records are skipped. Raises UnreadableSource, naming the line,
    for anything else.
    """
    name = name_of(path)
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        if MARKER in fields and RECORD in fields:
            continue
        try:
            yield _draft(fields, file=name)
        except (FieldError, InvalidInput) as error:
            raise unreadable(path, str(error), line=number) from error


def read_memories(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Memory]:
    """The memories of an export with their ids, versions, status, times and counts.

    Their agent is `agent`. `renditions_of` makes the renditions of lines without them. Raises
    UnreadableSource, naming the line, for anything but exported memories and usage records.
    """
    for line in read_lines(path, agent=agent, renditions_of=renditions_of):
        if isinstance(line, tuple):
            yield line[0]


def read_lines(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Line]:
    """Every line of an export in order: memories, as `read_memories` returns them, and usage records.

    Each memory has its lifecycle state, or None if all its counts are zero or missing. Raises
    UnreadableSource, naming the line.
    """
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        try:
            if RECORD in fields:
                yield usage_record_from_json(fields, agent=agent)
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


def _draft(fields: Mapping[str, Any], *, file: str) -> Draft:
    exported = MARKER in fields
    unknown = () if exported else [name for name in fields if name not in _FIELDS]
    if unknown:
        hint = nearest(unknown[0], _FIELDS) or "."
        raise FieldError(f"unknown field {unknown[0]!r}{hint} Fields of your own go under 'metadata'")
    content = fields.get("content", fields.get("text"))
    if not isinstance(content, str) or not content.strip():
        raise FieldError(f"'content' must be a text that isn't blank, and is {content!r}")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise FieldError(f"'metadata' must be an object, and is {metadata!r}")
    return draft_of_fields(
        fields,
        content=content,
        trust=text_of(fields, "trust") or (None if exported else EXTERNAL),
        source=text_of(fields, "source") or (None if exported else file),
        created_at=as_moment(fields.get("created_at"), name="created_at", assume_utc=False),
        updated_at=as_moment(fields.get("updated_at"), name="updated_at", assume_utc=False),
        metadata=plain(metadata),
    )
