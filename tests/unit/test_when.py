"""A time that a question names: as a range, and the question without it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, TimeRange
from germane.errors import InvalidInput

NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)  # A Saturday.


LONGEST_QUESTION = 1000
"""Characters of a question that is read for a time."""


class Clock:
    """Gives the moment that it was set to."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


CLOCK = Clock()


@cache
def engine() -> Engine:
    return germane.open(":memory:", embedder=None, clock=CLOCK)


def understood(text: str, now: datetime = NOW) -> tuple[str, TimeRange | None]:
    """The cleaned question, and the range that it names at a moment."""
    CLOCK.now = now
    question = engine().recall(text).question
    return question.cleaned, question.when


def found(text: str, now: datetime = NOW) -> tuple[str, str]:
    """The cleaned question, and the range written short: `2026-11-09 2026-11-16`, … for an open end."""
    cleaned, when = understood(text, now)
    if when is None:
        return cleaned, "none"
    ends = []
    for end in (when.start, when.end):
        if end is None:
            ends.append("…")
        else:
            assert end.utcoffset() == timedelta(0)
            ends.append(end.strftime("%Y-%m-%d" if (end.hour, end.minute) == (0, 0) else "%Y-%m-%dT%H:%M"))
    return cleaned, " ".join(ends)


@pytest.mark.parametrize(
    ("text", "cleaned", "when"),
    [
        (
            "What did we decide last week about Redis?",
            "What did we decide about Redis?",
            "2026-11-09 2026-11-16",
        ),
        ("What broke three days ago in staging?", "What broke in staging?", "2026-11-18 2026-11-19"),
        ("which bugs were fixed in May 2023", "which bugs were fixed", "2023-05-01 2023-06-01"),
        ("which bugs were fixed in may 2023", "which bugs were fixed", "2023-05-01 2023-06-01"),
        ("Yesterday, who deployed?", "who deployed?", "2026-11-20 2026-11-21"),
        ("Decisions since Monday", "Decisions", "2026-11-16 …"),
        ("Redis before 2024", "Redis", "… 2024-01-01"),
        ("Redis after June 2024", "Redis", "2024-07-01 …"),
        ("Redis until yesterday", "Redis", "… 2026-11-21"),
        ("Redis between March and May 2023", "Redis", "2023-03-01 2023-06-01"),
        ("Redis between November and February", "Redis", "2025-11-01 2026-03-01"),
        ("Redis from Monday to Wednesday", "Redis", "2026-11-16 2026-11-19"),
        ("Redis between 3 and 7 May 2023", "Redis", "2023-05-03 2023-05-08"),
        ("Redis from 2023 on", "Redis", "2023-01-01 …"),
        ("Lunch on 7 May 2023", "Lunch", "2023-05-07 2023-05-08"),
        ("Lunch on May 7th, 2023", "Lunch", "2023-05-07 2023-05-08"),
        ("Lunch on the 7th of May", "Lunch", "2026-05-07 2026-05-08"),
        ("Lunch on December 24", "Lunch", "2025-12-24 2025-12-25"),
        ("Lunch on Feb. 29", "Lunch", "2024-02-29 2024-03-01"),
        ("commits of the past two weeks", "commits", "2026-11-07 2026-11-22"),
        ("commits in the last 3 months", "commits", "2026-08-21 2026-11-22"),
        ("commits over the past year", "commits", "2025-11-21 2026-11-22"),
        ("commits in the last hour", "commits", "2026-11-21T14:30 2026-11-22"),
        ("commits in the past few days", "commits", "2026-11-18 2026-11-22"),
        ("the crash an hour ago", "the crash", "2026-11-21T14:00 2026-11-21T15:00"),
        ("What did we ship this month?", "What did we ship?", "2026-11-01 2026-12-01"),
        ("goals for Q3 2024", "goals", "2024-07-01 2024-10-01"),
        ("revenue in Q4", "revenue", "2026-10-01 2027-01-01"),
        ("revenue of 2025-Q1", "revenue", "2025-01-01 2025-04-01"),
        ("What broke recently?", "What broke?", "2026-11-18 2026-11-22"),
        ("the outage a few days ago", "the outage", "2026-11-18 2026-11-19"),
        ("the outage a couple of weeks ago", "the outage", "2026-11-02 2026-11-09"),
        ("the outage two quarters ago", "the outage", "2026-04-01 2026-07-01"),
        ("the outage a fortnight ago", "the outage", "2026-11-02 2026-11-09"),
        ("the outage of 2023-05-07", "the outage", "2023-05-07 2023-05-08"),
        ("the outage at 2023-05-07T10:30:00Z", "the outage", "2023-05-07 2023-05-08"),
        ("the outage in 2023-05", "the outage", "2023-05-01 2023-06-01"),
        ("the outage on 12/25/2023", "the outage", "2023-12-25 2023-12-26"),
        ("the hike last weekend", "the hike", "2026-11-14 2026-11-16"),
        ("the hike this weekend", "the hike", "2026-11-21 2026-11-23"),
        ("the hike last Saturday", "the hike", "2026-11-14 2026-11-15"),
        ("the hike on Saturday", "the hike", "2026-11-21 2026-11-22"),
        ("the hike on friday", "the hike", "2026-11-20 2026-11-21"),
        ("the hike last November", "the hike", "2025-11-01 2025-12-01"),
        ("the hike last March", "the hike", "2026-03-01 2026-04-01"),
        ("the hike in July", "the hike", "2026-07-01 2026-08-01"),
        ("the hike in December", "the hike", "2025-12-01 2026-01-01"),
        ("last year\u2019s budget", "budget", "2025-01-01 2026-01-01"),
        ("the previous quarter's budget", "budget", "2026-07-01 2026-10-01"),
        ("the plan of the day before yesterday", "the plan", "2026-11-19 2026-11-20"),
        ("the plan from this morning", "the plan", "2026-11-21 2026-11-22"),
        ("In 2023, who met Tom?", "who met Tom?", "2023-01-01 2024-01-01"),
    ],
)
def test_an_expression_becomes_a_range(text: str, cleaned: str, when: str) -> None:
    assert found(text) == (cleaned, when)


@pytest.mark.parametrize(
    "text",
    [
        "May I use Redis?",
        "May we talk? In March of the Penguins it is cold.",
        "the march of time",
        "He sat down for a second",
        "upgrade to 1.2.3 and v2023.05.1",
        "5 apples",
        "what happened in section 3",
        "section 7 may be wrong",
        "may 2000 users log in?",
        "in 2000 rows",
        "march 5 miles",
        "most recently updated files",
        "What about April's plan?",
        "file 2023-05-07-notes.md",
        "port 2023",
        "CVE-2023-0507",
        "before May I go",
        "the last release",
        "last time",
        "this second",
        "Sun Microsystems",
        "on second thought",
        "in the last resort",
        "5/7/2023",  # Its day could be either number.
        "31 February 2023",
        "a while ago",
        "May 32, 2023 and Feb 30",
        "since February 30",
        "between May 32 and May 33",
        "2023-13-45",
        "",
    ],
)
def test_what_names_no_time_is_left_as_it_is(text: str) -> None:
    assert found(text) == (text, "none")


@pytest.mark.parametrize(
    "text",
    ["last week", "What happened yesterday?", "what did I do three days ago?", "Tell me about May 2023!"],
)
def test_a_question_of_time_alone_leaves_nothing(text: str) -> None:
    cleaned, when = understood(text)
    assert cleaned == ""
    assert when is not None


@pytest.mark.parametrize(
    ("now", "text", "when"),
    [
        (datetime(2024, 2, 29, tzinfo=UTC), "over the past year", "2023-02-28 2024-03-01"),
        (datetime(2024, 3, 31, tzinfo=UTC), "over the past month", "2024-02-29 2024-04-01"),
        (datetime(2024, 1, 1, tzinfo=UTC), "last month", "2023-12-01 2024-01-01"),
        (datetime(2024, 1, 1, tzinfo=UTC), "last quarter", "2023-10-01 2024-01-01"),
        (datetime(2024, 1, 1, tzinfo=UTC), "last week", "2023-12-25 2024-01-01"),
        (datetime(2024, 12, 31, 23, 59, tzinfo=UTC), "this quarter", "2024-10-01 2025-01-01"),
        (datetime(2024, 12, 31, 23, 59, tzinfo=UTC), "this year", "2024-01-01 2025-01-01"),
        # 1 a.m. in Tokyo is still the day before in UTC, and days are those of UTC.
        (datetime(2024, 5, 2, 1, tzinfo=timezone(timedelta(hours=9))), "today", "2024-05-01 2024-05-02"),
    ],
)
def test_the_edges_of_the_calendar(now: datetime, text: str, when: str) -> None:
    assert found(text, now) == ("", when)


def test_a_time_before_the_calendar_is_no_time() -> None:
    now = datetime(5, 1, 1, tzinfo=UTC)
    for text in ("9 years ago", "90 decades ago", "the past 900 weeks"):
        assert understood(text, now) == (text, None)


def test_the_first_of_two_that_is_a_bound_or_a_range_decides() -> None:
    assert found("bugs since last week") == ("bugs", "2026-11-09 …")
    assert found("news from 2021 to 2022")[1] == "2021-01-01 2023-01-01"


def test_a_long_text_is_no_question() -> None:
    text = "last week " + "x" * LONGEST_QUESTION
    assert understood(text) == (text, None)


def test_a_naive_now_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no time zone"):
        understood("last week", NOW.replace(tzinfo=None))


PIECES = """
    last this past the a few two 3 31 days weeks months years ago in on since before between and from to of
    May may March sat Sat Q3 2023 2023-05-07 2023-02-31 7th , . ' recently yesterday week Monday
"""
QUESTIONS = st.lists(st.sampled_from(PIECES.split()), max_size=9).map(" ".join)
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone.


@given(QUESTIONS | st.text(max_size=60), MOMENTS)
def test_any_text_gives_a_range_or_stays_itself(text: str, now: datetime) -> None:
    cleaned, when = understood(text, now)
    assert (cleaned, when) == understood(text, now)
    if when is None:
        assert cleaned == text
    else:
        assert isinstance(when, TimeRange)
        assert (when.start, when.end) != (None, None)
        assert len(cleaned) < len(text)
