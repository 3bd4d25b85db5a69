"""What a store promises that keeps learning runs: the log, the marks, and versions that are reinstated."""

from __future__ import annotations

from datetime import timedelta

import pytest

from germane import Filter, Status
from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.extractors import (
    Decision,
    Effect,
    LearningRun,
    MemoryState,
    ModelAnswer,
    Proposal,
    ProposalOutcome,
    Quote,
)
from germane.lifecycle import Cause, LifecycleSignal, LifecycleState, Stage
from germane.model.conversation import Append, PurgeMessages, RemoveMessage
from germane.stores import ApplySignal, Insert, Purge, RecordRun, Reinstate, Revise
from germane.testing.fakes import START, make_id, make_memory, make_message, make_revision
from support.stores import TablesStore

__all__ = ["LearningRunsContract"]

AGENT = "tester"
LATER = START + timedelta(days=1)
EVERY = Filter(statuses=tuple(Status))


def make_run(
    name: str, *, session: str | None = "chat", through: int = 3, memory: str = "", message: str = "m"
) -> LearningRun:
    """A run with one decision on a memory, which quotes a message."""
    state = MemoryState(
        version=1,
        updated_at=START + timedelta(microseconds=1),
        valid_until=LATER,
        confidence=0.1 + 0.2,
        state=LifecycleState(stage=Stage.NEW, confirmations=2, renewed_at=LATER),
    )
    decision = Decision(
        proposal=Proposal(
            content=f"{name} lives ☂ in Rome.",
            quotes=(Quote(message=message, text="I live in “Rome”."),),
            subject="user",
            attribute="home",
            valid_from=LATER,
            confidence=0.7,
        ),
        outcome=ProposalOutcome.CONFIRMED,
        reason="It says the same.",
        memory=memory or make_id(name),
        other=make_id("other"),
        effects=(Effect(memory=memory or make_id(name), before=MemoryState(), after=state),),
    )
    return LearningRun(
        id=make_id(f"run {name}"),
        extractor="rules",
        at=START,
        session=session,
        through=through,
        decisions=(decision,),
        answers=(ModelAnswer(request="aa", answer='{"facts": []}', tokens=12),),
        stopped="It stopped.",
    )


def record(store: TablesStore, *runs: LearningRun, expected: int | None = None) -> None:
    store.apply(AGENT, [RecordRun(run=each, expected=expected) for each in runs])


class LearningRunsContract:
    """Runs and marks, written with what they changed, and what undoes them."""

    def test_a_run_comes_back(self, store: TablesStore) -> None:
        run = make_run("one")
        record(store, run)
        assert store.learning.get(AGENT, run.id) == run
        assert store.learning.runs(AGENT) == (run,)
        assert store.learning.get(AGENT, "nonsense") is None
        assert store.learning.get("other", run.id) is None
        assert store.learning.runs("other") == ()

    def test_the_latest_run_comes_first_a_page_at_a_time(self, store: TablesStore) -> None:
        runs = [make_run(f"{place}", session="even" if place % 2 == 0 else "odd") for place in range(5)]
        record(store, *runs)
        assert store.learning.runs(AGENT, limit=2) == (runs[4], runs[3])
        assert store.learning.runs(AGENT, limit=2, after=runs[3].id) == (runs[2], runs[1])
        assert store.learning.runs(AGENT, session="odd") == (runs[3], runs[1])
        with pytest.raises(InvalidInput, match="no learning run"):
            store.learning.runs(AGENT, after=make_id("gone"))

    def test_a_session_was_read_as_far_as_its_runs(self, store: TablesStore) -> None:
        assert store.learning.through(AGENT, "chat") == 0
        record(
            store,
            make_run("one", through=3),
            make_run("two", through=2),
            make_run("x", session="y", through=9),
        )
        assert store.learning.through(AGENT, "chat") == 3
        assert store.learning.through("other", "chat") == 0

    def test_who_comes_second_is_refused_with_all_changes(self, store: TablesStore) -> None:
        record(store, make_run("one", through=3), expected=0)
        memory = make_memory()
        with pytest.raises(StaleRevision):
            store.apply(AGENT, [Insert(memory=memory), RecordRun(run=make_run("two", through=5), expected=0)])
        assert store.find(AGENT, EVERY) == ()
        assert len(store.learning.runs(AGENT)) == 1

    def test_a_run_of_a_known_id_takes_its_place(self, store: TablesStore) -> None:
        run = make_run("one")
        record(store, run, make_run("two"))
        after = run.evolve(undone_at=LATER, through=7)
        record(store, after)
        assert store.learning.get(AGENT, run.id) == after
        assert len(store.learning.runs(AGENT)) == 2
        assert store.learning.through(AGENT, "chat") == 7

    def test_a_purged_memory_leaves_the_runs(self, store: TablesStore) -> None:
        memory, other_memory = make_memory("Rome"), make_memory("Oslo")
        store.apply(AGENT, [Insert(memory=memory), Insert(memory=other_memory)])
        run, other = make_run("one", memory=memory.id), make_run("two", memory=other_memory.id)
        record(store, run, other)
        store.apply(AGENT, [Purge(memory_id=memory.id, at=LATER)])
        found = store.learning.get(AGENT, run.id)
        assert found == run.without(memories=[memory.id])
        assert found is not None
        assert (found.decisions[0].proposal.content, found.decisions[0].memory, found.answers) == (
            "",
            None,
            (),
        )
        assert store.learning.get(AGENT, other.id) == other

    def test_removed_messages_leave_the_runs_and_a_session_takes_them(self, store: TablesStore) -> None:
        messages = tuple(make_message(f"Text {place}", place=place) for place in range(3))
        added = store.conversations.apply(AGENT, "chat", [Append(messages=messages)])
        runs = [make_run(each.id, message=each.id) for each in added]
        record(store, *runs, make_run("elsewhere", session="other"))
        store.conversations.apply(AGENT, "chat", [RemoveMessage(message_id=added[0].id)])
        assert store.learning.get(AGENT, runs[0].id) == runs[0].without(messages=[added[0].id])
        assert store.learning.get(AGENT, runs[1].id) == runs[1]
        store.conversations.apply(AGENT, "chat", [PurgeMessages()])
        assert [run.session for run in store.learning.runs(AGENT)] == ["other"]
        assert store.learning.through(AGENT, "chat") == 0

    def test_a_version_is_reinstated_to_the_byte(self, store: TablesStore) -> None:
        head = make_memory("Rome", stage=Stage.NEW, confidence=0.1 + 0.2)
        store.apply(AGENT, [Insert(memory=head, lifecycle="fact"), Insert(memory=make_memory("Oslo"))])
        before = store.find(AGENT, EVERY), store.lifecycle.states(AGENT, [head.id])
        stats = store.stats(AGENT).by_kind
        after = make_revision(head, "Paris", valid_from=LATER, stage=Stage.NEW)
        signal = ApplySignal(
            memory_id=f"{head.id}@1",
            lifecycle="fact",
            sign=LifecycleSignal.SUPERSEDE,
            cause=Cause.REVISED,
            at=LATER,
        )
        store.apply(AGENT, [Revise(memory=after), signal])
        assert store.find(AGENT, EVERY) != before[0]
        state = LifecycleState(stage=Stage.NEW)
        undo = Reinstate(memory_id=head.id, expected=2, at=LATER, memory=head, lifecycle_state=state)
        store.apply(AGENT, [undo])
        assert (store.find(AGENT, EVERY), store.lifecycle.states(AGENT, [head.id])) == before
        assert store.stats(AGENT).by_kind == stats
        assert store.get(AGENT, [f"{head.id}@2"]) == (None,)
        assert store.maintenance.check(AGENT) == ()

    def test_a_new_memory_is_removed(self, store: TablesStore) -> None:
        memory = make_memory("Rome")
        store.apply(AGENT, [Insert(memory=memory)])
        (applied,) = store.apply(AGENT, [Reinstate(memory_id=memory.id, expected=1, at=LATER)])
        assert applied.memory is None
        assert store.find(AGENT, EVERY) == ()
        assert store.maintenance.check(AGENT) == ()

    def test_what_was_revised_since_is_not_reinstated(self, store: TablesStore) -> None:
        head = make_memory("Rome")
        second = make_revision(head, "Paris")
        store.apply(AGENT, [Insert(memory=head), Revise(memory=second)])
        store.apply(AGENT, [Revise(memory=make_revision(second, "Oslo"))])
        with pytest.raises(StaleRevision):
            store.apply(AGENT, [Reinstate(memory_id=head.id, expected=2, at=LATER, memory=head)])
        with pytest.raises(NotFound):
            store.apply(AGENT, [Reinstate(memory_id=make_id("gone"), expected=1, at=LATER)])
        assert len(store.find(AGENT, EVERY)) == 3
