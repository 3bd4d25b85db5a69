"""A request that fits: system, tools, memory, history and the reserved answer out of one budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from germane.conversation.blocks import (
    MEMORY,
    RECALLED,
    Case,
    Window,
    anchor_blocks,
    carried,
    cost_of,
    forms_of_current,
    groups_in,
    inactive_form,
    loosened,
    recalled_anew,
    recalled_on,
    spare,
    window_ceiling,
    window_of,
    worth,
)
from germane.conversation.layout import (
    AIM,
    MISSING,
    Arrangement,
    Head,
    MemoryBlock,
    RequestEntry,
    RequestSpec,
    block_cost,
    block_message,
    entry_of,
    head_of,
)
from germane.errors import BudgetTooSmall, RequestTooLarge
from germane.model.context import Context, Reason, TraceNote
from germane.model.conversation import LeftOut, Provider
from germane.model.query import Deferred
from germane.model.request import (
    ContextBlock,
    PartUsage,
    Request,
    RequestState,
    ResultLimit,
    TokenCalibration,
)
from germane.packing.sections import allocate

__all__ = ["Solved", "request_of", "solve"]

_BY_USER = '{"role":"user"'


def request_of(
    arranged: Arrangement,
    wanted: RequestSpec,
    *,
    window: int,
    reserve: int,
    notes: Sequence[TraceNote] = (),
    calibration: TokenCalibration | None = None,
    remembered: Sequence[Context] = (),
) -> Request:
    """The request for what is arranged and wanted, of a window of so many tokens. Raises RequestTooLarge.

    `remembered` is where the memory's contexts are told; the last of them is the request's, if it shows it.
    """
    solved = solve(arranged, wanted)
    entries = _entries(arranged, solved)
    if arranged.provider is Provider.ANTHROPIC and entries and not entries[0].text.startswith(_BY_USER):
        # Its API has refused what begins with another's message, and nowhere says that it takes it.
        solved = solve(arranged, replace(wanted, opens=True))
        entries = _entries(arranged, solved)
    groups = solved.window.groups(arranged)
    memory = next((block for block in solved.blocks if block.name == MEMORY), None)
    context = remembered[-1] if remembered else None
    current = arranged.place(arranged.current) if arranged.current is not None else math.inf
    costs = tuple(entry.tokens for entry in entries)
    beside = sum(solved.head.parts.values()) - sum(entry.tokens for entry in solved.head.entries)
    return Request(
        provider=arranged.provider,
        counter=arranged.counter.name,
        window=window,
        reserve=reserve,
        limit=wanted.limit,
        tokens=beside + sum(costs),
        parts=_parts(arranged, wanted, solved, groups),
        left_out=_left_out(arranged, solved),
        notes=(*notes, *_notes(arranged, wanted, solved)),
        state=solved.state,
        memory=context if context and memory and context.text == memory.text else None,
        calibration=calibration,
        stable=sum(entry.place[0] < current for entry in entries),
        head=(solved.head.tools, solved.head.system),
        texts=tuple(entry.text for entry in entries),
        costs=costs,
    )


def _entries(arranged: Arrangement, solved: Solved) -> list[RequestEntry]:
    """All that is sent, in its order."""
    groups = solved.window.groups(arranged)
    entries = list(solved.head.entries)
    for number, block in enumerate(solved.blocks):
        # Just before its group or before the whole window, in the order of the solution.
        before = block.before or (arranged.order[solved.window.start] if groups else None)
        place = arranged.place(before) if before is not None else len(arranged.order)
        entries.append(entry_of(block_message(block), arranged, (place, number - len(solved.blocks) - 1)))
    for group in groups:
        entries += arranged.rendered(group, solved.window.forms.get(group)).entries
    return sorted(entries, key=lambda entry: entry.place)


def _parts(
    arranged: Arrangement, wanted: RequestSpec, solved: Solved, groups: Sequence[str]
) -> tuple[PartUsage, ...]:
    parts = [PartUsage(name=name, used=tokens, offered=tokens) for name, tokens in solved.head.parts.items()]
    parts += [_of_block(arranged, block, solved) for block in solved.blocks]
    if not groups:
        return tuple(parts)
    forms, current = solved.window.forms, arranged.current
    pins = [group for group in groups if group in wanted.pins and group != current]
    history = [group for group in groups if group != current and group not in pins]
    for name, members in (("pinned groups", pins), ("history", history), ("current group", [current])):
        shown = [arranged.rendered(group, forms.get(group or "")) for group in members]
        cut = sum(each.cut for each in shown)
        left = len(arranged.order) - len(groups) if name == "history" else 0
        if not shown and not left:
            continue
        reasons = ["tool results are cut"] * bool(cut) + ["older groups have no room"] * bool(left)
        parts.append(
            PartUsage(
                name=name,
                used=sum(each.tokens for each in shown),
                offered=sum(arranged.rendered(group).tokens for group in members),
                share=solved.free_tokens["history"] if name == "history" else 0,
                shown=len(members),
                cut=cut,
                left_out=left,
                why=", ".join(reasons),
            )
        )
    return tuple(parts)


def _of_block(arranged: Arrangement, block: ContextBlock, solved: Solved) -> PartUsage:
    tokens = block_cost(block, arranged)
    stays = "" if block.before == arranged.current else "stays where it was"
    return PartUsage(
        name="spare" if block.spare else block.name,
        used=tokens,
        offered=tokens,
        share=0 if block.spare else solved.free_tokens.get(block.name, 0),
        shown=len(block.shows),
        why="gives way to the next turns" if block.spare else stays,
    )


def _left_out(arranged: Arrangement, solved: Solved) -> Deferred[LeftOut]:
    """The groups that are neither in the window nor recalled, in their order."""
    recalled = groups_in([block for block in solved.blocks if block.name == RECALLED]).values()
    shown = {*solved.window.pins, *recalled}
    out = [group for group in arranged.order[: solved.window.start] if group not in shown]

    def make(place: int) -> LeftOut:
        nearest = place == len(out) - 1
        return LeftOut(group=out[place], reason=Reason.OVER_BUDGET if nearest else Reason.STOPPED)

    return Deferred(len(out), make)


def _notes(arranged: Arrangement, wanted: RequestSpec, solved: Solved) -> list[TraceNote]:
    notes = []
    current = arranged.current
    if wanted.previous is not None and not solved.only_grew and current is not None:
        notes.append(
            TraceNote(
                code="prefix",
                text="The request before no longer fits with what was said since, so the window begins anew.",
            )
        )
    form = solved.window.forms.get(current or "")
    if current is not None and any(
        MISSING in entry.text for entry in arranged.rendered(current, form).entries
    ):
        notes.append(
            TraceNote(code="in_flight", text="A call without a result is answered by a line that says so.")
        )
    return notes


# Pure: the same conversation, previous request and wishes give the same bytes.
#
# What must stand in it is paid first, and an error names it where it doesn't fit. Between turns it only
# grows: when it no longer fits, tool output is cut first, then the oldest groups go, and so much at once
# that the next turns fit as well.

_STEP: Final = 0.07
"""How much room is left when the window's start has to move, so that it needn't move again at once."""

_MUCH_SMALLER: Final = 0.75
"""The share of the limit below which a request that could be fuller is made anew."""

_ATTEMPTS: Final = 4

_SCORED: Final = 200
"""The latest groups that tell about how long a request is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What a request shows. `window` and `blocks` are its variable parts, `kept` whether it only grew."""

    head: Head
    window: Window
    blocks: tuple[ContextBlock, ...]
    state: RequestState
    free_tokens: Mapping[str, int]
    only_grew: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Must:
    """What can't be left out: its tokens, and the loosest form of the current group that it fits in."""

    tokens: int
    form: ResultLimit | None = None
    pins: tuple[str, ...] = ()
    anchors: tuple[ContextBlock, ...] = ()


def solve(arranged: Arrangement, wanted: RequestSpec) -> Solved:
    """The request for what is arranged. Raises RequestTooLarge."""
    head = head_of(arranged, wanted)
    case = Case(arranged=arranged, wanted=wanted)
    old = carried(arranged, wanted.previous, wanted)
    # An anchor whose text is the same stays where it was, else it stands before the current group.
    places = {block.name: block.before for block in old}
    anchors = [
        replace(block, before=places.get(block.name, arranged.current))
        for block in anchor_blocks(wanted.anchors)
    ]
    must = _required(case, head, anchors)
    must, memory, fresh = _memory(case, head, must, old)
    beside = [*([memory] if memory is not None else []), *anchors]
    room = _part_limits(wanted, must)
    case = replace(
        case,
        fixed=head.tokens + cost_of(arranged, beside),
        share=room["recalled"],
        bound=window_ceiling(arranged, wanted.shares.history.ceiling, current=must.form, pins=must.pins),
    )
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
        # What stood before a group that is gone now stands above the window.
        beside = [
            replace(block, before=None)
            if block.before is not None and arranged.number(block.before) < window.start
            else block
            for block in beside
        ]
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
        query=wanted.query,
        admits=wanted.admits,
        forms=window.forms,
        blocks=blocks,
    )
    return Solved(head=head, window=window, blocks=blocks, state=state, free_tokens=room, only_grew=kept)


def _required(case: Case, head: Head, anchors: Sequence[ContextBlock], memory: int = 0) -> _Must:
    """What can't be left out, the current group in its loosest form that fits. Raises RequestTooLarge."""
    arranged, wanted = case.arranged, case.wanted
    current = arranged.current
    pins = tuple(group for group in arranged.order if group in wanted.pins and group != current)
    parts = dict(head.parts)
    parts |= {block.name: block_cost(block, arranged) for block in anchors}
    for group in pins:
        parts[f"pinned group {group}"] = arranged.rendered(group, inactive_form(arranged, group)).tokens
    if memory:
        parts[MEMORY] = memory
    needed = sum(parts.values())
    if current is None:
        if needed > wanted.limit:
            raise RequestTooLarge(budget=wanted.limit, parts=parts)
        return _Must(tokens=needed, pins=pins, anchors=tuple(anchors))
    shown = arranged.rendered(current)
    for form in forms_of_current(arranged, current):
        shown = arranged.rendered(current, form)
        if needed + shown.tokens <= wanted.limit:
            return _Must(tokens=needed + shown.tokens, form=form, pins=pins, anchors=tuple(anchors))
    parts["last user message"] = shown.prompt
    if shown.tokens > shown.prompt:
        parts["answers and tool traffic of the current group"] = shown.tokens - shown.prompt
    raise RequestTooLarge(budget=wanted.limit, parts={name: part for name, part in parts.items() if part})


def _memory(
    case: Case, head: Head, must: _Must, old: Sequence[ContextBlock]
) -> tuple[_Must, ContextBlock | None, ContextBlock | None]:
    """What must stand with memory, what is shown of it, and what would be if no prefix could break.

    Raises RequestTooLarge.
    """
    arranged, wanted = case.arranged, case.wanted
    kept = next((block for block in old if block.name == MEMORY), None) if wanted.remember else None
    fits = kept is not None and must.tokens + block_cost(kept, arranged) <= wanted.limit
    if fits and case.is_same_question:
        return must, kept, kept
    must, remembered, block = _remembered(case, head, must)
    if block is None or kept is None or kept.text == block.text:
        shown = block and (kept or block)
        return must, shown, shown
    fits = must.tokens + block_cost(kept, arranged) <= wanted.limit and not remembered.required
    first = arranged.number(kept.before) if kept.before is not None else 0
    reread = sum(arranged.rendered(group).tokens for group in arranged.order[first:])
    total = sum(arranged.rendered(group).tokens for group in arranged.order[-_SCORED:])
    new = not fits or worth(remembered.shows, kept.shows, reread, max(total, reread))
    return must, block if new else kept, block


def _remembered(case: Case, head: Head, must: _Must) -> tuple[_Must, MemoryBlock, ContextBlock | None]:
    """What memory has to say now, within its share, or within what it requires if that is more."""
    arranged, wanted = case.arranged, case.wanted
    shares, remember = wanted.shares, wanted.remember
    nothing = MemoryBlock(text="")
    if remember is None:
        return must, nothing, None
    alone = block_cost(ContextBlock(name=MEMORY, text=""), arranged)
    free = wanted.limit - must.tokens
    budget = allocate(free, [shares.memory, shares.recalled, shares.history])[0] - alone
    for _ in range(_ATTEMPTS):
        try:
            remembered = remember(max(0, budget))
        except BudgetTooSmall as error:
            # What memory requires is required of the request as well.
            must = _required(case, head, must.anchors, error.needed + 2 * alone)
            remembered = replace(remember(error.needed), required=True)
        if not remembered.text.strip():
            return must, nothing, None
        block = ContextBlock(
            name=MEMORY, text=remembered.text, before=arranged.current, shows=tuple(remembered.shows)
        )
        tokens = block_cost(block, arranged)
        if remembered.required:
            return _required(case, head, must.anchors, tokens), remembered, block
        if must.tokens + tokens <= wanted.limit:
            return must, remembered, block
        budget -= must.tokens + tokens - wanted.limit
    return must, nothing, None


def _part_limits(wanted: RequestSpec, must: _Must) -> dict[str, int]:
    """What each part is given of what is left once all that must stand in the request does."""
    shares = wanted.shares
    memory = shares.memory if wanted.remember is not None else replace(shares.memory, weight=0, floor=0)
    free = max(0, wanted.limit - must.tokens)
    given = allocate(free, [memory, shares.recalled, shares.history])
    return dict(zip(("memory", "recalled", "history"), given, strict=True))


def _grown(case: Case, must: _Must, recalled: Sequence[ContextBlock]) -> Window | None:
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
    if used > wanted.limit or window.tokens(arranged) > case.free_tokens(0):
        return None
    has_more = start > len(must.pins) or bool(forms)
    return None if has_more and used < _MUCH_SMALLER * wanted.limit else window


def _anew(case: Case, must: _Must) -> tuple[Window, list[ContextBlock]]:
    """The window and what is recalled from before it, as if nothing had been sent yet."""
    arranged = case.arranged
    window, whole = window_of(arranged, case.free_tokens(0), current=must.form, pins=must.pins)
    if whole and not window.forms:
        return window, []
    slack = int(_STEP * case.wanted.limit)
    window, whole = window_of(arranged, case.free_tokens(slack), current=must.form, pins=must.pins)
    if whole:
        # No group has to leave, so room for the next turn is had by cutting results further.
        room = case.free_tokens(int((1 - AIM) * case.wanted.limit))
        return loosened(arranged, window, room, window.tokens(arranged)), []
    window, _ = window_of(arranged, case.free_tokens(slack + case.share), current=must.form, pins=must.pins)
    blocks = recalled_anew(case, window, slack)
    held = cost_of(arranged, blocks)
    wider, _ = window_of(arranged, case.free_tokens(slack + held), current=must.form, pins=must.pins)
    if wider.start < window.start:
        # What the recalled section doesn't need, the window takes; its score then says nothing new.
        window, blocks = wider, recalled_anew(replace(case, share=held), wider, slack)
    if case.tokens(window, blocks) < case.full:
        # Room that no whole group takes goes to results that were cut, and then to older groups.
        room = case.free_tokens(slack + cost_of(arranged, blocks))
        window = loosened(arranged, window, room, window.tokens(arranged))
    if case.tokens(window, blocks) < case.full:
        blocks = recalled_anew(case, window, slack, fill=True)
    return window, blocks
