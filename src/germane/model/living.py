"""What is asked of a store to write of the lives of memories: changes as values.

Level: model (imports model only).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from germane.model.memory import Memory
from germane.model.stage import Cause, Sign
from germane.model.vector import Vector

__all__ = ["Live", "Merge", "Reword"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Let something happen to a memory, by the rules of the lifecycle named.

    `escalated` is the version to store in its place where that makes it escalate, with its `vector`.
    `instead_of` is an outcome counted before that this one corrects, and that is taken back. Raises
    NotFound, StaleRevision where `escalated` doesn't follow the head, or InvalidInput where the rules have no
    such move.
    """

    memory_id: str
    lifecycle: str
    sign: Sign
    cause: Cause
    at: datetime
    other: str | None = None
    instead_of: Sign | None = None
    escalated: Memory | None = None
    vector: Vector | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Let the memory `into`, which says the same, stand for this one, and be confirmed by that.

    Raises NotFound, StaleRevision for what isn't the head of its chain, or InvalidInput where the
    rules of the lifecycle have no such move.
    """

    memory_id: str
    into: str
    lifecycle: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword:
    """Store `memory.renditions` and `memory.metadata` in place of those that the memory of that id has.

    What is indexed of it stays. Raises NotFound when the agent has no such memory.
    """

    memory: Memory
