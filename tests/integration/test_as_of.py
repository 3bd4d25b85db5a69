"""The store as it was at a moment: versions, what was forgotten and purged, validity, users and messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import Engine, InvalidInput, NotFound, aio
from germane.testing.fakes import FixedClock

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(params=["file", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, without any agent."""
    if request.param == "file":
        return str(tmp_path / "agent.db")
    return str(request.getfixturevalue("postgres_store"))


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(BEGIN)


@pytest.fixture
def engine(location: str, clock: FixedClock) -> Iterator[Engine]:
    with germane.open(location, agent="ada", clock=clock) as opened:
        yield opened


def texts(engine: Engine, as_of: datetime | str | None = None) -> set[str]:
    return {each.content for each in engine.memories(as_of=as_of)}


def test_versions_are_those_of_then(engine: Engine, clock: FixedClock) -> None:
    job = engine.remember("Ana works for Acme.", kind="fact", key="job", valid_from="2020")
    clock.advance(10 * DAY)
    engine.remember("Ana works for Globex.", kind="fact", key="job", valid_from="2026-01-05")
    clock.advance(10 * DAY)
    then = engine.get(job.id, as_of="2026-01-02")
    assert (then.content, then.version, then.status, then.valid_until) == (
        "Ana works for Acme.",
        1,
        "active",
        None,
    )
    assert engine.get(key="job", as_of=BEGIN).content == "Ana works for Acme."
    assert engine.get(key="job").content == "Ana works for Globex."
    assert [one.memory.content for one in engine.recall("Whom does Ana work for?", as_of=BEGIN)] == [
        "Ana works for Acme."
    ]
    shown = engine.assemble("Whom does Ana work for?", budget=300, as_of="2026-01-02").text
    assert "Acme" in shown
    assert "Globex" not in shown
    assert engine.count(as_of="2025-12-31") == 0


def test_what_was_forgotten_archived_or_restored_is_as_it_was(engine: Engine, clock: FixedClock) -> None:
    tea = engine.remember("Ana drinks tea.", kind="fact")
    coffee = engine.remember("Bo drinks coffee.", kind="fact")
    clock.advance(DAY)
    engine.forget(tea.id)
    clock.advance(DAY)
    engine.restore(tea.id)
    engine.retire(coffee.id)
    clock.advance(DAY)
    engine.forget(tea.id)
    clock.advance(DAY)
    assert texts(engine) == set()
    assert texts(engine, BEGIN) == {"Ana drinks tea.", "Bo drinks coffee."}
    assert texts(engine, BEGIN + DAY) == {"Bo drinks coffee."}
    assert texts(engine, BEGIN + 2 * DAY) == {"Ana drinks tea."}
    assert texts(engine, BEGIN + 3 * DAY) == set()
    engine.remember("Ana drinks tea.", kind="fact")
    assert texts(engine) == {"Ana drinks tea."}
    assert texts(engine, BEGIN + 3 * DAY) == set()


def test_what_was_purged_never_comes_back(engine: Engine, clock: FixedClock) -> None:
    secret = engine.remember("The code is 4711.", kind="fact")
    engine.remember("The door is red.", kind="fact")
    clock.advance(DAY)
    engine.purge(secret.id, confirm=True)
    clock.advance(DAY)
    assert texts(engine, BEGIN) == {"The door is red."}
    assert "4711" not in engine.assemble("What is the code?", as_of=BEGIN).text
    with pytest.raises(NotFound):
        engine.get(secret.id, as_of=BEGIN)


def test_what_expired_since_is_there_again(engine: Engine, clock: FixedClock) -> None:
    engine.remember("Ana is in a meeting.", ttl=DAY)
    clock.advance(2 * DAY)
    assert texts(engine) == set()
    assert texts(engine, BEGIN) == {"Ana is in a meeting."}


def test_a_user_reads_both_sides_of_then_and_spaces(engine: Engine, clock: FixedClock) -> None:
    alice = engine.for_user("alice")
    engine.remember("Refunds take a week.", kind="fact")
    alice.remember("Alice bought a lamp.", kind="fact")
    engine.space("club", create=True).remember("The club meets on Monday.", kind="fact")
    clock.advance(DAY)
    engine.remember("Refunds take a day.", kind="fact")
    alice.remember("Alice bought a rug.", kind="fact")
    engine.space("club").remember("The club meets on Friday.", kind="fact")
    clock.advance(DAY)
    assert texts(alice, BEGIN) == {"Refunds take a week.", "Alice bought a lamp."}
    assert {one.memory.content for one in alice.recall("refund lamp", as_of=BEGIN)} == {
        "Refunds take a week.",
        "Alice bought a lamp.",
    }
    found = engine.recall("When does the club meet?", spaces=["club"], as_of=BEGIN)
    assert "The club meets on Monday." in {one.memory.content for one in found}
    assert not {one for one in found if "Friday" in one.memory.content}
    assert [one.content for one in engine.space("club").memories(as_of=BEGIN)] == [
        "The club meets on Monday."
    ]


def test_messages_are_those_written_by_then(engine: Engine, clock: FixedClock) -> None:
    conversation = engine.conversation("monday")
    conversation.append("user", "Felix eats salmon.")
    clock.advance(DAY)
    conversation.append("user", "Felix eats tuna.")
    clock.advance(DAY)
    found = engine.recall("What does Felix eat?", conversations=True, as_of=BEGIN)
    assert [one.content for one in found] == ["user: Felix eats salmon."]
    shown = engine.assemble("What does Felix eat?", as_of=BEGIN).text
    assert "salmon" in shown
    assert "tuna" not in shown


def test_reading_the_past_changes_nothing(engine: Engine, clock: FixedClock) -> None:
    engine.remember("Ana drinks tea.", kind="fact")
    clock.advance(DAY)
    before = engine.stats()
    engine.recall("tea", as_of=BEGIN)
    engine.assemble("tea", as_of=BEGIN)
    assert engine.stats() == before
    assert engine.ledger().list() == ()


def test_a_moment_that_cannot_be_shown_is_refused(engine: Engine) -> None:
    engine.remember("Ana drinks tea.")
    for wrong in ("2027-01-01", BEGIN + DAY):
        with pytest.raises(InvalidInput, match="is after now"):
            engine.recall("tea", as_of=wrong)
    with pytest.raises(InvalidInput, match="names no time"):
        engine.memories(as_of="once upon a time")
    with pytest.raises(InvalidInput, match="as_of"):
        engine.recall("tea", as_of=BEGIN, into=engine.working_set())
    with pytest.raises(InvalidInput, match="as_of"):
        engine.assemble("tea", as_of=BEGIN, record=True)


def test_the_same_awaited_and_on_the_command_line(location: str) -> None:
    clock = FixedClock(BEGIN)

    async def steps() -> None:
        async with await aio.open(location, agent="ada", clock=clock) as engine:
            tea = await engine.remember("Ana drinks tea.", kind="fact")
            clock.advance(DAY)
            await engine.revise(tea.id, "Ana drinks coffee.")
            assert (await engine.get(tea.id, as_of=BEGIN)).content == "Ana drinks tea."
            assert [one.content for one in await engine.memories(as_of=BEGIN)] == ["Ana drinks tea."]
            assert (await engine.recall("drink", as_of=BEGIN))[0].memory.content == "Ana drinks tea."
            assert "tea" in (await engine.assemble("drink", as_of=BEGIN)).text

    asyncio.run(steps())
    given = ("--agent", "ada", "--as-of", "2026-01-01")
    listed = run("memory", "list", *given, "--json", db=location).json()
    assert [each["content"] for each in listed["memories"]] == ["Ana drinks tea."]
    (id_,) = (each["id"] for each in listed["memories"])
    shown = run("memory", "show", id_, *given, "--json", db=location).json()
    assert (shown["memory"]["content"], len(shown["versions"])) == ("Ana drinks tea.", 1)
    assert "tea" in run("recall", "drink", *given, db=location).out
    assert "tea" in run("assemble", "drink", *given, db=location).out
