"""Picks from before a window what matches a query, as one section of text under a heading.

Level: ranking (imports model, errors and conversation). Pure: scores come in as plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from germane.conversation.tiers import Tiers, tiered
from germane.conversation.words import in_words, names_of_calls
from germane.model.conversation import Cost, GroupScores, LeftOut, beside_message
from germane.model.forms import checked_fields
from germane.model.message import Group
from germane.model.trace import Reason

__all__ = ["HEADING", "RecallLimits", "Recalled", "recalled", "section_of"]

HEADING: Final = "Recalled from earlier in this conversation:"

_MOST: Final = 8
_JUDGED: Final = 300
"""Groups that are counted at most, best first: beyond so many none is worth the time that counting takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(most=(0, inf), share=(0, 1), least=(0, 1))
class RecallLimits:
    """How much is recalled from before the window.

    At most `most` groups (None: as many as a token budget holds, 8 without one) and, of a budget, at least
    `share` of what system messages, anchors and the current group leave, if there is so much to recall.
    A group needs `least` of the best score, or of a full match if that is more.
    """

    most: int | None = None
    share: float = 0.5
    least: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The recalled groups in the order of their opening, in words, and what the others were left out for."""

    groups: tuple[Group, ...] = ()
    section: str = ""
    tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


def recalled(
    earlier: Sequence[Group],
    found: GroupScores,
    *,
    budget: int | None,
    cost: Cost | None,
    limits: RecallLimits,
    tiers: Tiers | None,
) -> Recalled:
    """The best matches, as many as the limits and the budget allow; one that doesn't fit is passed over."""
    least = limits.least * max([found.bound, *found.scores.values()], default=0)
    places = (_MOST if budget is None else _JUDGED) if limits.most is None else limits.most
    matched = [place for place, group in enumerate(earlier) if found.scores.get(group.id, 0) > 0]
    matched.sort(key=lambda place: (-found.scores[earlier[place].id], -place))
    left_out: dict[int, LeftOut] = {}
    chosen: list[int] = []
    base = spent = _price([HEADING], cost)
    for rank, place in enumerate(matched):
        group = earlier[place]
        score = found.scores[group.id]
        if score < least or rank >= _JUDGED or len(chosen) >= places:
            reason = Reason.NOT_RELEVANT if score < least else Reason.LIMIT
            left_out[place] = LeftOut(group=group.id, reason=reason, score=score)
            continue
        price = _price([HEADING, _block(group, tiers)], cost) - base if budget is not None else 0
        if budget is not None and spent + price > budget:
            left_out[place] = _over(group, price, spent + price - budget, score)
        else:
            chosen.append(place)
            spent += price
    return _fitted(earlier, found, chosen, left_out, budget=budget, cost=cost, tiers=tiers)


def section_of(groups: Iterable[Group], *, tiers: Tiers | None = None) -> str:
    """Groups in words under a heading, each with the id of its first message; results as in a past group."""
    blocks = [_block(group, tiers) for group in groups]
    return "\n".join([HEADING, *blocks]) if blocks else ""


def _fitted(
    earlier: Sequence[Group],
    found: GroupScores,
    chosen: list[int],
    left_out: dict[int, LeftOut],
    *,
    budget: int | None,
    cost: Cost | None,
    tiers: Tiers | None,
) -> Recalled:
    """What was chosen as it is written; the last of it leave where the whole counts more than its parts."""
    while True:
        section = section_of([earlier[place] for place in sorted(chosen)], tiers=tiers)
        tokens = _price([section], cost) if section else 0
        if budget is None or tokens <= budget:
            break
        place = chosen.pop()
        gone = earlier[place]
        left_out[place] = _over(gone, 0, tokens - budget, found.scores[gone.id])
    return Recalled(
        groups=tuple(earlier[place] for place in sorted(chosen)),
        section=section,
        tokens=tokens,
        left_out=tuple(left_out[place] for place in sorted(left_out)),
    )


def _over(group: Group, price: int, short_by: int, score: float) -> LeftOut:
    return LeftOut(group=group.id, reason=Reason.OVER_BUDGET, tokens=price, short_by=short_by, score=score)


def _block(group: Group, tiers: Tiers | None) -> str:
    names: dict[str, str] = {}
    lines = [f"--- from message {group.messages[0].id or group.messages[0].seq}"]
    for message in tiered(group.messages, active=None, tiers=tiers):
        names |= names_of_calls(message)
        said = in_words(message, names).strip()
        if said:
            lines.append(f"{message.role.value}: " + said.replace("\n", "\n  "))
    return "\n".join(lines)


def _price(blocks: Sequence[str], cost: Cost | None) -> int:
    beside = beside_message({}, "\n".join(blocks))
    return cost(beside) if cost is not None and beside is not None else 0
