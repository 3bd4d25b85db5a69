"""A stored memory as one JSON object, and back without loss.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

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
from germane.exchange.fields import FieldError, text_of
from germane.model.draft import Draft
from germane.model.memory import Memory, Outcome, Rendition, Renditions, Status, Trust
from germane.model.scope import Scope
from germane.model.stage import Stage, Standing

__all__ = ["FORMAT", "MARKER", "RenditionsOf", "memory_from_json", "memory_to_json", "standing_from_json"]

FORMAT = 1
"""The format of a memory that is written here, and the newest that can be read."""

RenditionsOf: TypeAlias = Callable[[Draft], Renditions]
"""Makes the renditions of a memory anew."""

_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")


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
        "created_at": moment_to_json(memory.created_at),
        "updated_at": moment_to_json(memory.updated_at),
        "accessed_at": moment_to_json(memory.accessed_at) if memory.accessed_at else None,
        "version": memory.version,
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
    check_format(fields, newest=FORMAT)
    created = exact_moment(fields, "created_at")
    # A line of before had an id for each version, and named the memory by that of the first.
    memory_id = exact_text(fields, "chain", exact_text(fields, "id"))
    version = exact_count(fields, "version", 1)
    after = optional_text(fields, "superseded_by")
    if after is not None and "chain" in fields:
        after = f"{memory_id}@{version + 1}"
    return Memory(
        id=memory_id,
        agent=agent,
        kind=exact_text(fields, "kind"),
        content=exact_text(fields, "content"),
        renditions=_renditions(fields, renditions_of),
        created_at=created,
        updated_at=exact_moment(fields, "updated_at") if fields.get("updated_at") else created,
        accessed_at=exact_moment(fields, "accessed_at") if fields.get("accessed_at") else None,
        version=version,
        superseded_by=after,
        status=exact_word(fields, "status", Status, Status.ACTIVE),
        stage=exact_word(fields, "stage", Stage, None),
        scope=Scope.parse(exact_text(fields, "scope", "global")),
        subject=optional_text(fields, "subject"),
        tags=_tags(fields),
        importance=exact_number(fields, "importance", 1.0),
        confidence=exact_number(fields, "confidence", 1.0),
        outcome=exact_word(fields, "outcome", Outcome, None),
        trust=exact_word(fields, "trust", Trust, Trust.AGENT),
        source=optional_text(fields, "source"),
        pinned=exact_flag(fields, "pinned"),
        metadata=MappingProxyType(exact_object(fields, "metadata")),
        content_hash=exact_text(fields, "content_hash"),
        seen_count=exact_count(fields, "seen_count", 1),
        access_count=exact_count(fields, "access_count", 0),
    )


def standing_from_json(fields: Mapping[str, Any]) -> Standing | None:
    """What `memory_to_json` wrote of a life; None where nothing is counted. Raises FieldError."""
    life = fields.get("life")
    if life is None:
        return None
    counted = exact_object(fields, "life", required=True)
    unknown = sorted(set(counted) - {*_COUNTS, "renewed_at"})
    if unknown:
        raise FieldError(f"'life' has an unknown field {unknown[0]!r}")
    standing = Standing(
        stage=exact_word(fields, "stage", Stage, None),
        **{name: exact_count(counted, name, 0) for name in _COUNTS},
        renewed_at=None if counted.get("renewed_at") is None else exact_moment(counted, "renewed_at"),
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
    return {**counts, "renewed_at": moment_to_json(standing.renewed_at) if standing.renewed_at else None}


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
