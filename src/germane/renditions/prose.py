"""What a Markdown text says in sentences, without what is only of use on a page.

Level: kinds (imports nothing). Pure. Badges, images, rules, comments, front matter and the addresses of
links are left out; headings lead the text under them; code and tables are passages of their own, so
that a caller can leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import Literal

__all__ = [
    "Passage",
    "as_text",
    "is_marked",
    "names_of_images",
    "passages_of",
    "prose_of",
    "sentence_ends",
    "sentences_of",
]

# Closing punctuation before white space, a full stop of a script that writes no space after it, and the end
# of a line; not after the number of a list, an initial, or a usual abbreviation. An expression that starts
# with a set of characters is a fast one.
_NO_END = "".join(
    rf"(?<!{before}{word}\.)"
    for before in (r"[\s(]", "^")
    for word in (
        *(r"[^\W\d_]", r"e\.g", r"i\.e", r"z\.B", r"d\.h", "vs", "cf", "ca", "bzw", "approx", "incl", "resp"),
        *("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "No", "Nr"),
    )
)
_NO_NUMBER = "".join(
    rf"(?<!{before}{digits}\.)" for before in ("^", r"\(", r"[;:]\s") for digits in (r"\d", r"\d\d")
)
_MAY_END = re.compile(
    rf"[.!?…。！？\n]{_NO_END}{_NO_NUMBER}[.!?…。！？\n]*[\"'”’)\]」』）]*(?:(?=\s|\Z)|(?<=[。！？」』）\n]))",
    flags=re.MULTILINE,
)
_ITEM_NEXT = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])\s")

_SCANNED = 65_536
"""Characters of a text that are looked at: far more than any rendition needs."""
_WRAPPED = 60
"""A line of so many characters was probably wrapped; the end of a shorter one is meant."""

_Form = Literal["text", "item", "code", "table", "link"]


class _Line(Enum):
    """What a line of a Markdown text is."""

    TEXT = "text"
    ITEM = "item"
    CODE = "code"
    TABLE = "table"
    HEADING = "heading"
    UNDERLINE = "underline"  # Makes a heading of the one line above it, or is a rule.
    END = "end"  # Ends what stands above it, and has nothing to say.


_FORMS: dict[_Line, _Form] = {
    _Line.TEXT: "text",
    _Line.ITEM: "item",
    _Line.CODE: "code",
    _Line.TABLE: "table",
}
# What a text has that passages are without; nearly every memory has none of it.
_MARKED = re.compile(
    r"\]\(|!\[|</?[A-Za-z!]|^[ \t]{0,3}(?:\\?#|>|\||`{3}|~{3}|\[|={2}|-{2}|\*{3}|_{3}|\+{3})",
    flags=re.MULTILINE,
)
_STARTS = frozenset("\\#>|`~[=-*_+ \t")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", flags=re.DOTALL)
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?^\1[ \t]*$\n?", flags=re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:[-*+]\s+)?(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r"^\s{0,3}\\?(#{1,6})(?:\s+(.*?))??(?:\s+#+)?\s*$")
_BOLD_HEADING = re.compile(r"^\s{0,3}(\*\*|__)([^*_]{1,80}?):?\1:?\s*$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:={2,}|-{2,})\s*$")
_RULE = re.compile(r"^\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,})$")
_ROW = re.compile(r"^\s*\|.*\|")
_SEPARATOR = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
# A line such as "> 40 ms" is a comparison.
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?(?!\s*\d))+(?:\[!\w+\]\s*)?")
_DEFINITION = re.compile(
    r"^[ \t]{0,3}\[[^\]\n]{1,200}\]:[ \t]+<?(?:https?://|mailto:|\.{0,2}/|#|[\w.-]+/|[\w-]+\.\w{2,4}>?\s*$)",
    flags=re.MULTILINE,
)
_ITEM = re.compile(r"^\s*((?:[-*+•]|\d{1,3}[.)])\s+)(?:\[[ xX]\]\s+)?(?=\S)")
_ADDRESS = re.compile(r"<?\b(?:https?://|www\.)[^\s<>]+>?")
_WORD = re.compile(r"\w")
_TAGS = (
    "a|abbr|b|big|blockquote|body|br|button|center|cite|code|dd|del|details|div|dl|dt|em|figcaption|figure|font"
    "|footer|h[1-6]|head|header|hr|html|i|iframe|img|ins|kbd|li|link|main|mark|meta|nav|ol|p|picture|pre|q|s"
    "|samp|script|section|small|source|span|strong|style|sub|summary|sup|svg|table|tbody|td|th|thead|tr|tt|u|ul"
    "|var|video"
)
_IMAGE_NAME = re.compile(r"!\[([^\]\n]{0,300})\]")
_INLINE = re.compile(
    r"(?P<code>`+[^`\n]*`+)"
    r"|\[!\[[^\]\n]{0,300}\](?:\([^()\n]{0,1000}\)|\[[^\]\n]{0,200}\])\](?:\([^()\n]{0,1000}\)|\[[^\]\n]{0,200}\])"
    r"|!\[[^\]\n]{0,300}\](?:\([^()\n]{0,1000}\)|\[[^\]\n]{0,200}\])"
    r"|(?<![\w\])])\[(?P<text>(?:`[^`\n]{0,200}`|[^\[\]`\n]){0,500})\]"
    r"(?:\([^()\n]{0,1000}(?:\([^()\n]{0,200}\)[^()\n]{0,500})?\)|(?P<ref>\[[^\]\n]{0,200}\]))"
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>\n]{{0,1000}})?/?>)",
    flags=re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, an item of a list, or a block of another form, on one line unless it is code.

    `section` is the heading above it, and `leads` are the headings between it and the passage before, each
    with its level. A passage of form "link" holds links and nothing else.
    """

    text: str
    form: _Form = "text"
    section: str = ""
    leads: tuple[tuple[int, str], ...] = ()
    mark: str = ""


def is_marked(text: str) -> bool:
    """Whether a text may have Markdown in it that its passages are without."""
    if "\n" in text:
        return _MARKED.search(text) is not None
    # Looking for a character is many times faster than an expression, and nearly every text is such.
    return ("<" in text or "](" in text or "![" in text or text[:1] in _STARTS) and _MARKED.search(
        text
    ) is not None


def sentence_ends(text: str) -> list[int]:
    """Where the sentences of a text end: not where a line is wrapped, or leads to the next by a colon."""
    if "\n" not in text:
        return [match.end() for match in _MAY_END.finditer(text)]
    return [
        match.end()
        for match in _MAY_END.finditer(text)
        if match[0][0] != "\n" or _line_ends_sentence(text, match.start(), match.end())
    ]


def _line_ends_sentence(text: str, at: int, end: int) -> bool:
    """Whether a line that ends here, before the line ends up to `end`, ends a sentence."""
    if text[max(0, at - 3) : at].rstrip().endswith(":"):
        return False
    if end - at > 1 or _ITEM_NEXT.match(text, end):
        return True
    return at - (text.rfind("\n", 0, at) + 1) < _WRAPPED and not text[end : end + 1].islower()


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in their order."""
    ends = sentence_ends(text)
    parts = [text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [part for part in parts if _WORD.search(part)]


def as_text(passages: Iterable[Passage], *, one_line: bool = False) -> str:
    """Passages as a text: each on a line of its own, or all on one."""
    written: list[str] = []
    for passage in passages:
        lead = _lead(passage)
        if one_line:
            if written and passage.form == "item" and not lead and written[-1][-1] not in ".!?…:;。！？":
                written[-1] += ";"
            written.append(lead + passage.text)
        elif passage.form == "item":
            written += [*([lead.rstrip()] if lead else []), passage.mark + passage.text]
        else:
            written.append(lead + passage.text)
    return (" " if one_line else "\n").join(written)


def _lead(passage: Passage) -> str:
    """The headings right above a passage, as the beginning of its sentence."""
    lead = " — ".join(title for _, title in passage.leads)
    if not lead:
        return ""
    return f"{lead} " if lead[-1] in ".!?:…。！？：" else f"{lead}: "


def prose_of(passages: Iterable[Passage]) -> Iterator[Passage]:
    """The paragraphs and items among passages; a heading goes on to the first that is left under it."""
    leads: tuple[tuple[int, str], ...] = ()
    for passage in passages:
        for level, title in passage.leads:
            leads = _under(leads, level, title)
        if passage.form in ("text", "item"):
            yield replace(passage, leads=leads)
            leads = ()


def names_of_images(text: str) -> str:
    """The texts that stand for the images of a text, which is all that some have to say."""
    return ", ".join(name.strip() for name in _IMAGE_NAME.findall(text[:_SCANNED]) if _WORD.search(name))


def passages_of(text: str) -> Iterator[Passage]:
    """The passages of a text in their order, each read when it is asked for.

    Headings alone are none, except in a text that has nothing else.
    """
    text = text[:_SCANNED]
    if "<!--" in text:
        text = _COMMENT.sub("", text)
    text = _FRONT_MATTER.sub("", text.lstrip("\ufeff"))
    references = _DEFINITION.search(text) is not None
    section, empty = "", True
    leads: tuple[tuple[int, str], ...] = ()
    for what, mark, lines in _blocks(text.split("\n")):
        code = what is _Line.CODE
        raw = "\n".join(lines) if code else " ".join(line.strip() for line in lines)
        shown = raw if code else _cleaned(_cells(raw) if what is _Line.TABLE else raw, references=references)
        if not _WORD.search(shown):
            continue
        if what is _Line.HEADING:
            section = shown.strip(" :*_")
            leads = _under(leads, int(mark), _unwrapped(shown))
            continue
        linked = what in (_Line.TEXT, _Line.ITEM) and _only_links(raw, references=references)
        yield Passage(shown, "link" if linked else _FORMS[what], section, leads, mark)
        leads, empty = (), False
    if empty and leads:
        yield Passage(leads[-1][1], leads=leads[:-1])


def _unwrapped(text: str) -> str:
    """A heading without the emphasis around the whole of it; marks inside it stay."""
    text = text.strip()
    bare = text.strip("*_")
    return bare.strip() if text[:1] in ("*", "_") and text[-1:] == text[:1] and "*" not in bare else text


def _under(leads: tuple[tuple[int, str], ...], level: int, title: str) -> tuple[tuple[int, str], ...]:
    """The headings with one more; those of its level or below had nothing under them."""
    return (*(lead for lead in leads if lead[0] < level), (level, title))


def _blocks(lines: list[str]) -> Iterator[tuple[_Line, str, list[str]]]:
    """The blocks of a text: what each is, the mark of an item or the level of a heading, and its lines."""
    form, mark, block = _Line.END, "", list[str]()
    for what, begins, line in _typed(lines):
        if block and what is form is _Line.CODE:
            block.append(line)
            continue
        if block and what is _Line.TEXT and form in (_Line.TEXT, _Line.ITEM) and _goes_on(block[-1], line):
            block.append(line)
            continue
        if what is _Line.UNDERLINE and form is _Line.TEXT and len(block) == 1:
            form, mark = _Line.HEADING, begins
        if block:
            yield form, mark, block
        form, mark, block = what, begins, [] if what in (_Line.END, _Line.UNDERLINE) else [line]
    if block:
        yield form, mark, block


def _typed(lines: list[str]) -> Iterator[tuple[_Line, str, str]]:
    """Each line with what it is, what it begins with, and the rest of it."""
    fence, tabular = "", False
    for line, after in zip_longest(lines, lines[1:], fillvalue=""):
        if fence:
            closes = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            yield (_Line.END, "", "") if closes else (_Line.CODE, "", line.rstrip())
            fence = "" if closes else fence
            continue
        shown = _QUOTE.sub("", line) if line.lstrip().startswith(">") else line
        opening = _FENCE.match(shown) if "```" in shown or "~~~" in shown else None
        if opening:
            fence = opening[1]
            yield _Line.END, "", ""
            continue
        what = _alone(shown, after)
        # Rows of a table need no pipe at their ends, once the line under its head has said that it is one.
        tabular = "|" in shown and (tabular or what is _Line.END)
        if tabular and what is None:
            what = _Line.TABLE
        if what is _Line.HEADING:
            yield what, *_title(shown)
        elif what is _Line.UNDERLINE:
            yield what, "1" if "=" in shown else "2", ""
        elif what is None and (item := _ITEM.match(shown)):
            yield _Line.ITEM, item[1].strip() + " ", shown[item.end() :]
        else:
            yield what or _Line.TEXT, "", shown


def _alone(line: str, after: str) -> _Line | None:
    """What a line is that stands for itself; None for one of running text."""
    start = line.lstrip()[:1]
    if not start:
        return _Line.END
    if start.isalnum() and "|" not in line:
        # Nearly every line; none of the forms below begins with a letter or a digit.
        return None
    if _HEADING.match(line) or _BOLD_HEADING.match(line):
        return _Line.HEADING
    if _UNDERLINE.match(line):
        return _Line.UNDERLINE
    if _RULE.match(line) or _SEPARATOR.match(line) or _DEFINITION.match(line):
        return _Line.END
    tabular = _ROW.match(line) or ("|" in line and "|" in after and _SEPARATOR.match(after))
    return _Line.TABLE if tabular else None


def _goes_on(before: str, line: str) -> bool:
    """Whether a line goes on with the sentence of the one before it, which was wrapped."""
    start = line.lstrip()[:1]
    return len(before) >= _WRAPPED or start.islower() or line.startswith((" ", "\t"))


def _title(line: str) -> tuple[str, str]:
    """The level and the text of a heading; a line that is bold stands below all others."""
    bold = _BOLD_HEADING.match(line)
    if bold:
        return "7", bold[2]
    found = _HEADING.match(line)
    return (str(len(found[1])), found[2] or "") if found else ("7", line)


def _cells(row: str) -> str:
    return ", ".join(cell.strip() for cell in row.strip().strip("|").split("|") if cell.strip())


def _cleaned(text: str, *, references: bool) -> str:
    """A line without images, tags and the addresses of links."""
    if "[" not in text and "<" not in text:
        return text.strip()

    def shown(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        if match["tag"] is not None:
            return " " if match["tag"].lower().startswith("<br") else ""
        if match["ref"] is not None and not references:
            return match[0]
        return match["text"] or ""

    cleaned = _INLINE.sub(shown, text)
    return (text if cleaned == text else re.sub(r"[ \t]{2,}", " ", cleaned)).strip()


def _only_links(text: str, *, references: bool) -> bool:
    """Whether a line is made of links and what stands between them."""
    if "](" not in text and "//" not in text and not references:
        return False

    def shown(match: re.Match[str]) -> str:
        linked = match["text"] is not None and (match["ref"] is None or references)
        return "" if linked or match["tag"] is not None or match["code"] is None else match[0]

    return not _WORD.search(_ADDRESS.sub("", _INLINE.sub(shown, text)))
