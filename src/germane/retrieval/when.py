"""Finds the time that an English question names, and takes it out of the question.

Level: retrieval (imports model and errors only). Pure: `now` is an argument.

Finding the expression is a grammar of our own, since a parser of dates sees one in "may I" and in
"5 apples"; what the expression means is told by `moments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import TypeAlias

from germane.model.memory import as_utc
from germane.model.query import TimeRange
from germane.retrieval.moments import MONTH, NUMBER, WEEKDAY, YEAR, Span, back_from, days_back, span_of
from germane.retrieval.terms import query_terms

__all__ = ["LONGEST_QUESTION", "parse_moment", "parse_when"]

LONGEST_QUESTION = 1000
"""Characters. A longer text is material rather than a question, and its dates are its content."""

_RECENT_DAYS = 3


def parse_when(text: str, *, now: datetime) -> tuple[str, TimeRange | None]:
    """The question without its expression of time, and the range in UTC that the expression names.

    Days, weeks (Monday to Sunday), months, quarters and years are those of the calendar: "last
    week" is the seven days up to Sunday, "three days ago" that whole day. "The past two weeks" is
    counted back from today, "recently" three days. Without an expression, or with one that names
    no time, the text comes back as it is, with None. Where only the time was asked for, the
    question left is "". Raises InvalidInput if `now` has no time zone.
    """
    moment = as_utc(now, name="now")
    if len(text) > LONGEST_QUESTION or not _HINT.search(text):
        return text, None
    for pattern, read in _grammar():
        for match in pattern.finditer(text):
            when = _range(read, match, moment)
            if when is not None:
                return _without(text, match), when
    return text, None


def parse_moment(text: str, *, now: datetime) -> datetime | None:
    """The moment, in UTC, at which the time begins that a text names; None for one that names none.

    A text in ISO 8601 is that very moment, in UTC where it has no offset. Any other is what `parse_when`
    reads in a question, with nothing besides: "last week", "3 days ago", "2026-03", "in May 2023",
    "Monday". "now" is now. Raises InvalidInput if `now` has no time zone.
    """
    moment = as_utc(now, name="now")
    plain = text.strip()
    if plain.lower() == "now":
        return moment
    try:
        written = datetime.fromisoformat(plain)
        return (written if written.tzinfo is not None else written.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
    except ValueError:
        pass
    if len(plain) > LONGEST_QUESTION:
        return None
    for asked in (plain, f"in {plain}", f"on {plain}"):
        left, when = parse_when(asked, now=moment)
        if when is not None and not re.sub(r"\W", "", left):
            return when.start or when.end
    return None


# Stands in every expression that the grammar knows. The grammar takes long to compile, so a process
# whose questions name no time never does.
_HINT = re.compile(
    rf"[0-9]{{4}}|Q[1-4]|{MONTH}|{WEEKDAY}|ago\b|last|this|previous|past|today|tonight|yesterday|recent|lately",
    re.IGNORECASE,
)


def _range(read: _Reader, match: re.Match[str], now: datetime) -> TimeRange | None:
    try:
        ends = read(match, now)
    except OverflowError:
        # A time before the first year or after the last.
        return None
    if ends is None or (ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]):
        return None
    return TimeRange(since=ends[0], until=ends[1])


def _without(text: str, match: re.Match[str]) -> str:
    left = f"{text[: match.start()]} {text[match.end() :]}"
    left = re.sub(r"\s+([,.;:?!)])", r"\1", re.sub(r"\s+", " ", left))
    left = re.sub(r"^[\s,;:.]+|[\s,;:]+$|,(?=[.?!])", "", left)
    return left if query_terms(left) else ""


_Ends: TypeAlias = tuple[datetime | None, datetime | None]
_Reader: TypeAlias = Callable[[re.Match[str], datetime], "_Ends | None"]

_START = r"(?<![\w.$#/@+-])"
_END = r"(?:['\u2019]s)?(?![\w@/%]|[-.:,]\w)"
_COUNTED = (
    "rows|users|people|words|tokens|items|lines|steps|files|characters|dollars|euros|ms|seconds|minutes|hours"
    "|days|times|places|pages|requests|documents|memories|records|bytes|points|parts|ways|cases|lists|tests"
)

# A month that is a word as well (may, march, mar) needs its capital letter where nothing else
# says that a month is meant.
_SURE_MONTH = rf"(?-i:(?=[A-Z])|(?!ma[yr]\b|march\b))(?:{MONTH})"
_CAPITAL_MONTH = rf"(?-i:(?=[A-Z]))(?:{MONTH})"
_NTH = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_ISO_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_ISO_DAY = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T\s]{_ISO_TIME})?"
_IN_YEAR = rf",?\s+(?:of\s+)?{YEAR}"

_STRONG = "|".join(
    [
        _ISO_DAY,
        rf"[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}}|[0-9]{{1,2}}/[0-9]{{1,2}}/{YEAR}",
        rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{_SURE_MONTH},?\s+{YEAR}",
        rf"{_SURE_MONTH}\s+(?:the\s+)?{_NTH},?\s+{YEAR}",
        rf"{_SURE_MONTH}{_IN_YEAR}",
        rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{_CAPITAL_MONTH}",
        rf"{_CAPITAL_MONTH}\s+(?:the\s+)?{_NTH}(?!\s+(?:{_COUNTED})\b)",
        rf"Q[1-4]{_IN_YEAR}|{YEAR}[-\s]?Q[1-4]",
        rf"{NUMBER}\s+(?:minute|hour|day|week|fortnight|month|quarter|year|decade)s?\s+ago",
        rf"(?:last|this|(?:the\s+)?previous)\s+(?:week|weekend|month|quarter|year|{_SURE_MONTH}|{WEEKDAY})",
        r"earlier\s+(?:today|this\s+(?:week|month|quarter|year))",
        r"the\s+day\s+before\s+yesterday|yesterday|today|last\s+night|tonight|this\s+(?:morning|afternoon|evening)",
    ]
)
_WEAK = "|".join(
    [
        _STRONG,
        rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{MONTH}|{MONTH}\s+(?:the\s+)?{_NTH}|{MONTH}{_IN_YEAR}",
        rf"(?:(?:early|mid|late)[-\s]+)?(?:the\s+year\s+)?{YEAR}(?!\s+(?:{_COUNTED})\b)",
        r"[0-9]{4}-(?:0[1-9]|1[0-2])|Q[1-4]",
    ]
)
_WEEKDAY = rf"(?-i:(?=[A-Z])|(?=[a-z]{{6}})){WEEKDAY}"
_BARE_MONTH = rf"{MONTH}(?!\s+(?:of|i|we|you|he|she|it|they|be|have)\b)"
_SURE_BARE_MONTH = rf"{_SURE_MONTH}(?!\s+(?:of|I|we|you|he|she|it|they)\b)"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{pattern}){_END}", re.IGNORECASE)


def _between(match: re.Match[str], now: datetime) -> _Ends | None:
    first, last = match["first"], match["last"]
    end = span_of(_bare(last), now=now)
    if end is None:
        return None
    if first.isdecimal() and len(first) <= 2:  # noqa: PLR2004 - "between 3 and 7 May": a day of that month.
        start: Span | None = (end[0].replace(day=int(first)), end[1]) if 0 < int(first) < end[0].day else None
    else:
        start = span_of(_bare(first), now=now, year=None if re.search(YEAR, first) else end[0].year)
        if start is not None and start[0] > end[0]:
            start = span_of(_bare(first), now=now, year=end[0].year - 1)
    return None if start is None else (start[0], end[1])


def _bounded(match: re.Match[str], now: datetime) -> _Ends | None:
    span = span_of(_bare(match["atom"]), now=now)
    if span is None:
        return None
    word = match["word"].lower()
    if word == "since":
        return span[0], None
    if word == "after":
        return span[1], None
    if word.startswith(("before", "prior")):
        return None, span[0]
    return None, span[1]


def _onwards(match: re.Match[str], now: datetime) -> _Ends | None:
    span = span_of(_bare(match["atom"]), now=now)
    return None if span is None else (span[0], None)


def _rolling(match: re.Match[str], now: datetime) -> _Ends | None:
    return back_from(now, match["number"] or "one", match["unit"]), days_back(now, -1)


def _recent(match: re.Match[str], now: datetime) -> _Ends | None:
    del match
    return days_back(now, _RECENT_DAYS), days_back(now, -1)


def _plain(match: re.Match[str], now: datetime) -> _Ends | None:
    return span_of(_bare(match["atom"] or match["day"]), now=now)


def _bare(atom: str) -> str:
    return re.sub(
        r"^(?:(?:early|mid|late)[-\s]+)?(?:the\s+year\s+)?(?=(?:19|20)[0-9]{2}$)",
        "",
        atom,
        flags=re.IGNORECASE,
    )


_IN = "in|on|during|throughout|within|over|for|of|from|at|around|about|back in"
_ANY = rf"(?:{_WEAK}|{_WEEKDAY}|{_BARE_MONTH})"
_SURE = rf"(?:{_WEAK}|{_WEEKDAY}|{_SURE_BARE_MONTH})"
_UNIT = "(?P<unit>minute|hour|day|night|week|fortnight|month|quarter|year|decade)"
_OVER = r"(?:(?:in|over|during|within|for|from|of)\s+)?"


@cache
def _grammar() -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    # Tried in this order, so that "since last week" is not taken for "last week".
    return (
        (
            _compiled(
                rf"(?:between|from)\s+(?P<first>{_ANY}|{_NTH})\s+(?:and|to|until|till|through)\s+(?P<last>{_ANY})"
            ),
            _between,
        ),
        (_compiled(rf"from\s+(?P<atom>{_ANY})\s+(?:on|onwards?)"), _onwards),
        (_compiled(rf"(?:ever\s+)?(?P<word>since)\s+(?P<atom>{_ANY})"), _bounded),
        (
            _compiled(
                rf"(?<!\bday\s)(?P<word>after|before|prior\s+to|until|till|up\s+to)\s+(?P<atom>{_SURE})"
            ),
            _bounded,
        ),
        (_compiled(rf"(?:(?:{_IN})\s+)?(?P<atom>{_STRONG})"), _plain),
        (_compiled(rf"(?:back\s+in|in|during|throughout)\s+(?P<atom>{_WEAK}|{_BARE_MONTH})"), _plain),
        (_compiled(rf"(?:on|from|of)\s+(?P<atom>{_WEAK})|on\s+(?P<day>{_WEEKDAY})"), _plain),
        (
            _compiled(rf"{_OVER}(?:the\s+)?(?:last|past|previous)\s+(?P<number>{NUMBER})\s+{_UNIT}s?"),
            _rolling,
        ),
        (_compiled(rf"{_OVER}the\s+(?:last|past)(?P<number>)\s+{_UNIT}"), _rolling),
        (_compiled(r"(?<!most )(?<!more )(?:recently|lately|in\s+recent\s+days)"), _recent),
    )
