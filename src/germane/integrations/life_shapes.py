"""What programs read of the lives of memories: events, upkeep and standings as plain values.

Level: integrations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.integrations.shapes import Shape

if TYPE_CHECKING:
    from germane import LifeEvent, Upkeep, UpkeepStep

__all__ = ["event_shape", "step_shape", "upkeep_shape"]


def event_shape(event: LifeEvent) -> Shape:
    """One thing that happened in the life of a memory."""
    return {
        "number": event.number,
        "memory_id": event.memory_id,
        "version": event.version,
        "sign": str(event.sign),
        "before": str(event.before),
        "after": str(event.after),
        "cause": str(event.cause),
        "by": event.by,
        "at": event.at.isoformat(),
        "other": event.other,
    }


def upkeep_shape(upkeep: Upkeep) -> Shape:
    """What upkeep did, or would do."""
    return {
        "dry_run": upkeep.dry_run,
        "steps": [step_shape(step) for step in upkeep.steps],
        "done": upkeep.done,
        "flagged": list(upkeep.flagged),
    }


def step_shape(step: UpkeepStep) -> Shape:
    """One step of upkeep."""
    return {
        "task": str(step.task),
        "memory_id": step.memory_id,
        "before": None if step.before is None else str(step.before),
        "after": None if step.after is None else str(step.after),
        "other": step.other,
    }
