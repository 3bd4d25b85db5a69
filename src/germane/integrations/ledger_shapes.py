"""The ledger and the figures made of it as JSON, beside the shapes in `shapes`.

Level: integrations. Documented in docs/reference/json.md; changed only by addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from germane import (
        Alteration,
        Assembly,
        Changed,
        Day,
        Difference,
        LedgerEntry,
        Metrics,
        Observed,
        Replay,
    )

__all__ = ["assembly_shape", "difference_shape", "metrics_shape", "observed_shape", "replay_shape"]

_DIGITS = 6


def assembly_shape(assembly: Assembly, *, entries: bool) -> dict[str, Any]:
    """A recorded assembly, with its entries or with how many there are."""
    return {
        "id": assembly.id,
        "agent": assembly.agent,
        "at": assembly.at.isoformat(),
        "question": assembly.question,
        "made_for": assembly.made_for,
        "plan": assembly.plan,
        "frame": assembly.frame,
        "budget": assembly.budget,
        "counter": assembly.counter,
        "tokens": assembly.tokens,
        "sha256": assembly.sha256,
        "spaces": list(assembly.spaces),
        "makers": dict(assembly.makers),
        "unkept": list(assembly.unkept),
        "notes": list(assembly.notes),
        "emptiness": None if assembly.emptiness is None else str(assembly.emptiness),
        "settled": assembly.settled,
        "cold": assembly.cold,
        "seconds": assembly.seconds,
        "candidates": assembly.candidates,
        "included": len(assembly.included),
        "purged": assembly.purged,
        "entries": [_entry(entry) for entry in assembly.entries] if entries else None,
    }


def difference_shape(difference: Difference) -> dict[str, Any]:
    """What differs between two assemblies."""
    return {
        "same_text": difference.same_text,
        "asked": [_changed(each) for each in difference.asked],
        "entered": [_entry(entry) for entry in difference.entered],
        "left": [_entry(entry) for entry in difference.left],
        "altered": [
            {"before": _entry(before), "after": _entry(after)} for before, after in difference.altered
        ],
        "moved": list(difference.moved),
    }


def replay_shape(replay: Replay) -> dict[str, Any]:
    """What came of making an assembly again; its text is left out."""
    return {
        "id": replay.assembly.id,
        "same": replay.same,
        "tokens": None if replay.context is None else replay.context.tokens,
        "why": list(replay.why),
        "makers": [_changed(each) for each in replay.makers],
        "alterations": [_alteration(each) for each in replay.alterations],
        "difference": None if replay.difference is None else difference_shape(replay.difference),
    }


def observed_shape(observed: Observed) -> dict[str, Any]:
    """What an answer was found to draw on, and what counting it changed."""
    told = observed.feedback
    return {
        "used": list(observed.used),
        "scores": _rounded(observed.scores),
        "counted": None if told is None else told.counted,
        "examples": None if told is None else told.examples,
    }


def metrics_shape(metrics: Metrics) -> dict[str, Any]:
    """The figures, their counts, and every day."""
    return {
        "since": metrics.since.isoformat(),
        "until": metrics.until.isoformat(),
        **_rounded(metrics.figures()),
        "assemblies": metrics.assemblies,
        "judged": metrics.judged,
        "cold": metrics.cold,
        "turns": metrics.turns,
        "facts": metrics.facts,
        "per_day": [_day(day) for day in metrics.per_day],
    }


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "id": entry.memory_id,
        "version": entry.version,
        "agent": entry.agent,
        "kind": entry.kind,
        "section": entry.section,
        "score": round(entry.score, _DIGITS),
        "parts": _rounded(entry.parts),
        "level": None if entry.level is None else str(entry.level),
        "reason": None if entry.reason is None else str(entry.reason),
        "tokens": entry.tokens,
        "short_by": entry.short_by,
        "pinned": entry.pinned,
        "used": entry.used,
    }


def _changed(changed: Changed) -> dict[str, str]:
    return {"name": changed.name, "before": changed.before, "after": changed.after}


def _alteration(alteration: Alteration) -> dict[str, str | None]:
    return {"what": str(alteration.what), "id": alteration.memory_id}


def _day(day: Day) -> dict[str, Any]:
    figures = {
        "relevance": day.relevance,
        "budget_use": day.budget_use,
        "recall_precision": day.recall_precision,
    }
    return {
        "date": day.date.isoformat(),
        "assemblies": day.assemblies,
        "added": day.added,
        **_rounded(figures),
    }


def _rounded(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, _DIGITS) for name, value in figures.items()}
