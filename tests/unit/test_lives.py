"""Memories live by the verbs of the engine: reconciled, reviewed, marked, maintained, and found or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import germane
from germane import Engine, InvalidInput, Status
from germane.errors import NotWorthKeeping
from germane.lifecycle import (
    Cause,
    LifecycleSignal,
    LifecycleState,
    QualityFlag,
    Reconcile,
    Stage,
    UpkeepTask,
)
from support.alike import Alike

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def engine() -> Engine:
    return germane.open(":memory:", agent="a", clock=lambda: NOW)


def test_a_fact_remembered_again_is_confirmed_and_the_third_time_core(engine: Engine) -> None:
    stages = [engine.remember("Ana leads billing.", kind="fact").stage for _ in range(4)]
    assert stages == [Stage.NEW, Stage.CONFIRMED, Stage.CONFIRMED, Stage.CORE]
    memory = engine.remember("Ana leads billing.", kind="fact")
    assert engine.lifecycle_state(memory.id).confirmations == 4
    assert {event.cause for event in engine.events(memory.id)} == {Cause.REPEATED}
    assert {(event.by, event.at) for event in engine.events()} == {("a", NOW)}


def test_confirm_and_contradict_say_what_they_can_not_do(engine: Engine) -> None:
    fact = engine.remember("Ana leads billing.", kind="fact", confidence=0.9)
    assert engine.contradict(fact.id).confidence == pytest.approx(0.7)
    assert engine.confirm(fact.id, core=True).stage is Stage.CORE
    newer = engine.revise(fact.id, "Ben leads billing.")
    assert engine.confirm(fact.version_id).version == 2
    with pytest.raises(InvalidInput, match="no stages"):
        engine.confirm(engine.remember("A remark.", kind="note").id)
    with pytest.raises(InvalidInput, match="itself"):
        engine.contradict(newer.id, by=newer.id)
    engine.retire(newer.id)
    with pytest.raises(InvalidInput, match="Restore it first"):
        engine.confirm(newer.id)
    assert engine.restore(newer.id).stage is Stage.CONFIRMED


def test_nearly_the_same_confirms_and_another_value_of_the_subject_replaces(engine: Engine) -> None:
    first = engine.remember("The upload limit is 40 MB.", kind="fact", subject="uploads")
    same = engine.remember("The upload limit is 40 mb", kind="fact", subject="Uploads", reconcile=True)
    assert (same.id, same.stage) == (first.id, Stage.CONFIRMED)
    # The cosine of the two is above 0.95 as well, and only the number tells them apart.
    other = engine.remember("The upload limit is 50 MB.", kind="fact", subject="uploads", reconcile=True)
    assert (other.id, other.supersedes, other.stage) == (first.id, first.version_id, Stage.NEW)
    assert engine.get(first.version_id).stage is Stage.SUPERSEDED
    assert engine.events(first.id)[-1].cause is Cause.SUBJECT
    elsewhere = engine.remember("The upload limit is 60 MB.", kind="fact", subject="guests", reconcile=True)
    assert elsewhere.supersedes is None


def test_by_default_nothing_is_reconciled(engine: Engine) -> None:
    for text in ("The upload limit is 40 MB.", "The upload limit is 50 MB.", "the upload limit is 40 mb"):
        engine.remember(text, kind="fact", subject="uploads")
    assert len(engine.memories()) == 3


def test_who_is_trusted_less_replaces_nobody(engine: Engine) -> None:
    engine.remember("The upload limit is 40 MB.", kind="fact", subject="uploads", trust="owner")
    result = engine.remember(
        "The upload limit is 90 MB.", kind="fact", subject="uploads", trust="external", reconcile=True
    )
    assert result.supersedes is None


def test_thresholds_can_be_chosen_and_are_checked(engine: Engine) -> None:
    engine.remember("The upload limit is 40 MB.", kind="fact", subject="uploads")
    never = Reconcile(confirm=1.0, supersede=1.0)
    results = engine.remember("The upload limit is 50 MB.", kind="fact", subject="uploads", reconcile=never)
    assert results.supersedes is None
    with pytest.raises(InvalidInput, match="confirm"):
        engine.remember("Something.", reconcile=Reconcile(confirm=2.0))


@pytest.mark.parametrize(
    ("known", "text", "same"),
    [
        ("The office is in Porto.", "the office is in porto", True),
        ("A supersedes B", "B supersedes A", False),
        ("Ana leads billing", "Ana does not lead billing", False),
        ("It takes 4 ms", "It takes 5 ms", False),
    ],
)
def test_the_same_words_in_another_order_or_denied_are_not_the_same(
    known: str, text: str, *, same: bool
) -> None:
    with germane.open(":memory:", embedder=Alike()) as engine:
        memory = engine.remember(known, kind="fact")
        engine.remember(text, kind="fact", reconcile=True)
        assert engine.lifecycle_state(memory.id).confirmations == same


def test_a_decision_is_reviewed_as_a_version_with_its_outcome(engine: Engine) -> None:
    decision = engine.remember("Use Postgres", kind="decision", confidence=0.8)
    assert decision.stage is Stage.RECORDED
    pending = engine.review(decision.id, "pending")
    reviewed = engine.review(decision.id, "success", result="One backup less.")
    assert (pending.stage, reviewed.stage) == (Stage.PENDING, Stage.REVIEWED)
    assert reviewed.renditions.summary.text == "Use Postgres [success, 0.80 confidence] → One backup less."
    assert [event.sign for event in engine.events(decision.id)] == [
        LifecycleSignal.AWAIT,
        LifecycleSignal.REVIEW,
    ]
    assert engine.revise(reviewed.id, outcome="failure").stage is Stage.REVIEWED
    with pytest.raises(InvalidInput, match="no move"):
        engine.retire(engine.history(decision.id)[-1].id)


def test_a_decision_whose_work_goes_on_is_recorded_and_not_judged(engine: Engine) -> None:
    decision = engine.remember("Use Postgres", kind="decision", confidence=0.8, outcome="ongoing")
    assert (decision.stage, decision.outcome) == (Stage.RECORDED, "ongoing")
    engine.review(decision.id, "success")
    again = engine.review(decision.id, "ongoing")
    assert (again.stage, engine.calibration().count) == (Stage.RECORDED, 0)
    assert [event.sign for event in engine.events(decision.id)][-1] is LifecycleSignal.RESUME


def test_a_constraint_notes_the_tags_that_it_was_learned_with(engine: Engine) -> None:
    learned = engine.remember("Never drop tables.", kind="constraint", tags=["db", "ops:prod"])
    assert learned.learned_tags == ("db", "ops:prod")
    engine.remember("Never drop tables.", kind="constraint", tags=["sql"], metadata={"action": "block"})
    revised = engine.revise(learned.id, tags=["cloud"], metadata={"action": "block", "by": "Ana"})
    assert (revised.tags, revised.learned_tags) == (("cloud",), ("db", "ops:prod"))
    assert engine.remember("Tests run on Monday.", kind="fact", tags=["ci"]).learned_tags == ()


def test_a_procedure_counts_through_its_versions(engine: Engine) -> None:
    procedure = engine.remember("Restart the worker", kind="procedure")
    for _ in range(4):
        engine.review(procedure.id, "success")
    revised = engine.revise(procedure.id, "Restart the worker, then look at its log")
    assert engine.review(procedure.id, "success").stage is Stage.EFFECTIVE
    assert engine.lifecycle_state(revised.id).successes == 5
    with pytest.raises(InvalidInput, match="successes and failures"):
        engine.review(revised.id, "partial")


def test_outcomes_of_work_make_a_procedure_effective_where_it_is_named(engine: Engine) -> None:
    procedure = engine.remember("Restart the worker when the queue stands still", kind="procedure")
    shown = [engine.recall(f"the worker's queue, {n}") for n in range(6)]
    for found in shown:
        engine.outcome(found, "success")
    assert engine.lifecycle_state(procedure.id).successes == 0
    for _ in range(2):
        for found in shown[:5]:
            engine.outcome(found, "success", memories=[procedure])
    assert engine.lifecycle_state(procedure.id) == LifecycleState(stage=Stage.EFFECTIVE, successes=5)
    engine.outcome(shown[0], "failure", memories=[procedure])
    engine.outcome(shown[5], "partial", memories=[procedure])
    assert engine.lifecycle_state(procedure.id) == LifecycleState(
        stage=Stage.EFFECTIVE, successes=4, failures=1
    )


def test_a_constraint_blocks_from_the_third_trigger_and_its_first_id_still_reaches_it(engine: Engine) -> None:
    metadata = {"action": "warn", "reason": "reviews"}
    constraint = engine.remember("Do not push to main", kind="constraint", metadata=metadata)
    latest = [engine.record_trigger(constraint.id) for _ in range(4)][-1]
    assert (latest.stage, latest.version, latest.metadata["action"]) == (Stage.ESCALATED, 2, "block")
    assert latest.renditions.micro.text == "**Do not** push to main — reviews"
    for _ in range(5):
        latest = engine.record_trigger(constraint.id, false_positive=True)
    assert (latest.stage, latest.status) == (Stage.RETIRED, Status.FORGOTTEN)


def test_what_quotes_a_superseded_fact_says_so_wherever_it_is_shown(engine: Engine) -> None:
    fact = engine.remember("The cache lives in Redis.", kind="fact", subject="cache")
    before = engine.remember("Met Tim. The cache lives in Redis, he said.", kind="episode")
    engine.revise(fact.id, "The cache lives in memory.")
    after = engine.remember("Ana still believes: the cache lives in Redis!", kind="episode")
    mark = f"[quotes what has been superseded: {fact.id[-8:]}@1]"
    for memory in (engine.get(before.id), after):
        assert memory.metadata["outdated"] == [fact.version_id]
        for level in germane.Level:
            assert memory.renditions.at(level).text.endswith(mark)
            assert memory.renditions.at(level).tokens == engine.counter.count(
                memory.renditions.at(level).text
            )
    context = engine.assemble("Where does the cache live?", budget=2000)
    lines = [line for line in context.text.splitlines() if "Redis" in line]
    assert lines
    assert all(mark in line for line in lines)
    assert fact.version_id not in {item.memory.version_id for item in context.items}


def test_however_many_quote_it_all_of_them_say_so(engine: Engine) -> None:
    fact = engine.remember("The cache lives in Redis.", kind="fact", subject="cache")
    text = [{"content": f"In talk {n}: the cache lives in Redis.", "kind": "episode"} for n in range(130)]
    engine.remember_many(text)
    engine.revise(fact.id, "The cache lives in memory.")
    episodes = engine.memories(germane.Filter(kinds=("episode",)))
    assert [one.metadata["outdated"] for one in episodes] == [[fact.version_id]] * 130


@pytest.mark.parametrize(
    ("fact", "episode", "quotes"),
    [
        ("The cache is slow.", "He said the cache is slow!", True),
        ("Cache is slow", "The cache is slow", False),
        ("The cache is slow.", "The cache is very slow.", False),
    ],
)
def test_four_words_in_one_piece_are_a_quotation(
    engine: Engine, fact: str, episode: str, *, quotes: bool
) -> None:
    before = engine.remember(episode, kind="episode")
    engine.revise(engine.remember(fact, kind="fact", subject="cache").id, "It is fast.")
    assert ("outdated" in engine.get(before.id).metadata) is quotes


def test_upkeep_tells_its_plan_does_it_and_has_nothing_left(engine: Engine) -> None:
    old = engine.remember("Talked of Redis.", kind="episode", created_at=NOW - timedelta(days=91))
    late = engine.remember("Talked of memory.", kind="episode", created_at=NOW - timedelta(days=30))
    pinned = engine.remember("Kept.", kind="episode", pinned=True, created_at=NOW - timedelta(days=400))
    one = engine.remember("Ana leads the billing team.", kind="fact")
    two = engine.remember("Ana leads the billing team", kind="fact")
    plan = engine.maintain(dry_run=True)
    assert [(step.task, step.memory_id, step.after, step.other) for step in plan.steps] == [
        (UpkeepTask.AGE, old.id, Stage.ARCHIVED, None),
        (UpkeepTask.AGE, late.id, Stage.SUMMARIZED, None),
        (UpkeepTask.MERGE, two.id, Stage.SUPERSEDED, one.id),
    ]
    assert (plan.done, plan.dry_run, engine.events()) == (0, True, ())
    text: list[tuple[int, int]] = []
    done = engine.maintain(progress=lambda number, of, _: text.append((number, of)))
    assert (done.done, done.steps, text) == (3, plan.steps, [(0, 3), (1, 3), (2, 3), (3, 3)])
    assert engine.maintain().steps == ()
    assert engine.get(pinned.id).stage is Stage.ACTIVE
    assert engine.get(two.id).superseded_by == one.id
    assert engine.remember("Ana leads the billing team", kind="fact").id == one.id
    assert engine.doctor() == ()
    assert engine.restore(old.id).stage is Stage.ACTIVE


def test_upkeep_flags_procedures_that_mostly_fail(engine: Engine) -> None:
    procedure = engine.remember("Clear the cache", kind="procedure")
    for _ in range(5):
        engine.review(procedure.id, "failure")
    assert engine.maintain().flagged == (procedure.id,)


def test_doubtful_texts_are_marked_refused_or_left_alone(engine: Engine) -> None:
    results = engine.remember_many(["Thanks, sounds good!", "Tim prefers Celsius."])
    assert [one.quality_flag for one in results] == [QualityFlag.SMALL_TALK, None]
    assert results[0].memory.metadata == {"doubt": {"empty_talk": True}}
    with pytest.raises(NotWorthKeeping, match="status dump") as refused:
        engine.remember("Running the tests now.", quality="refuse")
    assert refused.value.reason == "status_dump"
    assert len(engine.memories()) == 2
    assert engine.remember("Running the tests now.", force=True, quality="refuse").metadata == {}
    with pytest.raises(InvalidInput, match="quality"):
        engine.remember("x", quality="maybe")  # type: ignore[arg-type] # Refusing it is what is tested.


def test_an_episode_stored_twice_within_two_days_is_doubtful(engine: Engine) -> None:
    text = "Talked with Ana about the billing migration in the morning."
    engine.remember(text, kind="episode", created_at=NOW - timedelta(hours=47))
    again = engine.remember(text.upper(), kind="episode")
    assert again.metadata["doubt"] == {"near_duplicate": True}
    later = engine.remember(text.lower(), kind="episode", created_at=NOW + timedelta(hours=49))
    assert "doubt" not in later.metadata


def test_turns_of_dialogue_and_what_has_a_subject_are_not_judged(engine: Engine) -> None:
    assert engine.remember("ok", scope="session:s1").metadata == {}
    assert engine.remember("42", kind="fact", subject="answer").metadata == {}
    assert engine.remember("Hello!", kind="identity").metadata == {}


def test_what_is_archived_or_abandoned_is_found_on_request_only(engine: Engine) -> None:
    old = engine.remember("Talked of the Redis cache.", kind="episode", created_at=NOW - timedelta(days=100))
    decision = engine.remember("Put the cache into Redis", kind="decision", confidence=0.5)
    engine.review(decision.id, "abandoned")
    engine.maintain()

    def found(**options: Any) -> set[str]:
        return {one.kind for one in engine.recall("the Redis cache", **options)}

    assert found() == set()
    assert found(include_archived=True) == {"episode"}
    assert found(include_abandoned=True) == {"decision"}
    # Whoever asks for a time asks for what is old.
    assert found(since=NOW - timedelta(days=120)) == {"episode"}
    assert {one.id for one in engine.recall("the Redis cache in February 2026")} == {old.id}
    assert "Redis" not in engine.assemble("the Redis cache", budget=2000).text.replace("the Redis cache", "")


def test_a_kind_can_not_name_a_lifecycle_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="lifecycle='for ever'"):
        germane.Kind(name="ticket", lifecycle="for ever")
