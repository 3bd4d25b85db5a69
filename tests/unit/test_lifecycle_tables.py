"""Every number of the lifecycles, at its edge, the tables as a whole, and what is obsolete."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import MappingProxyType

import pytest

import germane
from germane import Engine, Outcome, Status
from germane.kinds import BUILT_IN
from germane.lifecycle import (
    LIFECYCLES,
    UNSTAGED,
    LifecycleSignal,
    LifecycleState,
    Stage,
    carries,
    effectiveness,
    first_stage,
    is_obsolete,
    next_state,
    obsolete_label,
    replaces,
    stage_of,
    status_at,
    step,
)
from germane.model.memory import sign_of_outcome
from germane.testing.fakes import START, make_memory

# Every number of the lifecycles, at its edge, and the tables as a whole.

FACT = make_memory()


def after(
    lifecycle: str, *signs: LifecycleSignal, at: timedelta = timedelta(0), action: str = "warn"
) -> list[str]:
    """The stages that signs lead to, one by one."""
    memory = make_memory(metadata=MappingProxyType({"action": action}))
    state = LifecycleState(stage=first_stage(lifecycle, None))
    stages = []
    for sign in signs:
        state = step(lifecycle, state, sign, memory=memory, at=START + at)
        stages.append(str(state.stage))
    return stages


def test_a_fact_is_confirmed_and_core_at_the_third_confirmation() -> None:
    assert after("fact", *[LifecycleSignal.CONFIRM] * 4) == ["confirmed", "confirmed", "core", "core"]
    assert after("fact", LifecycleSignal.PROMOTE, LifecycleSignal.CONTRADICT) == ["core", "core"]
    assert after("fact", LifecycleSignal.SUPERSEDE, LifecycleSignal.RETIRE) == ["superseded", "inactive"]
    confirmed = [LifecycleSignal.CONFIRM, LifecycleSignal.RETIRE, LifecycleSignal.RESTORE]
    assert after("fact", *confirmed) == ["confirmed", "inactive", "confirmed"]
    assert after("fact", LifecycleSignal.RETIRE, LifecycleSignal.RESTORE) == ["inactive", "new"]


@pytest.mark.parametrize(
    ("days", "stage"),
    [(29.999, None), (30, "summarized"), (90, "summarized"), (90.001, "archived")],
)
def test_an_episode_ages_at_thirty_and_beyond_ninety_days(days: float, stage: str | None) -> None:
    state = LifecycleState(stage=Stage.ACTIVE)
    aged = next_state("episode", state, LifecycleSignal.AGE, memory=FACT, at=START + timedelta(days=days))
    assert (aged and aged.stage) == stage


def test_an_archived_episode_that_is_restored_ages_anew() -> None:
    old, at = LifecycleState(stage=Stage.ARCHIVED), START + timedelta(days=200)
    again = step("episode", old, LifecycleSignal.RESTORE, memory=FACT, at=at)
    assert next_state("episode", again, LifecycleSignal.AGE, memory=FACT, at=at + timedelta(days=29)) is None
    aged = step("episode", again, LifecycleSignal.AGE, memory=FACT, at=at + timedelta(days=91))
    assert aged.stage is Stage.ARCHIVED


@pytest.mark.parametrize(
    ("successes", "failures", "stage", "effective"),
    [
        (4, 0, "active", 5 / 6),  # Four outcomes are too few.
        (5, 0, "effective", 6 / 7),
        (4, 1, "effective", 5 / 7),
        (3, 2, "active", 4 / 7),
        (5, 3, "active", 0.6),  # Exactly 0.6 stays.
        (6, 3, "effective", 7 / 11),
        (2, 3, "active", 3 / 7),
        (3, 5, "active", 0.4),  # Exactly 0.4 stays.
        (3, 6, "ineffective", 4 / 11),
        (1, 4, "ineffective", 2 / 7),
        (0, 4, "active", 1 / 6),
        (0, 5, "ineffective", 1 / 7),
    ],
)
def test_a_procedure_is_judged_by_laplace_after_five_outcomes(
    successes: int, failures: int, stage: str, effective: float
) -> None:
    state = LifecycleState(stage=Stage.ACTIVE, successes=successes, failures=failures)
    settled = step("procedure", state, LifecycleSignal.SETTLE, memory=FACT, at=START)
    assert settled.stage == stage
    assert effectiveness(settled) == pytest.approx(effective)
    last = LifecycleSignal.SUCCEED if successes else LifecycleSignal.FAIL
    before = LifecycleState(
        stage=Stage.ACTIVE,
        successes=successes - (last is LifecycleSignal.SUCCEED),
        failures=failures - (last is LifecycleSignal.FAIL),
    )
    assert step("procedure", before, last, memory=FACT, at=START).stage == stage


def test_a_corrected_outcome_counts_once_and_moves_back() -> None:
    judged = LifecycleState(stage=Stage.EFFECTIVE, successes=5, failures=0)
    failed = step(
        "procedure", judged, LifecycleSignal.FAIL, memory=FACT, at=START, instead_of=LifecycleSignal.SUCCEED
    )
    assert (failed.successes, failed.failures, failed.stage) == (4, 1, Stage.EFFECTIVE)
    taken_back = step(
        "procedure", judged, LifecycleSignal.SETTLE, memory=FACT, at=START, instead_of=LifecycleSignal.SUCCEED
    )
    assert (taken_back.successes, taken_back.stage) == (4, Stage.ACTIVE)
    never = step(
        "procedure",
        LifecycleState(stage=Stage.ACTIVE),
        LifecycleSignal.FAIL,
        memory=FACT,
        at=START,
        instead_of=LifecycleSignal.FAIL,
    )
    assert never.failures == 1


@pytest.mark.parametrize(
    ("lifecycle", "worth", "weight", "sign"),
    [
        ("procedure", 1.0, 1.0, LifecycleSignal.SUCCEED),
        ("procedure", 0.0, 1.0, LifecycleSignal.FAIL),
        ("procedure", 0.5, 1.0, None),
        ("procedure", 1.0, 0.25, None),
        ("fact", 1.0, 1.0, None),
    ],
)
def test_only_a_procedure_that_was_named_counts_an_outcome(
    lifecycle: str, worth: float, weight: float, sign: LifecycleSignal | None
) -> None:
    assert sign_of_outcome(lifecycle, worth=worth, weight=weight) is sign


def test_a_procedure_without_outcomes_has_no_effectiveness() -> None:
    assert effectiveness(LifecycleState(stage=Stage.ACTIVE)) is None
    assert after("procedure", LifecycleSignal.RETIRE, LifecycleSignal.RESTORE) == ["retired", "active"]


def test_a_constraint_escalates_at_the_third_trigger_and_false_alarms_do_not_count() -> None:
    assert after("constraint", *[LifecycleSignal.TRIGGER] * 4) == [
        "active",
        "active",
        "escalated",
        "escalated",
    ]
    false = [
        LifecycleSignal.FALSE_ALARM,
        LifecycleSignal.TRIGGER,
        LifecycleSignal.TRIGGER,
        LifecycleSignal.TRIGGER,
    ]
    assert after("constraint", *false) == ["active", "active", "active", "escalated"]
    for action in ("block", "absolute"):
        assert after("constraint", *[LifecycleSignal.TRIGGER] * 3, action=action)[-1] == "active"


@pytest.mark.parametrize(
    ("false_alarms", "triggers", "stage"),
    [
        (4, 4, "active"),
        (3, 5, "retired"),
        (2, 5, "active"),
        (3, 6, "active"),
        (4, 7, "retired"),
        (5, 5, "retired"),
    ],
)
def test_a_constraint_retires_when_more_than_half_of_five_triggers_were_false(
    false_alarms: int, triggers: int, stage: str
) -> None:
    before = LifecycleState(stage=Stage.ACTIVE, triggers=triggers - 1, false_alarms=false_alarms - 1)
    blocks = make_memory(metadata=MappingProxyType({"action": "block"}))
    assert step("constraint", before, LifecycleSignal.FALSE_ALARM, memory=blocks, at=START).stage == stage


def test_a_restored_constraint_begins_anew() -> None:
    retired = LifecycleState(stage=Stage.RETIRED, triggers=5, false_alarms=4)
    again = step("constraint", retired, LifecycleSignal.RESTORE, memory=FACT, at=START)
    assert again == LifecycleState(stage=Stage.CREATED, renewed_at=START)


def test_a_decision_waits_for_its_outcome_and_is_never_out_of_use() -> None:
    assert after("decision", LifecycleSignal.AWAIT, LifecycleSignal.REVIEW, LifecycleSignal.AWAIT) == [
        "pending",
        "reviewed",
        "pending",
    ]
    assert first_stage("decision", Outcome.PENDING) is Stage.PENDING
    assert {first_stage("decision", each) for each in (Outcome.SUCCESS, Outcome.ABANDONED)} == {
        Stage.REVIEWED
    }
    assert not any(
        move.to is not None and status_at(move.to) is not Status.ACTIVE
        for move in LIFECYCLES["decision"].moves
    )


def test_each_table_leads_only_to_its_own_stages_and_reaches_all_of_them() -> None:
    for lifecycle in LIFECYCLES.values():
        reached = {lifecycle.start} | {move.to for move in lifecycle.moves if move.to}
        assert reached == set(lifecycle.stages)
        assert {stage for move in lifecycle.moves for stage in move.of} <= set(lifecycle.stages)


def test_every_built_in_kind_names_a_lifecycle_that_there_is() -> None:
    assert {kind.lifecycle for kind in BUILT_IN} <= {*LIFECYCLES, *UNSTAGED}


def test_what_was_stored_before_there_were_stages_stands_where_it_belongs() -> None:
    superseded = FACT.evolve(status=Status.SUPERSEDED)
    assert stage_of("fact", superseded) is Stage.SUPERSEDED
    assert stage_of("fact", FACT) is Stage.NEW
    assert stage_of("episode", FACT.evolve(status=Status.ARCHIVED)) is Stage.ARCHIVED
    assert stage_of("decision", FACT.evolve(outcome=Outcome.FAILURE)) is Stage.REVIEWED
    assert stage_of("permanent", FACT) is None


def test_a_fact_that_says_something_else_begins_anew() -> None:
    other = FACT.evolve(content="The cache lives in memory.")
    assert not carries("fact", FACT, other)
    assert carries("fact", FACT, FACT.evolve(tags=("a",)))
    assert carries("procedure", FACT, other)
    assert not carries("procedure", FACT, other.evolve(kind="note"))


# What is superseded, rejected or deprecated says so, and stands behind what holds.

STATUSES = {1: "Superseded by [ADR-3](0003.md) · 2026-01-02", 2: "rejected", 3: "accepted"}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as engine:
        for number, status in STATUSES.items():
            engine.remember(
                f"# Queue {number}\n\n## Decision\n\nThe queue is in store {number}.",
                kind="adr",
                subject=f"Queue {number}",
                metadata={"status": status, "number": number},
            )
        yield engine


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ("accepted", ""),
        ("Superseded by ADR-12", "superseded by ADR-12"),
        ("superseded by [ADR-12](0012-x.md), in May", "superseded by ADR-12"),
        ("**Rejected**", "rejected"),
        ("Deprecated (2024)", "deprecated"),
        ("superseded", "superseded"),
        ("Supersedes ADR-3", ""),
    ],
)
def test_a_record_says_what_became_of_it(status: str, label: str) -> None:
    memory = make_memory(kind="adr", metadata={"status": status})
    assert obsolete_label(memory) == label
    assert is_obsolete(memory) is (label != "")
    assert obsolete_label(make_memory(kind="note", metadata={"status": status})) == ""


def test_a_newer_version_and_a_named_record_replace_what_was_before() -> None:
    old = make_memory("old", kind="adr", metadata={"status": "superseded by ADR-0012"})
    new = make_memory("new", kind="adr", metadata={"status": "accepted", "number": 12})
    assert replaces(new, old)
    assert not replaces(old, new)
    first = make_memory("first").evolve(status=Status.SUPERSEDED, superseded_by="second")
    assert replaces(make_memory("second").evolve(id="second"), first)
    assert obsolete_label(first) == "superseded"


@pytest.mark.parametrize("plan", ["layered", "relevance", "scoped", "scoped_estimate"])
@pytest.mark.parametrize("budget", [150, 4000])
def test_every_plan_labels_what_no_longer_holds(engine: Engine, plan: str, budget: int) -> None:
    context = engine.assemble("Where is the queue?", budget=budget, plan=plan)
    for item in context.items:
        number = item.memory.metadata["number"]
        label = {1: "[superseded by ADR-3", 2: "[rejected"}.get(number)
        assert label is None or item.text.lower().count(label.lower()) == 1, item.text


@pytest.mark.parametrize("plan", ["layered", "relevance", "scoped"])
def test_what_holds_comes_first_unless_the_question_asks_for_the_past(engine: Engine, plan: str) -> None:
    context = engine.assemble("Where is the queue?", budget=4000, plan=plan)
    assert context.items[0].memory.metadata["number"] == 3
    context = engine.assemble("Why did we reject queue 2?", budget=4000, plan=plan)
    assert 2 in [item.memory.metadata["number"] for item in context.items]


def test_a_question_about_what_was_rejected_finds_it_first(engine: Engine) -> None:
    found = engine.recall("Why did we reject store 2 for the queue?")
    assert found[0].memory.metadata["number"] == 2


def test_the_scoped_plan_puts_a_path_behind_what_holds(engine: Engine) -> None:
    engine.remember(
        "# Queue 4\n\nThe queue is a file.",
        kind="adr",
        metadata={"status": "deprecated", "number": 4, "paths": ["src/queue.py"]},
    )
    context = engine.assemble("queue", budget=4000, plan="scoped", paths=["src/queue.py"])
    numbers = [item.memory.metadata["number"] for item in context.items]
    assert numbers.index(3) < numbers.index(4)


@pytest.mark.parametrize("plan", ["layered", "relevance"])
@pytest.mark.parametrize("question", ["MySQL", "Why did we use MySQL?", "What changed in the releases?"])
def test_a_replaced_record_is_not_shown_without_the_one_in_its_place(plan: str, question: str) -> None:
    with germane.open(":memory:") as engine:
        for number, name, status in ((1, "MySQL", "superseded by 2"), (2, "PostgreSQL", "accepted")):
            engine.remember(
                f"# {number}. Use {name}\n\n## Decision\n\nWe use {name} for the orders.\n",
                kind="adr",
                metadata={"status": status, "number": number},
            )
        for number in range(30):
            engine.remember(f"Release 1.{number} brought feature {number}.", kind="changelog")
        for budget in (*range(30, 300, 10), 400, 2000):
            shown = {
                item.memory.metadata.get("number"): item
                for item in engine.assemble(question, budget=budget, plan=plan).items
            }
            assert 1 not in shown or (2 in shown and shown[1].level is germane.Level.MICRO), budget
