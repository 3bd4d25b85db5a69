"""The account of a packing: where each candidate went, and what each section used.

Level: packing (imports model). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.model.deferred import Deferred
from germane.model.trace import Entry, Ranked, Reason, SectionUse
from germane.packing.blocks import Block, Choice, Fitted
from germane.packing.listing import label_of

__all__ = ["entries_of", "uses_of"]


def entries_of(fitted: Fitted, dropped: Sequence[Sequence[Ranked | Choice]]) -> Sequence[Entry]:
    """Per section what was tried, in rank order, and then what was left out before, each once.

    `dropped` is what was left out before the fit, per section: by the gate, unless it says why. What the
    entries say is settled here; they are written when they are read.
    """
    sections: list[str] = []
    choices: list[Choice | Ranked] = []
    for block, left_out in zip(fitted.blocks, dropped, strict=True):
        choices += block.choices
        choices += left_out
        sections += [block.section.name] * (len(block.choices) + len(left_out))
    return Deferred(len(choices), lambda place: _entry(sections[place], choices[place]))


def uses_of(fitted: Fitted, dropped: Sequence[Sequence[Ranked | Choice]]) -> tuple[SectionUse, ...]:
    """What each section was given and used, and how many candidates stand in it and outside."""
    return tuple(_use(block, len(left_out)) for block, left_out in zip(fitted.blocks, dropped, strict=True))


def _entry(section: str, one: Choice | Ranked) -> Entry:
    choice = one if isinstance(one, Choice) else Choice.left_out(one, Reason.NOT_RELEVANT)
    memory, ranked = choice.memory, choice.ranked
    return Entry(
        memory_id=memory.id,
        kind=memory.kind,
        section=section,
        score=ranked.score,
        parts=ranked.parts,
        level=choice.line.level if choice.line is not None else None,
        reason=choice.reason,
        tokens=choice.tokens,
        short_by=choice.short_by,
        label=label_of(memory),
        agent=memory.agent,
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
