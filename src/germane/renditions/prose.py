"""Markdown as sentences, and the parts of a decision record: what was decided, why, and what follows.

Badges, images, rules, comments, front matter and the addresses of links are left out; headings lead the
text under them; code and tables are passages of their own, so that a caller can leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import Literal

from germane.model.text import text_cache

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

SCANNED = 65_536
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
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>\n]{{0,1000}})?/?>)"
    r"|\\(?P<escaped>[#*_>|\[\]])",
    flags=re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ProsePassage:
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


def ends_a_thought(text: str, end: int) -> bool:
    """Whether a text may be cut at the end of a sentence: not after a heading or a line that leads on."""
    line = text[text.rfind("\n", 0, len(text[:end].rstrip())) + 1 : end].strip()
    return not (line.startswith("#") or line.endswith(":"))


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


def as_text(passages: Iterable[ProsePassage], *, one_line: bool = False) -> str:
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


def _lead(passage: ProsePassage) -> str:
    """The headings right above a passage, as the beginning of its sentence."""
    lead = " — ".join(title for _, title in passage.leads)
    if not lead:
        return ""
    return f"{lead} " if lead[-1] in ".!?:…。！？：" else f"{lead}: "


def prose_of(passages: Iterable[ProsePassage], *, blocks: int = 0) -> Iterator[ProsePassage]:
    """The paragraphs and items among passages, and so many of the first blocks of code and rows of tables.

    A heading goes on to the first that is left under it.
    """
    leads: tuple[tuple[int, str], ...] = ()
    for passage in passages:
        for level, title in passage.leads:
            leads = _under(leads, level, title)
        block = passage.form in ("code", "table")
        if passage.form in ("text", "item") or (block and blocks > 0):
            yield replace(passage, leads=leads)
            leads = ()
        blocks -= block


def names_of_images(text: str) -> str:
    """The texts that stand for the images of a text, which is all that some have to say."""
    return ", ".join(name.strip() for name in _IMAGE_NAME.findall(text[:SCANNED]) if _WORD.search(name))


def passages_of(text: str) -> Iterator[ProsePassage]:
    """The passages of a text in their order, each parsed on demand.

    Headings alone are none, except in a text that has nothing else.
    """
    text = text[:SCANNED]
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
        yield ProsePassage(shown, "link" if linked else _FORMS[what], section, leads, mark)
        leads, empty = (), False
    if empty and leads:
        yield ProsePassage(leads[-1][1], leads=leads[:-1])


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
        # Rows of a table need no pipe at their ends, once the line under its head marks it as one.
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
    """A line without images, tags, the addresses of links and the backslashes of escapes."""
    if "[" not in text and "<" not in text and "\\" not in text:
        return text.strip()

    def shown(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        if match["escaped"] is not None:
            return match["escaped"]
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


# What a decision record decides, for which reason, and what follows from it.
#
# Reads the templates of Nygard, MADR and Tyree, paragraphs led by a word such as "Decision:", and texts
# without any form, by the words that a reason is usually given with.

_TITLE = 100
"""Characters up to which a first line without a full stop is taken for a title."""

_DECIDES, _FOLLOWS, _WHY = "decides", "follows", "why"
_DRIVERS, _ASIDE, _FIELDS = "drivers", "aside", "fields"
_NAMES = {
    _DRIVERS: r"decision drivers?|drivers?|forces|requirements|criteria|constraints",
    _FIELDS: r"status|date|deciders?|decision[ -]makers?|authors?|consulted|informed|tags|technical story",
    _DECIDES: r"(?:the )?(?:decision|resolution|chosen|solution|proposal|we decided|entscheidung)\b.*",
    _FOLLOWS: r"(?:\w+ )?consequences?|implications?|results?|impact|outcome|trade-?offs?|folgen",
    _WHY: r"rationale|reasons?|reasoning|justification|motivation|argument\w*|why\b.*|begründung",
    _ASIDE: r"(?:considered )?(?:options|alternatives).*|pros and cons.*|references|links|related.*|see also",
}
_SECTIONS = tuple(
    (role, re.compile(rf"(?:\d+\.?\s+)?(?:{names})", re.IGNORECASE)) for role, names in _NAMES.items()
)
_LED = re.compile(
    r"^(?:[*_]{2})?(Context|Problem|Status|Decision(?: Drivers?| Outcome)?|Consequences?|Rationale|Reasons?"
    r"|Why|Outcome|Result|Alternatives|Options|Date|Deciders?|Decision[- ]makers?|Entscheidung|Begründung"
    r"|Konsequenzen)(?:[*_]{2})?[.:](?:[*_]{2})?\s+(?=\S)"
)
# The stronger a word stands for a reason, the more it counts.
_STRONG = (
    r"because|decisive\w*|(?:main|real|deciding|key|chief) (?:reason|argument)|(?:the|our|one) reasons?"
    r"|tipped|settled it|weil|denn|ausschlaggebend\w*"
)
_CLEAR = (
    r"so that|since(?! (?:\d|then|last|[A-Z]\w+ \d))|due to|in order to|rationale|(?:that|which) is why"
    r"|outweigh\w*|reasons?|therefore|damit|wegen|deshalb|daher"
)
_WEAK = (
    r"avoids?|otherwise|too (?:slow|expensive|complex|large|risky|hard|much)|cheaper|faster|simpler|safer"
    r"|cannot|can't|must not|needs? to"
)
_REASONS = tuple(
    (weight, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for weight, words in ((3, _STRONG), (2, _CLEAR), (1, _WEAK))
)
_DECIDING = re.compile(
    r"\bwe(?:'ll| will| shall| have| are going to)?\s+(?:now\s+)?(?:use|keep|adopt|choose|chose|chosen"
    r"|decided?|go|went|pick(?:ed)?|stay|move|moved|switch(?:ed)?|replaced?|drop(?:ped)?)\b|\bdecided\b|\bdecision\b"
    r"|\b(?:chosen option|chose|will be used|is adopted)\b",
    re.IGNORECASE,
)
_CHOSEN = re.compile(r"^Chosen option:\s+", re.IGNORECASE)
_FOLLOWING = re.compile(
    r"\b(?:as a (?:result|consequence)|this means|consequently|trade-?off|in return|we accept|the price"
    r"|it costs?|cost us)\b",
    re.IGNORECASE,
)
# How much a section is likely to give the reason, beside the words of a sentence.
_LIKELY = {_WHY: 6, _DECIDES: 5, _DRIVERS: 4, "": 3, _FOLLOWS: 1, _ASIDE: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The parts of a decision, each empty where the text has none."""

    headline: str = ""
    status: str = ""
    decision: str = ""
    reason: str = ""
    consequence: str = ""


def argument_of(passages: Iterable[ProsePassage], *, subject: str = "") -> Argument:
    """The parts of a decision record. A record without a title is headed by its subject, if it has one.

    The reason is empty where the decision's first sentence gives it already.
    """
    parts = [_part(passage) for passage in prose_of(passages)]
    headline, parts = _headline(parts, subject)
    status = next(
        (p.text for role, p in parts if role == _FIELDS and p.section.strip(" :").lower() == "status"), ""
    )
    prose = [(role, p) for role, p in parts if role != _FIELDS]
    decided = [p for role, p in prose if role == _DECIDES]
    sentences = [(role, each) for role, p in prose for each in sentences_of(p.text)]
    if decided:
        decision = _CHOSEN.sub("", as_text([replace(p, leads=()) for p in decided], one_line=True))
        first = sentences_of(decision)[:1]
    else:
        candidates = [each for role, each in sentences if role == ""] or [each for _, each in sentences]
        first = [each for each in candidates if _DECIDING.search(each)][:1] or candidates[:1]
        decision = "".join(first)
    reason = "" if any(_weight(each) == _REASONS[0][0] for each in first) else _reason(sentences, first)
    consequence = _consequence(sentences, [*first, reason])
    if not headline and first:
        headline, decision = first[0], decision.removeprefix(first[0]).strip()
    return Argument(
        headline=headline,
        status=sentences_of(status)[0] if sentences_of(status) else "",
        decision=decision,
        reason=reason,
        consequence=consequence,
    )


def decisive(sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentence that says what was decided, and the one that says best why, where there are any."""
    deciding = next((each for each in sentences if _DECIDING.search(each)), "")
    reason = max(sentences, key=_weight, default="")
    key = {deciding, reason if _weight(reason) > 1 else ""}
    return tuple(each for each in dict.fromkeys(sentences) if each in key)


def _part(passage: ProsePassage) -> tuple[str, ProsePassage]:
    """A passage with the role of its section; a word that leads it stands for a heading."""
    led = _LED.match(passage.text)
    if led:
        passage = replace(passage, text=passage.text[led.end() :], section=led[1])
    return _role(passage.section), passage


@text_cache(256)
def _role(section: str) -> str:
    name = section.strip(" :").lower()
    return next((role for role, names in _SECTIONS if names.fullmatch(name)), "")


def _headline(
    parts: list[tuple[str, ProsePassage]], subject: str
) -> tuple[str, list[tuple[str, ProsePassage]]]:
    """The title of a record, and its parts without it."""
    if not parts:
        return subject, parts
    role, first = parts[0]
    if first.leads and not _role(first.leads[0][1]):
        return first.leads[0][1], parts
    if (
        role == ""
        and not first.leads
        and len(first.text) <= _TITLE
        and first.text[-1] not in ".!?"
        and parts[1:]
    ):
        return first.text, parts[1:]
    return subject, parts


@text_cache(4096)
def _weight(sentence: str) -> int:
    return next((weight for weight, words in _REASONS if words.search(sentence)), 0)


def _reason(sentences: Sequence[tuple[str, str]], decided: Sequence[str]) -> str:
    """The sentence that gives the reason best: by its words, then by its section, then by its place."""
    best, most = "", 0
    started: set[str] = set()
    for role, sentence in sentences:
        weight = 10 * _weight(sentence)
        if not weight and role not in started:
            # Where no word tells, the first sentence of a section on reasons does.
            weight = {_WHY: 15, _DRIVERS: 8, "": 5}.get(role, 0)
        started.add(role)
        score = weight + _LIKELY.get(role, 3) if weight else 0
        if score > most and sentence not in decided:
            best, most = sentence, score
    return best


def _consequence(sentences: Sequence[tuple[str, str]], shown: Sequence[str]) -> str:
    following = [each for role, each in sentences if role == _FOLLOWS and each not in shown]
    if following:
        return following[0]
    return next(
        (each for role, each in sentences if role == "" and each not in shown and _FOLLOWING.search(each)), ""
    )
