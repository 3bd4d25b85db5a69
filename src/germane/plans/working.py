"""The plan of a working set: what is held, whole, best first, parted by blank lines, and nothing else.

Level: plans. Pure data.

It follows the decision record on context assembly: one list, no headings, the values joined by a
blank line, a hard limit. What differs: what doesn't fit is skipped and doesn't end the list, so that
one long memory can't hide all the shorter ones after it; the blank lines count, since the limit is
one of the text as it stands; and a memory has no blank line inside and no heading or tag of its own,
so that it can't pose as several, or as an instruction.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from germane.errors import InvalidInput
from germane.model.memory import Level
from germane.model.plan import Overflow, Plan, RollOver, Section, Share, Style

__all__ = ["PRESENTATIONS", "Presentation", "working"]

Presentation: TypeAlias = Literal["best_first", "reverse"]

PRESENTATIONS: tuple[str, ...] = get_args(Presentation)
"""The orders in which the memories that were chosen can stand in the text."""


def working(
    *,
    overflow: Overflow | str = Overflow.SKIP,
    order: Presentation | str = "best_first",
    raw: bool = False,
) -> Plan:
    """The plan of a working set.

    `overflow`: "skip", "stop" at the first memory that doesn't fit, "degrade" to its summary, or
    "degrade_stop" where that doesn't fit either.
    `order`: "best_first", or "reverse" with the best last, nearest to the question that follows; the
    memories are the same. `raw` leaves texts as they are stored. With "stop" and `raw` the text is
    that of the decision record. Raises InvalidInput for an unknown overflow or order.
    """
    try:
        overflow = Overflow(overflow)
    except ValueError:
        raise InvalidInput(f"Unknown overflow {overflow!r}. Known: {', '.join(Overflow)}.") from None
    if order not in PRESENTATIONS:
        raise InvalidInput(f"Unknown order {order!r}. Known orders: {', '.join(PRESENTATIONS)}.")
    shorter = (Level.SUMMARY, Level.MICRO) if overflow.degrades else ()
    return Plan(
        name="working",
        roll_over=RollOver.NONE,
        sections=(
            Section(
                name="held",
                heading="",
                share=Share(weight=1),
                levels=(Level.FULL, *shorter),
                overflow=overflow,
                style=Style.RAW if raw else Style.PARAGRAPHS,
                reverse=order == "reverse",
            ),
        ),
    )
