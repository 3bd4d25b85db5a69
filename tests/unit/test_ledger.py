"""The ledger: what is recorded, what differs, and whether an assembly made again gives the same bytes."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import germane
import germane.aio
from germane import Ledger
from germane.aio import AsyncLedger
from germane.errors import AssemblyNotFound, InvalidInput, PurgeNotConfirmed
from germane.ledger import AssemblyDiff, MemoryChangeKind
from germane.protocols import Candidate, Query
from germane.testing.fakes import START, FixedClock

FACTS = (
    "Redis caches sessions.",
    "Redis needs a password.",
    "Redis was measured in May.",
    "Milo is a cat.",
)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def engine(tmp_path: Path, clock: FixedClock) -> Iterator[germane.Engine]:
    with germane.open(tmp_path / "agent.db", agent="a", clock=clock) as made:
        for text in FACTS:
            made.remember(text, kind="fact")
        yield made


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def recorded(engine: germane.Engine, query: str = "redis", **options: int) -> str:
    engine.assemble(query, record=True, **options)  # type: ignore[arg-type] # Budgets only.
    return engine.ledger().list()[0].id


def test_what_was_abandoned_comes_into_no_replay(engine: germane.Engine) -> None:
    engine.remember("Keep sessions in Redis.", kind="decision", outcome="abandoned")

    replay = engine.ledger().replay(recorded(engine))

    assert replay.same
    assert replay.context is not None
    assert {item.memory.kind for item in replay.context.items} == {"fact"}


def test_nothing_is_recorded_unless_it_is_requested(engine: germane.Engine) -> None:
    engine.assemble("redis")
    assert engine.ledger().list() == ()


def test_what_was_used_since_changes_no_replay(engine: germane.Engine) -> None:
    for number in range(3):
        context = engine.assemble(f"redis {number}")
        engine.feedback(context, [context.items[0]])
    one = recorded(engine)
    assert engine.ledger().show(one).makers["usage"]
    for number in range(3):
        again = engine.assemble(f"redis, {number} times")
        engine.feedback(again, [again.items[-1]])
    replay = engine.ledger().replay(one)
    assert (replay.same, replay.makers) == (True, ())


def test_an_engine_may_record_whatever_it_assembles(tmp_path: Path) -> None:
    with germane.open(tmp_path / "all.db", record=True) as engine:
        engine.assemble("one")
        engine.assemble("two", record=False)
        engine.assemble("three")
        assert [one.question for one in engine.ledger().list()] == ["three", "one"]
        assert [one.cold for one in engine.ledger().list()] == [False, True]


def test_a_record_has_the_request_and_what_came_of_it(engine: germane.Engine) -> None:
    context = engine.assemble("redis", budget=200, record=True, tags=["x"])
    assembly = engine.ledger().show(engine.ledger().list()[0].id)
    assert (assembly.question, assembly.plan, assembly.budget, assembly.counter) == (
        "redis",
        "layered",
        200,
        "o200k",
    )
    assert assembly.where.tags == ("x",)
    assert assembly.at == context.trace.now
    assert (assembly.sha256, assembly.tokens) == (sha256(context.text), context.tokens)
    assert [entry.memory_id for entry in assembly.entries] == [
        entry.memory_id for entry in context.trace.entries
    ]
    assert assembly.settled
    assert assembly.seconds is not None


def test_no_text_of_a_memory_is_recorded(engine: germane.Engine, tmp_path: Path) -> None:
    engine.assemble("needle-in-the-question", record=True)
    for memory in engine.memories():
        engine.purge(memory.id, confirm=True)
    data = (tmp_path / "agent.db").read_bytes()
    assert b"needle-in-the-question" in data
    for text in FACTS:
        for word in text.rstrip(".").split():
            if len(word) > 4:
                assert word.encode() not in data


@pytest.mark.parametrize("text", ["Quagga is my word for everything that has stripes.", "quagga"])
def test_the_purge_of_a_conversation_reaches_the_questions_taken_from_it(
    engine: germane.Engine, tmp_path: Path, text: str
) -> None:
    talk = engine.conversation("monday")
    talk.append("user", text)
    talk.append("assistant", "Noted.")
    talk.append("user", "Tell me more.")
    engine.request(talk, provider="openai", window=4000, reserve=0, memory="layered", record=True)
    quoting = recorded(engine, f"Remember:\n{text}")
    other = recorded(engine, "Something else, about zebras?")
    assert any(b"uagga" in each.read_bytes() for each in tmp_path.iterdir())
    talk.purge(confirm=True)
    assert [each.id for each in engine.ledger().list()] == [other]
    assert not any(b"uagga" in each.read_bytes() for each in tmp_path.iterdir())
    with pytest.raises(AssemblyNotFound):
        engine.ledger().show(quoting)


def test_a_ledger_is_purged_by_id_by_time_and_whole(
    engine: germane.Engine, clock: FixedClock, tmp_path: Path
) -> None:
    ledger = engine.ledger()
    ids = []
    for word in ("okapi", "quagga", "tapir", "dugong"):
        ids.append(recorded(engine, f"What of the {word}?"))
        clock.advance(timedelta(hours=1))
    with pytest.raises(PurgeNotConfirmed, match="ledger"):
        ledger.purge()
    with pytest.raises(InvalidInput, match="give one of them"):
        ledger.purge(ids[0], before="2026-01-01", confirm=True)
    assert ledger.purge(ids[1], confirm=True) == 1
    assert not any(b"quagga" in each.read_bytes() for each in tmp_path.iterdir())
    with pytest.raises(AssemblyNotFound):
        ledger.purge(ids[1], confirm=True)
    assert ledger.purge(before=ledger.show(ids[2]).at, confirm=True) == 1
    assert [each.id for each in ledger.list()] == [ids[3], ids[2]]
    assert ledger.purge(confirm=True) == 2
    assert ledger.list() == ()


def test_a_purge_leaves_neither_entry_nor_hash(engine: germane.Engine, tmp_path: Path) -> None:
    one = recorded(engine)
    before = engine.ledger().show(one)
    gone = before.included[0]
    assert before.sha256 is not None
    engine.purge(gone.memory_id, confirm=True)
    after = engine.ledger().show(one)
    assert after.sha256 is None
    assert after.purged == 1
    assert gone.memory_id not in {entry.memory_id for entry in after.entries}
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert bytes.fromhex(before.sha256) not in data
    replay = engine.ledger().replay(one)
    assert not replay.same
    assert "purged" in replay.why[0]


def test_the_same_store_gives_the_same_bytes(engine: germane.Engine) -> None:
    replay = engine.ledger().replay(recorded(engine))
    assert replay.same
    assert replay.context is not None
    assert sha256(replay.context.text) == replay.assembly.sha256
    assert (replay.why, replay.makers, replay.alterations) == ((), (), ())
    assert replay.difference is not None
    assert replay.difference.same_text


def test_what_came_later_is_not_in_the_store_of_then(engine: germane.Engine, clock: FixedClock) -> None:
    one = recorded(engine)
    sessions, password, _, cat = engine.memories(order=germane.Order.OLDEST)
    clock.advance(timedelta(days=3))
    added = engine.remember("Redis is fast.", kind="fact")
    revised = engine.revise(sessions.id, content="Redis caches everything.")
    engine.forget(password.id)
    replay = engine.ledger().replay(one)
    assert replay.same
    assert {(each.what, each.memory_id) for each in replay.alterations} >= {
        (MemoryChangeKind.ADDED, added.id),
        (MemoryChangeKind.ADDED, revised.id),
        (MemoryChangeKind.REVISED, sessions.version_id),
        (MemoryChangeKind.FORGOTTEN, password.id),
    }
    assert cat.id not in {each.memory_id for each in replay.alterations}
    assert engine.get(password.id).status is germane.Status.FORGOTTEN


def test_a_memory_purged_since_is_reported_where_it_mattered(engine: germane.Engine) -> None:
    one = recorded(engine)
    left_out = next(memory for memory in engine.memories() if "Milo" in memory.content)
    engine.purge(left_out.id, confirm=True)
    replay = engine.ledger().replay(one)
    assert [each.what for each in replay.alterations] == [MemoryChangeKind.PURGED]
    assert replay.same == (replay.why == ())
    assert replay.same is (
        replay.context is not None and sha256(replay.context.text) == replay.assembly.sha256
    )


def test_learned_weights_of_then_apply(engine: germane.Engine) -> None:
    engine.set_learning(on=True)
    context = engine.assemble("redis")
    engine.feedback(context, used=[context.items[0].memory])
    one = recorded(engine)
    for _ in range(3):
        other = engine.assemble("password")
        engine.feedback(other, used=[other.items[-1].memory])
    replay = engine.ledger().replay(one)
    assert replay.same
    assert replay.makers == ()


def test_what_cannot_be_stored_has_to_be_given_again(engine: germane.Engine) -> None:
    def scorer(candidate: Candidate, query: Query, now: object) -> float:
        return float(len(candidate.memory.content) + len(query.text) + bool(now))

    engine.assemble("redis", budget=60, record=True, scorer=scorer)
    one = engine.ledger().list()[0]
    assert one.unkept == ("scorer",)
    assert engine.ledger().replay(one.id, scorer=scorer).same
    without = engine.ledger().replay(one.id)
    assert without.same or any("scorer" in why for why in without.why)
    with pytest.raises(germane.InvalidInput, match="budget"):
        engine.ledger().replay(one.id, budget=5)


def test_memories_that_took_no_part_have_to_be_given_again(engine: germane.Engine) -> None:
    left = engine.recall("redis")[0].id
    made = engine.assemble("redis", without=[left], record=True)
    assert made.ref is not None

    replay = engine.ledger().replay(made.ref)

    assert not replay.same
    assert any("without" in sentence for sentence in replay.why)
    assert engine.ledger().replay(made.ref, without=[left]).same


def test_another_embedder_is_reported(tmp_path: Path) -> None:
    with germane.open(tmp_path / "agent.db", embedder=None) as engine:
        engine.remember("Redis caches sessions.", kind="fact")
        engine.assemble("redis", record=True)
        one = engine.ledger().list()[0].id
    with germane.open(tmp_path / "agent.db") as engine:
        replay = engine.ledger().replay(one)
        assert [each.name for each in replay.makers] == ["embedder"]
        assert replay.same or any("embedder" in why for why in replay.why)


def test_pins_filters_and_spaces_are_repeated(engine: germane.Engine) -> None:
    with engine.space("team", create=True) as space:
        space.remember("Redis is the team's cache.", kind="fact")
        cat = next(memory for memory in engine.memories() if "Milo" in memory.content)
        context = engine.assemble("redis", pins=[cat.id], kinds=["fact"], spaces=["team"], record=True)
        assert {item.memory.agent for item in context.items} == {"a", "space:team"}
        space.remember("Redis has a new owner.", kind="fact")
        one = engine.ledger().list()[0]
        assert one.spaces == ("team",)
        assert engine.ledger().replay(one.id).same


def test_a_space_has_a_ledger_of_its_own(engine: germane.Engine) -> None:
    with engine.space("team", create=True) as space:
        space.remember("Redis is the team's cache.", kind="fact")
        space.assemble("redis", record=True)
        assert space.ledger().replay(space.ledger().list()[0].id).same
        assert engine.ledger().list() == ()


def test_two_assemblies_are_compared(engine: germane.Engine, clock: FixedClock) -> None:
    first = recorded(engine, budget=1000)
    clock.advance(timedelta(days=1))
    new = engine.remember("Redis is fast, and the fastest of all.", kind="fact")
    second = recorded(engine, budget=900)
    difference = engine.ledger().diff(first, second)
    assert [each.name for each in difference.inputs] == ["budget", "at"]
    assert [entry.memory_id for entry in difference.entered] == [new.id]
    assert (difference.left, difference.same_text) == ((), False)
    back = engine.ledger().diff(second, first)
    assert [entry.memory_id for entry in back.left] == [new.id]
    assert engine.ledger().diff(first, first) == AssemblyDiff(same_text=True)


def test_what_was_never_recorded_is_an_error_that_says_so(engine: germane.Engine) -> None:
    with pytest.raises(AssemblyNotFound, match="never recorded"):
        engine.ledger().show("nothing")


def test_the_list_is_bounded_and_begins_with_the_latest(engine: germane.Engine, clock: FixedClock) -> None:
    for question in ("one", "two", "three"):
        clock.advance(timedelta(days=1))
        engine.assemble(question, record=True)
    ledger = engine.ledger()
    assert [one.question for one in ledger.list(limit=2)] == ["three", "two"]
    assert [one.question for one in ledger.list(since=START + timedelta(days=2))] == ["three", "two"]


def test_both_ledgers_offer_the_same() -> None:
    names = {name for name in dir(Ledger) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncLedger) if not name.startswith("_")}
    for name in names:
        awaited, verb = getattr(AsyncLedger, name), getattr(Ledger, name)
        assert inspect.iscoroutinefunction(awaited)
        assert inspect.signature(awaited) == inspect.signature(verb)
        assert awaited.__doc__ == verb.__doc__


def test_a_ledger_is_awaited_as_it_is_called() -> None:
    async def main() -> None:
        async with await germane.aio.open(":memory:", embedder=None) as engine:
            await engine.remember("Redis caches sessions.", kind="fact")
            context = await engine.assemble("redis", record=True)
            assert (await engine.observe(context, "It caches sessions.")).used
            ledger = await engine.ledger()
            (one,) = await ledger.list()
            assert await ledger.show(one.id) == one
            assert (await ledger.replay(one.id)).same
            assert (await ledger.diff(one.id, one.id)).same_text
            assert (await engine.metrics()).assemblies == 1

    asyncio.run(main())
