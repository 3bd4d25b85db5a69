"""Split a budget over sections: floors first, then weights, under ceilings, to the last token.

Level: packing. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.errors import InvalidInput
from germane.model.plan import Share

__all__ = ["allocate"]


def allocate(total: int, shares: Sequence[Share]) -> tuple[int, ...]:
    """The tokens of each share; they sum to `total` exactly unless ceilings keep some back.

    Floors are set aside first (in proportion, where they don't all fit); what remains is split by
    weight, each part rounded down and the remainder given to the last section that can take it.
    What a ceiling cuts off goes to the others by weight again. Raises InvalidInput for a negative
    total.
    """
    if total < 0:
        raise InvalidInput(f"A budget of {total} tokens can't be split: it must be 0 or more.")
    floors = [share.floor for share in shares]
    if sum(floors) > total:
        return tuple(_by_weight(total, floors))
    given = list(floors)
    open_ = [index for index, share in enumerate(shares) if share.weight > 0]
    rest = total - sum(floors)
    while rest > 0 and open_:
        parts = _by_weight(rest, [shares[index].weight for index in open_])
        capped = []
        for index, part in zip(open_, parts, strict=True):
            ceiling = shares[index].ceiling
            room = part if ceiling is None else min(part, ceiling - given[index])
            given[index] += room
            rest -= room
            if room < part:
                capped.append(index)
        if not capped:
            break
        open_ = [index for index in open_ if index not in capped]
    return tuple(given)


def _by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to the weights, rounded down, the remainder to the last with a weight."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    last = max(index for index, weight in enumerate(weights) if weight)
    parts[last] += total - sum(parts)
    return parts
