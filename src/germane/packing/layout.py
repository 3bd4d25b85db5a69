"""In which order what was chosen stands in the text: blocks of a heading and lines, and their items.

Level: packing (imports model). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from germane.model.context import Item
from germane.model.deferred import Deferred
from germane.model.memory import Memory
from germane.model.plan import Section
from germane.packing.blocks import Block, Choice, Fitted
from germane.packing.lines import Line
from germane.packing.render import session_of

__all__ = ["blocks_of", "items_of", "lines_of"]


def blocks_of(
    fitted: Fitted, heading_text: Callable[[Section, Memory], str]
) -> list[tuple[str, Sequence[str]]]:
    """The headings and lines of the text, in the plan's order, for `render`.

    `heading_text` gives the heading of a memory: its own, or its session's.
    """
    written: list[tuple[str, Sequence[str]]] = []
    for block in fitted.blocks:
        section = block.section
        if section.own_heading:
            written.extend(
                (heading_text(section, choice.memory), [_text(choice)]) for choice in _shown(block)
            )
        elif block.open:
            lines = [section.text] if block.shows_text else []
            shown = _shown(block)
            lines += _under_dates(section, shown, heading_text) if section.by_session else map(_text, shown)
            if written and section.heading and written[-1][0] == section.heading:
                written[-1] = section.heading, [*written[-1][1], *lines]
            else:
                written.append((section.heading, lines))
    return written


def items_of(fitted: Fitted) -> Sequence[Item]:
    """What stands in the text, in its order; each is written when it is looked at."""
    shown = [
        (block.section.name, choice, choice.line)
        for block in fitted.blocks
        for choice in _shown(block)
        if choice.line is not None
    ]

    def item(place: int) -> Item:
        section, choice, line = shown[place]
        return Item(
            memory=choice.memory,
            section=section,
            level=line.level,
            text=line.text,
            tokens=line.tokens,
            score=choice.score,
        )

    return Deferred(len(shown), item)


def lines_of(fitted: Fitted) -> list[Line]:
    """The lines of the text, in no order."""
    return [choice.line for block in fitted.blocks for choice in block.choices if choice.line is not None]


def _under_dates(
    section: Section, shown: Sequence[Choice], heading_text: Callable[[Section, Memory], str]
) -> Iterator[str]:
    """The lines of a section, each session's under its date."""
    session = None
    for choice in shown:
        its = session_of(section, choice.memory)
        if its is not None and its != session:
            yield heading_text(section, choice.memory)
        session = its
        yield _text(choice)


def _shown(block: Block) -> list[Choice]:
    """What stands in a section, in the order of the text.

    That is rank order; by session it is first what belongs to none, then session after session,
    the one with the best memory first, each in the order of its times.
    """
    shown = [choice for choice in block.choices if choice.line is not None]
    if not block.section.by_session:
        return shown
    sessions = [session_of(block.section, choice.memory) for choice in shown]
    places = {session: place for place, session in reversed(list(enumerate(sessions)))}

    def place_of(choice: Choice) -> tuple[int, datetime, str]:
        memory = choice.memory
        session = session_of(block.section, memory)
        return places[session], memory.created_at, memory.ref

    alone = [choice for choice, session in zip(shown, sessions, strict=True) if session is None]
    together = [choice for choice, session in zip(shown, sessions, strict=True) if session is not None]
    return [*alone, *sorted(together, key=place_of)]


def _text(choice: Choice) -> str:
    return choice.line.text if choice.line is not None else ""
