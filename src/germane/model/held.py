"""What a working set holds, and what leaves it when room is needed.

Level: model (imports errors and model only). Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from germane.model.memory import Memory

__all__ = ["AgeBasis", "Evicted", "Eviction", "Held"]


class AgeBasis(StrEnum):
    """From which moment on a held memory ages."""

    CREATED = "created_at"  # When it was first remembered.
    UPDATED = "updated_at"  # When its text or fields last changed.
    ACCESSED = "accessed_at"  # When it was last touched in the set, or reported as used.
    ENTERED = "entered_at"  # When it came into the set.


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One memory as a working set holds it.

    `touched_at` is its last touch and `touches` their number inside the set. `order` is its place in
    the order of access, a number that only grows from one access to the next, so that "recent" needs
    no clock. `pinned` holds for this entry; `recalled` says that a recall brought it. `tokens` is the
    length of the full text by the set's counter, or of the summary or micro text where the full one is
    longer than the whole set. Both times are aware and in UTC.
    """

    memory: Memory
    entered_at: datetime
    touched_at: datetime
    order: int
    tokens: int
    touches: int = 0
    pinned: bool = False
    recalled: bool = False

    @property
    def stays(self) -> bool:
        """Whether nothing may evict it: it was pinned in the set, or remembered as pinned."""
        return self.pinned or self.memory.pinned

    @property
    def accesses(self) -> int:
        """How often it was accessed: its touches inside the set, and its uses that were ever reported."""
        return self.touches + self.memory.access_count

    def moment(self, basis: AgeBasis) -> datetime:
        """The moment from which it ages."""
        if basis is AgeBasis.CREATED:
            return self.memory.created_at
        if basis is AgeBasis.UPDATED:
            return self.memory.updated_at
        if basis is AgeBasis.ENTERED:
            return self.entered_at
        return max(self.touched_at, self.memory.accessed_at or self.touched_at)

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """An entry that leaves, the tokens that this frees, and what it was worth to the policy."""

    held: Held
    freed: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Who leaves so that room is made, in the order of leaving.

    `needed` tokens were asked for, `freed` would be, and `shortfall` of them can't be. With a
    shortfall, `in_the_way` names the pinned entries that hold tokens. Nothing has left yet: whoever
    keeps the set applies this, or refuses what needed the room.
    """

    policy: str
    needed: int
    evicted: tuple[Evicted, ...] = ()
    freed: int = 0
    shortfall: int = 0
    in_the_way: tuple[Held, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether all that was needed would be freed."""
        return self.shortfall == 0
