"""The default view of a conversation: its recent window whole, and beside it what is recalled from before.

Level: ranking (imports model, errors and conversation). Pure: scores come in as plain data.

Ranked groups in place of the recent ones make a dialogue with holes, which models fill by
inventing. So the window stays unbroken, and what an earlier exchange has to add stands apart, labelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from germane.conversation.groups import groups_of
from germane.conversation.tiers import Tiers, tiered
from germane.conversation.window import NONE, checked_size, required_cost, window
from germane.conversation.words import in_words, names_of_calls
from germane.errors import BudgetTooSmall, InvalidInput
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
from germane.model.trace import Reason

__all__ = ["HEADING", "RecallLimits", "anchored", "section_of"]

HEADING: Final = "Recalled from earlier in this conversation:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLimits:
    """How much is recalled from before the window.

    At most `most` groups and, of a token budget, at most `share` of what system messages, anchors and the
    current group leave. A group needs `least` of the best score, or of a full match if that is more.
    """

    most: int = 8
    share: float = 0.35
    least: float = 0.15

    def __post_init__(self) -> None:
        if self.most < 0 or not (0 <= self.share <= 1 and 0 <= self.least <= 1):
            raise InvalidInput(f"{self} can't be used: most is 0 or more, share and least are from 0 to 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Means:
    """What recalling goes by, the whole time."""

    cost: Cost | None
    recall: RecallLimits
    tiers: Tiers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recalled:
    groups: tuple[Group, ...] = ()
    section: str = ""
    tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


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

    `found` are the scores for the query, anchors texts by name that always stand. With a budget the
    whole has at most that many tokens, and what one side leaves the other takes. Raises BudgetTooSmall
    when system messages, anchors and the current group don't fit, and InvalidInput.
    """
    checked_size(groups, budget, cost)
    groups = 1 if groups == NONE else groups
    anchors = {name: text for name, text in (anchors or {}).items() if text.strip()}
    means = _Means(cost=cost, recall=recall or RecallLimits(), tiers=tiers)
    candidates = groups_of(messages)
    room: int | None = None
    if budget is not None:
        budget -= _cost_beside(anchors, cost)
        room = budget - _required(messages, candidates[-1:], budget, cost, anchors)
    recent = window(messages, groups=groups, budget=_of_window(budget, room, means.recall), cost=cost)
    recalled = _recalled(messages, recent, found, _left(budget, recent), means)
    if budget is not None:
        # What the recalled section doesn't need, the window takes; its score then says nothing new.
        wider = window(messages, groups=groups, budget=budget - recalled.tokens, cost=cost)
        if len(wider.groups) > len(recent.groups):
            recent = wider
            recalled = _recalled(messages, recent, found, _left(budget, recent), means)
    names = {group.id for group in recalled.groups}
    others = {one.group: one for one in recent.left_out} | {one.group: one for one in recalled.left_out}
    return Anchored(
        window=recent,
        current=candidates[-1].id if candidates else None,
        recalled=recalled.groups,
        section=recalled.section,
        anchors=anchors,
        query=query or DerivedQuery(),
        left_out=tuple(one for name, one in others.items() if name not in names),
        tokens=recent.tokens + _cost_beside(anchors, cost, recalled.section),
    )


def section_of(groups: Sequence[Group], *, tiers: Tiers | None = None) -> str:
    """Groups in words under a heading, each with the id of its first message; results as in a past group."""
    if not groups:
        return ""
    blocks = [HEADING]
    for group in groups:
        names: dict[str, str] = {}
        lines = [f"--- from message {group.messages[0].id or group.messages[0].seq}"]
        for message in tiered(group.messages, active=None, tiers=tiers):
            names |= names_of_calls(message)
            said = in_words(message, names).strip()
            if said:
                lines.append(f"{message.role.value}: " + said.replace("\n", "\n  "))
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


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


def _of_window(budget: int | None, room: int | None, recall: RecallLimits) -> int | None:
    if budget is None or room is None or not recall.most:
        return budget
    return budget - int(room * recall.share)


def _left(budget: int | None, recent: Selection) -> int | None:
    return None if budget is None else budget - recent.tokens


def _recalled(
    messages: Sequence[Message],
    recent: Selection,
    found: GroupScores,
    budget: int | None,
    means: _Means,
) -> _Recalled:
    """The best matches before the window, as many as the limits allow; whoever doesn't fit is passed over."""
    shown = set(recent.groups)
    earlier = {group.id: group for group in groups_of(messages) if group.id not in shown}
    opened = {name: place for place, name in enumerate(earlier)}
    least = means.recall.least * max([found.bound, *found.scores.values()], default=0)
    matched = [name for name in earlier if found.scores.get(name, 0) > 0]
    state = _Recalled()
    left_out: dict[str, LeftOut] = {}
    for name in sorted(matched, key=lambda each: (-found.scores[each], -opened[each])):
        score = float(found.scores[name])
        if score < least:
            left_out[name] = LeftOut(group=name, reason=Reason.NOT_RELEVANT, score=score)
        elif len(state.groups) >= means.recall.most:
            left_out[name] = LeftOut(group=name, reason=Reason.LIMIT, score=score)
        else:
            chosen = tuple(sorted((*state.groups, earlier[name]), key=lambda group: opened[group.id]))
            section = section_of(chosen, tiers=means.tiers)
            tokens = _cost_beside({}, means.cost, section)
            if budget is not None and tokens > budget:
                left_out[name] = LeftOut(
                    group=name,
                    reason=Reason.OVER_BUDGET,
                    tokens=tokens - state.tokens,
                    short_by=tokens - budget,
                    score=score,
                )
            else:
                state = _Recalled(groups=chosen, section=section, tokens=tokens)
    return replace(state, left_out=tuple(left_out[name] for name in earlier if name in left_out))


def _cost_beside(anchors: Mapping[str, str], cost: Cost | None, section: str = "") -> int:
    beside = beside_message(anchors, section)
    return cost(beside) if cost is not None and beside is not None else 0
