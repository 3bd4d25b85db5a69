"""What a refresh says: whether a context still serves, why not, and the one that does.

Level: model (imports model only).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from germane.model.context import Context

__all__ = ["RefreshReason", "Refreshed"]


class RefreshReason(StrEnum):
    """Why a context no longer serves: the closed list, the first that holds."""

    FIRST = "first"  # There was none yet.
    FILTER = "filter"  # It was made by another filter, and may show what this one excludes.
    FRAME = "frame"  # The agent is doing something else now.
    DECISION_POINT = "decision_point"  # The agent is about to act on a decision.
    TOPIC = "topic"  # What is said has little to do with the context.
    PRESSURE = "pressure"  # The context is larger than there is room for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The answer to a refresh; it unpacks as `needed, reason, context`.

    `context` is the new one where one was needed, and otherwise the one that was given. `similarity`,
    from 0 to 1, is how much what was said has to do with the given context; None where it says nothing.
    """

    needed: bool
    reason: RefreshReason | None
    context: Context
    similarity: float | None = None

    def __iter__(self) -> Iterator[bool | RefreshReason | Context | None]:
        return iter((self.needed, self.reason, self.context))
