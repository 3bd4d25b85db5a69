"""The structure of a Markdown text: its headings and blocks by line, read by a real parser.

Level: exchange (imports errors). Nothing here guesses at structure with patterns: a `#` in a code
block is no heading, whatever the block looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from germane.errors import MissingExtra

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Block", "Heading", "Outline", "outline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading of the document itself (none inside a list or a quotation); `line` counts from 0."""

    level: int
    title: str
    line: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, list, table, code block …: lines `start` up to `end`, counted from 0.

    `items` are the places inside where it may be parted: the lines at which a list's items begin.
    """

    start: int
    end: int
    kind: str
    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A document's lines with what stands where; `references` are the lines of link definitions."""

    lines: tuple[str, ...]
    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    references: frozenset[int] = field(default_factory=frozenset)

    def text(self, start: int, end: int) -> str:
        """The lines `start` up to `end` without blank lines around them."""
        return "\n".join(self.lines[start:end]).strip("\n").rstrip()

    def title(self) -> str | None:
        """The document's own title: its first heading, if that is of the highest level it has."""
        if not self.headings:
            return None
        first = self.headings[0]
        return first.title if first.level == min(h.level for h in self.headings) else None


def outline(text: str) -> Outline:
    """Read the structure of a Markdown text (CommonMark with tables).

    Raises MissingExtra without markdown-it-py.
    """
    try:
        from markdown_it import MarkdownIt  # noqa: PLC0415 - An optional dependency of this reader alone.
    except ImportError as error:
        raise MissingExtra(feature="Importing Markdown", extra="cli") from error
    env: dict[str, Any] = {}
    whole = MarkdownIt("commonmark").enable("table")
    # Links and emphasis matter in headings alone, and reading them everywhere takes most of the time.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text, env)
    return Outline(
        lines=tuple(text.split("\n")),
        headings=_headings(tokens, lambda words: whole.parseInline(words, env)),
        blocks=_blocks(tokens),
        references=_references(env),
    )


def _headings(tokens: Sequence[Token], parse: Callable[[str], Sequence[Token]]) -> tuple[Heading, ...]:
    found = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = token.map
            found.append(
                Heading(level=int(token.tag[1:]), title=_words(parse(inline.content)), line=start, end=end)
            )
    return tuple(found)


def _blocks(tokens: Sequence[Token]) -> tuple[Block, ...]:
    found: list[Block] = []
    items: list[int] = []
    for token in tokens:
        if token.type == "list_item_open" and token.level == 1 and token.map:
            items.append(token.map[0])
        elif token.level == 0 and token.map and token.nesting >= 0 and token.type != "heading_open":
            kind = token.type.removesuffix("_open")
            found.append(Block(start=token.map[0], end=token.map[1], kind=kind))
        elif token.level == 0 and token.nesting < 0 and items:
            last = found.pop()
            found.append(Block(start=last.start, end=last.end, kind=last.kind, items=tuple(items)))
            items = []
    return tuple(found)


def _references(env: Mapping[str, Any]) -> frozenset[int]:
    defined = [*env.get("references", {}).values(), *env.get("duplicate_refs", [])]
    return frozenset(line for each in defined if each.get("map") for line in range(*each["map"]))


def _words(inlines: Sequence[Token]) -> str:
    """A heading as plain words: no emphasis, links or pictures."""
    parts = [
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for inline in inlines
        for child in inline.children or ()
        if child.type in ("text", "code_inline", "softbreak", "hardbreak")
    ]
    return " ".join("".join(parts).split())
