"""A working set as JSON, its entries and moves, and what adding and evicting did.

Level: integrations. Documented in docs/reference/json.md like the shapes of `shapes`, by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.integrations.shapes import Shape, memory_shape

if TYPE_CHECKING:
    from germane import Added, Eviction, Held, Move, WorkingSet

__all__ = ["added_shape", "eviction_shape", "held_shape", "move_shape", "working_set_shape"]

_DIGITS = 6


def working_set_shape(held: WorkingSet) -> Shape:
    """A set without its entries."""
    items, most = held.items(), held.max_tokens
    tokens = sum(one.tokens for one in items)
    return {
        "name": held.name,
        "owner": held.owner,
        "max_tokens": most,
        "tokens": tokens,
        "utilization": round(tokens / most, _DIGITS) if most else 0.0,
        "count": len(items),
    }


def held_shape(held: Held) -> Shape:
    """One entry."""
    return {
        "memory": memory_shape(held.memory),
        "tokens": held.tokens,
        "order": held.order,
        "touches": held.touches,
        "pinned": held.pinned,
        "recalled": held.recalled,
        "entered_at": held.entered_at.isoformat(),
        "touched_at": held.touched_at.isoformat(),
    }


def added_shape(added: Added) -> Shape:
    """What adding did."""
    return {
        "held": [{**held_shape(one), "new": one.memory.id in added.new} for one in added.held],
        "eviction": eviction_shape(added.eviction),
    }


def eviction_shape(eviction: Eviction) -> Shape:
    """Who made room, in the order of leaving."""
    return {
        "policy": eviction.policy,
        "needed": eviction.needed,
        "freed": eviction.freed,
        "shortfall": eviction.shortfall,
        "evicted": [
            {"id": one.held.memory.id, "tokens": one.freed, "value": round(one.value, _DIGITS)}
            for one in eviction.evicted
        ],
        "in_the_way": [one.memory.id for one in eviction.in_the_way],
    }


def move_shape(move: Move) -> Shape:
    """One entry of the log of moves."""
    return {
        "number": move.number,
        "set": move.working_set,
        "event": str(move.kind),
        "id": move.memory_id,
        "former_id": move.former_id,
        "by": move.by,
        "at": move.at.isoformat(),
    }
