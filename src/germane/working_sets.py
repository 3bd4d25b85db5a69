"""Working sets: their items, what is evicted from them, and what a store keeps of them.

Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from germane.model.memory import Memory, Vector

__all__ = [
    "AddResult",
    "AgeBasis",
    "Evicted",
    "Eviction",
    "WorkingSetEvent",
    "WorkingSetEventKind",
    "WorkingSetItem",
]


class AgeBasis(StrEnum):
    """From which moment on an item ages."""

    CREATED = "created_at"  # When it was first remembered.
    UPDATED = "updated_at"  # When its text or fields last changed.
    ACCESSED = "accessed_at"  # When it was last touched in the set, or reported as used.
    ENTERED = "entered_at"  # When it came into the set.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetItem:
    """One memory in a working set.

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

    item: WorkingSetItem
    freed: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Which items leave to free tokens, in the order of leaving.

    `needed` tokens were requested, `freed` would be, and `shortfall` of them can't be. With a
    shortfall, `in_the_way` are the pinned items with tokens. Nothing has left yet: the owner of the set
    applies this, or refuses what needed the tokens.
    """

    policy: str
    needed: int
    evicted: tuple[Evicted, ...] = ()
    freed: int = 0
    shortfall: int = 0
    in_the_way: tuple[WorkingSetItem, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether all that was needed would be freed."""
        return self.shortfall == 0


# The changes of working sets that a store writes, as values that are applied together or not at all, and the
# events that record them, without any text.

DEFAULT_MAX_TOKENS = 128_000
"""The default capacity of a working set, as in the design that it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddItem:
    """Add a memory as the latest, or, if the set has it already, touch it.

    `pinned` pins what wasn't; False unpins nothing. `recalled` says that a recall brought it.
    Any version of a memory stands for its current one. Raises NotFound when the owner has no such
    memory, and InvalidInput for a forgotten one.
    """

    memory_id: str
    at: datetime
    pinned: bool = False
    recalled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """Record that an item was just used: it is the latest from here on. Raises NotInWorkingSet."""

    memory_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveItem:
    """Take a memory out; it stays stored. Raises NotInWorkingSet.

    `evicted` says that it left to free tokens, and not that somebody removed it.
    """

    memory_id: str
    at: datetime
    evicted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Pin an item, or unpin it; what is pinned is never evicted. Raises NotInWorkingSet."""

    memory_id: str
    pinned: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Take everything out, or all but what is pinned."""

    at: datetime
    keep_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Set how many tokens the set may hold. Nothing leaves by it."""

    max_tokens: int
    at: datetime


SetChange = AddItem | Touch | RemoveItem | Pin | Clear | Resize


class WorkingSetEventKind(StrEnum):
    """What became of a memory in a working set, or of the set."""

    ADD = "add"  # It was added.
    TOUCH = "touch"  # It was used, or added again.
    PIN = "pin"
    UNPIN = "unpin"
    EVICT = "evict"  # It left to free tokens.
    REMOVE = "remove"  # Somebody removed it.
    CLEAR = "clear"  # It left with all the rest.
    FORGET = "forget"  # It was forgotten, and so left.
    PURGE = "purge"  # It was purged, and so left.
    REVISE = "revise"  # Its next version took its place.
    RESIZE = "resize"  # The set may hold more or less from here on.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetEvent:
    """One event in the log of an owner's working sets.

    `number` counts all events in the owner's sets from 1. `memory_id` is None where the event is the
    set's own. `former_id` is the version that a revision replaced, as `id@n`. `by` is the agent who did it;
    in a set that agents share, not the owner's name.
    """

    number: int
    working_set: str
    kind: WorkingSetEventKind
    memory_id: str | None
    former_id: str | None
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorkingSet:
    """A working set as it is stored: its items, the one touched longest ago first.

    `moved` is the number of its latest event, 0 where there was none.
    """

    name: str
    max_tokens: int = DEFAULT_MAX_TOKENS
    moved: int = 0
    items: tuple[WorkingSetItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """What memories are compared by: the hashes of one's terms, ascending, and its vector if it has one."""

    hashes: NDArray[np.uint32]
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What adding memories to a working set did.

    `items` are their entries as the set has them now, in the order given, and `new` the ids of those that
    it didn't have before; the others were touched. `eviction` has the items that were evicted for them.
    `left_out` are memories that didn't fit: only a recall leaves any out.
    """

    items: tuple[WorkingSetItem, ...]
    new: frozenset[str]
    eviction: Eviction
    left_out: tuple[Memory, ...] = ()

    @property
    def evicted(self) -> tuple[Memory, ...]:
        """The memories that were evicted, in the order of leaving. They stay stored."""
        return tuple(one.item.memory for one in self.eviction.evicted)
