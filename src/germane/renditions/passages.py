"""The passages of a long text, and an excerpt of those that answer a question.

Pure: the same text, scores and counter give the same excerpt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from germane.protocols import TokenCounter

from germane.renditions.prose import (
    SCANNED,
    ProsePassage,
    as_text,
    ends_a_thought,
    is_marked,
    passages_of,
    sentence_ends,
)

PASSAGE_CHARACTERS: Final = 320
"""The most that a passage has, unless one sentence or block of code is longer: about 75 tokens."""

_MARK: Final = "…"
_TITLE: Final = 100
"""Characters of a first line that may be a title."""
_NO_TITLE: Final = ".!?:;,…。！？"

LONG_TOKENS: Final = 130
"""Tokens of a text above which it is found and shortened by its passages: hardly more than one of them."""


class Passage(NamedTuple):
    """Some consecutive sentences of a text, or a block of code or a row of a table.

    `shown` is how it stands in an excerpt, and `scored` is that with the heading of its section. One that
    isn't `divisible` has code or a table in it, of which a part says nothing.
    """

    shown: str
    scored: str
    divisible: bool = True


PassageScores = Callable[[str], Sequence[tuple[Passage, float]]]
"""The passages of a text, each with how well it answers the question: more is better, and 0 is no answer."""


def text_digest(text: str) -> str:
    """What tells a text from any other: 32 hexadecimal digits, the same in every process."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def passages(text: str) -> list[Passage]:
    """The passages of a text in their order, none longer than `PASSAGE_CHARACTERS` but for one sentence.

    A text of nothing but links and headings has none; of a huge text the first `SCANNED`
    characters count.
    """
    if not is_marked(text):
        return [Passage(part, part) for part in _grouped(_sentences(text[:SCANNED]))]
    found: list[Passage] = []
    group: list[ProsePassage] = []
    size = 0
    for unit in _units(text):
        if group and (size + len(unit.text) > PASSAGE_CHARACTERS or unit.section != group[0].section):
            found.append(_passage(group))
            group, size = [], 0
        group.append(unit)
        size += len(unit.text)
    return [*found, _passage(group)] if group else found


def best_passages(text: str, limit: int, counter: TokenCounter, scores: PassageScores) -> str:
    """The passages that answer best, in the order of the text, in at most `limit` tokens.

    An ellipsis stands for each part left out, and a title on a line of its own stands before them. A larger
    limit shows all that a smaller one shows. Where the best one doesn't fit, its first sentences are shown.
    Returns "" for a text of one passage, where no passage answers, and where not one sentence fits.
    """
    scored = scores(text)
    parts = [part for part, _ in scored]
    values = [value for _, value in scored]
    if len(parts) <= 1 or max(values) <= 0:
        return ""
    title, separator, goes_on = _title_of(text), "\n" if is_marked(text) else "", len(text) > SCANNED
    order = sorted(range(len(parts)), key=lambda place: (-values[place], place))

    def of_best(count: int) -> str:
        return _joined(parts, sorted(order[:count]), separator, title, goes_on=goes_on)

    def is_too_long(count: int) -> bool:
        return counter.count(of_best(count)) > limit

    tried = 1
    while tried <= len(parts) and not is_too_long(tried):
        tried *= 2
    fitting = tried // 2
    fitting += bisect_left(range(fitting + 1, min(tried, len(parts) + 1)), True, key=is_too_long)
    return of_best(fitting) if fitting else _beginning(parts, order[0], limit, counter, title)


def _beginning(parts: Sequence[Passage], place: int, limit: int, counter: TokenCounter, title: str) -> str:
    """As many of the first sentences of a passage as fit, or "" where it can't be divided."""
    passage, best = parts[place].shown, ""
    for end in sentence_ends(passage)[:-1] if parts[place].divisible else ():
        if not ends_a_thought(passage, end):
            continue
        part = Passage(passage[:end].rstrip(), "")
        longer = f"{_joined([*parts[:place], part], [place], '', title)} {_MARK}"
        if counter.count(longer) > limit:
            break
        best = longer
    return best


def _sentences(text: str) -> Iterator[str]:
    ends = sentence_ends(text)
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        if start < end:
            yield text[start:end]


def _grouped(sentences: Iterator[str]) -> list[str]:
    """Consecutive sentences put together, with the white space between them; "#12" begins no passage."""
    groups = [""]
    for sentence in sentences:
        is_long = len(groups[-1]) + len(sentence) > PASSAGE_CHARACTERS
        if groups[-1] and is_long and any(map(str.isalpha, sentence)):
            groups.append("")
        groups[-1] += sentence
    return [group for group in groups if group.strip()]


def _units(text: str) -> Iterator[ProsePassage]:
    """The paragraphs, items, rows and blocks of a Markdown text; a long paragraph in several parts."""
    for unit in passages_of(text):
        if unit.form == "link":
            continue
        if unit.form not in ("text", "item") or len(unit.text) <= PASSAGE_CHARACTERS:
            yield unit
            continue
        first, *others = _grouped(_sentences(unit.text))
        yield replace(unit, text=first.strip())
        for part in others:
            yield replace(unit, text=part.strip(), form="text", leads=(), mark="")


def _passage(group: Sequence[ProsePassage]) -> Passage:
    shown = as_text(group)
    section = group[0].section
    divisible = all(unit.form not in ("code", "table") for unit in group)
    return Passage(shown, shown if section in shown else f"{section}: {shown}", divisible)


def _title_of(text: str) -> str:
    """The first line of a text of several, if it is no sentence; else ""."""
    line, _, rest = text.partition("\n")
    title = line.strip("#*_ \t")
    return title if rest.strip() and 0 < len(title) <= _TITLE and title[-1] not in _NO_TITLE else ""


def _joined(
    parts: Sequence[Passage],
    places: Sequence[int],
    separator: str,
    title: str,
    *,
    goes_on: bool = False,
) -> str:
    """The passages at these places, with an ellipsis for each gap before, between and after them."""
    text, after = "", 0
    for place in places:
        if place == after:
            text += separator + parts[place].shown if text else parts[place].shown
        else:
            start = f"{title}\n{_MARK} " if title else f"{_MARK} "
            before = f"{text.rstrip()} {_MARK}{separator or ' '}" if text else start
            text = before + parts[place].shown.lstrip()
        after = place + 1
    complete = after == len(parts) and not goes_on
    return text.strip() if complete else f"{text.rstrip()} {_MARK}"
