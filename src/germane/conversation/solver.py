"""A request that fits: system, tools, memory, history and the reserved answer out of one budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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

_BY_USER = '{"role":"user"'


def request_of(
    arranged: Arrangement,
    spec: RequestSpec,
    *,
    window: int,
    reserve: int,
    notes: Sequence[TraceNote] = (),
    calibration: TokenCalibration | None = None,
    remembered: Sequence[Context] = (),
) -> Request:
    """The request for an arrangement and a specification, for a model's window. Raises RequestTooLarge.

    `remembered` are the assembled contexts of memory; the last one belongs to the request if it is shown.
    """
    solved = solve(arranged, spec)
    entries = _entries(arranged, solved)
    if arranged.provider is Provider.ANTHROPIC and entries and not entries[0].text.startswith(_BY_USER):
        # The API has refused requests that begin with another role, and doesn't document their acceptance.
        solved = solve(arranged, replace(spec, opens=True))
        entries = _entries(arranged, solved)
    groups = solved.window.groups(arranged)
    memory = next((block for block in solved.blocks if block.name == MEMORY), None)
    context = remembered[-1] if remembered else None
    current = arranged.place(arranged.current) if arranged.current is not None else math.inf
    costs = tuple(entry.tokens for entry in entries)
    beside = sum(solved.head.parts.values()) - sum(entry.tokens for entry in solved.head.entries)
    tokens = beside + sum(costs)
    return Request(
        provider=arranged.provider,
        counter=arranged.counter.name,
        window=window,
        reserve=reserve,
        limit=spec.limit,
        tokens=tokens,
        parts=_parts(arranged, spec, solved, groups),
        left_out=_left_out(arranged, solved),
        notes=(*notes, *_notes(arranged, spec, solved)),
        state=replace(solved.state, tokens=tokens, calibration=calibration or _uncalibrated(arranged)),
        memory=context if context and memory and context.text == memory.text else None,
        stable=sum(entry.place[0] < current for entry in entries),
        head=(solved.head.tools, solved.head.system),
        texts=tuple(entry.text for entry in entries),
        costs=costs,
        origins=tuple(entry.origins for entry in entries),
        shortened=frozenset(place for entry in entries for place in entry.cut),
    )


def _uncalibrated(arranged: Arrangement) -> TokenCalibration:
    return TokenCalibration(counter=arranged.counter.name, provider=arranged.provider.value)


def _entries(arranged: Arrangement, solved: Solved) -> list[RequestEntry]:
    """All entries of the request in order."""
    groups = solved.window.groups(arranged)
    entries = list(solved.head.entries)
    for number, block in enumerate(solved.blocks):
        # Before its group or before the whole window, in the order of the solution.
        before = block.before or (arranged.order[solved.window.start] if groups else None)
        place = arranged.place(before) if before is not None else len(arranged.order)
        entries.append(entry_of(block_message(block), arranged, (place, number - len(solved.blocks) - 1)))
    for group in groups:
        entries += arranged.rendered(group, solved.window.forms.get(group)).entries
    return sorted(entries, key=lambda entry: entry.place)


def _parts(
    arranged: Arrangement, spec: RequestSpec, solved: Solved, groups: Sequence[str]
) -> tuple[PartUsage, ...]:
    parts = [PartUsage(name=name, used=tokens, offered=tokens) for name, tokens in solved.head.parts.items()]
    parts += [_of_block(arranged, block, solved) for block in solved.blocks]
    if not groups:
        return tuple(parts)
    forms, current = solved.window.forms, arranged.current
    pins = [group for group in groups if group in spec.pins and group != current]
    history = [group for group in groups if group != current and group not in pins]
    for name, members in (("pinned groups", pins), ("history", history), ("current group", [current])):
        shown = [arranged.rendered(group, forms.get(group or "")) for group in members]
        cut = sum(each.cut for each in shown)
        left = len(arranged.order) - len(groups) if name == "history" else 0
        if not shown and not left:
            continue
        reasons = ["tool results are cut"] * bool(cut) + ["older groups don't fit"] * bool(left)
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
    name, share = block.name, solved.free_tokens.get(block.name, 0)
    why = "" if block.before == arranged.current else "unchanged, in its earlier place"
    if block.spare:
        name, share, why = "spare", 0, "the next turns may replace it"
    tokens = block_cost(block, arranged)
    return PartUsage(name=name, used=tokens, offered=tokens, share=share, shown=len(block.shows), why=why)


def _left_out(arranged: Arrangement, solved: Solved) -> Deferred[LeftOut]:
    """The groups that are neither in the window nor recalled, in order."""
    recalled = groups_in([block for block in solved.blocks if block.name == RECALLED]).values()
    shown = {*solved.window.pins, *recalled}
    out = [group for group in arranged.order[: solved.window.start] if group not in shown]

    def make(place: int) -> LeftOut:
        nearest = place == len(out) - 1
        return LeftOut(group=out[place], reason=Reason.OVER_BUDGET if nearest else Reason.STOPPED)

    return Deferred(len(out), make)


def _notes(arranged: Arrangement, spec: RequestSpec, solved: Solved) -> list[TraceNote]:
    current = arranged.current
    if current is None:
        return []
    notes = []
    if spec.previous is not None and not solved.only_grew:
        text = (
            "The previous request and the new messages no longer fit together, so the window has a new start."
        )
        notes.append(TraceNote(code="prefix", text=text))
    entries = arranged.rendered(current, solved.window.forms.get(current)).entries
    if any(MISSING in entry.text for entry in entries):
        text = "A call has no result yet, so a placeholder answers it."
        notes.append(TraceNote(code="in_flight", text=text))
    return notes


# The same conversation, previous request and specification give the same bytes.
#
# Required parts come first, and an error names them if they don't fit. Between turns the request only grows.
# When it no longer fits, tool output is cut first, then the oldest groups are dropped, enough of them for the
# next turns to fit too.

_STEP: Final = 0.07
"""The share that stays free when the window's start moves, so that it doesn't move again at once."""

_MUCH_SMALLER: Final = 0.75
"""The share of the limit below which a request is solved again if it could be fuller."""

_ATTEMPTS: Final = 4

_SCORED: Final = 200
"""The number of latest groups for the estimate of a request's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """The parts of a request: its head, its window of groups and its blocks, and the state for the next one.

    `free_tokens` are the limits of the optional parts. `only_grew` is true if the prefix of the previous
    request stays.
    """

    head: Head
    window: Window
    blocks: tuple[ContextBlock, ...]
    state: RequestState
    free_tokens: Mapping[str, int]
    only_grew: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Must:
    """The required parts: their tokens, and the longest form of the current group in which they fit."""

    tokens: int
    form: ResultLimit | None = None
    pins: tuple[str, ...] = ()
    anchors: tuple[ContextBlock, ...] = ()


def solve(arranged: Arrangement, spec: RequestSpec) -> Solved:
    """Solve the request for an arrangement. Raises RequestTooLarge."""
    head = head_of(arranged, spec)
    case = Case(arranged=arranged, spec=spec)
    old = carried(arranged, spec.previous, spec)
    # An unchanged anchor stays in its place; a changed one is placed before the current group.
    places = {block.name: block.before for block in old}
    anchors = [
        replace(block, before=places.get(block.name, arranged.current))
        for block in anchor_blocks(spec.anchors)
    ]
    must = _required(case, head, anchors)
    must, memory, fresh = _memory(case, head, must, old)
    beside = [*([memory] if memory is not None else []), *anchors]
    limits = _part_limits(spec, must)
    case = replace(
        case,
        fixed=head.tokens + cost_of(arranged, beside),
        share=limits["recalled"],
        bound=window_ceiling(arranged, spec.shares.history.ceiling, current=must.form, pins=must.pins),
    )
    recalled = [block for block in old if block.name == RECALLED]
    window = _grown(case, must, recalled)
    if window is None and any(block.spare for block in recalled):
        # Spare blocks are replaced by the new messages.
        recalled = [block for block in recalled if not block.spare]
        window = _grown(case, must, recalled)
    grew = window is not None
    if window is None:
        beside = [*([fresh] if fresh is not None else []), *anchors]
        case = replace(case, fixed=head.tokens + cost_of(arranged, beside))
        window, recalled = _anew(case, must)
        # A block before a dropped group moves above the window.
        beside = [
            replace(block, before=None)
            if block.before is not None and arranged.number(block.before) < window.start
            else block
            for block in beside
        ]
    else:
        window, recalled = recalled_on(case, window, recalled)
    if not (grew and case.is_same_question):
        # While a question is answered, the preceding parts stay unchanged.
        recalled += spare(case, window, recalled)
    # Spare blocks, which are dropped first, come last, so that dropping them invalidates no other block.
    blocks = tuple(sorted((*recalled, *beside), key=lambda block: block.spare))
    state = RequestState(
        start=arranged.order[window.start] if arranged.order else None,
        current=arranged.current,
        query=spec.query,
        admits=spec.admits,
        forms=window.forms,
        blocks=blocks,
    )
    return Solved(head=head, window=window, blocks=blocks, state=state, free_tokens=limits, only_grew=grew)


def _required(case: Case, head: Head, anchors: Sequence[ContextBlock], memory: int = 0) -> _Must:
    """The required parts, with the current group in its longest form that fits. Raises RequestTooLarge."""
    arranged, spec = case.arranged, case.spec
    current = arranged.current
    pins = tuple(group for group in arranged.order if group in spec.pins and group != current)
    parts = dict(head.parts)
    parts |= {block.name: block_cost(block, arranged) for block in anchors}
    for group in pins:
        parts[f"pinned group {group}"] = arranged.rendered(group, inactive_form(arranged, group)).tokens
    if memory:
        parts[MEMORY] = memory
    needed = sum(parts.values())
    if current is None:
        if needed > spec.limit:
            raise RequestTooLarge(budget=spec.limit, parts=parts)
        return _Must(tokens=needed, pins=pins, anchors=tuple(anchors))
    shown = arranged.rendered(current)
    for form in forms_of_current(arranged, current):
        shown = arranged.rendered(current, form)
        if needed + shown.tokens <= spec.limit:
            return _Must(tokens=needed + shown.tokens, form=form, pins=pins, anchors=tuple(anchors))
    parts["last user message"] = shown.prompt
    if shown.tokens > shown.prompt:
        parts["answers and tool traffic of the current group"] = shown.tokens - shown.prompt
    raise RequestTooLarge(budget=spec.limit, parts={name: part for name, part in parts.items() if part})


def _memory(
    case: Case, head: Head, must: _Must, old: Sequence[ContextBlock]
) -> tuple[_Must, ContextBlock | None, ContextBlock | None]:
    """The required parts with memory, the block of memory, and its block in a first request.

    Raises RequestTooLarge.
    """
    arranged, spec = case.arranged, case.spec
    old_block = next((block for block in old if block.name == MEMORY), None) if spec.remember else None
    fits = old_block is not None and must.tokens + block_cost(old_block, arranged) <= spec.limit
    if fits and case.is_same_question:
        return must, old_block, old_block
    must, remembered, block = _remembered(case, head, must)
    if block is None or old_block is None or old_block.text == block.text:
        shown = block and (old_block or block)
        return must, shown, shown
    fits = must.tokens + block_cost(old_block, arranged) <= spec.limit and not remembered.required
    first = arranged.number(old_block.before) if old_block.before is not None else 0
    reread = sum(arranged.rendered(group).tokens for group in arranged.order[first:])
    total = sum(arranged.rendered(group).tokens for group in arranged.order[-_SCORED:])
    new = not fits or worth(remembered.shows, old_block.shows, reread, max(total, reread))
    return must, block if new else old_block, block


def _remembered(case: Case, head: Head, must: _Must) -> tuple[_Must, MemoryBlock, ContextBlock | None]:
    """The required parts, and memory with its block, within its share or the required tokens if more."""
    arranged, spec = case.arranged, case.spec
    shares, remember = spec.shares, spec.remember
    nothing = MemoryBlock(text="")
    if remember is None:
        return must, nothing, None
    alone = block_cost(ContextBlock(name=MEMORY, text=""), arranged)
    free = spec.limit - must.tokens
    budget = allocate(free, [shares.memory, shares.recalled, shares.history])[0] - alone
    for _ in range(_ATTEMPTS):
        try:
            remembered = remember(max(0, budget))
        except BudgetTooSmall as error:
            # Required memories are also required in the request.
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
        if must.tokens + tokens <= spec.limit:
            return must, remembered, block
        budget -= must.tokens + tokens - spec.limit
    return must, nothing, None


def _part_limits(spec: RequestSpec, must: _Must) -> dict[str, int]:
    """The limits of the optional parts, of the tokens that the required parts leave."""
    shares = spec.shares
    memory = shares.memory if spec.remember is not None else replace(shares.memory, weight=0, floor=0)
    free = max(0, spec.limit - must.tokens)
    given = allocate(free, [memory, shares.recalled, shares.history])
    return dict(zip(("memory", "recalled", "history"), given, strict=True))


def _grown(case: Case, must: _Must, recalled: Sequence[ContextBlock]) -> Window | None:
    """The previous window with the messages since; None if it doesn't fit or is too short."""
    arranged, spec, state = case.arranged, case.spec, case.spec.previous
    if state is None or state.start is None or state.start not in arranged or arranged.current is None:
        return None
    start = arranged.number(state.start)
    forms = {group: form for group, form in state.forms.items() if group in arranged}
    if must.form is not None and arranged.current not in forms:
        forms[arranged.current] = must.form
    window = Window(start=start, forms=forms, pins=must.pins)
    used = case.tokens(window, recalled)
    if used > spec.limit or window.tokens(arranged) > case.free_tokens(0):
        return None
    has_more = start > len(must.pins) or bool(forms)
    return None if has_more and used < _MUCH_SMALLER * spec.limit else window


def _anew(case: Case, must: _Must) -> tuple[Window, list[ContextBlock]]:
    """The window and the recalled blocks of a first request."""
    arranged = case.arranged
    longest = partial(window_of, arranged, current=must.form, pins=must.pins)
    window, whole = longest(case.free_tokens(0))
    if whole and not window.forms:
        return window, []
    slack = int(_STEP * case.spec.limit)
    case = replace(case, share=int((1 - _STEP) * case.share))
    window, whole = longest(case.free_tokens(slack))
    if whole:
        # All groups fit, so tokens for the next turn come from cutting results further.
        free = case.free_tokens(int((1 - AIM) * case.spec.limit))
        return loosened(arranged, window, free, window.tokens(arranged)), []
    window, _ = longest(case.free_tokens(slack + case.share))
    blocks = recalled_anew(case, window, slack)
    recalled_tokens = cost_of(arranged, blocks)
    wider, _ = longest(case.free_tokens(slack + recalled_tokens))
    if wider.start < window.start:
        # What the recalled section doesn't need, the window takes; its score then says nothing new.
        window, blocks = wider, recalled_anew(replace(case, share=recalled_tokens), wider, slack)
    if case.tokens(window, blocks) < case.full:
        # The remaining tokens go to cut results first, then to older groups.
        free = case.free_tokens(slack + cost_of(arranged, blocks))
        window = loosened(arranged, window, free, window.tokens(arranged))
    return window, blocks
