"""What a store promises of the lives of memories: moved by the rules, counted, logged in one transaction."""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType

import pytest

from germane import Filter, Memory, Status
from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.lifecycle import Cause, LifecycleEvent, LifecycleSignal, LifecycleState, Stage
from germane.stores import ApplySignal, Insert, Merge, Purge, RecordOutcome, Revise, Reword, SetStatus
from germane.testing.fakes import START, make_memory, make_renditions, make_revision
from support.stores import TablesStore

__all__ = ["LifecyclesContract"]

AGENT = "tester"
LATER = START + timedelta(days=1)


def stored(store: TablesStore, content: str = "The cache lives in Redis.", kind: str = "fact") -> Memory:
    """A memory of a kind that is stored."""
    memory = make_memory(content, kind=kind)
    store.apply(AGENT, [Insert(memory=memory)])
    return memory


def lived(
    store: TablesStore,
    memory: Memory,
    sign: LifecycleSignal,
    lifecycle: str = "fact",
    *,
    other: str | None = None,
) -> Memory:
    """The memory after a sign."""
    change = ApplySignal(
        memory_id=memory.id, lifecycle=lifecycle, sign=sign, cause=Cause.REQUESTED, at=LATER, other=other
    )
    after = store.apply(AGENT, [change])[0].memory
    assert after is not None
    return after


class LifecyclesContract:
    """Stages, counts and the log of what moved them."""

    def test_a_sign_moves_the_stage_counts_and_is_reported(self, store: TablesStore) -> None:
        memory = stored(store)
        after = lived(store, memory, LifecycleSignal.CONFIRM)
        assert after == memory.evolve(stage=Stage.CONFIRMED)
        assert store.get(AGENT, [memory.id]) == (after,)
        state = LifecycleState(stage=Stage.CONFIRMED, confirmations=1, renewed_at=LATER)
        assert store.lifecycle.states(AGENT, [memory.id]) == (state,)
        (event,) = store.lifecycle.events(AGENT, memory.id)
        assert event == LifecycleEvent(
            number=event.number,
            memory_id=memory.id,
            sign=LifecycleSignal.CONFIRM,
            before=Stage.NEW,
            after=Stage.CONFIRMED,
            cause=Cause.REQUESTED,
            by=AGENT,
            at=LATER,
        )

    def test_what_the_rules_do_not_know_changes_nothing(self, store: TablesStore) -> None:
        one, other = stored(store), stored(store, "Somebody decided.", "decision")
        change = ApplySignal(
            memory_id=one.id, lifecycle="fact", sign=LifecycleSignal.CONFIRM, cause=Cause.REQUESTED, at=LATER
        )
        wrong = ApplySignal(
            memory_id=other.id,
            lifecycle="decision",
            sign=LifecycleSignal.RETIRE,
            cause=Cause.REQUESTED,
            at=LATER,
        )
        with pytest.raises(InvalidInput, match="has no move"):
            store.apply(AGENT, [change, wrong])
        assert store.get(AGENT, [one.id, other.id]) == (one, other)
        assert store.lifecycle.events(AGENT) == ()

    def test_no_stage_for_a_kind_without_a_lifecycle(self, store: TablesStore) -> None:
        with pytest.raises(InvalidInput, match="no stages"):
            lived(store, stored(store, kind="note"), LifecycleSignal.CONFIRM, "permanent")

    def test_a_stranger_and_an_unknown_memory(self, store: TablesStore) -> None:
        memory = stored(store)
        lived(store, memory, LifecycleSignal.CONFIRM)
        change = ApplySignal(
            memory_id=memory.id,
            lifecycle="fact",
            sign=LifecycleSignal.CONFIRM,
            cause=Cause.REQUESTED,
            at=LATER,
        )
        with pytest.raises(NotFound):
            store.apply("somebody", [change])
        with pytest.raises(NotFound):
            store.lifecycle.events("somebody", memory.id)
        assert store.lifecycle.events("somebody") == ()
        assert store.lifecycle.states("somebody", [memory.id, "nonsense"]) == (None, None)

    def test_a_contradiction_takes_a_fifth_of_all_confidence_and_no_more_than_there_is(
        self, store: TablesStore
    ) -> None:
        memory, other = stored(store), stored(store, "The cache lives in memory.")
        confidences = [
            lived(store, memory, LifecycleSignal.CONTRADICT, other=other.id).confidence for _ in range(6)
        ]
        assert confidences == [0.8, 0.6, 0.4, 0.2, 0.0, 0.0]
        assert {each.other for each in store.lifecycle.events(AGENT, memory.id)} == {other.id}

    def test_what_is_out_of_use_is_not_found_until_it_is_restored(self, store: TablesStore) -> None:
        memory = stored(store, kind="procedure")
        retired = lived(store, memory, LifecycleSignal.RETIRE, "procedure")
        assert (retired.stage, retired.status) == (Stage.RETIRED, Status.FORGOTTEN)
        assert store.find(AGENT, Filter()) == ()
        restored = lived(store, memory, LifecycleSignal.RESTORE, "procedure")
        assert (restored.stage, restored.status) == (Stage.ACTIVE, Status.ACTIVE)
        assert store.find(AGENT, Filter()) == (restored,)

    def test_a_sign_does_not_bring_back_what_was_forgotten(self, store: TablesStore) -> None:
        memory = stored(store, kind="procedure")
        store.apply(AGENT, [SetStatus(memory_id=memory.id, status=Status.FORGOTTEN, at=LATER)])
        assert lived(store, memory, LifecycleSignal.SUCCEED, "procedure").status is Status.FORGOTTEN

    def test_remembered_again_a_fact_is_confirmed(self, store: TablesStore) -> None:
        memory = stored(store)
        again = make_memory(memory.content, id=make_memory("another id").id, updated_at=LATER)
        applied = store.apply(AGENT, [Insert(memory=again, lifecycle="fact")] * 3)
        assert [each.memory and each.memory.stage for each in applied] == ["confirmed", "confirmed", "core"]
        assert [each.created for each in applied] == [False, False, False]
        assert {each.cause for each in store.lifecycle.events(AGENT)} == {Cause.REPEATED}
        store.apply(AGENT, [Insert(memory=again, lifecycle="fact", revive=False)])
        assert len(store.lifecycle.events(AGENT)) == 3

    def test_the_next_version_carries_the_counts_where_it_goes_on(self, store: TablesStore) -> None:
        memory = stored(store, kind="procedure")
        lived(store, memory, LifecycleSignal.SUCCEED, "procedure")
        head = make_revision(memory, "Restart the cache, then look.", stage=Stage.ACTIVE)
        store.apply(AGENT, [Revise(memory=head, carries=True)])
        carried = LifecycleState(stage=Stage.ACTIVE, successes=1)
        assert store.lifecycle.states(AGENT, [head.id]) == (carried,)
        other = make_revision(head, "Something else.", stage=Stage.ACTIVE)
        store.apply(AGENT, [Revise(memory=other)])
        assert store.lifecycle.states(AGENT, [other.id]) == (LifecycleState(stage=Stage.ACTIVE),)
        assert [f"{each.memory_id}@{each.version}" for each in store.lifecycle.events(AGENT, other.id)] == [
            memory.version_id
        ]

    def test_what_was_counted_elsewhere_comes_along_and_changes_nothing_known(
        self, store: TablesStore
    ) -> None:
        state = LifecycleState(stage=Stage.CORE, confirmations=4, renewed_at=LATER)
        memory = make_memory().evolve(stage=Stage.CORE)
        for counted in (state, LifecycleState(stage=Stage.CORE, confirmations=9)):
            store.apply(
                AGENT, [Insert(memory=memory, revive=False, lifecycle="fact", lifecycle_state=counted)]
            )
            assert store.lifecycle.states(AGENT, [memory.id]) == (state,)
        assert store.lifecycle.events(AGENT, memory.id) == ()

    def test_an_attested_outcome_counts_in_the_life_of_the_procedure_named(self, store: TablesStore) -> None:
        first = stored(store, "Restart the worker.", kind="procedure")
        second = make_revision(first, "Restart the worker, and look at its log.")
        store.apply(AGENT, [Revise(memory=second, carries=True)])
        counts = []
        # Reported for one context: the latest report counts, in the life of the latest version.
        for worth, weight in ((1.0, 0.25), (1.0, 1.0), (1.0, 1.0), (0.0, 1.0), (0.5, 1.0), (0.0, 1.0)):
            outcome = RecordOutcome(
                memory_id=first.id,
                context="0a" * 16,
                worth=worth,
                weight=weight,
                at=LATER,
                lifecycle="procedure",
            )
            store.apply(AGENT, [outcome])
            (state,) = store.lifecycle.states(AGENT, [second.id])
            assert state is not None
            counts.append((state.successes, state.failures))
        assert counts == [(0, 0), (1, 0), (1, 0), (0, 1), (0, 0), (0, 1)]
        events = store.lifecycle.events(AGENT, second.id)
        assert [(each.sign, each.cause) for each in events if each.memory_id == second.id] == [
            (LifecycleSignal.SUCCEED, Cause.OUTCOME),
            (LifecycleSignal.FAIL, Cause.OUTCOME),
            (LifecycleSignal.SETTLE, Cause.OUTCOME),
            (LifecycleSignal.FAIL, Cause.OUTCOME),
        ]

    def test_an_outcome_of_what_is_out_of_use_counts_nothing_in_its_life(self, store: TablesStore) -> None:
        procedure = stored(store, "Restart the worker.", kind="procedure")
        lived(store, procedure, LifecycleSignal.RETIRE, "procedure")
        outcome = RecordOutcome(
            memory_id=procedure.id,
            context="0a" * 16,
            worth=1.0,
            weight=1.0,
            at=LATER,
            lifecycle="procedure",
        )
        (applied,) = store.apply(AGENT, [outcome])
        assert applied.created
        (state,) = store.lifecycle.states(AGENT, [procedure.id])
        assert state == LifecycleState(stage=Stage.RETIRED)

    def test_a_constraint_escalates_into_its_next_version_at_the_third_trigger(
        self, store: TablesStore
    ) -> None:
        memory = stored(store, "Do not push to main.", "constraint")
        metadata = MappingProxyType({"action": "block"})
        stricter = make_revision(memory, memory.content, metadata=metadata, created_at=START)
        change = ApplySignal(
            memory_id=memory.id,
            lifecycle="constraint",
            sign=LifecycleSignal.TRIGGER,
            cause=Cause.REQUESTED,
            at=LATER,
            escalated=stricter,
        )
        applied = [store.apply(AGENT, [change])[0].memory for _ in range(3)]
        assert [each and each.stage for each in applied] == ["active", "active", "escalated"]
        assert applied[2] == stricter.evolve(stage=Stage.ESCALATED)
        assert store.lifecycle.states(AGENT, [stricter.id]) == (
            LifecycleState(stage=Stage.ESCALATED, triggers=3),
        )
        with pytest.raises(StaleRevision):
            store.apply(AGENT, [Revise(memory=make_revision(memory, "Too late."))])

    def test_one_of_two_duplicates_stands_for_both(self, store: TablesStore) -> None:
        one, other = stored(store), stored(store, "The cache lives in redis")
        merged = store.apply(AGENT, [Merge(memory_id=other.id, into=one.id, lifecycle="fact", at=LATER)])
        memory = merged[0].memory
        assert memory is not None
        assert (memory.status, memory.stage) == (Status.SUPERSEDED, Stage.SUPERSEDED)
        assert memory.superseded_by == one.id
        assert [each.id for each in store.find(AGENT, Filter())] == [one.id]
        assert store.get(AGENT, [one.id])[0] == one.evolve(stage=Stage.CONFIRMED)
        (event,) = store.lifecycle.events(AGENT, other.id)
        assert (event.sign, event.cause, event.other) == (LifecycleSignal.SUPERSEDE, Cause.DUPLICATE, one.id)
        with pytest.raises(StaleRevision):
            store.apply(AGENT, [Merge(memory_id=other.id, into=one.id, lifecycle="fact", at=LATER)])

    def test_renditions_and_metadata_can_be_replaced(self, store: TablesStore) -> None:
        memory = stored(store)
        outcome = memory.evolve(
            renditions=make_renditions("Another text."), metadata=MappingProxyType({"a": 1})
        )
        assert store.apply(AGENT, [Reword(memory=outcome)])[0].memory == outcome
        assert store.get(AGENT, [memory.id]) == (outcome,)

    def test_a_purge_leaves_nothing_of_a_life(self, store: TablesStore) -> None:
        one, other = stored(store), stored(store, "The cache lives in memory.")
        lived(store, one, LifecycleSignal.CONTRADICT, other=other.id)
        lived(store, other, LifecycleSignal.CONFIRM)
        store.apply(AGENT, [Purge(memory_id=other.id, at=LATER)])
        assert store.lifecycle.states(AGENT, [other.id]) == (None,)
        (event,) = store.lifecycle.events(AGENT)
        assert (event.memory_id, event.other) == (one.id, None)
        lived(store, one, LifecycleSignal.CONFIRM)
        assert len({each.number for each in store.lifecycle.events(AGENT)}) == 2

    def test_a_purge_takes_with_it_what_was_merged_into_the_memory(self, store: TablesStore) -> None:
        one, other, third = (
            stored(store, text) for text in ("The cache is Redis.", "the cache is redis", "X y z")
        )
        head = make_revision(other, "The cache is redis!")
        store.apply(AGENT, [Revise(memory=head)])
        store.apply(AGENT, [Merge(memory_id=head.id, into=one.id, lifecycle="fact", at=LATER)])
        assert store.apply(AGENT, [Purge(memory_id=one.id, at=LATER)])[0].purged == 3
        assert store.get(AGENT, [one.id, other.id, head.id, third.id]) == (None, None, None, third)

    def test_what_a_purge_took_along_may_be_named_behind_it(self, store: TablesStore) -> None:
        one, other = (stored(store, text) for text in ("The cache is Redis.", "the cache is redis"))
        store.apply(AGENT, [Merge(memory_id=other.id, into=one.id, lifecycle="fact", at=LATER)])
        both = [Purge(memory_id=each.id, at=LATER) for each in (one, other)]
        assert [each.purged for each in store.apply(AGENT, both)] == [2, 0]
        with pytest.raises(NotFound):
            store.apply(AGENT, both)

    def test_events_come_a_page_at_a_time(self, store: TablesStore) -> None:
        memory = stored(store)
        for _ in range(4):
            lived(store, memory, LifecycleSignal.CONFIRM)
        numbers = [each.number for each in store.lifecycle.events(AGENT, memory.id)]
        page = store.lifecycle.events(AGENT, since=numbers[0], limit=2)
        assert [each.number for each in page] == numbers[1:3]
        with pytest.raises(InvalidInput, match="negative"):
            store.lifecycle.events(AGENT, limit=-1)
