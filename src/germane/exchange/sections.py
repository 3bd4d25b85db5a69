"""Parting a long document where its author did: at headings, then between blocks.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from germane.exchange.outline import Outline

__all__ = ["LONG", "TINY", "Passage", "passages"]

LONG = 1_600
"""About 400 tokens: a passage that answers a question whole and leaves room for others beside it."""

TINY = 240
"""About 60 tokens: less than this says little without its surroundings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A stretch of a document that stands alone: the headings above it, its text, its first line.

    `path` is empty for what comes before the first heading. Where one section made several
    passages, `part` counts them from 1 to `parts`. `line` counts from 0.
    """

    path: tuple[str, ...]
    text: str
    line: int
    part: int = 1
    parts: int = 1


def passages(document: Outline, *, long: int = LONG, tiny: int = TINY) -> tuple[Passage, ...]:
    """The document in passages of about `long` characters at most.

    Every line that isn't blank stands in exactly one passage, except headings that have nothing of
    their own below them (they still stand in the paths of what follows). A section tinier than
    `tiny` characters joins the passage of its parent. A code block, a table and a list item are
    never parted, so a passage is longer than `long` where one of them is, or a paragraph.
    """
    return tuple(_of_section(document, _tree(document), long, tiny))


@dataclass(slots=True)
class _Section:
    """A heading with all below it: its own lines end at `own`, those of its subsections at `end`."""

    path: tuple[str, ...]
    level: int
    start: int
    body: int
    own: int
    end: int
    children: list[_Section] = field(default_factory=list)


def _tree(document: Outline) -> _Section:
    size = len(document.lines)
    starts = [heading.line for heading in document.headings] + [size]
    root = _Section(path=(), level=0, start=0, body=0, own=starts[0], end=size)
    above = [root]
    for heading, following in zip(document.headings, starts[1:], strict=True):
        while above[-1].level >= heading.level:
            above.pop().end = heading.line
        path = (*above[-1].path, heading.title) if heading.title else above[-1].path
        section = _Section(
            path=path, level=heading.level, start=heading.line, body=heading.end, own=following, end=size
        )
        above[-1].children.append(section)
        above.append(section)
    return root


def _of_section(document: Outline, section: _Section, long: int, tiny: int) -> Iterator[Passage]:
    whole = document.text(section.start, section.end)
    if len(whole) <= long and whole:
        yield Passage(path=section.path, text=whole, line=section.start)
        return
    sizes = [len(document.text(child.start, child.end)) for child in section.children]
    small = [child for child, size in zip(section.children, sizes, strict=True) if size < tiny]
    large = [child for child, size in zip(section.children, sizes, strict=True) if size >= tiny]
    own = _join(document, _of_own_lines(document, section, long), small, long)
    if own and not small and not document.text(section.body, section.own):
        own = []
    for part, (line, text) in enumerate(own, 1):
        yield Passage(path=section.path, text=text, line=line, part=part, parts=len(own))
    for child in large:
        yield from _of_section(document, child, long, tiny)


def _of_own_lines(document: Outline, section: _Section, long: int) -> list[tuple[int, str]]:
    """What stands between a heading and its first subsection, packed into texts with their first lines."""
    packed: list[tuple[int, str]] = []
    start = section.start
    cuts = [*_cuts(document, section, long), section.own]
    for cut, following in pairwise(cuts):
        if len(document.text(start, following)) > long:
            packed.append((start, document.text(start, cut)))
            start = cut
    packed.append((start, document.text(start, section.own)))
    return [(line, text) for line, text in packed if text]


def _cuts(document: Outline, section: _Section, long: int) -> list[int]:
    """The lines at which a section's own text may be parted: never between a lead-in and what it leads to."""
    found: list[int] = []
    leads_in = True  # The heading leads in to the first block.
    for block in document.blocks:
        if not section.body <= block.start < section.own:
            continue
        if not leads_in:
            found.append(block.start)
        text = document.text(block.start, block.end)
        if len(text) > long:
            found.extend(block.items[1:])
        leads_in = block.kind == "paragraph" and text.endswith(":")
    return found


def _join(
    document: Outline, own: list[tuple[int, str]], small: list[_Section], long: int
) -> list[tuple[int, str]]:
    """The section's own texts with its tiny subsections behind them."""
    joined = list(own)
    for section in small:
        text = document.text(section.start, section.end)
        if joined and len(joined[-1][1]) + len(text) + 2 <= long:
            line, before = joined[-1]
            joined[-1] = (line, f"{before}\n\n{text}")
        else:
            joined.append((section.start, text))
    return joined
