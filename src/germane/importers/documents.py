"""The structure of a Markdown text: headings, sections, decision records, changelogs, and governed paths.

The structure is parsed, not matched by patterns: a `#` in a code block is never a heading.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from germane.errors import MissingExtra
from germane.importers.sources import FieldError, as_texts, day_in

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading outside lists and quotations; `line` counts from 0."""

    level: int
    title: str
    line: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownBlock:
    """A paragraph, list, table, code block …: lines `start` to `end`, exclusive, counted from 0.

    `items` are the lines at which it can be split: the first lines of list items.
    """

    start: int
    end: int
    kind: str
    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A document's lines with its headings and blocks; `references` are the lines of link definitions."""

    lines: tuple[str, ...]
    headings: tuple[Heading, ...]
    blocks: tuple[MarkdownBlock, ...]
    references: frozenset[int] = field(default_factory=frozenset)

    def text(self, start: int, end: int) -> str:
        """The lines from `start` to `end`, exclusive, without surrounding blank lines."""
        return "\n".join(self.lines[start:end]).strip("\n").rstrip()

    def title(self) -> str | None:
        """The title of the document: its first heading, if no heading has a higher level."""
        if not self.headings:
            return None
        first = self.headings[0]
        return first.title if first.level == min(h.level for h in self.headings) else None


def outline(text: str) -> Outline:
    """Parse the structure of a Markdown text (CommonMark with tables).

    Raises MissingExtra without markdown-it-py.
    """
    env: dict[str, Any] = {}
    # Links and emphasis matter in headings only, and parsing them everywhere takes most of the time. Cells of
    # tables would take 250 times the memory of their text.
    whole, tokens = _parser(inline=True), _parser(inline=False, cells=False).parse(text, env)
    defined = [*env.get("references", {}).values(), *env.get("duplicate_refs", [])]
    return Outline(
        lines=tuple(text.split("\n")),
        headings=tuple(
            Heading(
                level=int(token.tag[1:]),
                title=_words(whole.parseInline(inline.content, env)),
                line=token.map[0],
                end=token.map[1],
            )
            for token, inline in pairwise(tokens)
            if token.type == "heading_open" and token.level == 0 and token.map
        ),
        blocks=_blocks(tokens),
        references=frozenset(line for each in defined if each.get("map") for line in range(*each["map"])),
    )


def _parser(*, inline: bool, cells: bool = True) -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt  # noqa: PLC0415 - An optional dependency of this reader alone.
    except ImportError as error:
        raise MissingExtra(feature="Importing Markdown", extra="cli") from error
    return _made(MarkdownIt, inline, cells)


@cache
def _made(kind: type[MarkdownIt], inline: bool, cells: bool) -> MarkdownIt:
    parser = kind("commonmark").enable("table")
    if not cells:
        parser.block.ruler.at("table", _table_without_cells, {"alt": ["paragraph", "reference"]})
    return parser if inline else parser.disable("inline")


def _table_without_cells(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule of the parser for a table, which ends at the same line and has no tokens for its cells."""
    from markdown_it.rules_block import table  # noqa: PLC0415 - As above.

    is_table = table(state, start, end, True)
    if silent or not is_table:
        return is_table
    parent, state.parentType = state.parentType, "table"
    others = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    while line < end and state.sCount[line] >= state.blkIndent:
        if any(rule(state, line, end, True) for rule in others):
            break
        if state.isEmpty(line) or state.is_code_block(line):
            break
        line += 1
    state.push("table_open", "table", 1).map = [start, line]
    state.push("table_close", "table", -1)
    state.parentType, state.line = parent, line
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Running text of a paragraph, a heading or a cell of a table: never code.

    It stands in the lines `start` to `end`, exclusive, counted from 0. `in_item` is true directly in an item
    of a list.
    """

    start: int
    end: int
    text: str
    in_item: bool


def prose_in(text: str) -> tuple[Prose, ...]:
    """The running texts of a Markdown text in their order, without code blocks and HTML blocks."""
    found, containers = [], [""]
    for token in _parser(inline=False).parse(text):
        if token.type.startswith(("list_item_", "blockquote_")):
            if token.nesting > 0:
                containers.append(token.type)
            else:
                containers.pop()
        elif token.type == "inline" and token.map:
            in_item = containers[-1] == "list_item_open"
            found.append(Prose(start=token.map[0], end=token.map[1], text=token.content, in_item=in_item))
    return tuple(found)


_OWN_BEGIN = re.compile(r"^<!-- germane:begin\b[^\n]*$", re.MULTILINE)
_OWN_END = re.compile(r"^<!-- germane:end -->$", re.MULTILINE)


def without_own_blocks(text: str) -> str:
    """The text without what `germane context project` wrote, which is stored already; line numbers stay."""
    parts, done = [], 0
    while (begin := _OWN_BEGIN.search(text, done)) and (end := _OWN_END.search(text, begin.end())):
        parts += [text[done : begin.start()], "\n" * text.count("\n", begin.start(), end.end())]
        done = end.end()
    return "".join([*parts, text[done:]])


def _blocks(tokens: Sequence[Token]) -> tuple[MarkdownBlock, ...]:
    blocks: list[MarkdownBlock] = []
    items: list[int] = []
    for token in tokens:
        if token.type == "list_item_open" and token.level == 1 and token.map:
            items.append(token.map[0])
        elif token.level == 0 and token.map and token.nesting >= 0 and token.type != "heading_open":
            kind = token.type.removesuffix("_open")
            blocks.append(MarkdownBlock(start=token.map[0], end=token.map[1], kind=kind))
        elif token.level == 0 and token.nesting < 0 and items:
            blocks[-1] = replace(blocks[-1], items=tuple(items))
            items = []
    return tuple(blocks)


def _words(inlines: Sequence[Token]) -> str:
    """A heading as plain text, without emphasis, links or pictures."""
    parts = [
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for inline in inlines
        for child in inline.children or ()
        if child.type in ("text", "code_inline", "softbreak", "hardbreak")
    ]
    return " ".join("".join(parts).split())


# Splitting a long document at headings, then between blocks.

LONG = 1_600
"""Characters of a long text, about 400 tokens: a passage that can answer a question in full."""

TINY = 240
"""Characters of a tiny text, about 60 tokens: it means little without its context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPassage:
    """A part of a document that can be read alone: the headings above it, its text, its first line.

    `path` is empty for text before the first heading. `part` numbers the passages of one section from 1 to
    `parts`. `line` counts from 0.
    """

    path: tuple[str, ...]
    text: str
    line: int
    part: int = 1
    parts: int = 1


def passages(document: Outline, *, long: int = LONG, tiny: int = TINY) -> tuple[DocumentPassage, ...]:
    """The document in passages of about `long` characters at most.

    Every line that isn't blank is in exactly one passage, except headings without text of their own, which
    are in the paths of the following passages. A section of fewer than `tiny` characters joins the passage of
    its parent. Paragraphs, code blocks, tables and list items are never split, so a passage with a longer one
    exceeds `long`.
    """
    return tuple(_of_section(document, _tree(document), long, tiny))


@dataclass(slots=True)
class _Section:
    """A heading and its text: its own lines end at `own`, its subsections at `end`."""

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


def _of_section(document: Outline, section: _Section, long: int, tiny: int) -> Iterator[DocumentPassage]:
    whole = document.text(section.start, section.end)
    if len(whole) <= long and whole:
        yield DocumentPassage(path=section.path, text=whole, line=section.start)
        return
    small: list[_Section] = []
    large: list[_Section] = []
    for child in section.children:
        (small if len(document.text(child.start, child.end)) < tiny else large).append(child)
    own = _join(document, _of_own_lines(document, section, long), small, long)
    if own and not small and not document.text(section.body, section.own):
        own = []
    for part, (line, text) in enumerate(own, 1):
        yield DocumentPassage(path=section.path, text=text, line=line, part=part, parts=len(own))
    for child in large:
        yield from _of_section(document, child, long, tiny)


def _of_own_lines(document: Outline, section: _Section, long: int) -> list[tuple[int, str]]:
    """The text between a heading and its first subsection in parts, each with its first line."""
    starts = [section.start]
    cuts = [*_cuts(document, section, long), section.own]
    for cut, following in pairwise(cuts):
        if len(document.text(starts[-1], following)) > long:
            starts.append(cut)
    packed = [(start, document.text(start, end)) for start, end in pairwise([*starts, section.own])]
    return [(line, text) for line, text in packed if text]


def _cuts(document: Outline, section: _Section, long: int) -> list[int]:
    """The lines at which a section's own text can be split, never between a lead-in and its block."""
    cuts: list[int] = []
    leads_in = True  # The heading leads in to the first block.
    first, last = (
        bisect_left(document.blocks, line, key=lambda block: block.start)
        for line in (section.body, section.own)
    )
    for block in document.blocks[first:last]:
        if not leads_in:
            cuts.append(block.start)
        text = document.text(block.start, block.end)
        if len(text) > long:
            cuts.extend(block.items[1:])
        leads_in = block.kind == "paragraph" and text.endswith(":")
    return cuts


def _join(
    document: Outline, own: list[tuple[int, str]], small: list[_Section], long: int
) -> list[tuple[int, str]]:
    """The section's own texts with its tiny subsections appended."""
    joined = list(own)
    for section in small:
        text = document.text(section.start, section.end)
        if joined and len(joined[-1][1]) + len(text) + 2 <= long:
            line, before = joined[-1]
            joined[-1] = (line, f"{before}\n\n{text}")
        else:
            joined.append((section.start, text))
    return joined


# Decision records, recognised by their headings, in any template.

_TITLES = (
    re.compile(r"^adr[\s#_-]*(?P<number>\d{1,5})\s*[.:)\u2013\u2014-]?\s*(?P<title>.*)$", re.IGNORECASE),
    re.compile(r"^(?P<number>\d{1,5})(?:[.:)]|\s+[\u2013\u2014-])\s*(?P<title>.*)$"),
    re.compile(r"^(?P<number>)adr\s*[:\u2013\u2014-]\s*(?P<title>.*)$", re.IGNORECASE),
)
_FIELD = re.compile(r"^\W*(?P<name>status|date)\W*:\W*(?P<value>\w.*)$", re.IGNORECASE)
_NUMBER_OF_FILE = re.compile(r"^(?:adr[-_]?)?(\d{1,5})[-_.]", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_DECISIONS = frozenset({"decision", "decisions", "decision outcome", "the decision"})


def decision_record(
    document: Outline, *, file_name: str, fields: Mapping[str, Any], known: bool = False
) -> dict[str, Any] | None:
    """The `title`, `number`, `status` and `date` of a decision record; None for any other document.

    A decision record has exactly one heading for the decision, and a context, a status or a title such as
    `ADR 7`: the templates of Nygard, MADR and Tyree do. `known` is true if its front matter declares it.
    Front matter has precedence over the text. The date is ISO text and the status is verbatim; unknown fields
    are None.
    """
    heads = [heading.title.lower().strip(" :") for heading in document.headings]
    number, title = _title(document, file_name)
    status = _field_of(document, fields, "status")
    named = re.match(r"adr\b", heads[0]) is not None if heads else False
    context = any(head.startswith("context") for head in heads)
    decides = sum(head in _DECISIONS for head in heads) == 1
    if not known and not (decides and (context or status or named)):
        return None
    date = day_in(_field_of(document, fields, "date") or status or "")
    return {"title": title, "number": number, "status": status, "date": date}


def _title(document: Outline, file_name: str) -> tuple[int | None, str]:
    title = document.title() or file_name.rsplit(".", 1)[0]
    for pattern in _TITLES:
        if (match := pattern.match(title)) and match["title"]:
            number, title = match["number"], match["title"]
            break
    else:
        number = ""
    if not number and (match := _NUMBER_OF_FILE.match(file_name)):
        number = match[1]
    return (int(number) if number else None), title


def _field_of(document: Outline, fields: Mapping[str, Any], name: str) -> str | None:
    """A field from the front matter, the lines above the first section, or a section of that name."""
    if fields.get(name):
        return str(fields[name]).strip() or None
    # Most templates have the fields before the first section.
    first = next((heading.line for heading in document.headings if heading.level > 1), 20)
    for line in document.lines[:first]:
        match = _FIELD.match(line)
        if match and match["name"].lower() == name:
            return _decision_words(match["value"])
    ends = [*(heading.line for heading in document.headings[1:]), len(document.lines)]
    for heading, end in zip(document.headings, ends, strict=bool(document.headings)):
        if heading.title.lower() == name:
            return next(filter(None, map(_decision_words, document.lines[heading.end : end])), None)
    return None


def _decision_words(text: str) -> str:
    """A line without its markup and comments."""
    return _LINK.sub(r"\1", text.partition("<!--")[0]).strip(" *_`{}-+\t")


# Changelogs, one entry per version.

CHANGELOGS = frozenset(
    {"changelog", "changes", "history", "news", "releases", "release-notes", "release_notes"}
)
"""The conventional names of changelogs, without suffix."""
_VERSION = re.compile(
    r"^(?:(?:version|release|v)\s*)?\[?v?(?P<name>\d+\.\d+[\w.+-]*|unreleased)\b\]?(?P<rest>.*)$",
    re.IGNORECASE,
)


def versions(document: Outline) -> list[tuple[dict[str, Any], str]]:
    """The entries of a changelog in their order, each with its text; none if no heading names a version.

    Each entry has its `version`, its `line` from 1, and from its heading the `date` as ISO text and `yanked`,
    if any. An entry ends at the heading of the next version at any level, since generated changelogs give
    major versions a higher level. Link definitions at the end belong to no entry.
    """
    heads = [(heading, match) for heading in document.headings if (match := _VERSION.match(heading.title))]
    ends = [*(heading.line for heading, _ in heads[1:]), len(document.lines)]
    entries = []
    for (heading, match), end in zip(heads, ends, strict=bool(heads)):
        lines = [document.lines[line] for line in range(heading.line, end) if line not in document.references]
        entry: dict[str, Any] = {"version": match["name"], "line": heading.line + 1}
        if date := day_in(match["rest"]):
            entry["date"] = date
        if "yanked" in match["rest"].lower():
            entry["yanked"] = True
        entries.append((entry, "\n".join(lines).strip("\n").rstrip()))
    return entries


# The paths of a project that a text governs: those in its front matter, or those that it names. Only names of
# files are read, never their content.

MOST_PATHS = 50
"""The maximum number of governed paths; a text that names more governs none in particular."""

_QUOTED = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_PLACE = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$")
_MEANING = re.compile(r"([\\*?\[\]!# ])")
_GLOB = re.compile(r"[*?\[]")
_SCOPE = re.compile(r"^(?:global$|[A-Za-z][\w-]*:\S)")
_ELSEWHERE = re.compile(r"^(?:[A-Za-z]:|~|\\\\)")


def stated_scope(fields: Mapping[str, Any]) -> str | None:
    """The scope in front matter: `global`, or a name with a value; None for any other value.

    Other tools write other values under `scope`, which stay metadata.
    """
    scope = fields.get("scope")
    return scope.strip() if isinstance(scope, str) and _SCOPE.match(scope.strip()) else None


def stated_paths(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The patterns under `paths` in front matter, and under `scope` if it is a path or a list of paths.

    Patterns are those of a .gitignore, from the project's root. Raises FieldError for anything but a list of
    texts, and for a path outside the project.
    """
    stated = [*as_texts(fields.get("paths"), name="paths")]
    scope = fields.get("scope")
    if isinstance(scope, list) or (isinstance(scope, str) and "/" in scope and stated_scope(fields) is None):
        stated += as_texts(scope, name="scope")
    for pattern in stated:
        if ".." in PurePosixPath(pattern).parts or _ELSEWHERE.match(pattern):
            raise FieldError(
                f"the path {pattern!r} lies outside the project; it is written from the project's root, "
                "such as src/auth"
            )
    return tuple(dict.fromkeys(stated))


def named_paths(text: str, root: Path) -> tuple[str, ...]:
    """The patterns of the files and folders under `root` that a text names between backticks.

    A name counts if it exists and has a slash or a suffix, so the word `docs` doesn't count. A glob counts if
    the folder above its first wildcard exists. A line number after the name is ignored.
    """
    names = (_PLACE.sub("", match[1].strip()) for match in _QUOTED.finditer(text))
    patterns = dict.fromkeys(pattern for name in names if (pattern := _existing(name, root)))
    return tuple(patterns) if len(patterns) <= MOST_PATHS else ()


def pattern_of(place: str, *, folder: bool) -> str:
    """The pattern that matches only this file or folder, by its path from the project's root."""
    return "/" + _MEANING.sub(r"\\\1", place) + ("/" if folder else "")


def _existing(name: str, root: Path) -> str | None:
    plain = name.removeprefix("./")
    place = PurePosixPath(plain)
    if (
        not place.parts
        or plain.startswith(("/", "~"))
        or ".." in place.parts
        or "\\" in plain
        or "\0" in plain
    ):
        return None
    with suppress(OSError, ValueError):  # The name is too long or invalid.
        if _GLOB.search(plain):
            above = PurePosixPath(*takewhile(lambda part: not _GLOB.search(part), place.parts))
            return f"/{plain}" if "/" in plain and above.parts and (root / above).exists() else None
        if ("/" in plain or place.suffix) and (root / place).exists():
            return pattern_of(place.as_posix(), folder=(root / place).is_dir())
    return None
