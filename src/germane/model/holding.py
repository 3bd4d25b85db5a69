"""What is asked of a store that keeps working sets, and what it tells of them.

Level: model (imports model and errors). Changes are values, applied together or not at all; moves are
the record of what became of them, without any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from germane.model.held import Eviction, Held
from germane.model.memory import Memory
from germane.model.names import DEFAULT_SET
from germane.model.vector import Vector

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_SET",
    "Added",
    "Clear",
    "Enter",
    "Features",
    "HeldChange",
    "HeldSet",
    "Leave",
    "Move",
    "MoveKind",
    "Pin",
    "Resize",
    "Touch",
]

DEFAULT_MAX_TOKENS = 128_000
"""What a working set may hold unless it was told otherwise, as in the design that it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """Take a memory in as the latest, or, where it is held already, touch it.

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
    """Note that a held memory was used just now: it is the latest from here on. Raises NotHeld."""

    memory_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Take a memory out; it stays stored. Raises NotHeld.

    `evicted` says that it had to make room, and not that somebody wanted it gone.
    """

    memory_id: str
    at: datetime
    evicted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Pin a held memory, or unpin it; what is pinned is never evicted. Raises NotHeld."""

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


HeldChange = Enter | Touch | Leave | Pin | Clear | Resize


class MoveKind(StrEnum):
    """What became of a memory in a working set, or of the set."""

    ADD = "add"  # It was taken in.
    TOUCH = "touch"  # It was used, or added again.
    PIN = "pin"
    UNPIN = "unpin"
    EVICT = "evict"  # It made room.
    REMOVE = "remove"  # Somebody took it out.
    CLEAR = "clear"  # It left with all the rest.
    FORGET = "forget"  # It was forgotten, and so left.
    PURGE = "purge"  # It was purged, and so left.
    REVISE = "revise"  # Its next version took its place.
    RESIZE = "resize"  # The set may hold more or less from here on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One entry of an owner's log of moves.

    `number` counts all moves in the owner's sets from 1. `memory_id` is None where the move is the
    set's own. `former_id` is the version that a revision replaced, as `id@n`. `by` is the agent who did it;
    in a set that agents share, not the owner's name.
    """

    number: int
    working_set: str
    kind: MoveKind
    memory_id: str | None
    former_id: str | None
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """A working set as it is stored: what it holds, the one touched longest ago first.

    `moved` is the number of its latest move, 0 where there was none.
    """

    name: str
    max_tokens: int = DEFAULT_MAX_TOKENS
    moved: int = 0
    items: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """What memories are compared by: the hashes of one's terms, ascending, and its vector if it has one."""

    hashes: NDArray[np.uint32]
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What adding memories to a working set did.

    `held` are their entries as the set has them now, in the order given, and `new` the ids of those that
    it didn't hold before; the others were touched. `eviction` tells who made room. `left_out` are
    memories for which there was none: only a recall leaves any out.
    """

    held: tuple[Held, ...]
    new: frozenset[str]
    eviction: Eviction
    left_out: tuple[Memory, ...] = ()

    @property
    def evicted(self) -> tuple[Memory, ...]:
        """The memories that made room, in the order of leaving. They stay stored."""
        return tuple(one.held.memory for one in self.eviction.evicted)
