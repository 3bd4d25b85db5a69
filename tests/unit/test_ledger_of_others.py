"""What the ledger keeps of working sets and of the memory in requests, and what a replay says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import germane
from germane.ledger import Assembly, RefreshReason
from germane.protocols import Candidate
from germane.ranking import Decay
from germane.stores import SqliteStore
from germane.testing.fakes import START, FixedClock, make_id

FACTS = ("Redis caches sessions.", "Redis needs a password.", "Milo is a cat.")
QUESTION = [{"role": "user", "content": "What does Redis cache?"}]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def engine(tmp_path: Path, clock: FixedClock) -> Iterator[germane.Engine]:
    with germane.open(tmp_path / "agent.db", agent="a", clock=clock) as made:
        made.remember_many([{"content": text, "kind": "fact"} for text in FACTS])
        yield made


def filled(engine: germane.Engine) -> germane.WorkingSet:
    working = engine.working_set("desk", max_tokens=500)
    working.add_many(engine.memories())
    return working


def latest(engine: germane.Engine) -> Assembly:
    return engine.ledger().list(limit=1)[0]


@pytest.mark.parametrize("strategy", ["balanced", "recent", "important", "smart", "clustered"])
def test_a_working_set_is_made_again_to_the_byte_while_nothing_moves(
    engine: germane.Engine, clock: FixedClock, strategy: str
) -> None:
    working = filled(engine)
    decay = Decay(shape="exponential", hours=3.0)
    context = working.assemble(
        "What does Redis cache?",
        strategy=strategy,
        decay=decay,
        overflow="degrade",
        order="reverse",
        budget=40,
        record=True,
    )
    clock.advance(timedelta(days=9))

    replay = engine.ledger().replay(latest(engine).id)

    assert latest(engine).made_for == "working_set"
    assert latest(engine).tokens == context.tokens
    assert (replay.same, replay.why) == (True, ())
    assert replay.context is not None
    assert replay.context.text == context.text


@pytest.mark.parametrize("strategy", ["balanced", "recent", "important", "frequent", "smart", "clustered"])
def test_a_working_set_is_made_again_to_the_byte_whatever_became_of_it(
    engine: germane.Engine, clock: FixedClock, strategy: str
) -> None:
    working = filled(engine)
    clock.advance(timedelta(hours=5))
    first, second, third = working.items()
    working.touch(first)
    working.pin(second)
    engine.feedback(engine.recall("password"), used=[engine.recall("password")[0]])
    context = working.assemble(
        "What does Redis cache?", strategy=strategy, overflow="degrade", budget=30, record=True
    )
    clock.advance(timedelta(days=9))
    engine.revise(first.memory.id, "Redis caches nothing any more.")
    working.touch(third)
    working.unpin(second)
    working.remove(third)
    engine.forget(second.memory.id)
    working.add(engine.remember("Redis has a successor.", kind="fact"))
    working.resize(900)
    assert working.assemble("What does Redis cache?", strategy=strategy, budget=30).text != context.text

    replay = engine.ledger().replay(latest(engine).id)

    assert (replay.same, replay.why) == (True, ())
    assert replay.context is not None
    assert replay.context.text == context.text
    assert replay.context.trace.entries == context.trace.entries


def test_a_set_of_a_space_is_made_again_to_the_byte(tmp_path: Path, clock: FixedClock) -> None:
    with germane.open(tmp_path / "team.db", agent="ada", clock=clock) as ada:
        team = ada.space("team", create=True)
        working = team.working_set()
        working.add_many(team.remember_many(FACTS)[place].memory for place in range(len(FACTS)))
        context = working.assemble(strategy="important", record=True)
        working.clear()
        (one,) = team.ledger().list()
        replay = team.ledger().replay(one.id)
        assert replay.same
        assert replay.context is not None
        assert replay.context.text == context.text != ""


def test_a_replay_says_what_has_become_of_the_set_where_a_purge_took_of_its_record(
    engine: germane.Engine,
) -> None:
    working = filled(engine)
    working.assemble(record=True)
    engine.purge(working.items()[0].memory.id, confirm=True)
    engine.working_set("other").add(engine.memories()[0])

    replay = engine.ledger().replay(latest(engine).id)

    assert not replay.same
    assert replay.why[0] == "The working set 'desk' has moved since, and is taken as it is now: 1 purge."
    assert "the hash of the text with it" in replay.why[1]
    assert replay.context is not None


def test_a_record_from_before_the_content_was_recorded_takes_the_set_as_it_is(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "agent.db")
    with germane.open(store, agent="a", clock=FixedClock(START)) as engine:
        engine.remember_many(FACTS)
        working = filled(engine)
        working.assemble(record=True)
        known = latest(engine)
        options = {name: value for name, value in known.options.items() if name != "held"}
        store.ledger.record("a", replace(known, id=make_id("older"), options=options))
        assert engine.ledger().replay(make_id("older")).same
        working.remove(working.items()[0])
        replay = engine.ledger().replay(make_id("older"))
        assert not replay.same
        assert replay.why == ("The working set 'desk' has moved since, and is taken as it is now: 1 remove.",)
        assert replay.difference is not None
        assert len(replay.difference.left) == 1
        assert engine.ledger().replay(known.id).same


def test_no_id_of_a_purged_memory_stays_in_the_record_of_a_set(engine: germane.Engine) -> None:
    working = filled(engine)
    working.assemble(record=True)
    gone = working.items()[0].memory.id
    engine.purge(gone, confirm=True)
    assert gone not in repr(engine.ledger().show(latest(engine).id))


def test_a_scorer_of_a_set_has_to_be_given_again(engine: germane.Engine) -> None:
    def by_length(candidate: Candidate, *_: object) -> float:
        return float(len(candidate.memory.content))

    filled(engine).assemble(strategy="custom", scorer=by_length, record=True)
    ledger, one = engine.ledger(), latest(engine)
    without = ledger.replay(one.id)
    assert one.unkept == ("scorer",)
    assert (without.same, without.context) == (False, None)
    assert "give replay its scorer again" in " ".join(without.why)
    assert ledger.replay(one.id, scorer=by_length).same


def test_use_of_what_a_set_showed_is_reported_by_its_record(engine: germane.Engine) -> None:
    filled(engine).assemble(record=True)
    observed = engine.observe(latest(engine), "It caches sessions.")
    assert [engine.get(one).content for one in observed.used] == ["Redis caches sessions."]
    shown = engine.ledger().show(latest(engine).id).included
    assert [entry.used for entry in shown if entry.memory_id in observed.used] == [True]


def test_figures_of_contexts_leave_working_sets_out(engine: germane.Engine) -> None:
    filled(engine).assemble(record=True)
    alone = engine.metrics()
    assert (alone.assemblies, alone.budget_use, alone.relevance, alone.cold) == (0, None, None, 0)
    engine.assemble("redis", record=True)
    assert engine.metrics().assemblies == 1


def test_the_memory_of_a_request_is_recorded_and_made_again(
    engine: germane.Engine, clock: FixedClock
) -> None:
    request = engine.request(QUESTION, memory="layered", window=2000, reserve=500, record=True)
    clock.advance(timedelta(days=40))
    engine.remember("Redis was dropped.", kind="fact")

    replay = engine.ledger().replay(latest(engine).id)

    assert (latest(engine).made_for, latest(engine).question) == ("request", "What does Redis cache?")
    assert latest(engine).cold
    assert request.memory is not None
    assert replay.context is not None
    assert (replay.same, replay.context.text) == (True, request.memory.text)


def test_memory_that_stays_from_request_to_request_is_recorded_once(engine: germane.Engine) -> None:
    first = engine.request(QUESTION, memory="layered", record=True)
    second = engine.request(QUESTION, memory="layered", previous=first, record=True)
    assert first.memory is not None
    assert second.memory is None
    assert len(engine.ledger().list()) == 1


def test_a_request_is_counted_by_whom_it_was_and_made_again_by_the_same(engine: germane.Engine) -> None:
    engine.request(QUESTION, memory="relevance", provider="anthropic", record=True)
    assert latest(engine).counter.startswith("claude")
    assert engine.ledger().replay(latest(engine).id).same


def test_a_request_without_a_plan_has_nothing_to_record(engine: germane.Engine, tmp_path: Path) -> None:
    made = engine.assemble("Redis")
    for memory in (None, made):
        with pytest.raises(germane.InvalidInput, match="has nothing to record, since memory"):
            engine.request(QUESTION, memory=memory, record=True)
    with germane.open(tmp_path / "all.db", record=True) as records:
        records.remember("Redis caches sessions.")
        records.request(QUESTION)
        assert records.ledger().list() == ()
        records.request(QUESTION, memory="layered")
        records.working_set().assemble()
        assert [one.made_for for one in records.ledger().list()] == ["working_set", "request"]


def test_a_context_that_was_cut_is_recorded_and_made_again(tmp_path: Path, clock: FixedClock) -> None:
    with germane.open(tmp_path / "all.db", agent="a", clock=clock, record=True) as engine:
        engine.remember("Never deploy on Fridays.", kind="constraint", metadata={"action": "block"})
        engine.remember_many(
            {"content": f"Redis caches the sessions of shop {number}.", "kind": "fact"} for number in range(9)
        )
        context = engine.assemble("What does Redis cache?", frame="decision")
        clock.advance(timedelta(hours=3))
        refreshed = engine.refresh(context, "And Redis?", free_tokens=context.tokens - 40)
        one = latest(engine)
        assert (refreshed.reason, one.made_for) == (RefreshReason.PRESSURE, "cut")
        assert (one.at, one.question, one.budget) == (clock(), "What does Redis cache?", context.tokens - 40)
        assert {str(entry.reason) for entry in one.entries if not entry.included} == {"evicted"}

        clock.advance(timedelta(days=30))
        engine.revise(one.included[-1].memory_id, "Redis caches nothing.")
        engine.remember("Redis caches the sessions of shop 10.", kind="fact")
        replay = engine.ledger().replay(one.id)
        assert (replay.same, replay.why) == (True, ())
        assert replay.context is not None
        assert replay.context.text == refreshed.context.text
        assert replay.context.trace == refreshed.context.trace
        # Cut once more, it is a record of its own.
        again = engine.refresh(replay.context, "And Redis?", free_tokens=context.tokens - 80)
        assert again.context.tokens <= context.tokens - 80
        assert engine.ledger().replay(latest(engine).id).same
        used = engine.feedback(latest(engine), [again.context.items[-1]])
        assert used.counted == 1
        assert len(engine.ledger().list()) == 3
        # What fails is not recorded.
        with pytest.raises(germane.BudgetTooSmall):
            engine.refresh(context, "And Redis?", free_tokens=1)
        assert len(engine.ledger().list()) == 3


def test_a_cut_of_a_plan_of_ones_own_needs_it_again_and_one_with_spaces_names_them(
    tmp_path: Path, clock: FixedClock
) -> None:
    plan = germane.Plan(
        name="mine",
        sections=(
            germane.Section(name="all", heading="# All", kinds=("fact",), share=germane.Share(weight=1)),
        ),
    )
    with germane.open(tmp_path / "all.db", agent="a", clock=clock, record=True) as engine:
        team = engine.space("team", create=True)
        team.remember("Redis caches the sessions of the team.", kind="fact")
        engine.remember_many({"content": text, "kind": "fact"} for text in FACTS)
        context = engine.assemble("What does Redis cache?", plan=plan, spaces=["team"])
        engine.refresh(context, "And Redis?", plan=plan, free_tokens=context.tokens - 8)
        one = latest(engine)
        assert (one.unkept, one.spaces, one.made_for) == (("plan",), ("team",), "cut")
        assert not engine.ledger().replay(one.id).same
        assert engine.ledger().replay(one.id, plan=plan).same


def test_what_was_cut_of_changed_memories_is_never_reported_as_the_same(
    tmp_path: Path, clock: FixedClock
) -> None:
    with germane.open(tmp_path / "all.db", agent="a", clock=clock, record=True) as engine:
        made = engine.remember_many({"content": text, "kind": "fact"} for text in FACTS)
        context = engine.assemble("What does Redis cache?", plan="relevance")
        assert len(context.items) > 1
        engine.purge(context.items[0].memory.id, confirm=True)
        engine.refresh(context, "And Redis?", plan="relevance", free_tokens=context.tokens - 1)
        one = latest(engine)
        assert (one.settled, one.sha256, len(made)) == (False, None, len(FACTS))
        assert not engine.ledger().replay(one.id).same


def test_the_weights_of_a_context_stay_with_what_is_cut_of_it(engine: germane.Engine) -> None:
    engine.set_learning(True)
    for _ in range(12):
        shown = engine.assemble("What does Redis cache?", plan="relevance")
        engine.feedback(shown, used=[shown.items[0]])
        engine.remember(f"Redis caches more, said at {len(engine.memories())}.", kind="fact")
    context = engine.assemble("What does Redis cache?", plan="relevance", budget=200)
    assert context.trace.weights
    made = engine.refresh(context, "And Redis?", plan="relevance", free_tokens=context.tokens - 1).context
    assert made.trace.weights == context.trace.weights
