"""A stored memory as one JSON object, and back without loss.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from germane.exchange.fields import FieldError, as_moment, number_of, text_of
from germane.model.draft import Draft
from germane.model.memory import Memory, Outcome, Rendition, Renditions, Status, Trust
from germane.model.scope import Scope
from germane.model.stage import Stage, Standing

__all__ = ["FORMAT", "MARKER", "RenditionsOf", "memory_from_json", "memory_to_json", "standing_from_json"]

MARKER = "germane"
"""The field by which a line is known to be an exported memory; its value is the format's number."""

FORMAT = 1
"""The format written here, and the newest that can be read."""

RenditionsOf: TypeAlias = Callable[[Draft], Renditions]
"""Makes the renditions of a memory anew."""

_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")

_Name = TypeVar("_Name", bound=StrEnum)


def memory_to_json(memory: Memory, standing: Standing | None = None) -> dict[str, Any]:
    """Every field of a memory in types that JSON has, except its agent, which is whoever reads it.

    `life` is what is counted of it in its `standing`, null where that is nothing. Times are ISO text in
    UTC with microseconds. Renditions are written out, since a summarizer's can't be made twice.
    """
    renditions = memory.renditions
    return {
        MARKER: FORMAT,
        "id": memory.id,
        "kind": memory.kind,
        "content": memory.content,
        "renditions": {
            "micro": _rendition_to_json(renditions.micro),
            "summary": _rendition_to_json(renditions.summary),
            "full": _rendition_to_json(renditions.full),
            "counter": renditions.counter,
        },
        "created_at": _moment_to_json(memory.created_at),
        "updated_at": _moment_to_json(memory.updated_at),
        "accessed_at": _moment_to_json(memory.accessed_at) if memory.accessed_at else None,
        "chain": memory.chain,
        "version": memory.version,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "status": str(memory.status),
        "stage": str(memory.stage) if memory.stage else None,
        "life": None if standing is None else _life_to_json(standing),
        "scope": str(memory.scope),
        "subject": memory.subject,
        "tags": list(memory.tags),
        "importance": float(memory.importance),
        "confidence": float(memory.confidence),
        "outcome": str(memory.outcome) if memory.outcome else None,
        "trust": str(memory.trust),
        "source": memory.source,
        "pinned": memory.pinned,
        "metadata": dict(memory.metadata),
        "content_hash": memory.content_hash,
        "seen_count": memory.seen_count,
        "access_count": memory.access_count,
    }


def memory_from_json(
    fields: Mapping[str, Any], *, agent: str, renditions_of: RenditionsOf | None = None
) -> Memory:
    """The memory that `memory_to_json` wrote, as `agent`'s.

    `renditions_of` makes what a line lacks of renditions. Raises FieldError for what is no exported
    memory, and for a newer format's.
    """
    _check_format(fields)
    created = _moment(fields, "created_at")
    memory_id = _text(fields, "id")
    return Memory(
        id=memory_id,
        agent=agent,
        kind=_text(fields, "kind"),
        content=_text(fields, "content"),
        renditions=_renditions(fields, renditions_of),
        created_at=created,
        updated_at=_moment(fields, "updated_at") if fields.get("updated_at") else created,
        accessed_at=_moment(fields, "accessed_at") if fields.get("accessed_at") else None,
        chain=_text(fields, "chain", memory_id),
        version=_count(fields, "version", 1),
        supersedes=_optional_text(fields, "supersedes"),
        superseded_by=_optional_text(fields, "superseded_by"),
        status=_name(fields, "status", Status, Status.ACTIVE),
        stage=_name(fields, "stage", Stage, None),
        scope=Scope.parse(_text(fields, "scope", "global")),
        subject=_optional_text(fields, "subject"),
        tags=_tags(fields),
        importance=_number(fields, "importance", 1.0),
        confidence=_number(fields, "confidence", 1.0),
        outcome=_name(fields, "outcome", Outcome, None),
        trust=_name(fields, "trust", Trust, Trust.AGENT),
        source=_optional_text(fields, "source"),
        pinned=_flag(fields, "pinned"),
        metadata=MappingProxyType(_object(fields, "metadata")),
        content_hash=_text(fields, "content_hash"),
        seen_count=_count(fields, "seen_count", 1),
        access_count=_count(fields, "access_count", 0),
    )


def standing_from_json(fields: Mapping[str, Any]) -> Standing | None:
    """What `memory_to_json` wrote of a life; None where nothing is counted. Raises FieldError."""
    life = fields.get("life")
    if life is None:
        return None
    counted = _object(fields, "life", required=True)
    unknown = sorted(set(counted) - {*_COUNTS, "renewed_at"})
    if unknown:
        raise FieldError(f"'life' has an unknown field {unknown[0]!r}")
    standing = Standing(
        stage=_name(fields, "stage", Stage, None),
        **{name: _count(counted, name, 0) for name in _COUNTS},
        renewed_at=None if counted.get("renewed_at") is None else _moment(counted, "renewed_at"),
    )
    if standing.false_alarms > standing.triggers:
        raise FieldError(
            f"'false_alarms' must be among the {standing.triggers} 'triggers', and is {standing.false_alarms}"
        )
    return standing


def _life_to_json(standing: Standing) -> dict[str, Any] | None:
    counts: dict[str, Any] = {name: getattr(standing, name) for name in _COUNTS}
    if standing.renewed_at is None and not any(counts.values()):
        return None
    return {**counts, "renewed_at": _moment_to_json(standing.renewed_at) if standing.renewed_at else None}


def _rendition_to_json(rendition: Rendition) -> dict[str, Any]:
    return {"text": rendition.text, "tokens": rendition.tokens}


def _moment_to_json(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _check_format(fields: Mapping[str, Any]) -> None:
    found = fields.get(MARKER)
    if found is None:
        raise FieldError(f"an exported memory was expected, with the field {MARKER!r}: {FORMAT}")
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise FieldError(f"{MARKER!r} must be the format's number {FORMAT}, and is {found!r}")
    if found > FORMAT:
        raise FieldError(
            f"a newer germane wrote it (format {found}, and this one reads up to {FORMAT}). Upgrade germane"
        )


def _renditions(fields: Mapping[str, Any], renditions_of: RenditionsOf | None) -> Renditions:
    if "renditions" not in fields and renditions_of is not None:
        return renditions_of(
            Draft(
                content=_text(fields, "content"),
                kind=_text(fields, "kind"),
                subject=_optional_text(fields, "subject"),
                tags=_tags(fields),
                confidence=_number(fields, "confidence", 1.0),
                outcome=text_of(fields, "outcome"),
                metadata=_object(fields, "metadata"),
            )
        )
    written = _object(fields, "renditions", required=True)
    return Renditions(
        micro=_rendition(written, "micro"),
        summary=_rendition(written, "summary"),
        full=_rendition(written, "full"),
        counter=_text(written, "counter"),
    )


def _rendition(written: Mapping[str, Any], level: str) -> Rendition:
    fields = _object(written, level, required=True)
    return Rendition(text=_text(fields, "text"), tokens=_count(fields, "tokens", None))


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise FieldError(f"{name!r} must be a text, and is {value!r}")
    return value


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _tags(fields: Mapping[str, Any]) -> tuple[str, ...]:
    value = fields.get("tags", [])
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise FieldError(f"'tags' must be a list of texts, and is {value!r}")
    return tuple(value)


def _moment(fields: Mapping[str, Any], name: str) -> datetime:
    moment = as_moment(fields.get(name), name=name, assume_utc=False)
    if moment is None:
        raise FieldError(f"{name!r} is missing")
    return moment


def _count(fields: Mapping[str, Any], name: str, default: int | None) -> int:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FieldError(f"{name!r} must be a count, and is {value!r}")
    return value


def _number(fields: Mapping[str, Any], name: str, default: float) -> float:
    value = number_of(fields, name)
    return default if value is None else value


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise FieldError(f"{name!r} must be true or false, and is {value!r}")
    return value


def _object(fields: Mapping[str, Any], name: str, *, required: bool = False) -> dict[str, Any]:
    value = fields.get(name, None if required else {})
    if not isinstance(value, dict):
        raise FieldError(f"{name!r} must be an object, and is {value!r}")
    return value


def _name(fields: Mapping[str, Any], name: str, names: type[_Name], default: Any) -> Any:
    value = fields.get(name)
    if value is None:
        return default
    try:
        return names(value)
    except ValueError:
        raise FieldError(f"{name!r} must be one of {', '.join(names)}, and is {value!r}") from None
