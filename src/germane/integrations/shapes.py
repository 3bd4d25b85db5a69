"""Germane's values as JSON: the one shape that every entry shows them in.

Level: integrations. The shapes are documented in docs/reference/json.md and change only by addition.
Times are ISO 8601 in UTC, scores are rounded to six digits, and a field without a value is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane import InvalidInput, Level

if TYPE_CHECKING:  # Most of these bring much with them, and a command shows few of them.
    from germane import (
        Context,
        Entry,
        Feedback,
        Finding,
        Frame,
        GermaneError,
        Item,
        Lessons,
        Memory,
        Note,
        Question,
        Ranked,
        Recalled,
        Refreshed,
        SectionUse,
        Shown,
        StoreStats,
        TimeRange,
        Trace,
    )

__all__ = [
    "Shape",
    "context_shape",
    "error_shape",
    "feedback_shape",
    "finding_shape",
    "frame_shape",
    "lessons_shape",
    "memory_shape",
    "question_from",
    "ranked_shape",
    "recalled_shape",
    "refreshed_shape",
    "renditions_shape",
    "shown_from",
    "stats_shape",
    "trace_shape",
]

Shape = dict[str, Any]

_DIGITS = 6


def memory_shape(memory: Memory) -> Shape:
    """A memory without its renditions."""
    return {
        "id": memory.id,
        "agent": memory.agent,
        "kind": memory.kind,
        "content": memory.content,
        "subject": memory.subject,
        "tags": list(memory.tags),
        "scope": str(memory.scope),
        "status": str(memory.status),
        "stage": None if memory.stage is None else str(memory.stage),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "outcome": None if memory.outcome is None else str(memory.outcome),
        "trust": str(memory.trust),
        "source": memory.source,
        "pinned": memory.pinned,
        "metadata": dict(memory.metadata),
        "created_at": _moment(memory.created_at),
        "updated_at": _moment(memory.updated_at),
        "version": memory.version,
        "version_id": memory.version_id,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "seen_count": memory.seen_count,
        "access_count": memory.access_count,
        "accessed_at": _moment(memory.accessed_at),
    }


def renditions_shape(memory: Memory) -> Shape:
    """A memory's three texts with their lengths, and who counted them."""
    renditions = memory.renditions
    texts = {
        str(level): {"text": renditions.at(level).text, "tokens": renditions.at(level).tokens}
        for level in (Level.MICRO, Level.SUMMARY, Level.FULL)
    }
    return {**texts, "counter": renditions.counter}


def ranked_shape(ranked: Ranked) -> Shape:
    """A memory with its score and the parts of it, and what several lists made of it together."""
    fused = ranked.fused
    return {
        "score": _number(ranked.score),
        "parts": _numbers(ranked.parts),
        "fused": fused and {"score": _number(fused.score), "sources": _numbers(fused.sources)},
        "memory": memory_shape(ranked.memory),
    }


def recalled_shape(recalled: Recalled) -> Shape:
    """What a recall found, and how it understood the question."""
    return {
        "question": _question_shape(recalled.question),
        "results": [ranked_shape(ranked) for ranked in recalled],
        "notes": [_note_shape(note) for note in recalled.notes],
        "emptiness": None if recalled.emptiness is None else str(recalled.emptiness),
        "now": _moment(recalled.now),
        "weights": _numbers(recalled.weights),
    }


def context_shape(context: Context) -> Shape:
    """A context with its items and its trace."""
    return {
        "text": context.text,
        "tokens": context.tokens,
        "items": [_item_shape(item) for item in context.items],
        "trace": trace_shape(context.trace),
    }


def refreshed_shape(refreshed: Refreshed) -> Shape:
    """What a refresh says, with the context that serves now."""
    return {
        "needed": refreshed.needed,
        "reason": None if refreshed.reason is None else str(refreshed.reason),
        "similarity": None if refreshed.similarity is None else round(refreshed.similarity, _DIGITS),
        "context": context_shape(refreshed.context),
    }


def trace_shape(trace: Trace) -> Shape:
    """The whole account of an assembly."""
    return {
        "plan": trace.plan,
        "budget": trace.budget,
        "counter": trace.counter,
        "now": _moment(trace.now),
        "question": _question_shape(trace.question),
        "sections": [_section_shape(section) for section in trace.sections],
        "entries": [_entry_shape(entry) for entry in trace.entries],
        "notes": [_note_shape(note) for note in trace.notes],
        "emptiness": None if trace.emptiness is None else str(trace.emptiness),
        "weights": _numbers(trace.weights),
        "frame": trace.frame,
        "frame_confidence": trace.frame_confidence,
    }


def frame_shape(frame: Frame) -> Shape:
    """A frame with all that it is made of."""
    return {
        "name": frame.name,
        "description": frame.description,
        "questions": list(frame.questions),
        "priorities": dict(frame.priorities),
        "patterns": list(frame.patterns),
        "precedence": frame.precedence,
        "domain": list(frame.domain),
        "budget": frame.budget,
        "shares": dict(frame.shares),
    }


def shown_from(shape: Any) -> Shown:
    """What a context, a trace or a recall showed, from its JSON. Raises InvalidInput for other JSON."""
    from germane import Shown  # noqa: PLC0415 - As at the top.

    try:
        if "results" in shape:
            kind, account = "recall", shape
            parts = {one["memory"]["id"]: one["parts"] for one in shape["results"]}
        else:
            kind, account = "context", shape["trace"]
            parts = {one["id"]: one["parts"] for one in account["entries"] if one["included"]}
        question, now = account["question"]["text"], datetime.fromisoformat(account["now"])
        levels = {one["id"]: Level(one["level"]) for one in account.get("entries", ()) if one["included"]}
        return Shown.of(
            kind, question=question, now=now, parts=parts, weights=account["weights"], levels=levels
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"This JSON doesn't say what was shown ({error!r}). Pass what `germane assemble --json` or "
            "`germane recall --json` printed."
        ) from error


def question_from(shape: Any) -> str:
    """The question of a context, a trace or a recall, from JSON that `shown_from` takes."""
    account = shape if "results" in shape else shape["trace"]
    return str(account["question"]["text"])


def feedback_shape(feedback: Feedback) -> Shape:
    """What a feedback changed."""
    return {
        "used": [memory_shape(memory) for memory in feedback.used],
        "counted": feedback.counted,
        "examples": feedback.examples,
    }


def lessons_shape(lessons: Lessons) -> Shape:
    """What an agent has learned from use."""
    weights = lessons.weights
    return {
        "on": lessons.on,
        "weights": {} if weights is None else _numbers(weights.values),
        "contexts": 0 if weights is None else weights.contexts,
        "examples": lessons.examples,
    }


def stats_shape(stats: StoreStats) -> Shape:
    """Figures about a store."""
    embedding = stats.embedding
    return {
        "location": stats.location,
        "schema_version": stats.schema_version,
        "agent": stats.agent,
        "memories": stats.memories,
        "by_kind": dict(sorted(stats.by_kind.items())),
        "by_status": {str(status): count for status, count in sorted(stats.by_status.items())},
        "tokens": stats.tokens,
        "vectors": stats.vectors,
        "pending": stats.pending,
        "embedding": None
        if embedding is None
        else {"name": embedding.name, "dimension": embedding.dimension},
        "bytes": stats.bytes,
        "oldest": _moment(stats.oldest),
        "newest": _moment(stats.newest),
        "language": stats.language,
        "tokens_by_scope": dict(stats.tokens_by_scope),
        "large": [
            {"id": one.id, "kind": one.kind, "scope": one.scope, "tokens": one.tokens, "label": one.label}
            for one in stats.large
        ],
    }


def finding_shape(finding: Finding) -> Shape:
    """One thing that a check found wrong."""
    return {
        "code": finding.code,
        "text": finding.text,
        "remedy": finding.remedy,
        "advice": finding.advice,
    }


def error_shape(error: GermaneError) -> Shape:
    """An error with what its class says of it; the attributes are those of the Python class."""
    attributes = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(error).items()
        if not name.startswith("_") and isinstance(value, str | int | float | tuple)
    }
    return {"error": {"type": type(error).__name__, "message": str(error), **attributes}}


def _item_shape(item: Item) -> Shape:
    return {
        "id": item.memory.ref,
        "version": item.memory.version,
        "kind": item.memory.kind,
        "scope": str(item.memory.scope),
        "created_at": _moment(item.memory.created_at),
        "updated_at": _moment(item.memory.updated_at),
        "source": item.memory.source,
        "section": item.section,
        "level": str(item.level),
        "tokens": item.tokens,
        "score": _number(item.score),
        "text": item.text,
    }


def _question_shape(question: Question) -> Shape:
    return {
        "text": question.text,
        "cleaned": question.cleaned,
        "terms": list(question.terms),
        "when": None if question.when is None else _range_shape(question.when),
    }


def _range_shape(when: TimeRange) -> Shape:
    return {"since": _moment(when.start), "until": _moment(when.end)}


def _section_shape(section: SectionUse) -> Shape:
    return {
        "name": section.name,
        "heading": section.heading,
        "share": section.share,
        "used": section.used,
        "flowed": section.flowed,
        "included": section.included,
        "excluded": section.excluded,
    }


def _entry_shape(entry: Entry) -> Shape:
    return {
        "id": entry.memory_id,
        "version": entry.version,
        "agent": entry.agent,
        "kind": entry.kind,
        "scope": entry.scope,
        "created_at": _moment(entry.created_at),
        "source": entry.source,
        "section": entry.section,
        "label": entry.label,
        "included": entry.included,
        "level": None if entry.level is None else str(entry.level),
        "reason": None if entry.reason is None else str(entry.reason),
        "tokens": entry.tokens,
        "short_by": entry.short_by,
        "score": _number(entry.score),
        "parts": _numbers(entry.parts),
    }


def _note_shape(note: Note) -> Shape:
    return {"code": note.code, "text": note.text}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _number(value: float) -> float:
    return round(value, _DIGITS)


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}
