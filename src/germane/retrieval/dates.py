"""The time and the order that an English question asks for: "three days ago", "May 2023", "the first".

Pure: `now` is an argument.

Finding the expression is a grammar of our own, since a parser of dates sees one in "may I" and in
"5 apples"; `span_of` says what the expression means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TypeAlias

from germane.model.query import Order, TimeRange
from germane.model.validation import as_utc
from germane.retrieval.tokenizer import query_terms

# What span of time an English expression names: "three days ago", "May 2023", "Q3", "Monday".
#
# Pure: `now` is an argument.
#
# A span is the calendar day, week (Monday to Sunday), month or year that was named.

Span: TypeAlias = tuple[datetime, datetime]
"""From the first, inclusive, until the second, exclusive."""

_MONTHS = {
    "january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5,
    "june": 6, "jun": 6, "july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sept": 9, "sep": 9,
    "october": 10, "oct": 10, "november": 11, "nov": 11, "december": 12, "dec": 12,
}  # fmt: skip
_WEEKDAYS = {
    "monday": 0, "mon": 0, "tuesday": 1, "tues": 1, "tue": 1, "wednesday": 2, "wed": 2, "thursday": 3,
    "thurs": 3, "thur": 3, "thu": 3, "friday": 4, "fri": 4, "saturday": 5, "sat": 5, "sunday": 6,
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "a couple": 2, "couple of": 2, "three": 3,
    "a few": 3, "few": 3, "several": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "ninety": 90,
}  # fmt: skip


def _any_of(names: dict[str, int]) -> str:
    return "|".join(sorted(names, key=len, reverse=True)).replace(" ", r"\s+")


MONTH = rf"(?:{_any_of(_MONTHS)})\b\.?"
WEEKDAY = rf"(?:{_any_of(_WEEKDAYS)})"
NUMBER = rf"(?:[0-9]{{1,3}}|{_any_of(_NUMBERS)})"
YEAR = r"(?:19|20)[0-9]{2}"

# Compiled by their first use, since most questions name no time.
_AGO = rf"({NUMBER})\s+(minute|hour|day|week|fortnight|month|quarter|year|decade)s?\s+ago"
_NAMED = r"(?:earlier\s+)?(this|last|previous|the\s+previous|the\s+last)\s+(\S+)"
_MOMENT_NTH = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_DAY_MONTH = rf"(?:the\s+)?{_MOMENT_NTH}\s+(?:of\s+)?(?P<month>{MONTH})(?:,?\s+(?P<year>{YEAR}))?"
_MONTH_DAY = rf"(?P<month>{MONTH})\s+(?:the\s+)?{_MOMENT_NTH}(?:,?\s+(?P<year>{YEAR}))?"
_MONTH_YEAR = rf"({MONTH})(?:,?\s+(?:of\s+)?({YEAR}))?"
_QUARTER = rf"q([1-4])(?:,?\s+(?:of\s+)?({YEAR}))?|({YEAR})[-\s]?q([1-4])"
_ISO = r"([0-9]{4})[-/]([0-9]{2})(?:[-/]([0-9]{2}))?(?:[t\s].*)?"
_NUMERIC = rf"([0-9]{{1,2}})/([0-9]{{1,2}})/({YEAR})"


def span_of(expression: str, *, now: datetime, year: int | None = None) -> Span | None:
    """The span that one expression names, or None where it names none, such as 31 February.

    `now` is in UTC. A date without a year is the latest that has begun, or that of `year`.
    """
    text = re.sub(r"\s+", " ", expression.strip().lower())
    if (ago := re.fullmatch(_AGO, text)) is not None:
        return _ago(_number(ago[1]), ago[2], now)
    if text in _SPECIAL_DAYS:
        return _day(days_back(now, _SPECIAL_DAYS[text]))
    if (named := re.fullmatch(_NAMED, text)) is not None:
        return _named(named[1].removeprefix("the "), named[2], now)
    if text in _WEEKDAYS:
        return _day(days_back(now, (now.weekday() - _WEEKDAYS[text]) % 7))
    if re.fullmatch(YEAR, text):
        return _calendar(datetime(int(text), 1, 1, tzinfo=UTC), "year")
    return _date(text, now, year)


def days_back(now: datetime, days: int) -> datetime:
    """The start of the day that many days before today."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)


def back_from(now: datetime, number: str, unit: str) -> datetime:
    """The start of "the past `number` `unit`": to the minute for hours, to the day for what is longer."""
    count = _number(re.sub(r"\s+", " ", number.lower()))
    unit = unit.lower().rstrip("s")
    if unit in {"minute", "hour"}:
        return now - count * timedelta(hours=1 if unit == "hour" else 1 / 60)
    if unit in _DAYS:
        return days_back(now, count * _DAYS[unit])
    month = _months_back(now, count * _UNIT_MONTHS[unit])
    # A shorter month ends sooner: a month before 31 May is 30 April.
    last = (_months_back(month, -1) - timedelta(days=1)).day
    return month.replace(day=min(now.day, last))


_DAYS = {"day": 1, "night": 1, "week": 7, "fortnight": 14}
_UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_SPECIAL_DAYS = {
    "today": 0, "earlier today": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "tonight": 0,
    "yesterday": 1, "last night": 1, "the day before yesterday": 2,
}  # fmt: skip


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text]


def _ago(number: int, unit: str, now: datetime) -> Span | None:
    if unit in {"minute", "hour"}:
        # Nobody counts these to the second: half a unit either way is meant as well.
        width = timedelta(minutes=1) if unit == "minute" else timedelta(hours=1)
        return now - (number + 0.5) * width, now - (number - 0.5) * width
    if unit == "quarter":
        return _quarter(_months_back(now, 3 * number))
    return _units_back(now, number, unit)


def _named(which: str, unit: str, now: datetime) -> Span | None:
    back = 0 if which == "this" else 1
    if unit in _WEEKDAYS:
        days = (now.weekday() - _WEEKDAYS[unit]) % 7
        return _day(days_back(now, days if days or not back else 7))
    if unit.rstrip(".") in _MONTHS:
        month = _MONTHS[unit.rstrip(".")]
        before = back and month >= now.month
        return _calendar(datetime(now.year - 1 if before else now.year, month, 1, tzinfo=UTC), "month")
    if unit == "weekend":
        start = days_back(now, now.weekday() + 7 * back) + timedelta(days=5)
        return start, start + timedelta(days=2)
    if unit == "quarter":
        return _quarter(_months_back(now, 3 * back))
    return _units_back(now, back, unit) if unit in _DAYS or unit in _UNIT_MONTHS else None


def _date(text: str, now: datetime, year: int | None) -> Span | None:
    if (found := re.fullmatch(_DAY_MONTH, text) or re.fullmatch(_MONTH_DAY, text)) is not None:
        return _of_day(int(found["day"]), found["month"], found["year"], now, year)
    if (found := re.fullmatch(_MONTH_YEAR, text)) is not None:
        month = _MONTHS[found[1].rstrip(".")]
        return _of_parts(_year_of(month, found[2], now, year), month)
    if (found := re.fullmatch(_QUARTER, text)) is not None:
        month = 3 * int(found[1] or found[4]) - 2
        return _quarter(datetime(_year_of(month, found[2] or found[3], now, year), month, 1, tzinfo=UTC))
    if (found := re.fullmatch(_NUMERIC, text)) is not None:
        return _numeric(int(found[1]), int(found[2]), found[3])
    if (found := re.fullmatch(_ISO, text)) is not None:
        return _of_parts(*found.groups())
    return None


def _year_of(month: int, written: str | None, now: datetime, year: int | None) -> int:
    if written:
        return int(written)
    if year is not None:
        return year
    return now.year if month <= now.month else now.year - 1


def _numeric(first: int, second: int, year: str) -> Span | None:
    if max(first, second) <= _MONTHS["december"] and first != second:
        # Which is the day, nobody can tell of 5/7/2023; such a date is left in the question.
        return None
    month, day = sorted((first, second))
    return _of_parts(year, month, day)


def _of_day(day: int, month_name: str, written: str | None, now: datetime, year: int | None) -> Span | None:
    month = _MONTHS[month_name.rstrip(".")]
    chosen = int(written) if written else year
    if chosen is not None:
        return _of_parts(chosen, month, day)
    for back in range(9):  # A leap day may be eight years away.
        span = _of_parts(now.year - back, month, day)
        if span is not None and span[0] <= now:
            return span
    return None


def _months_back(now: datetime, months: int) -> datetime:
    years, month = divmod(12 * now.year + now.month - 1 - months, 12)
    return datetime(max(years, 1), month + 1, 1, tzinfo=UTC)


def _quarter(moment: datetime) -> Span:
    first = _months_back(moment, (moment.month - 1) % 3)
    return first, _months_back(first, -3)


def _day(start: datetime) -> Span:
    return start, start + timedelta(days=1)


def _calendar(moment: datetime, period: str) -> Span:
    start = days_back(moment, 0)
    if period == "year":
        return start.replace(month=1, day=1), start.replace(year=start.year + 1, month=1, day=1)
    if period == "month":
        return start.replace(day=1), _months_back(start, -1)
    if period == "week":
        monday = days_back(start, start.weekday())
        return monday, monday + timedelta(days=7)
    return _day(start)


def _units_back(now: datetime, number: int, unit: str) -> Span | None:
    """The day, week, month or year that many units before now; None before the first year."""
    if unit in _DAYS:
        return _calendar(days_back(now, number * _DAYS[unit]), "day" if unit == "day" else "week")
    months = number * _UNIT_MONTHS[unit]
    if months >= 12 * now.year:
        return None
    return _calendar(_months_back(now, months), "month" if unit == "month" else "year")


def _of_parts(year: str | int, month: str | int, day: str | int | None = None) -> Span | None:
    """The day or the month of these numbers; None where the calendar has none."""
    try:
        start = datetime(int(year), int(month), 1 if day is None else int(day), tzinfo=UTC)
        return _calendar(start, "month" if day is None else "day")
    except (ValueError, OverflowError):
        return None


LONGEST_QUESTION = 1000
"""Characters. A longer text is material rather than a question, and its dates are its content."""

_RECENT_DAYS = 3


def parse_when(text: str, *, now: datetime) -> tuple[str, TimeRange | None]:
    """The question without its expression of time, and the range in UTC that the expression names.

    Days, weeks (Monday to Sunday), months, quarters and years are those of the calendar: "last
    week" is the seven days up to Sunday, "three days ago" that whole day. "The past two weeks" is
    counted back from today, "recently" three days. Without an expression, or with one that names
    no time, the text comes back as it is, with None. If the question is only a time, the
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
    for phrase in (plain, f"in {plain}", f"on {plain}"):
        left, when = parse_when(phrase, now=moment)
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


# Finds whether an English question asks for the first of something or for the last.
#
# "First" and "last" often don't mean a time (first place, last name, how long did it last),
# so a word counts only where its neighbours let it mean an order in time.

_ORDER_HINT = re.compile(r"first|earliest|oldest|initial|original|last|latest|newest|recent", re.IGNORECASE)
_COUNT = r"(?:[0-9]+|two|three|four|five|six|seven|eight|nine|ten|few|couple|half|quarter)"
_NO_FIRST = (
    rf"(?:{_COUNT}|aid|class|degree|edition|floor|grade|hand|lady|language|line|name|normal|person|place|"
    r"principles?|priority|prize|rate|responders?|thing|world)"
)
_NO_LAST = (
    rf"(?:{_COUNT}|but|ditch|gasp|line|long|longer|minute|more|name|page|place|resort|straw|until|word|words)"
)
_WHOSE = r"(?:the|this|that|my|our|your|his|her|its|their|\w+['\u2019]s|whose|very|and|or)"
_DID = r"(?:did|was|were|have|has|had|is|are)"


def parse_order(text: str) -> Order | None:
    """OLDEST for a question about the first, NEWEST for one about the last, else None.

    One that asks for both has no order. Give it the question without its expression of time, since
    "last week" names a time and no order.
    """
    if not _ORDER_HINT.search(text):
        return None
    first, last = (pattern.search(text) is not None for pattern in _patterns())
    if first == last:
        return None
    return Order.OLDEST if first else Order.NEWEST


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    first = [
        r"earliest|oldest|initially|originally",
        rf"first(?!-)(?=\s+\w)(?!\s+{_NO_FIRST}\b)",
        r"(?:at|came|come|was|were|happened|started)\s+first",
    ]
    last = [
        r"latest|newest|most\s+recent(?:ly)?",
        rf"{_WHOSE}\s+last(?!-)(?=\s+\w)(?!\s+{_NO_LAST}\b)",
        rf"{_DID}\s+(?:\w+\s+){{1,3}}last(?=\s+\w)(?!\s+(?:for|{_NO_LAST[3:-1]})\b)",
        r"(?:came|come|was|were|happened)\s+last",
    ]
    return _order_compiled(first), _order_compiled(last)


def _order_compiled(several: list[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(several)})\b", re.IGNORECASE)
