"""A reflection ends with the first of its members, whatever becomes of that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, Filter, Memory, Status
from germane.errors import GermaneError
from germane.extractors import ProposalOutcome
from germane.importers import export_jsonl, import_source
from germane.summarizers import ModelSummarizer
from germane.testing.fakes import FixedClock

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
EVENTS = (
    "The deployment of the billing service failed with a timeout.",
    "The deployment of the billing service was rolled back after a timeout.",
    "The billing service was deployed again with a longer timeout.",
    "The deployment of the billing service takes ten minutes.",
)
OTHERS = ("Ana likes green tea.", "The garden has two roses.")
ALL = Filter(statuses=tuple(Status), where="_members exists")

Act = Callable[[Engine, FixedClock, str], Any]
ACTS: dict[str, Act] = {
    "purge": lambda engine, _, name: engine.purge(name, confirm=True),
    "forget": lambda engine, _, name: engine.forget(name),
    "revise": lambda engine, _, name: engine.revise(name, f"Something else holds of {name}."),
    "supersede": lambda engine, _, name: engine.supersede(
        name, {"content": f"It is {name}.", "kind": "episode"}
    ),
    "expire": lambda _, clock, __: clock.advance(timedelta(hours=2)),
    "other": lambda engine, _, __: engine.remember("The cellar has wine.", kind="episode"),
}


def reflected(engine: Engine, *, ttl: int | None = None) -> Sequence[str]:
    ids = [engine.remember(text, kind="episode", ttl=ttl).id for text in EVENTS]
    for text in OTHERS:
        engine.remember(text, kind="episode")
    (run,) = engine.consolidate(reflect=True)
    assert [each.outcome for each in run.decisions] == [ProposalOutcome.NEW]
    return ids


def reflections(engine: Engine) -> tuple[Memory, ...]:
    return engine.memories("_members exists")


@given(st.lists(st.tuples(st.sampled_from(sorted(ACTS)), st.integers(0, 5)), max_size=4))
def test_a_reflection_stands_only_while_all_its_members_do(acts: list[tuple[str, int]]) -> None:
    clock = FixedClock(START)
    with germane.open(":memory:", clock=clock) as engine:
        reflected(engine, ttl=3600)
        members = dict(reflections(engine)[0].metadata["_members"])
        names = [each.id for each in engine.memories() if not each.metadata]
        for act, place in acts:
            try:
                ACTS[act](engine, clock, names[place])
            except GermaneError:
                continue  # It was purged or has expired before.
        current = {each.id: each.version for each in engine.memories()}
        stand = all(current.get(name) == version for name, version in members.items())
        assert len(reflections(engine)) == stand
        assert ("timeout" in engine.assemble("billing deployment").text) <= bool(engine.memories())


@given(st.integers(0, 3), st.integers(0, 3))
def test_undoing_a_reflection_restores_what_was_shown(purged: int, revised: int) -> None:
    with germane.open(":memory:", clock=FixedClock(START)) as engine:
        ids = reflected(engine)
        engine.revise(ids[revised], "The deployment of the billing service stopped with a timeout.")
        before = engine.memories(ALL), engine.assemble("billing timeout").text
        (run,) = engine.consolidate(reflect=True)
        assert [each.outcome for each in run.decisions] == [ProposalOutcome.REVISED]
        assert len(reflections(engine)) == 1
        engine.unlearn(run.id)
        assert (engine.memories(ALL), engine.assemble("billing timeout").text) == before
        engine.purge(ids[purged], confirm=True)
        assert reflections(engine) == ()


def test_a_purge_leaves_nothing_of_a_reflection_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(str(path), clock=FixedClock(START)) as engine:
        ids = reflected(engine)
        engine.purge(ids[1], confirm=True)
        assert engine.memories(ALL) == ()
        assert engine.learning_runs()[0].decisions[0].proposal.content == ""
    assert b"rolled back" not in path.read_bytes()


@pytest.mark.parametrize("database", ["file", "postgres"])
def test_both_databases_end_reflections(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = str(tmp_path / "agent.db")
    location = file if database == "file" else str(request.getfixturevalue("postgres_store"))
    with germane.open(location, clock=FixedClock(START)) as engine:
        first, second, *_ = reflected(engine)
        engine.revise(first, "The deployment of the billing service failed again.")
        assert [each.status for each in engine.memories(ALL)] == [Status.SUPERSEDED]
        engine.consolidate(reflect=True)
        assert [each.version for each in reflections(engine)] == [2]
        engine.remember(EVENTS[1], kind="episode")
        assert len(reflections(engine)) == 1
        engine.purge(second, confirm=True)
        assert engine.memories(ALL) == ()


def test_undoing_a_run_removes_the_reflections_on_what_it_learned() -> None:
    with germane.open(":memory:", clock=FixedClock(START)) as engine:
        chat = engine.conversation("chat")
        for place in ("office", "kitchen", "garden", "cellar"):
            chat.append("user", f"My lamp in the {place} is red and needs a bulb of 40 watts.")
        run, reflection = engine.consolidate(reflect=True)
        assert len(reflections(engine)) == 1
        engine.unlearn(run.id)
        assert engine.memories(ALL) == ()
        assert reflection.extractor == "reflection"


def test_the_summarizer_of_the_engine_writes_reflections() -> None:
    summarizer = ModelSummarizer(lambda *_: "Billing deployments time out.")
    with germane.open(":memory:", clock=FixedClock(START), summarizer=summarizer) as engine:
        for number in range(9):
            engine.remember(f"{EVENTS[0]} That was attempt {number} of the long night.", kind="episode")
        engine.consolidate(reflect=True)
        assert [each.content for each in reflections(engine)] == ["Billing deployments time out."]


def test_a_summarizer_that_fails_stands_in_the_reason() -> None:
    class Refusing:
        def summarize(self, text: str, tokens: int) -> str:
            if "\n" in text:
                raise ConnectionError("no route to the model")
            return text[:tokens]

    with germane.open(":memory:", clock=FixedClock(START), summarizer=Refusing()) as engine:
        reflected(engine)
        (run,) = engine.learning_runs()
        (decision,) = run.decisions
        assert decision.reason == (
            "It summarizes 6 memories of one topic. By their sentences, since the summarizer failed: "
            "ConnectionError('no route to the model')"
        ).replace("6", str(len(EVENTS)))
        assert reflections(engine)[0].content


@pytest.mark.parametrize("act", ["purge", "forget", "revise"])
def test_members_that_change_while_they_are_summarized_end_the_reflection(act: str, tmp_path: Path) -> None:
    path, clock = str(tmp_path / "agent.db"), FixedClock(START)

    class Meddling:
        def summarize(self, text: str, tokens: int) -> str:
            assert tokens
            with germane.open(path, clock=clock) as other:
                ACTS[act](other, clock, ids[0])
            return text

    with germane.open(path, clock=clock) as engine:
        ids = [engine.remember(text, kind="episode").id for text in EVENTS]
    with germane.open(path, clock=clock, summarizer=Meddling()) as engine:
        engine.consolidate(reflect=True)
        assert reflections(engine) == ()
        assert [each.status for each in engine.memories(ALL)] == [Status.SUPERSEDED] * (act != "purge")
        (run,) = engine.learning_runs()
        assert bool(run.decisions[0].proposal.content) == (act != "purge")


def test_nothing_is_reflected_on_twice_or_by_default() -> None:
    with germane.open(":memory:", clock=FixedClock(START)) as engine:
        assert engine.consolidate(reflect=True) == ()
        ids = reflected(engine)
        assert engine.consolidate(reflect=True) == ()
        (reflection,) = reflections(engine)
        assert set(reflection.metadata["_members"]) == set(ids)
        engine.remember(
            "The deployment of the billing service failed with a timeout once more.", kind="episode"
        )
        assert engine.consolidate() == ()
        dry = engine.consolidate(reflect=True, dry_run=True)
        assert dry[0].dry_run
        assert reflections(engine) == (reflection,)
        engine.consolidate(reflect=True)
        (later,) = reflections(engine)
        assert (later.id, later.version, len(later.metadata["_members"])) == (reflection.id, 2, 5)


def test_a_reflection_is_as_trusted_as_its_least_trusted_member() -> None:
    with germane.open(":memory:", clock=FixedClock(START)) as engine:
        for text in EVENTS[:3]:
            engine.remember(text, kind="episode", trust="owner")
        engine.remember(EVENTS[3], kind="episode", trust="external", confidence=0.5)
        engine.consolidate(reflect=True)
        (reflection,) = reflections(engine)
        assert (reflection.trust, reflection.confidence) == (germane.Trust.EXTERNAL, 0.5)


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_users_reflect_on_their_own_memories_alone(user: str) -> None:
    with germane.open(":memory:", clock=FixedClock(START)) as agent:
        for text in EVENTS:
            agent.remember(text, kind="episode")
        assert agent.for_user(user).consolidate(reflect=True) == ()


def test_an_export_has_reflections_and_decisions_on_names(tmp_path: Path) -> None:
    with germane.open(str(tmp_path / "one.db"), clock=FixedClock(START)) as engine:
        ids = reflected(engine)
        engine.remember("Annie sings.", kind="fact")
        engine.same_name("Anna", "Annie")
        with (tmp_path / "out.jsonl").open("w", encoding="utf-8") as file:
            export_jsonl(engine.memories(order="oldest"), file)
    with germane.open(str(tmp_path / "two.db"), clock=FixedClock(START)) as engine:
        import_source(engine, str(tmp_path / "out.jsonl"))
        assert [each.names for each in engine.about("Anna").entities] == [("Anna", "Annie")]
        assert len(reflections(engine)) == 1
        engine.forget(ids[0])
        assert reflections(engine) == ()
        assert engine.learning_runs() == ()
