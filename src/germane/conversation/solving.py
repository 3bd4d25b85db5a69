"""A request that fits: system, tools, memory, history and the reserved answer out of one budget.

Level: ranking (imports model, errors, packing and conversation). Pure: the same conversation, previous
request and wishes give the same bytes.

What must stand in it is paid first, and an error names it where it doesn't fit. Between turns it only
grows: when it no longer fits, tool output is cut first, then the oldest groups go, and so much at once
that the next turns fit as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from germane.conversation.arranging import Arrangement
from germane.conversation.beside import MEMORY, RECALLED, anchor_blocks, carried, memory_block, worth
from germane.conversation.fitting import (
    Window,
    forms_of_current,
    inactive_form,
    loosened,
    room_under,
    window_of,
)
from germane.conversation.head import Head, head_of
from germane.conversation.staying import Case, cost_of, lifted, recalled_anew, recalled_on, spare
from germane.conversation.wanted import AIM, Remembered, Wanted, block_cost
from germane.errors import BudgetTooSmall, RequestTooLarge
from germane.model.request import Block, Form, RequestState
from germane.packing.allocate import allocate

__all__ = ["Solved", "solve"]

_STEP: Final = 0.07
"""How much room is left when the window's start has to move, so that it needn't move again at once."""

_MUCH_SMALLER: Final = 0.75
"""The share of the limit below which a request that could be fuller is made anew."""

_ATTEMPTS: Final = 4

_JUDGED: Final = 200
"""The latest groups that tell about how long a request is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What a request shows. `window` and `blocks` are its variable parts, `kept` whether it only grew."""

    head: Head
    window: Window
    blocks: tuple[Block, ...]
    state: RequestState
    room: Mapping[str, int]
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Must:
    """What can't be left out: its tokens, and the loosest form of the current group that it fits in."""

    tokens: int
    form: Form | None = None
    pins: tuple[str, ...] = ()
    anchors: tuple[Block, ...] = ()


def solve(arranged: Arrangement, wanted: Wanted) -> Solved:
    """The request for what is arranged. Raises RequestTooLarge."""
    head = head_of(arranged, wanted)
    old = carried(arranged, wanted.previous, wanted)
    anchors = _settled_anchors(arranged, wanted, old)
    must = _required(arranged, wanted, head, anchors)
    must, memory, fresh = _memory(arranged, wanted, head, must, old)
    beside = [*([memory] if memory is not None else []), *anchors]
    room = _rooms(wanted, must)
    fixed = head.tokens + cost_of(arranged, beside)
    bound = room_under(arranged, wanted.shares.history.ceiling, current=must.form, pins=must.pins)
    case = Case(arranged=arranged, wanted=wanted, fixed=fixed, share=room["recalled"], bound=bound)
    recalled = [block for block in old if block.name == RECALLED]
    window = _grown(case, must, recalled)
    if window is None and any(block.spare for block in recalled):
        # What only filled the request before makes room for what was said since.
        recalled = [block for block in recalled if not block.spare]
        window = _grown(case, must, recalled)
    kept = window is not None
    if window is None:
        beside = [*([fresh] if fresh is not None else []), *anchors]
        case = replace(case, fixed=head.tokens + cost_of(arranged, beside))
        window, recalled = _anew(case, must)
        beside = lifted(arranged, beside, window)
    else:
        window, recalled = recalled_on(case, window, recalled)
    if not (kept and case.is_same_question):
        # While a question is worked on, what stands before it stays as it is.
        recalled += spare(case, window, recalled)
    # What leaves first stands last, so that no more than it has to be read again.
    blocks = tuple(sorted((*recalled, *beside), key=lambda block: block.spare))
    state = RequestState(
        start=arranged.order[window.start] if arranged.order else None,
        current=arranged.current,
        asked=wanted.asked,
        admits=wanted.admits,
        forms=window.forms,
        blocks=blocks,
    )
    return Solved(head=head, window=window, blocks=blocks, state=state, room=room, kept=kept)


def _required(
    arranged: Arrangement, wanted: Wanted, head: Head, anchors: Sequence[Block], memory: int = 0
) -> _Must:
    """What can't be left out, the current group in its loosest form that fits. Raises RequestTooLarge."""
    current = arranged.current
    pins = tuple(group for group in arranged.order if group in wanted.pins and group != current)
    parts = dict(head.parts)
    parts |= {block.name: block_cost(block, arranged) for block in anchors}
    for group in pins:
        parts[f"pinned group {group}"] = arranged.shown(
            group, inactive_form(arranged, group, wanted.tiers)
        ).tokens
    if memory:
        parts[MEMORY] = memory
    needed = sum(parts.values())
    if current is None:
        if needed > wanted.limit:
            raise RequestTooLarge(budget=wanted.limit, parts=parts)
        return _Must(tokens=needed, pins=pins, anchors=tuple(anchors))
    shown = arranged.shown(current)
    for form in forms_of_current(arranged, current):
        shown = arranged.shown(current, form)
        if needed + shown.tokens <= wanted.limit:
            return _Must(tokens=needed + shown.tokens, form=form, pins=pins, anchors=tuple(anchors))
    parts["last user message"] = shown.prompt
    if shown.tokens > shown.prompt:
        parts["answers and tool traffic of the current group"] = shown.tokens - shown.prompt
    raise RequestTooLarge(budget=wanted.limit, parts={name: part for name, part in parts.items() if part})


def _settled_anchors(arranged: Arrangement, wanted: Wanted, old: Sequence[Block]) -> list[Block]:
    """The anchors, each where it stood before if its text is the same, else before the current group."""
    places = {block.name: block.before for block in old}
    return [
        replace(block, before=places[block.name]) if block.name in places else block
        for block in anchor_blocks(wanted.anchors, arranged.current)
    ]


def _memory(
    arranged: Arrangement, wanted: Wanted, head: Head, must: _Must, old: Sequence[Block]
) -> tuple[_Must, Block | None, Block | None]:
    """What must stand with memory, what is shown of it, and what would be if no prefix could break.

    Raises RequestTooLarge.
    """
    if wanted.remember is None:
        return must, None, None
    kept = next((block for block in old if block.name == MEMORY), None)
    previous = wanted.previous
    same = previous is not None and (previous.current, previous.asked) == (arranged.current, wanted.asked)
    if kept is not None and same and must.tokens + block_cost(kept, arranged) <= wanted.limit:
        return must, kept, kept
    must, remembered, block = _remembered(arranged, wanted, head, must)
    if block is None:
        return must, None, None
    if kept is None or kept.text == block.text:
        return must, kept or block, kept or block
    fits = must.tokens + block_cost(kept, arranged) <= wanted.limit and not remembered.required
    first = arranged.number(kept.before) if kept.before is not None else 0
    reread = sum(arranged.shown(group).tokens for group in arranged.order[first:])
    total = sum(arranged.shown(group).tokens for group in arranged.order[-_JUDGED:])
    new = not fits or worth(remembered.shows, kept.shows, reread, max(total, reread))
    return must, block if new else kept, block


def _remembered(
    arranged: Arrangement, wanted: Wanted, head: Head, must: _Must
) -> tuple[_Must, Remembered, Block | None]:
    """What memory has to say now, within its share, or within what it requires if that is more."""
    shares, remember = wanted.shares, wanted.remember
    nothing = Remembered(text="")
    if remember is None:
        return must, nothing, None
    alone = block_cost(Block(name=MEMORY, text=""), arranged)
    free = wanted.limit - must.tokens
    budget = allocate(free, [shares.memory, shares.recalled, shares.history])[0] - alone
    for _ in range(_ATTEMPTS):
        try:
            remembered = remember(max(0, budget))
        except BudgetTooSmall as error:
            # What memory requires is required of the request as well.
            must = _required(arranged, wanted, head, must.anchors, error.needed + 2 * alone)
            remembered = replace(remember(error.needed), required=True)
        block = memory_block(remembered, arranged.current)
        if block is None:
            return must, nothing, None
        tokens = block_cost(block, arranged)
        if remembered.required:
            return _required(arranged, wanted, head, must.anchors, tokens), remembered, block
        if must.tokens + tokens <= wanted.limit:
            return must, remembered, block
        budget -= must.tokens + tokens - wanted.limit
    return must, nothing, None


def _rooms(wanted: Wanted, must: _Must) -> dict[str, int]:
    """What each part is given of what is left once all that must stand in the request does."""
    shares = wanted.shares
    memory = shares.memory if wanted.remember is not None else replace(shares.memory, weight=0, floor=0)
    free = max(0, wanted.limit - must.tokens)
    given = allocate(free, [memory, shares.recalled, shares.history])
    return dict(zip(("memory", "recalled", "history"), given, strict=True))


def _grown(case: Case, must: _Must, recalled: Sequence[Block]) -> Window | None:
    """The window of the request before with what was said since, where that still fits and is worth it."""
    arranged, wanted, state = case.arranged, case.wanted, case.wanted.previous
    if state is None or state.start is None or state.start not in arranged or arranged.current is None:
        return None
    start = arranged.number(state.start)
    forms = {group: form for group, form in state.forms.items() if group in arranged}
    if must.form is not None and arranged.current not in forms:
        forms[arranged.current] = must.form
    window = Window(start=start, forms=forms, pins=must.pins)
    used = case.tokens(window, recalled)
    if used > wanted.limit or window.tokens(arranged) > case.room(0):
        return None
    has_more = start > len(must.pins) or bool(forms)
    return None if has_more and used < _MUCH_SMALLER * wanted.limit else window


def _anew(case: Case, must: _Must) -> tuple[Window, list[Block]]:
    """The window and what is recalled from before it, as if nothing had been sent yet."""
    arranged = case.arranged
    window, whole = window_of(arranged, case.room(0), current=must.form, pins=must.pins)
    if whole and not window.forms:
        return window, []
    slack = int(_STEP * case.wanted.limit)
    window, whole = window_of(arranged, case.room(slack), current=must.form, pins=must.pins)
    if whole:
        # No group has to leave, so room for the next turn is had by cutting results further.
        room = case.room(int((1 - AIM) * case.wanted.limit))
        return loosened(arranged, window, room, window.tokens(arranged)), []
    window, _ = window_of(arranged, case.room(slack + case.share), current=must.form, pins=must.pins)
    blocks = recalled_anew(case, window, slack)
    held = cost_of(arranged, blocks)
    wider, _ = window_of(arranged, case.room(slack + held), current=must.form, pins=must.pins)
    if wider.start < window.start:
        # What the recalled section doesn't need, the window takes; its score then says nothing new.
        window, blocks = wider, recalled_anew(replace(case, share=held), wider, slack)
    if case.tokens(window, blocks) < case.full:
        # Room that no whole group takes goes to results that were cut, and then to older groups.
        room = case.room(slack + cost_of(arranged, blocks))
        window = loosened(arranged, window, room, window.tokens(arranged))
    if case.tokens(window, blocks) < case.full:
        blocks = recalled_anew(case, window, slack, fill=True)
    return window, blocks
