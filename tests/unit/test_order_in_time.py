"""Questions for the first or the last of something, and memories that a newer version replaces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, Filter, Memory, Order, Ranked, Status
from germane.protocols import Candidate
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import FixedClock
from support.found import recalled_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
_TEXT = Rendition(text="x", tokens=1)
_ORDER_BOOST = 0.5
"""What being the first or the last of all can add, as a part of the score."""
_QUESTIONS = {
    None: "What was deployed in Lisbon?",
    Order.OLDEST: "What was first deployed in Lisbon?",
    Order.NEWEST: "What was the latest deploy in Lisbon?",
}


def order_of(question: str) -> Order | None:
    """The order in time that a question is found to ask for."""
    with opened() as engine:
        return engine.recall(question).question.order


@pytest.mark.parametrize(
    "question",
    [
        "What was the first release?",
        "Where did we first deploy?",
        "Which customer came first?",
        "What is the earliest entry of the audit log?",
        "Who originally owned the module?",
        "What was said about it at first?",
        "Wann war our first meeting with Frau Brandt?",
    ],
)
def test_questions_for_the_first(question: str) -> None:
    assert order_of(question) is Order.OLDEST


@pytest.mark.parametrize(
    "question",
    [
        "What is the latest decision about caching?",
        "When did we last rotate the keys?",
        "What did Ana's last review say?",
        "What is the most recent release?",
        "What was the outcome of our last audit?",
        "Which migration was run most recently?",
    ],
)
def test_questions_for_the_last(question: str) -> None:
    assert order_of(question) is Order.NEWEST


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Who won first place?",
        "What is her first name and her last name?",
        "How long did the outage last?",
        "Did it last longer than the one before?",
        "The first and the last release?",
        "What were the first two steps?",
        "Is it a first-class function?",
        "What does the last line but one say?",
        "Was ist das Latenzziel?",
    ],
)
def test_words_that_mean_no_order_in_time(question: str) -> None:
    assert order_of(question) is None


def test_a_named_time_is_no_order() -> None:
    with opened() as engine:
        question = engine.recall("What did we deploy last week?").question
    assert question.when is not None
    assert question.order is None


def candidate(
    name: str, lexical: float, *, days: int = 0, by: str | None = None, version: int = 1
) -> Candidate:
    made = NOW - timedelta(days=days)
    memory = Memory(
        id=name,
        agent="newton",
        kind="fact",
        content="x",
        renditions=Renditions(micro=_TEXT, summary=_TEXT, full=_TEXT, counter="bytes"),
        created_at=made,
        updated_at=made,
        version=version,
        status=Status.ACTIVE if by is None else Status.SUPERSEDED,
        superseded_by=by,
    )
    return Candidate(memory=memory, signals={"lexical": lexical})


def ranked(*some: Candidate, order: Order | None = None) -> dict[str, Ranked]:
    """By id; with a full match of 1, so that a score is the signal and what is added to it."""
    return {one.memory.id: one for one in recalled_of(some, _QUESTIONS[order], clock=lambda: NOW)}


def scores(*some: Candidate, order: Order | None = None) -> dict[str, float]:
    return {name: round(one.score, 4) for name, one in ranked(*some, order=order).items()}


def test_among_alike_the_end_that_is_requested_wins() -> None:
    some = candidate("old", 0.8, days=90), candidate("middle", 0.8, days=45), candidate("new", 0.7)
    assert scores(*some, order=Order.NEWEST) == {"old": 0.8, "middle": 1.0, "new": 1.05}
    assert scores(*some, order=Order.OLDEST) == {"old": 1.2, "middle": 1.0, "new": 0.7}


def test_what_is_hardly_relevant_takes_no_part() -> None:
    some = candidate("old", 1.0, days=90), candidate("new", 0.9, days=60), candidate("beside", 0.4)
    assert scores(*some, order=Order.NEWEST) == {"old": 1.0, "new": 1.35, "beside": 0.4}
    parts = ranked(*some, order=Order.NEWEST)["new"].parts
    assert dict(parts) == {"lexical": 0.9, "order": pytest.approx(0.45)}


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 400)), max_size=10), st.sampled_from(list(Order)[:2])
)
def test_the_boost_is_bounded_and_stands_in_the_parts(drawn: list[tuple[float, int]], order: Order) -> None:
    some = [candidate(f"m{n}", score, days=days) for n, (score, days) in enumerate(drawn)]
    before, after = ranked(*some), ranked(*some, order=order)
    for name, one in before.items():
        assert one.score <= after[name].score <= (1 + _ORDER_BOOST) * one.score + 1e-9
        assert sum(after[name].parts.values()) == pytest.approx(after[name].score)


def test_a_superseded_memory_stays_below_its_successors() -> None:
    chain = [
        candidate("first", 1.0, by="second", version=1),
        candidate("second", 0.3, by="third", version=2),
        candidate("third", 0.25, version=3),
    ]
    found = scores(*chain)
    assert found["third"] == 0.25
    assert found["first"] < found["second"] < found["third"]
    assert scores(chain[0]) == {"first": 0.5}
    assert all(sum(one.parts.values()) == pytest.approx(one.score) for one in ranked(*chain).values())


def opened() -> Engine:
    return germane.open(":memory:", agent="a", clock=FixedClock(NOW), embedder=None)


def test_the_first_and_the_last_of_what_is_relevant_are_found() -> None:
    with opened() as engine:
        for month, region in ((2, "Frankfurt"), (6, "Dublin"), (9, "Paris")):
            engine.remember(
                f"The billing service was deployed in {region}.",
                created_at=datetime(2026, month, 1, tzinfo=UTC),
            )
        engine.remember("The kitchen has a new kettle.", created_at=datetime(2026, 11, 1, tzinfo=UTC))
        first = engine.recall("Where was the billing service first deployed?")
        latest = engine.recall("Where is the latest deploy of the billing service?")
        assert "Frankfurt" in first[0].memory.content
        assert "Paris" in latest[0].memory.content
        assert "order" in latest[0].parts
        assert latest.question.order is Order.NEWEST


def test_a_superseded_memory_is_pointed_on() -> None:
    with opened() as engine:
        old = engine.remember("The rate limit is 100 requests. The limit holds per rate and per request.")
        new = engine.revise(old.id, "Requests are limited to 500.")
        found = engine.recall("What is the rate limit of requests?", include_superseded=True)
        assert [one.memory.version_id for one in found] == [new.version_id, old.version_id]
        assert [note.text for note in found.notes if note.code == "superseded"] == [
            f"Memory {old.version_id} is superseded by {new.version_id}."
        ]
        assert [one.id for one in engine.recall("rate limit requests")] == [new.id]


def test_an_old_version_never_stands_as_current() -> None:
    with opened() as engine:
        old = engine.remember("The rate limit is 100 requests.")
        engine.revise(old.id, "The rate limit is 500 requests.")
        pinned = engine.assemble("rate limit", budget=500, pins=[old.version_id])
        assert [item.memory.version for item in pinned.items] == [2]
        both = Filter(statuses=(Status.ACTIVE, Status.SUPERSEDED))
        context = engine.assemble("rate limit", budget=500, where=both)
        assert "The rate limit is 100 requests. [superseded]" in context.text
        assert context.tokens == engine.counter.count(context.text) <= 500
