"""The recent window: the last groups of a conversation, unbroken.

Level: ranking (imports model, errors and conversation). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from germane.conversation.groups import groups_of, is_always_kept
from germane.errors import BudgetTooSmall, InvalidInput
from germane.model.conversation import Cost, LeftOut, Selection
from germane.model.message import Group, Message
from germane.model.trace import Reason

__all__ = ["ALL", "NONE", "SYSTEM", "checked_size", "required_cost", "selected", "window", "with_earlier"]

ALL, NONE = 0, -1
"""Numbers of groups with a meaning of their own."""

SYSTEM = "system and ungrouped messages"
"""What an error calls the messages that every selection keeps."""


def window(
    messages: Sequence[Message], *, groups: int = ALL, budget: int | None = None, cost: Cost | None = None
) -> Selection:
    """The last `groups` groups (0 all, -1 none), and no more than `budget` tokens; what binds first, binds.

    System messages and those of no group are kept besides, and paid first. The order is that of the
    conversation. The first group that doesn't fit ends the window, so it has no holes. Raises
    BudgetTooSmall when the current group doesn't fit, and InvalidInput.
    """
    checked_size(groups, budget, cost)
    candidates = groups_of(messages)
    wanted = 0 if groups == NONE else len(candidates) if groups == ALL else groups
    must = candidates[-1:] if wanted else ()
    used = required_cost(messages, must, budget, cost)
    chosen = list(must)
    left_out: list[LeftOut] = []
    stopped = False
    for place, group in enumerate(reversed(candidates[: len(candidates) - len(must)]), start=len(must)):
        if stopped or place >= wanted:
            reason = Reason.STOPPED if stopped else Reason.LIMIT
            left_out.append(LeftOut(group=group.id, reason=reason))
            continue
        price = sum(map(cost, group)) if cost else 0
        if budget is not None and used + price > budget:
            stopped = True
            left_out.append(
                LeftOut(
                    group=group.id, reason=Reason.OVER_BUDGET, tokens=price, short_by=used + price - budget
                )
            )
        else:
            used += price
            chosen.append(group)
    names = {group.id for group in chosen}
    return selected(messages, candidates, names, tokens=used, left_out=left_out[::-1])


def with_earlier(selection: Selection, opened: Sequence[str]) -> Selection:
    """A window over the last groups as one over all of them; `opened` are their names, oldest first."""
    known = {*selection.groups, *(one.group for one in selection.left_out)}
    stopped = any(one.reason is Reason.OVER_BUDGET for one in selection.left_out)
    reason = Reason.STOPPED if stopped else Reason.LIMIT
    earlier = (LeftOut(group=name, reason=reason) for name in opened if name not in known)
    return replace(selection, left_out=(*earlier, *selection.left_out))


def checked_size(groups: int, budget: int | None, cost: Cost | None) -> None:
    """Raise InvalidInput for a number of groups or a budget that can't be."""
    if isinstance(groups, bool) or groups < NONE:
        raise InvalidInput(
            f"groups={groups!r} can't be used: take a number of groups, 0 for all, or -1 for none."
        )
    if budget is not None and (budget < 0 or cost is None):
        raise InvalidInput(f"budget={budget!r} can't be used: take 0 or more tokens, and say what they cost.")


def required_cost(
    messages: Sequence[Message], groups: Sequence[Group], budget: int | None, cost: Cost | None
) -> int:
    """What the messages that are always kept and these groups cost. Raises BudgetTooSmall."""
    if cost is None:
        return 0
    kept = sum(cost(message) for message in messages if is_always_kept(message))
    needed = kept + sum(cost(message) for group in groups for message in group)
    if budget is not None and needed > budget:
        named = (*((SYSTEM,) if kept else ()), *(f"group {group.id}" for group in groups))
        raise BudgetTooSmall(budget=budget, needed=needed, required=named)
    return needed


def selected(
    messages: Sequence[Message],
    candidates: Sequence[Group],
    chosen: AbstractSet[str],
    *,
    tokens: int,
    left_out: Sequence[LeftOut],
) -> Selection:
    """The messages of the chosen groups and those that are always kept, in the conversation's order."""
    return Selection(
        messages=tuple(
            each for each in messages if (each.group in chosen and not each.hidden) or is_always_kept(each)
        ),
        groups=tuple(group.id for group in candidates if group.id in chosen),
        tokens=tokens,
        left_out=tuple(left_out),
    )
