"""A time may be given in words wherever a time is, and a question about a time hears if nothing is of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine, Filter, InvalidInput, Plan, Section, Share, TimeRange
from germane.ledger import TraceNote
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("last week", "2026-11-09"),
        ("Yesterday", "2026-11-20"),
        ("3 days ago", "2026-11-18"),
        ("2026-03", "2026-03-01"),
        ("in May 2023", "2023-05-01"),
        ("May 2023", "2023-05-01"),
        ("2023", "2023-01-01"),
        ("Monday", "2026-11-16"),
        ("since last week", "2026-11-09"),
        ("2026-11-20", "2026-11-20"),
        ("2026-11-20T12:00Z", "2026-11-20T12:00"),
        ("2026-11-20T12:00+02:00", "2026-11-20T10:00"),
        ("now", "2026-11-21T12:00"),
    ],
)
def test_a_text_stands_for_the_beginning_of_what_it_names(engine: Engine, text: str, begins: str) -> None:
    since = datetime.fromisoformat(begins).replace(tzinfo=UTC)
    assert engine.assemble("redis", since=text).trace.where.when == TimeRange(since=since)


NO_TIMES = ["", "banana", "we met last week", "2026-13", "31 February", "0001-01-01T00:00+05:00", "x" * 5000]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_names_no_time_names_no_moment(engine: Engine, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"since=.* names no time"):
        engine.recall("redis", since=text)


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", clock=FixedClock(NOW), record=True) as engine:
        for days, text in ((1, "yesterday's"), (10, "last week's"), (40, "October's"), (400, "last year's")):
            engine.remember(f"Redis decision: {text}", kind="decision", created_at=NOW - days * DAY)
        yield engine


def texts(memories: object) -> set[str]:
    return {memory.content.removeprefix("Redis decision: ") for memory in memories}  # type: ignore[attr-defined]  # Memories.


def test_every_verb_that_takes_a_time_takes_it_in_words(engine: Engine) -> None:
    recent = {"yesterday's", "last week's"}
    words = TimeRange(since="last week")
    assert texts(one.memory for one in engine.recall("redis", since="last week")) == recent
    assert texts(one.memory for one in engine.recall("redis", where=Filter(when=words))) == recent
    assert texts(item.memory for item in engine.assemble("redis", since="last week").items) == recent
    assert texts(engine.memories(Filter(when=words))) == recent
    assert engine.count(Filter(when=words)) == 2
    assert texts(engine.memories(Filter(when=TimeRange(since="2026-10", until="last week")))) == {"October's"}
    before = engine.recall("redis", until="this year")
    assert texts(one.memory for one in before) == {"last year's"}
    refreshed = engine.refresh(None, "redis", where=Filter(when=words)).context
    assert texts(item.memory for item in refreshed.items) == recent
    assert refreshed.trace.where.when == TimeRange(since=datetime(2026, 11, 9, tzinfo=UTC))
    assert len(engine.ledger().list(since="today")) == 2
    assert engine.metrics(since="last month").since == datetime(2026, 10, 1, tzinfo=UTC)
    again = engine.ledger().replay(engine.ledger().list()[0].id)
    assert again.same


def test_a_section_of_a_plan_may_name_its_time_in_words(engine: Engine) -> None:
    plan = Plan(
        name="recent",
        sections=(
            Section(
                name="recent", heading="# Recent", share=Share(weight=1),
                where=Filter(when=TimeRange(since="last week")),
            ),
        ),
    )  # fmt: skip
    context = engine.assemble("redis", plan=plan, budget=500)
    assert texts(item.memory for item in context.items) == {"yesterday's", "last week's"}


CALLS: list[tuple[str, Callable[[Engine], object]]] = [
    ("since='banana'", lambda engine: engine.recall("x", since="banana")),
    ("until='banana'", lambda engine: engine.assemble("x", until="banana")),
    ("since='banana'", lambda engine: engine.memories(Filter(when=TimeRange(since="banana")))),
    ("until='banana'", lambda engine: engine.count(Filter(when=TimeRange(until="banana")))),
    ("since='banana'", lambda engine: engine.metrics(since="banana")),
    ("since='banana'", lambda engine: engine.ledger().list(since="banana")),
]


@pytest.mark.parametrize(("named", "ask"), CALLS)
def test_a_text_that_names_no_time_is_refused_by_its_name(
    engine: Engine, named: str, ask: Callable[[Engine], object]
) -> None:
    with pytest.raises(InvalidInput, match=f"{named} names no time"):
        ask(engine)


def test_an_empty_range_in_words_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="until must come after since"):
        engine.recall("x", since="yesterday", until="last week")


def test_only_an_engine_reads_a_text() -> None:
    words = TimeRange(since="last week")
    assert str(words) == "from last week"
    with pytest.raises(InvalidInput, match="only an engine can read"):
        assert NOW in words
    with pytest.raises(InvalidInput, match="pass an aware datetime"):
        TimeRange(since=5)  # type: ignore[arg-type]  # Wrong on purpose.


@pytest.fixture(name="old")
def _old() -> Iterator[Engine]:
    with germane.open(":memory:", clock=FixedClock(NOW)) as engine:
        engine.remember("We decided to take Redis", kind="decision", created_at=NOW - 40 * DAY)
        engine.remember("We decided to drop Kafka", kind="decision", created_at=NOW - 50 * DAY)
        yield engine


def note_of(notes: tuple[TraceNote, ...]) -> str:
    (text,) = [note.text for note in notes if note.code == "nothing_then"]
    return text


@pytest.mark.parametrize("frame", ["task", "auto"])
def test_a_question_about_a_time_hears_that_nothing_is_of_it(old: Engine, frame: str) -> None:
    context = old.assemble("What did we decide last week?", frame=frame)
    note = note_of(context.trace.notes)
    assert "from 2026-11-09T00:00:00+00:00 and before 2026-11-16T00:00:00+00:00" in note
    assert f"The {len(context.items)} memories shown are of other times." in note
    assert len(context.items) == 2
    assert note in " ".join(context.explain().split())
    recalled = old.recall("What did we decide last week?")
    assert "of other times" in note_of(recalled.notes)


def test_it_hears_nothing_of_it_where_something_is_of_that_time(old: Engine) -> None:
    old.remember("We decided to take NATS", kind="decision", created_at=NOW - 10 * DAY)
    for notes in (
        old.assemble("What did we decide last week?").trace.notes,
        old.recall("What did we decide last week?").notes,
    ):
        assert "nothing_then" not in [note.code for note in notes]


def test_a_time_that_the_caller_gives_or_that_stands_alone_is_reported_too(old: Engine) -> None:
    for context in (old.assemble("decide", since="last week"), old.assemble("last week?")):
        assert not context.items
        assert "No memory that was found is of it." in note_of(context.trace.notes)
        assert "Nothing shown is of the time named" in context.explain()
    assert "Nothing shown" in note_of(old.recall("decide", since="last week").notes)
