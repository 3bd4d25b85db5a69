"""Memories as rows of numbers, bytes and text, and rows as memories.

Level: stores (imports model and ids).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from germane.errors import InvalidInput
from germane.ids import id_text
from germane.model.making import maker
from germane.model.memory import Memory, Outcome, Rendition, Renditions, Status, Trust, as_utc, split_id
from germane.model.scope import GLOBAL, Scope
from germane.model.stage import Stage

__all__ = [
    "AGENT_SHIFT",
    "former_ref",
    "id_bytes",
    "id_text",
    "memory_of",
    "memory_row",
    "microseconds",
    "moment",
    "named",
    "ref_of",
    "reworded_row",
    "row_id",
    "span",
    "texts_row",
    "try_id_bytes",
]

AGENT_SHIFT: Final = 40
"""A num is the agent's number shifted by this much, plus a change number of that agent's."""

_BETWEEN: Final = (1 << 44) + 0x9E3779B97F5
"""How far apart the ids of the rows of two versions are: no two memories are that many random bits apart."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_NOTHING: Mapping[str, Any] = MappingProxyType({})

_STATUS = {each.value: each for each in Status}
_TRUST = {each.value: each for each in Trust}
_STAGE: dict[str | None, Stage | None] = {None: None, **{each.value: each for each in Stage}}
_OUTCOME: dict[str | None, Outcome | None] = {None: None, **{each.value: each for each in Outcome}}

_memory = maker(
    Memory,
    *("id", "agent", "kind", "status", "scope", "subject", "importance", "confidence", "outcome", "trust"),
    *("source", "pinned", "created_at", "updated_at", "version", "content_hash"),
    *("seen_count", "access_count", "accessed_at", "superseded_by", "stage"),
    *("content", "renditions", "tags", "metadata"),
)


def span(agent: int, *, above: int = 0) -> dict[str, int]:
    """The placeholders for an agent's nums that were given after the change number `above`."""
    return {"agent": agent, "above": (agent << AGENT_SHIFT) + above, "below": (agent + 1) << AGENT_SHIFT}


def id_bytes(text: str, *, name: str = "id") -> bytes:
    """The 16 bytes of an id; raises InvalidInput when it isn't a UUID in its canonical form."""
    found = try_id_bytes(text)
    if found is None:
        raise InvalidInput(
            f"{name}={text!r} is no id. Ids are UUIDs in their canonical form: 36 characters, lower case, "
            "such as '0192f0c4-7e1a-7cc3-98c4-dc0c0c07398f'."
        )
    return found


def try_id_bytes(text: str) -> bytes | None:
    """The 16 bytes of an id, or None for what can't be the id of any memory."""
    return bytes.fromhex(text.replace("-", "")) if _CANONICAL.fullmatch(text) else None


def row_id(memory_id: str, version: int) -> bytes:
    """The id of the row of a version: for the first the memory's own, for each later one a greater one."""
    raw = id_bytes(memory_id)
    if version == 1:
        return raw
    number = int.from_bytes(raw, "big") + (version - 1) * _BETWEEN
    return (number % (1 << 128)).to_bytes(16, "big")


def former_ref(raw: bytes, former: bytes) -> str:
    """The name `id@n` of a former version of the memory `raw`, by the id of its row."""
    apart = (int.from_bytes(former, "big") - int.from_bytes(raw, "big")) % (1 << 128)
    version, rest = divmod(apart, _BETWEEN)
    # Rows of before had ids of any kind; such an id still names the memory.
    return id_text(former) if rest else f"{id_text(raw)}@{version + 1}"


def named(name: str) -> dict[str, Any]:
    """The placeholders `id` and `version` of what a caller names: `id` or `id@n`. Nothing has the id None."""
    memory_id, version = split_id(name)
    return {"id": try_id_bytes(memory_id), "version": version}


def ref_of(chain: bytes, version: int, superseded_by: bytes | None) -> str:
    """What `Memory.ref` is of a row."""
    return id_text(chain) if superseded_by is None else f"{id_text(chain)}@{version}"


def microseconds(when: datetime, *, name: str) -> int:
    """Microseconds since 1970 in UTC, exactly; raises InvalidInput for a naive time."""
    if when.tzinfo is not UTC:
        when = as_utc(when, name=name)
    return (when - _EPOCH) // _MICROSECOND


def moment(number: int) -> datetime:
    """The time that `microseconds` gave the number for."""
    return _EPOCH + timedelta(0, 0, number)


def memory_row(memory: Memory, num: int, agent: int) -> tuple[Any, ...]:
    """The values of `insert_memory`. Raises InvalidInput for what no store accepts."""
    _check(memory)
    return (
        num,
        agent,
        row_id(memory.id, memory.version),
        memory.kind,
        memory.status.value,
        memory.scope.name,
        memory.scope.value,
        memory.subject,
        memory.importance,
        memory.confidence,
        memory.outcome and memory.outcome.value,
        memory.trust.value,
        memory.source,
        int(memory.pinned),
        microseconds(memory.created_at, name="created_at"),
        microseconds(memory.updated_at, name="updated_at"),
        id_bytes(memory.id),
        memory.version,
        memory.content_hash,
        memory.seen_count,
        memory.access_count,
        memory.accessed_at and microseconds(memory.accessed_at, name="accessed_at"),
        row_id(memory.id, memory.version - 1) if memory.version > 1 else None,
        memory.superseded_by and _named_row(memory.superseded_by),
        memory.stage and memory.stage.value,
    )


def texts_row(memory: Memory, num: int, agent: int) -> tuple[Any, ...]:
    """The values of `insert_texts`."""
    renditions = memory.renditions
    return (
        num,
        agent,
        memory.content,
        renditions.micro.text,
        renditions.micro.tokens,
        renditions.summary.text,
        renditions.summary.tokens,
        None if renditions.full.text == memory.content else renditions.full.text,
        renditions.full.tokens,
        renditions.counter,
        _in_json(memory.tags) if memory.tags else "[]",
        _json(memory.metadata),
    )


def reworded_row(memory: Memory, num: int, agent: int) -> dict[str, Any]:
    """The values of `reword_texts`."""
    row = texts_row(memory, num, agent)
    names = ("micro", "micro_tokens", "summary", "summary_tokens", "full", "full_tokens", "counter")
    return {"num": num, "agent": agent, **dict(zip(names, row[3:10], strict=True)), "metadata": row[-1]}


def memory_of(row: tuple[Any, ...], agent: str) -> Memory:
    """The memory of a row of `records`; the agent's name is not in it."""
    (_, _, kind, status, scope, scope_value, subject, importance, confidence, outcome, trust) = row[:11]
    (source, pinned, created_at, updated_at, chain, version, content_hash) = row[11:18]
    (seen_count, access_count, accessed_at, _, superseded_by, stage) = row[18:24]
    (content, micro, micro_tokens, summary, summary_tokens, full, full_tokens, counter) = row[24:32]
    (tags, metadata) = row[32:]
    memory_id = id_text(chain)
    after = superseded_by and (
        f"{memory_id}@{version + 1}" if superseded_by == chain else id_text(superseded_by)
    )
    renditions = Renditions(
        micro=Rendition(text=micro, tokens=micro_tokens),
        summary=Rendition(text=summary, tokens=summary_tokens),
        full=Rendition(text=content if full is None else full, tokens=full_tokens),
        counter=counter,
    )
    values = (
        memory_id,
        agent,
        kind,
        _STATUS[status],
        Scope(name=scope, value=scope_value) if scope_value or scope != GLOBAL.name else GLOBAL,
        subject,
        importance,
        confidence,
        _OUTCOME[outcome],
        _TRUST[trust],
        source,
        bool(pinned),
        moment(created_at),
        moment(updated_at),
        version,
        content_hash,
        seen_count,
        access_count,
        None if accessed_at is None else moment(accessed_at),
        after,
        _STAGE[stage],
        content,
        renditions,
        tuple(json.loads(tags)) if tags != "[]" else (),
        MappingProxyType(json.loads(metadata)) if metadata != "{}" else _NOTHING,
    )
    return _memory(values)


def _named_row(name: str) -> bytes:
    memory_id, version = split_id(name)
    return row_id(memory_id, version or 1)


def _check(memory: Memory) -> None:
    if not memory.content_hash:
        raise InvalidInput(
            f"Memory {memory.id!r} has no content_hash, by which the same memory is recognised. Give it one."
        )
    if not 0 <= memory.importance <= 10:  # noqa: PLR2004 - the axis of importance.
        raise InvalidInput(f"importance={memory.importance!r} is outside 0 to 10.")
    if not 0 <= memory.confidence <= 1:
        raise InvalidInput(f"confidence={memory.confidence!r} is outside 0 to 1.")
    if memory.version < 1:
        raise InvalidInput(f"Memory {memory.id!r} has version {memory.version}. Versions count from 1.")


def _json(metadata: Mapping[str, Any]) -> str:
    if not metadata:
        return "{}"
    try:
        return _in_json(_plain(metadata, "metadata"))
    except RecursionError as error:
        raise InvalidInput("metadata is nested too deeply, or holds itself. Make it flatter.") from error


def _plain(value: Any, path: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each, f"{path}[{key!r}]") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{path}[{index}]") for index, each in enumerate(value)]
    raise InvalidInput(
        f"{path}={value!r} can't be kept as JSON. Use text, finite numbers, true, false, None, lists, "
        "and mappings with text keys."
    )
