"""Write a context down: headings by the plan, memory text fenced so that it can only be text.

A memory is data. Whatever it holds, the text of a context keeps three properties: a line that
starts a section starts with the section's heading and is written by the plan; a line of a memory
starts with a bullet or with the indent of one; and inside a line neither Markdown structure, a tag, nor a
marker of any provider's chat template is left in a form that a reader, human or model, could take for the
plan's own or for another speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import regex

from germane.kinds import MESSAGE, Kinds, constraint_label
from germane.lifecycle import obsolete_label
from germane.model.context import short_id
from germane.model.memory import Level, Memory
from germane.model.plan import Section, Style
from germane.model.text import day_in_words
from germane.renditions import render_title

_BULLET, _INDENT = "- ", "  "
_LONGEST_SOURCE = 40
_RECORD_FILE = re.compile(r"(?:adr[-_]?)?(\d{3,5})[-_.].*\.(?:md|markdown|rst|txt|adoc)$", re.IGNORECASE)
# Where a pattern is a set of characters alone, `re` is several times faster than `regex`.
# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
# Control characters can repaint a terminal or hide text; none of them carries meaning here. Tag characters
# are invisible, and models read them.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f]+"
)
# These show nothing, and can split a marker or hide a text. Joiners and single variation selectors belong to
# scripts and emoji.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u3164\uffa0]"
    "|(?<=[\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\0-\x7f])|[\ufe00-\ufe0f]{2,}|[\U000e0100-\U000e01ef]"
)
# What opens a block in Markdown: headings and their underlines, fences, rules, quotes, tables.
_BLOCK_START = regex.compile(
    r"^(\s*(?:[-*+]\s+|\d+[.)]\s+)*)(?=#{1,6}(?:\s|$)|=+\s*$|-+\s*$|`{3,}|~{3,}|(?:[_*]\s*){3,}$|>|\|)"
)
_HEADING = regex.compile(r"^(\s*(?:[-*+]\s+|\d+[.)]\s+)*)#{1,6}\s+(?![#=\-`~>|])(\S.*)$")
_CODE_FENCE = regex.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)*(?:`{3,}|~{3,})")
_MARKS = str.maketrans("“”„‟", '""""')
_OWN_BULLET = regex.compile(r"^(?:[-*+]\s+)+")
# What the rules below look for beyond the start of a line; a text without any of it is left as it is.
_SUSPECT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\ufeff\u2028\u2029\u202a-\u202e\u2066-\u2069<\U000e0000-\U000e01ef"
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u206f\u3164\uffa0\ufe00-\ufe0f]"
)
# The names by which chat templates mark a speaker, the end of a turn or a call.
_SPEAKERS = (
    "system|user|assistant|human|model|developer|tool|tools|instructions?|thinking|think|tool_calls?|tool_results?"
    "|tool_responses?|function|function_calls?|function_results?|function_response|invoke|parameter"
)
_TOKENS = (
    r"s|bos|eos|unk|pad|start_of_turn|end_of_turn|begin_of_text|end_of_text|start_of_image|end_of_image|im_start"
    r"|im_end|im_sep|sys|fim_\w+|extra_id_\d+|reserved_\w+|unused\d+|\w+_token"
)
# What opens or closes a tag or a token of a template. Inside a word it may be a type parameter or a
# comparison, so that only the known names are meant there. A line that ends with one goes on after a space.
_TAG = re.compile(
    r"(?<![\w<])<(?=[A-Za-z_!?])|<(?=[/|｜])"
    rf"|<(?=(?:[\w-]+:)?(?:(?:{_SPEAKERS}|System|Assistant|Human|{_SPEAKERS.upper()})(?:[\s>/]|$)"
    rf"|(?:{_TOKENS}|[A-Z]+_[A-Z_]+|SYS)>))"
)
_BRACKET = re.compile(
    r"\[(?=\||/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w+|THINK|ARGS|CALL_ID|g?MASK|sMASK|BOS|EOS)\])"
)
# A client that shows an answer loads its images, and the address of one can carry what stood in the context.
_IMAGE = re.compile(r"!(?=\[[^\]]*\][(\[])")
_SPOKEN = re.compile(r"^(\W*(?:Human|Assistant))(?=:)")


def render(blocks: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The text of a context: each block a heading and its lines, blocks separated by a blank line."""
    return "".join(written_lines(blocks))


def written_lines(blocks: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The lines of that text with their line ends, the last of a block with the blank line after it."""
    written: list[str] = []
    for heading, lines in blocks:
        *others, last = [heading, *lines] if heading or not lines else lines
        written += [f"{line}\n" for line in others]
        written.append(f"{last}\n\n")
    if written:
        written[-1] = written[-1].removesuffix("\n\n")
    return written


def fence(text: str) -> list[str]:
    """The lines of a memory's text, none of which can pose as anything else."""
    # These markers need none of the suspect characters.
    marks = (
        ("[" in text and (_BRACKET.search(text) or _IMAGE.search(text)))
        or "Human:" in text
        or "Assistant:" in text
    )
    if not marks and not _SUSPECT.search(text) and not _BLOCK_START.match(text):
        # Nearly every memory: one line, with nothing in it that the rules below would change.
        return [text.rstrip()] if text.strip() else []
    lines = [_CONTROLS.sub(" ", _UNSEEN.sub("", line)).rstrip() for line in _LINE_ENDS.split(text)]
    shown, in_code = [], False
    for line in lines:
        if line.strip():
            code = _CODE_FENCE.match(line) is not None
            shown.append(_fenced(line, in_code=in_code))
            in_code = in_code is not code
    return shown


def inline(text: str) -> str:
    """A subject, tag or source on one line, fenced like the text of a memory."""
    return " ".join(fence(text))


def item_lines(section: Section, memory: Memory, level: Level, text: str | None = None) -> str:
    """One memory as it stands in a section: a bullet, and an indent for each further line, or a paragraph.

    `text` is shown instead of the memory's rendition at the level, where it is given. Only a raw text isn't
    fenced.
    """
    if text is None:
        text = memory.renditions.at(level).text
    lines = [text] if section.style is Style.RAW else fence(text)
    if not lines or section.style is not Style.BULLETS:
        return "\n".join(lines)
    if section.quoted:
        lines = _quotation(memory, lines)
    label = obsolete_label(memory)
    if label and f"[{label.partition(' ')[0]}" not in lines[0].lower():
        lines[0] = f"{lines[0]} [{inline(label)}]"
    if section.own_heading:
        return "\n".join(_BULLET + _OWN_BULLET.sub("", line.strip()) for line in lines)
    first, *others = lines
    return "\n".join([_BULLET + _OWN_BULLET.sub("", first.strip()), *[_INDENT + line for line in others]])


def _quotation(memory: Memory, lines: Sequence[str]) -> list[str]:
    """The lines of a text in quotation marks that the text itself doesn't have, after its origin."""
    label = (
        f"**{constraint_label(str(memory.metadata.get('action')))}:** " if memory.kind == "constraint" else ""
    )
    first, *others = (line.translate(_MARKS) for line in lines)
    whole = [_OWN_BULLET.sub("", first.strip()).removeprefix(label), *others]
    if memory.kind == MESSAGE:
        origin = f"a tool in {inline(memory.scope.value)}"
    else:
        origin = short_source(memory.source) or "an unnamed source"
    whole[0] = f"From {origin.translate(_MARKS)}: “{whole[0]}"
    whole[-1] += "”"
    return whole


def item_label(section: Section, memory: Memory) -> str:
    """What ends an item: the day it was created, a short name of its source, a short id; each if shown.

    A memory under the date of its session needs neither day nor source.
    """
    parts = []
    alone = session_of(section, memory) is None
    if section.dates and alone:
        parts.append(memory.created_at.date().isoformat())
    if section.sources and alone and (source := short_source(memory.source)):
        parts.append(source)
    label = f" ({', '.join(parts)})" if parts else ""
    return f"{label} [{short_id(memory.id)}]" if section.ids else label


def short_source(source: str | None) -> str:
    """The part of a source by which a person knows it: the name of a file, or a few words.

    A decision record is named by its number: `docs/adr/0015-cache.md` is `adr-0015`. A long text that is no
    path has no short name.
    """
    if not source:
        return ""
    place = source.partition("#")[0].replace("\\", "/").rstrip("/")
    name = place.rpartition("/")[2]
    if record := _RECORD_FILE.match(name):
        return f"adr-{record[1]}"
    named = inline(name)
    return named if len(named) <= _LONGEST_SOURCE else ""


def _fenced(line: str, *, in_code: bool) -> str:
    # Each rule is tried before it is applied: matching is several times faster than replacing. A space breaks
    # a marker where a backslash before it would not: tokenizers find theirs in any surroundings.
    if _BLOCK_START.match(line):
        # A comment in code is no heading.
        heading = None if in_code else _HEADING.match(line)
        if heading is None:
            line = _BLOCK_START.sub(r"\1\\", line)
        else:
            # Bold reads as a heading to a person, and opens no section.
            text = heading[2]
            line = f"{heading[1]}{text if '**' in text else f'**{text}**'}"
    if "<" in line:
        line = _TAG.sub("< ", line)
    if "[" in line:
        line = _IMAGE.sub("! ", _BRACKET.sub("[ ", line))
    return _SPOKEN.sub(r"\1 ", line) if "Human:" in line or "Assistant:" in line else line


def heading_of(section: Section, memory: Memory | None, kinds: Kinds) -> str:
    """The heading of a section when `memory` is None; else the one that the memory stands under there.

    That is one of its own, or the date of its session, for messages with the session's name.
    """
    if memory is None:
        return section.heading
    if not section.own_heading:
        day = day_in_words(memory.created_at)
        return f"### {day} ({inline(memory.scope.value)})" if memory.kind == MESSAGE else f"### {day}"
    kind = kinds.of(memory)
    fields: Mapping[str, object] = {
        **memory.metadata,
        "content": memory.content,
        "subject": memory.subject or "",
    }
    title = inline(render_title(kind, fields, memory.renditions.micro.text))
    return section.heading.replace("{title}", title)


def headings_apart(heading: str, memory: Memory) -> Iterator[str]:
    """The same heading with what tells the memory from another of that title: the last is like no other."""
    scope = memory.scope.value
    for one in (memory.subject, scope, day_in_words(memory.created_at), short_id(memory.id)):
        if one and (shown := inline(" ".join(one.split()))) not in heading:
            yield f"{heading} ({shown})"


def session_of(section: Section, memory: Memory) -> str | None:
    """The session under whose date a memory stands in this section, if it does."""
    return memory.scope.value if section.by_session and memory.scope.name == "session" else None
