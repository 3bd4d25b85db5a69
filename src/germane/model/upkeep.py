"""What upkeep does to an agent's memories: single steps, each of them done whole or not at all.

Level: model (imports nothing of the package but stages).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from germane.model.forms import checked_fields
from germane.model.stage import Stage

__all__ = ["Reconcile", "Upkeep", "UpkeepStep", "UpkeepTask"]


class UpkeepTask(StrEnum):
    """What one step of upkeep is for."""

    AGE = "age"  # An episode isn't recent any more, or is archived.
    SETTLE = "settle"  # What was counted moves a fact, a procedure or a censor.
    MERGE = "merge"  # Two facts say the same; one stands for both.
    MARK = "mark"  # A memory quotes what has been superseded, and says so from now on.


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepStep:
    """One step: the memory, and its stage before and after where that changes.

    `other` is the memory that stands for it, or the superseded one that it quotes.
    """

    task: UpkeepTask
    memory_id: str
    before: Stage | None = None
    after: Stage | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What upkeep did, or would do: its steps, how many of them are `done`, and what wants a look.

    A step isn't done where somebody else changed its memory meanwhile; the next upkeep looks again.
    `flagged` are the procedures that mostly fail.
    """

    steps: tuple[UpkeepStep, ...]
    done: int
    dry_run: bool
    flagged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(confirm=(0, 1), supersede=(0, 1))
class Reconcile:
    """From which cosine on a new fact confirms one that says the same, or replaces one of its subject."""

    confirm: float = 0.95
    supersede: float = 0.80
