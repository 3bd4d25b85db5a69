"""Views of a conversation: tool results in tiers, the recent window, and recalled earlier groups.

The functions are pure: scores are arguments.

Ranked groups in place of recent ones make a dialogue with gaps, and models invent what is missing. So the
window has no gaps, and recalled exchanges are a separate section with a heading.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import regex

from germane.conversation.formats.parts import content_in_words, kind_of, spoken_lines
from germane.conversation.groups import checked_size, groups_of, pick, required_cost, window
from germane.errors import BudgetTooSmall
from germane.model.context import Reason
from germane.model.conversation import (
    Anchored,
    Cost,
    DerivedQuery,
    Group,
    GroupScores,
    LeftOut,
    Message,
    OpaquePart,
    Selection,
    TextPart,
    ToolResult,
    beside_message,
)
from germane.model.validation import checked_fields
from germane.protocols import TokenCounter


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
    """The last `groups` groups without gaps (0 all, -1 only the current one), and earlier matching groups.

    `found` are the query's scores. Unused tokens of the window or of the recalled section go to the other.
    Raises BudgetTooSmall if system messages, anchors and the current group don't fit, and InvalidInput.
    """
    checked_size(groups, budget, cost)  # From here on only its absolute value counts: -1 also selects one.
    anchors = {name: text for name, text in (anchors or {}).items() if text.strip()}
    limits = recall or RecallLimits()
    candidates = groups_of(messages)
    most = budget
    if budget is not None:
        budget -= _cost_beside(anchors, cost)
        free = budget - _required(messages, candidates[-1:], budget, cost, anchors)
        most = budget if limits.most == 0 else budget - int(free * limits.share)
    recent = window(messages, groups=abs(groups), budget=most, cost=cost)

    def recall_beside(recent: Selection) -> RecalledGroups:
        shown = set(recent.groups)
        earlier = [group for group in candidates if group.id not in shown]
        left = None if budget is None else budget - recent.tokens
        return recalled(earlier, found, budget=left, cost=cost, limits=limits, tiers=tiers)

    beside = recall_beside(recent)
    if budget is not None:
        # The window takes the unused tokens of the recalled section.
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
        # The reason for not recalling a group is more specific than its age.
        left_out=tuple(
            one
            for name, one in {each.group: each for each in (*recent.left_out, *beside.left_out)}.items()
            if name not in {group.id for group in beside.groups}
        ),
        tokens=recent.tokens + _cost_beside(anchors, cost, beside.section),
    )


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


# The earlier groups that match a query, as one section of text under a heading.

HEADING: Final = "Recalled from earlier in this conversation:"

_MOST: Final = 8
_SCORED: Final = 300
"""The maximum number of groups whose tokens are counted, best first; counting more isn't worth the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(most=(0, inf), share=(0, 1), least=(0, 1))
class RecallLimits:
    """Limits for groups recalled from before the window.

    At most `most` groups are recalled (None: as many as fit a token budget, 8 without one). At least `share`
    of the budget that system messages, anchors and the current group leave is available for them. A group
    needs `least` of the best score, or of the score of a full match if that is higher.
    """

    most: int | None = None
    share: float = 0.5
    least: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledGroups:
    """The recalled groups in the order of their opening, their text, and the reasons for excluded groups."""

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
) -> RecalledGroups:
    """The best matches within the limits and the budget; groups that don't fit are skipped."""
    least = limits.least * max([found.bound, *found.scores.values()], default=0)
    places = (_MOST if budget is None else math.inf) if limits.most is None else limits.most
    matched = [group for group in earlier[::-1] if found.scores.get(group.id, 0) > 0]
    matched.sort(key=lambda group: -found.scores[group.id])
    base = _cost_beside({}, cost, HEADING)
    chosen, left_out, _ = pick(
        matched,
        places=places,
        budget=None if budget is None else budget - base,
        cost_of=lambda group: (
            0 if budget is None else _cost_beside({}, cost, section_of([group], tiers=tiers)) - base
        ),
        scores=found.scores,
        least=least,
        tried=_SCORED,
    )
    order = {group.id: place for place, group in enumerate(earlier)}
    while True:
        groups = sorted(chosen, key=lambda group: order[group.id])
        section = section_of(groups, tiers=tiers)
        tokens = _cost_beside({}, cost, section)
        if budget is None or tokens <= budget:
            break
        # The joined text has more tokens than its parts, so the last selected group is dropped.
        gone = chosen.pop().id
        left_out[gone] = LeftOut(
            group=gone, reason=Reason.OVER_BUDGET, short_by=tokens - budget, score=found.scores[gone]
        )
    reasons = tuple(left_out[name] for name in order if name in left_out)
    return RecalledGroups(groups=tuple(groups), section=section, tokens=tokens, left_out=reasons)


def section_of(groups: Iterable[Group], *, tiers: Tiers | None = None) -> str:
    """Groups as text under a heading, each with its first message's id; results are cut as in past groups."""
    blocks = [_block(group, tiers) for group in groups]
    return "\n".join([HEADING, *blocks]) if blocks else ""


def _block(group: Group, tiers: Tiers | None) -> str:
    lines = [f"--- from message {group.messages[0].id or group.messages[0].seq}"]
    shown = spoken_lines(tiered(group.messages, active=None, tiers=tiers))
    lines += [f"{role}: " + text.replace("\n", "\n  ") for role, text in shown]
    return "\n".join(lines)


# Tool results in three tiers: whole while in use, then shorter, shortest in past groups.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(recent=(0, inf), older=(0, inf), inactive=(0, inf), head=(0, 1))
class Tiers:
    """The maximum lengths of shown tool results, in characters, or in tokens if a counter is given.

    The last `recent` results of the active group are whole, its other results have at most `older`, and
    results of other groups at most `inactive`; None means no limit. `head` is the share of the shown text
    that comes from the beginning: errors and outcomes are mostly at the end.
    """

    recent: int = 5
    older: int | None = 2000
    inactive: int | None = 400
    head: float = 0.2
    counter: TokenCounter | None = None


def tiered(
    messages: Sequence[Message], *, active: str | None, tiers: Tiers | None = None
) -> tuple[Message, ...]:
    """The messages with their results cut to their tiers; other messages are unchanged.

    Each cut shows what is missing and the message id for `expand`, if the limit allows; otherwise "…", the
    minimum length of a result. Images and other parts without text are always replaced by their names in
    brackets.
    """
    return tuple(map(tiering(messages, active=active, tiers=tiers), messages))


def tiering(
    messages: Sequence[Message], *, active: str | None, tiers: Tiers | None = None
) -> Callable[[Message], Message]:
    """A function that cuts the results of a message to its tier, and caches the message."""
    tiers = tiers or Tiers()
    whole = _recent_results(messages, active, tiers.recent)
    made: dict[int, Message] = {}

    def cut(message: Message) -> Message:
        limit = tiers.older if message.group == active and active is not None else tiers.inactive
        if limit is None or not message.results:
            return message
        if message.seq not in made:
            parts = tuple(
                _cut(part, message, limit, tiers)
                if isinstance(part, ToolResult) and (message.seq, place) not in whole
                else part
                for place, part in enumerate(message.parts)
            )
            made[message.seq] = message if parts == message.parts else message.evolve(parts=parts)
        return made[message.seq]

    return cut


def hint_of(message: Message, gone: int, parts: Sequence[OpaquePart] = ()) -> str:
    """The text in place of a cut: the number of missing characters, and the missing parts without text."""
    counted = Counter(kind_of(part.form) for part in parts)
    named = [f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in counted.items()]
    left_out = " and ".join([f"{gone:,} characters"] * bool(gone) + named)
    whole = f'; expand("{message.id}") returns the whole' if message.id else ""
    return f"[{left_out} left out{whole}]"


def _recent_results(messages: Iterable[Message], active: str | None, recent: int) -> set[tuple[int, int]]:
    """The last results of the active group, as message numbers and part indexes."""
    places = [
        (message.seq, place)
        for message in messages
        if message.group == active and active is not None
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    return set(places[len(places) - recent :] if recent < len(places) else places)


def _cut(result: ToolResult, message: Message, limit: int, tiers: Tiers) -> ToolResult:
    text = content_in_words(result.content)
    more = [part for part in result.content if isinstance(part, OpaquePart)]
    measure = len if tiers.counter is None else tiers.counter.count
    shown = cut_middle(
        text, limit, lambda gone: hint_of(message, gone, more), head=tiers.head, measure=measure
    )
    if shown == text and not more:
        return result
    if more and shown == text and measure(hinted := f"{text}\n{hint_of(message, 0, more)}") <= limit:
        shown = hinted
    recalled = any(isinstance(part, TextPart) and part.recalled for part in result.content)
    form = result.content[0].form if isinstance(result.content[0], TextPart) else ""
    return replace(result, content=(TextPart(text=shown, recalled=recalled, form=form),))


# Cutting the middle of a long text, never within a grapheme.

MARK = "…"
"""The mark of a cut if the limit is too small for a hint."""

_GRAPHEME = regex.compile(r"\X")
_LONGEST_GRAPHEME = 200
"""Examined characters around a place; longer graphemes are only made to do harm, and may be cut."""
_CHARACTERS_OF_A_TOKEN = 16
"""The maximum length of common tokens, which bounds the search for a place."""


def cut_middle(
    text: str,
    limit: int,
    hint: Callable[[int], str],
    *,
    head: float = 0.2,
    measure: Callable[[str], int] = len,
) -> str:
    """The text if its length is at most `limit`, else its beginning and end with a hint between them.

    `hint` takes the number of missing characters; its text counts towards the limit. If it doesn't fit, MARK
    replaces it. `head` is the share of the shown text that comes from the beginning. The result has at most
    `limit`, but at least MARK, also for a limit of 0.
    """
    if measure(text) <= limit:
        return text
    shortened = _text_cut(text, limit, lambda gone: f"\n{hint(gone)}\n", head=head, measure=measure)
    if shortened is not None:
        return shortened
    alone = hint(len(text))
    if measure(alone) <= limit:
        return alone
    return _text_cut(text, limit, lambda _: MARK, head=head, measure=measure) or MARK


def _text_cut(
    text: str, limit: int, between: Callable[[int], str], *, head: float, measure: Callable[[str], int]
) -> str | None:
    """The beginning and the end with `between` in the middle; None if nothing of the text fits."""
    free = limit - measure(between(len(text)))
    while free > 0:
        first = int(free * head)
        start, _ = _grapheme_at(text, _longest(text, first, measure))
        rest = _longest(text, free - first, measure, from_end=True)
        _, end = _grapheme_at(text, max(start, len(text) - rest))
        shown = f"{text[:start]}{between(end - start)}{text[end:]}"
        excess = measure(shown) - limit
        # Token counts of joined texts aren't additive, so the result may be too long.
        if excess <= 0:
            return shown
        free -= excess
    return None


def _longest(text: str, limit: int, measure: Callable[[str], int], *, from_end: bool = False) -> int:
    """The number of characters from the beginning, or from the end, that measure at most `limit`."""
    if measure is len:
        return min(limit, len(text))
    low, high = 0, min(len(text), limit * _CHARACTERS_OF_A_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[len(text) - middle :] if from_end else text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _grapheme_at(text: str, place: int) -> tuple[int, int]:
    """The begin and end of the grapheme that a place divides; twice the place if it divides none."""
    around = text[max(0, place - 1) : place + 1]
    if around.isascii() and around != "\r\n":
        return place, place  # In ASCII, only a carriage return and its line feed are one grapheme.
    begin = max(0, place - _LONGEST_GRAPHEME)
    for each in _GRAPHEME.finditer(text, begin, min(len(text), place + _LONGEST_GRAPHEME)):
        if each.start() < place < each.end():
            return place if each.start() == begin > 0 else each.start(), each.end()
    return place, place
