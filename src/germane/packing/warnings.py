"""What a reader of a trace should know of memories that are old, moved by outcomes, or too long.

Level: packing (imports ranking and model). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from germane.model.explanation import short_id
from germane.model.plan import Plan
from germane.model.trace import Note, Ranked
from germane.model.work import Work
from germane.packing.blocks import Choice, Fitted
from germane.ranking.kinds_first import kinds_first_notes

__all__ = ["large_notes", "notes_of_kinds"]

_NAMED = 5
_CONTENT_COUNTED = Note(
    code="content_counted",
    text="Only the content of memories was counted, and neither headings nor what parts them: the text as "
    "it stands may be longer than the budget.",
)


def notes_of_kinds(
    plan: Plan, fitted: Fitted, ranked: Sequence[Sequence[Ranked]], *, work: Work, now: datetime
) -> list[Note]:
    """Of a plan that ranks by kind: what may be out of date, what is too long, and how it was counted."""
    if plan.kinds_first is None:
        return []
    notes = [*kinds_first_notes(ranked, work=work, now=now), *large_notes(fitted)]
    if plan.counts_content:
        notes.append(_CONTENT_COUNTED)
    return notes


def large_notes(fitted: Fitted) -> Iterator[Note]:
    """A note for each section with memories that are longer than all that the section was given."""
    for block in fitted.blocks:
        given = block.share + block.flowed
        large = [one for one in block.choices if one.memory.renditions.full.tokens > given > 0]
        if large:
            told = "; ".join(_told(one) for one in large[:_NAMED])
            more = f"; and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
            yield Note(
                code="large",
                text=f"Longer than the {given:,} tokens of section {block.section.name!r}: {told}{more}. "
                "Revise them to say it shorter, or split them.",
            )


def _told(choice: Choice) -> str:
    memory = choice.memory
    shown = "left out" if choice.line is None else f"shown at level {choice.line.level}"
    return f"{short_id(memory.ref)} ({memory.kind}, {memory.renditions.full.tokens:,} tokens, {shown})"
