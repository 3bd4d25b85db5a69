"""Orders that no question decides: newest, oldest, most important.

Level: ranking (imports model and errors). Pure. The same orders as a store's `find` has.
"""

from __future__ import annotations

from collections.abc import Iterable

from germane.model.query import Candidate, Order

__all__ = ["in_order"]


def in_order(candidates: Iterable[Candidate], order: Order) -> tuple[Candidate, ...]:
    """The candidates in that order; ties fall to the newer, then to the greater id, so it is total."""
    newest_first = sorted(
        candidates, key=lambda one: (one.memory.created_at, one.memory.ref), reverse=order is not Order.OLDEST
    )
    if order is Order.IMPORTANT:
        newest_first.sort(key=lambda one: one.memory.importance, reverse=True)
    return tuple(newest_first)
