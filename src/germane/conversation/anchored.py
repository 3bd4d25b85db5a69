"""The default view of a conversation: its recent window whole, and beside it what is recalled from before.

Level: ranking (imports model, errors and conversation). Pure: scores come in as plain data.

Ranked groups in place of the recent ones make a dialogue with holes, which models fill by
inventing. So the window stays unbroken, and what an earlier exchange has to add stands apart, labelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from germane.conversation.groups import groups_of
from germane.conversation.recalling import Recalled, RecallLimits, recalled
from germane.conversation.tiers import Tiers
from germane.conversation.window import checked_size, required_cost, window
from germane.errors import BudgetTooSmall
from germane.model.conversation import (
    Anchored,
    Cost,
    DerivedQuery,
    GroupScores,
    LeftOut,
    Selection,
    beside_message,
)
from germane.model.message import Group, Message

__all__ = ["RecallLimits", "anchored"]


def anchored(
    messages: Sequence[Message],
    found: GroupScores,
    *,
    groups: int = 5,
    budget: int | None = None,
    cost: Cost | None = None,
    anchors: Mapping[str, str] | None = None,
    query: DerivedQuery | None = None,
    recall: RecallLimits | None = None,
    tiers: Tiers | None = None,
) -> Anchored:
    """The last `groups` groups unbroken (0 all, -1 the current alone), and what matches from before them.

    `found` are the query's scores. Of a budget, what one side leaves the other takes. Raises
    BudgetTooSmall when system messages, anchors and the current group don't fit, and InvalidInput.
    """
    checked_size(groups, budget, cost)  # From here on its amount counts: -1 asks for one as well.
    anchors = {name: text for name, text in (anchors or {}).items() if text.strip()}
    limits = recall or RecallLimits()
    candidates = groups_of(messages)
    most = budget
    if budget is not None:
        budget -= _cost_beside(anchors, cost)
        room = budget - _required(messages, candidates[-1:], budget, cost, anchors)
        most = budget if limits.most == 0 else budget - int(room * limits.share)
    recent = window(messages, groups=abs(groups), budget=most, cost=cost)

    def recall_beside(recent: Selection) -> Recalled:
        shown = set(recent.groups)
        earlier = [group for group in candidates if group.id not in shown]
        left = None if budget is None else budget - recent.tokens
        return recalled(earlier, found, budget=left, cost=cost, limits=limits, tiers=tiers)

    beside = recall_beside(recent)
    if budget is not None:
        # What the recalled section doesn't need, the window takes; its score then says nothing new.
        wider = window(messages, groups=abs(groups), budget=budget - beside.tokens, cost=cost)
        if len(wider.groups) > len(recent.groups):
            recent, beside = wider, recall_beside(wider)
    return Anchored(
        window=recent,
        current=candidates[-1].id if candidates else None,
        recalled=beside.groups,
        section=beside.section,
        anchors=anchors,
        query=query or DerivedQuery(),
        left_out=_left_out(recent, beside),
        tokens=recent.tokens + _cost_beside(anchors, cost, beside.section),
    )


def _left_out(recent: Selection, beside: Recalled) -> tuple[LeftOut, ...]:
    """Why each group stands in neither; what was judged for recalling says more than its age."""
    named = {group.id for group in beside.groups}
    others = {one.group: one for one in recent.left_out} | {one.group: one for one in beside.left_out}
    return tuple(one for name, one in others.items() if name not in named)


def _required(
    messages: Sequence[Message],
    must: Sequence[Group],
    budget: int,
    cost: Cost | None,
    anchors: Mapping[str, str],
) -> int:
    try:
        return required_cost(messages, must, budget, cost)
    except BudgetTooSmall as error:
        beside = _cost_beside(anchors, cost)
        named = (*error.required, *(f"anchor {name}" for name in anchors))
        raise BudgetTooSmall(
            budget=error.budget + beside, needed=error.needed + beside, required=named
        ) from None


def _cost_beside(anchors: Mapping[str, str], cost: Cost | None, section: str = "") -> int:
    beside = beside_message(anchors, section)
    return cost(beside) if cost is not None and beside is not None else 0
