"""The account of a packing: where each candidate went, and what each section used.

Level: packing (imports model). Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from germane.model.deferred import Deferred
from germane.model.trace import Entry, Ranked, SectionUse
from germane.packing.blocks import Block, Choice, Fitted, LeftOut
from germane.packing.listing import label_of

__all__ = ["entries_of", "uses_of"]


def entries_of(fitted: Fitted, dropped: Sequence[Sequence[LeftOut]]) -> Sequence[Entry]:
    """Per section what was tried, in rank order, and then what was left out before, each once.

    `dropped` is what was left out before the fit, per section. What the entries say is settled here; they are
    written when they are read.
    """
    parts: list[tuple[str, Block | LeftOut]] = []
    for block, several in zip(fitted.blocks, dropped, strict=True):
        parts.append((block.section.name, block))
        parts += [(block.section.name, part) for part in several]
    starts = list(accumulate((_length(part) for _, part in parts), initial=0))

    def entry(number: int) -> Entry:
        part = bisect_right(starts, number) - 1
        section, those = parts[part]
        place = number - starts[part]
        if isinstance(those, Block):
            return _entry_of_choice(section, those.choices[place])
        return _entry(section, those.ranked[place], reason=those.reason)

    return Deferred(starts[-1], entry)


def uses_of(fitted: Fitted, dropped: Sequence[Sequence[LeftOut]]) -> tuple[SectionUse, ...]:
    """What each section was given and used, and how many candidates stand in it and outside."""
    return tuple(
        _use(block, sum(map(_length, several))) for block, several in zip(fitted.blocks, dropped, strict=True)
    )


def _length(part: Block | LeftOut) -> int:
    return len(part.choices if isinstance(part, Block) else part.ranked)


def _entry_of_choice(section: str, choice: Choice) -> Entry:
    return _entry(
        section,
        choice.ranked,
        level=choice.line.level if choice.line is not None else None,
        reason=choice.reason,
        tokens=choice.tokens,
        short_by=choice.short_by,
    )


def _entry(section: str, ranked: Ranked, **became: Any) -> Entry:
    memory = ranked.memory
    return Entry(
        memory_id=memory.ref,
        version=memory.version,
        kind=memory.kind,
        scope=str(memory.scope),
        created_at=memory.created_at,
        source=memory.source,
        section=section,
        score=ranked.score,
        parts=ranked.parts,
        label=label_of(memory),
        agent=memory.agent,
        **became,
    )


def _use(block: Block, left_out: int) -> SectionUse:
    included = sum(1 for choice in block.choices if choice.line is not None)
    return SectionUse(
        name=block.section.name,
        heading=block.section.heading,
        share=block.share,
        used=block.used,
        flowed=block.flowed,
        included=included,
        excluded=len(block.choices) - included + left_out,
    )
