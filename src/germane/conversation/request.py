"""Makes the request that fits, and the account of it.

Level: ranking (imports model, errors, packing and conversation). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from germane.conversation.arranging import MISSING, Arrangement, Entry
from germane.conversation.beside import MEMORY, RECALLED
from germane.conversation.solving import Solved, solve
from germane.conversation.wanted import Wanted, block_cost, entry_of
from germane.model.calibration import Calibration
from germane.model.context import Context
from germane.model.conversation import LeftOut
from germane.model.deferred import Deferred
from germane.model.message import Provider
from germane.model.request import Block, PartUse, Request
from germane.model.trace import Note, Reason

__all__ = ["request_of"]

_BEFORE = -1
_BY_USER = '{"role":"user"'


def request_of(
    arranged: Arrangement,
    wanted: Wanted,
    *,
    window: int,
    reserve: int,
    notes: Sequence[Note] = (),
    calibration: Calibration | None = None,
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
    context = remembered[-1] if remembered and memory is not None else None
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
        notes=(*notes, *_notes(arranged, wanted, solved, groups)),
        state=solved.state,
        memory=context
        if context is not None and memory is not None and context.text == memory.text
        else None,
        calibration=calibration,
        stable=_stable(arranged, entries),
        head=(solved.head.tools, solved.head.system),
        texts=tuple(entry.text for entry in entries),
        costs=costs,
    )


def _entries(arranged: Arrangement, solved: Solved) -> list[Entry]:
    """All that is sent, in its order."""
    groups = solved.window.groups(arranged)
    entries = [*solved.head.entries, *_entries_of_blocks(arranged, solved, groups)]
    for group in groups:
        entries += arranged.shown(group, solved.window.forms.get(group)).entries
    return sorted(entries, key=lambda entry: entry.place)


def _stable(arranged: Arrangement, entries: Sequence[Entry]) -> int:
    """How many entries stand before the current group and what was put just before it."""
    if arranged.current is None:
        return len(entries)
    place = arranged.place(arranged.current)
    return sum(entry.place[0] < place for entry in entries)


def _entries_of_blocks(arranged: Arrangement, solved: Solved, groups: Sequence[str]) -> list[Entry]:
    """The blocks, each just before its group or before the whole window, in the order of the solution."""
    found = []
    for number, block in enumerate(solved.blocks):
        before = block.before or (arranged.order[solved.window.start] if groups else None)
        place = arranged.place(before) if before is not None else len(arranged.order)
        text, tokens = entry_of(block, arranged)
        found.append(Entry((place, _BEFORE - len(solved.blocks) + number), text, tokens))
    return found


def _parts(
    arranged: Arrangement, wanted: Wanted, solved: Solved, groups: Sequence[str]
) -> tuple[PartUse, ...]:
    parts = [PartUse(name=name, used=tokens, offered=tokens) for name, tokens in solved.head.parts.items()]
    parts += [_of_block(arranged, block, solved) for block in solved.blocks]
    if not groups:
        return tuple(parts)
    forms, current = solved.window.forms, arranged.current
    pins = [group for group in groups if group in wanted.pins and group != current]
    history = [group for group in groups if group != current and group not in pins]
    for name, members in (("pinned groups", pins), ("history", history), ("current group", [current])):
        shown = [arranged.shown(group, forms.get(group or "")) for group in members]
        cut = sum(each.cut for each in shown)
        left = len(arranged.order) - len(groups) if name == "history" else 0
        if not shown and not left:
            continue
        parts.append(
            PartUse(
                name=name,
                used=sum(each.tokens for each in shown),
                offered=sum(arranged.shown(group).tokens for group in members),
                share=solved.room["history"] if name == "history" else 0,
                shown=len(members),
                cut=cut,
                left_out=left,
                why=_why(cut, left),
            )
        )
    return tuple(parts)


def _of_block(arranged: Arrangement, block: Block, solved: Solved) -> PartUse:
    tokens = block_cost(block, arranged)
    stays = "" if block.before == arranged.current else "stays where it was"
    return PartUse(
        name="spare" if block.spare else block.name,
        used=tokens,
        offered=tokens,
        share=0 if block.spare else solved.room.get(block.name, 0),
        shown=len(block.shows),
        why="gives way to the next turns" if block.spare else stays,
    )


def _why(cut: int, left: int) -> str:
    said = []
    if cut:
        said.append("tool results are cut")
    if left:
        said.append("older groups have no room")
    return ", ".join(said)


def _left_out(arranged: Arrangement, solved: Solved) -> Deferred[LeftOut]:
    """The groups that are neither in the window nor recalled, in their order."""
    pins = set(solved.window.pins)
    recalled = {
        name.rpartition(" ")[0] for block in solved.blocks if block.name == RECALLED for name in block.shows
    }
    out = [
        group
        for group in arranged.order[: solved.window.start]
        if group not in pins and group not in recalled
    ]

    def make(place: int) -> LeftOut:
        nearest = place == len(out) - 1
        return LeftOut(group=out[place], reason=Reason.OVER_BUDGET if nearest else Reason.STOPPED)

    return Deferred(len(out), make)


def _notes(arranged: Arrangement, wanted: Wanted, solved: Solved, groups: Sequence[str]) -> list[Note]:
    notes = []
    if wanted.previous is not None and not solved.kept and groups:
        notes.append(
            Note(
                code="prefix",
                text="The request before no longer fits with what was said since, so the window begins anew.",
            )
        )
    if any(MISSING in entry.text for entry in _last(arranged, solved)):
        notes.append(
            Note(code="in_flight", text="A call without a result is answered by a line that says so.")
        )
    return notes


def _last(arranged: Arrangement, solved: Solved) -> Sequence[Entry]:
    current = arranged.current
    return arranged.shown(current, solved.window.forms.get(current)).entries if current is not None else ()
