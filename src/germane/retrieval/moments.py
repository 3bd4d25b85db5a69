"""What span of time an English expression names: "three days ago", "May 2023", "Q3", "Monday".

Level: retrieval (imports errors only). Pure: `now` is an argument.

Dates are read by `dateparser`, imported at the first one, since importing it takes longer than
most questions do. What it is asked always has a year, and its results are widened to the calendar
day, week (Monday to Sunday), month or year that was named.
"""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any, TypeAlias

from germane.forking import awaited

__all__ = ["MONTH", "NUMBER", "WEEKDAY", "YEAR", "Span", "back_from", "days_back", "span_of"]

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
_NTH = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_DAY_MONTH = rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?(?P<month>{MONTH})(?:,?\s+(?P<year>{YEAR}))?"
_MONTH_DAY = rf"(?P<month>{MONTH})\s+(?:the\s+)?{_NTH}(?:,?\s+(?P<year>{YEAR}))?"
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
        return _period(datetime(int(text), 1, 1, tzinfo=UTC), "year")
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
    if unit == "fortnight":
        number, unit = 2 * number, "week"
    return _parsed(f"{number} {unit}s ago", now)


def _named(which: str, unit: str, now: datetime) -> Span | None:
    back = 0 if which == "this" else 1
    if unit in _WEEKDAYS:
        days = (now.weekday() - _WEEKDAYS[unit]) % 7
        return _day(days_back(now, days if days or not back else 7))
    if unit.rstrip(".") in _MONTHS:
        month = _MONTHS[unit.rstrip(".")]
        before = back and month >= now.month
        return _period(datetime(now.year - 1 if before else now.year, month, 1, tzinfo=UTC), "month")
    if unit == "weekend":
        start = days_back(now, now.weekday() + 7 * back) + timedelta(days=5)
        return start, start + timedelta(days=2)
    if unit == "quarter":
        return _quarter(_months_back(now, 3 * back))
    return _parsed(f"{back} {unit}s ago", now)


def _date(text: str, now: datetime, year: int | None) -> Span | None:
    if (found := re.fullmatch(_DAY_MONTH, text) or re.fullmatch(_MONTH_DAY, text)) is not None:
        return _of_day(int(found["day"]), found["month"], found["year"], now, year)
    if (found := re.fullmatch(_MONTH_YEAR, text)) is not None:
        month = _MONTHS[found[1].rstrip(".")]
        return _parsed(f"{_year_of(month, found[2], now, year)}-{month:02}", now)
    if (found := re.fullmatch(_QUARTER, text)) is not None:
        month = 3 * int(found[1] or found[4]) - 2
        return _quarter(datetime(_year_of(month, found[2] or found[3], now, year), month, 1, tzinfo=UTC))
    if (found := re.fullmatch(_NUMERIC, text)) is not None:
        return _numeric(int(found[1]), int(found[2]), found[3], now)
    if (found := re.fullmatch(_ISO, text)) is not None:
        return _parsed("-".join(part for part in found.groups() if part), now)
    return None


def _year_of(month: int, written: str | None, now: datetime, year: int | None) -> int:
    if written:
        return int(written)
    if year is not None:
        return year
    return now.year if month <= now.month else now.year - 1


def _numeric(first: int, second: int, year: str, now: datetime) -> Span | None:
    if max(first, second) <= _MONTHS["december"] and first != second:
        # Which is the day, nobody can tell of 5/7/2023; such a date is left in the question.
        return None
    month, day = sorted((first, second))
    return _parsed(f"{year}-{month:02}-{day:02}", now)


def _of_day(day: int, month_name: str, written: str | None, now: datetime, year: int | None) -> Span | None:
    month = _MONTHS[month_name.rstrip(".")]
    chosen = int(written) if written else year
    if chosen is not None:
        return _parsed(f"{chosen}-{month:02}-{day:02}", now)
    for back in range(9):  # A leap day may be eight years away.
        span = _parsed(f"{now.year - back}-{month:02}-{day:02}", now)
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


def _period(moment: datetime, period: str) -> Span:
    start = days_back(moment, 0)
    if period == "year":
        return start.replace(month=1, day=1), start.replace(year=start.year + 1, month=1, day=1)
    if period == "month":
        return start.replace(day=1), _months_back(start, -1)
    if period == "week":
        monday = days_back(start, start.weekday())
        return monday, monday + timedelta(days=7)
    return _day(start)


def _parsed(text: str, now: datetime) -> Span | None:
    """Ask `dateparser`. It counts from the day's noon, so that the same is asked for a whole day."""
    return _asked(text, datetime(now.year, now.month, now.day, 12, tzinfo=UTC).replace(tzinfo=None))


# `dateparser` has locks of its own, which a child would inherit as they are.
_PARSING = awaited(Lock())


# A parse takes about a millisecond, and what is asked has been written in one of a few ways by now.
@lru_cache(maxsize=1000)
def _asked(text: str, noon: datetime) -> Span | None:
    # Its warnings are about its own use of the standard library. The filters are the process's, so
    # two threads must not change and restore them at once.
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dateparser: Any = import_module("dateparser.date")
        settings = {
            "RELATIVE_BASE": noon,
            "TIMEZONE": "UTC",
            "DATE_ORDER": "YMD",
            "PREFER_DAY_OF_MONTH": "first",
        }
        try:
            found = dateparser.DateDataParser(languages=["en"], settings=settings).get_date_data(text)
            if found.date_obj is None:
                return None
            return _period(found.date_obj.replace(tzinfo=UTC), found.period)
        except (ValueError, OverflowError):
            return None
