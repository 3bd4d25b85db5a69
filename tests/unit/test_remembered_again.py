"""remember of a known text: what is new of it is stored, and the result says what happened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest

import germane
from germane import Engine, Filter, Outcome, Status, Trust
from germane.lifecycle import Stage
from germane.testing.fakes import FixedClock, HashEmbedder

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
TEXT = "Move the cache to Valkey."


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW, timedelta(seconds=1))


@pytest.fixture
def engine(clock: FixedClock) -> Iterator[Engine]:
    with germane.open(":memory:", embedder=HashEmbedder(), clock=clock) as engine:
        yield engine


def remembered(engine: Engine, text: str = TEXT, **fields: object) -> germane.RememberResult:
    return engine.remember_many([{"content": text, **fields}])[0]


def test_the_result_says_what_happened(engine: Engine) -> None:
    assert remembered(engine).what == "new"
    assert remembered(engine).what == "repeated"
    assert remembered(engine, tags=["cache"], pinned=True).what == "updated: tags, pinned"
    assert remembered(engine, tags=["cache"], pinned=True).what == "repeated"
    engine.revise(engine.memories()[0].id, "Another text.")
    assert remembered(engine).what == "revised"


def test_new_metadata_is_stored_and_shown(engine: Engine) -> None:
    remembered(engine, kind="decision", outcome="success", metadata={"by": "Tim", "result": "fast"})
    done = remembered(
        engine, kind="decision", outcome="failure", metadata={"reasons": ["cheap"], "result": "slow"}
    )
    assert done.what == "updated: outcome, metadata"
    assert dict(done.memory.metadata) == {
        "by": "Tim",
        "reasons": ["cheap"],
        "result": "slow",
        "outcomes": ["success", "failure"],
    }
    assert "Reasons: cheap" in engine.assemble("the cache in Valkey").text
    assert remembered(engine, kind="decision", metadata={"reasons": ["cheap"]}).what == "repeated"


def test_less_trust_is_applied_and_more_is_not(engine: Engine) -> None:
    remembered(engine, trust="owner")
    assert remembered(engine).memory.trust is Trust.OWNER
    lowered = remembered(engine, trust="external")
    assert (lowered.what, lowered.memory.trust) == ("updated: trust", Trust.EXTERNAL)
    assert remembered(engine, trust="external").what == "repeated"
    assert engine.remember(TEXT, trust="owner").trust is Trust.EXTERNAL
    assert [memory.trust for memory in engine.history(lowered.memory.id)] == [Trust.OWNER, Trust.EXTERNAL]


def test_a_constraint_that_has_come_to_block_goes_on_blocking(engine: Engine) -> None:
    first = remembered(engine, kind="constraint", metadata={"action": "warn"}).memory
    for _ in range(3):
        engine.record_trigger(first.id)
    assert remembered(engine, kind="constraint", metadata={"action": "warn"}).what == "repeated"
    assert engine.get(first.id).metadata["action"] == "block"


@pytest.mark.parametrize("kind", ["decision", "episode", "note", "procedure", "adr"])
def test_a_further_outcome_is_stored_and_shown(engine: Engine, kind: str) -> None:
    first = remembered(engine, kind=kind, outcome="success").memory
    done = remembered(engine, kind=kind, outcome="failure")
    assert (done.memory.id, done.created, done.updated) == (first.id, False, ("outcome",))
    assert (done.memory.outcome, done.memory.seen_count) == (Outcome.FAILURE, 2)
    assert [one.outcome for one in engine.history(first.id)] == ["success", "failure"]
    for level in germane.Level:
        rendition = done.memory.renditions.at(level)
        assert "[success, then failure]" in rendition.text
        assert rendition.tokens == engine.counter.count(rendition.text)
    assert "[success, then failure]" in engine.assemble("the cache in Valkey").text
    assert remembered(engine, kind=kind, outcome="failure").what == "repeated"
    third = remembered(engine, kind=kind, outcome="success").memory
    assert "[success, then failure, then success]" in third.renditions.full.text
    assert len(engine.memories()) == 1


def test_a_decision_with_a_further_outcome_stays_reviewed(engine: Engine) -> None:
    first = remembered(engine, kind="decision").memory
    done = remembered(engine, kind="decision", outcome="success").memory
    assert (first.stage, done.stage) == (Stage.RECORDED, Stage.REVIEWED)
    assert done.renditions.full.text == f"{TEXT} [success]"


def test_a_review_is_a_further_outcome_as_well(engine: Engine) -> None:
    first = remembered(engine, kind="decision", outcome="success").memory
    remembered(engine, kind="decision", outcome="failure")
    done = engine.review(first.id, "partial")
    assert done.renditions.full.text == f"{TEXT} [success, then failure, then partial]"


def test_what_is_given_is_applied_and_what_is_not_stays(engine: Engine) -> None:
    first = remembered(engine, kind="fact", tags=["a"], importance=7, confidence=0.5, pinned=True).memory
    again = remembered(engine, kind="fact")
    assert again.updated == ()
    stored = again.memory
    assert (stored.tags, stored.importance, stored.confidence, stored.pinned) == (("a",), 7, 0.5, True)
    done = remembered(engine, kind="fact", tags=["b", "a"], importance=2, confidence=0.9)
    assert done.updated == ("tags", "importance", "confidence")
    new = done.memory
    assert (new.id, new.tags, new.importance, new.confidence, new.pinned) == (
        first.id,
        ("a", "b"),
        2,
        0.9,
        True,
    )
    assert (new.created_at, new.seen_count, new.stage) == (first.created_at, 3, Stage.CONFIRMED)
    assert [one.id for one in engine.memories(Filter(tags=("b",)))] == [first.id]
    assert remembered(engine, kind="fact", importance=0, confidence=0.0).updated == (
        "importance",
        "confidence",
    )
    assert engine.doctor() == ()


def test_a_forgotten_text_that_is_remembered_again_is_active_with_what_is_new(engine: Engine) -> None:
    first = remembered(engine).memory
    engine.forget(first.id)
    done = remembered(engine, importance=9)
    assert (done.memory.id, done.memory.status, done.memory.importance) == (first.id, Status.ACTIVE, 9)


def test_a_fact_that_is_met_in_other_words_gets_what_is_new(engine: Engine) -> None:
    first = engine.remember("The cache lives in Valkey.", kind="fact")
    (done,) = engine.remember_many(
        [{"content": "the cache lives in valkey", "kind": "fact", "tags": ["cache"]}], reconcile=True
    )
    assert (done.memory.id, done.what, done.memory.stage) == (first.id, "updated: tags", Stage.CONFIRMED)


def test_within_one_call_nothing_is_lost(engine: Engine) -> None:
    done = engine.remember_many(
        [{"content": TEXT, "outcome": word, "tags": [word]} for word in ("success", "failure", "success")]
    )
    assert [one.what for one in done] == ["new", "updated: tags, outcome", "updated: outcome"]
    (memory,) = engine.memories()
    assert (memory.tags, memory.seen_count, memory.version) == (("success", "failure"), 3, 3)


def test_an_import_applies_nothing_to_what_is_known(engine: Engine) -> None:
    before = remembered(engine).memory
    (met,) = engine.remember_many([{"content": TEXT, "tags": ["a"], "pinned": True}], revive=False)
    assert (met.what, met.memory) == ("repeated", before)


def test_an_episode_of_another_day_is_another_one(engine: Engine, clock: FixedClock) -> None:
    first = remembered(engine, "The deploy failed.", kind="episode")
    same = remembered(engine, "The deploy failed.", kind="episode", created_at=NOW - timedelta(hours=3))
    clock.advance(DAY)
    today = remembered(engine, "The deploy failed.", kind="episode")
    earlier = remembered(engine, "The deploy failed.", kind="episode", created_at=NOW - 9 * DAY)
    dated = remembered(engine, "The deploy failed.", kind="episode", metadata={"date": "2026-05-01"})
    again = remembered(engine, "The deploy failed.", kind="episode", created_at=NOW - 9 * DAY)
    assert [one.what for one in (first, same, today, earlier, dated, again)] == [
        "new",
        "repeated",
        "new",
        "new",
        "new",
        "repeated",
    ]
    assert len({one.memory.id for one in (first, today, earlier, dated)}) == 4
    assert again.memory.id == earlier.memory.id
    assert engine.revise(earlier.memory.id, importance=3).version == 2
    assert engine.doctor() == ()


def test_an_episode_of_another_day_is_worth_keeping(engine: Engine, clock: FixedClock) -> None:
    engine.remember("The deploy to production failed.", kind="episode", quality="refuse")
    clock.advance(DAY)
    engine.remember("The deploy to production failed.", kind="episode", quality="refuse")
    assert len(engine.memories()) == 2


def test_an_import_that_names_no_day_meets_the_same_episode(engine: Engine, clock: FixedClock) -> None:
    draft = {"content": "The deploy failed.", "kind": "episode"}
    (first,) = engine.remember_many([draft], revive=False)
    clock.advance(DAY)
    assert engine.remember_many([draft], revive=False)[0].memory == first.memory
    (other,) = engine.remember_many([{**draft, "created_at": NOW - 5 * DAY}], revive=False)
    assert other.what == "new"


def test_other_kinds_are_the_same_on_any_day(engine: Engine, clock: FixedClock) -> None:
    first = remembered(engine, kind="note").memory
    clock.advance(DAY)
    assert remembered(engine, kind="note").memory.id == first.id


def test_two_threads_lose_no_outcome_and_no_tag(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db", embedder=None) as engine:
        engine.remember(TEXT, outcome="pending")
        barrier = Barrier(4)

        def tell(number: int) -> None:
            barrier.wait()
            for tag in range(5):
                engine.remember(TEXT, tags=[f"t{number}{tag}"])

        threads = [Thread(target=tell, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (memory,) = engine.memories()
        assert sorted(memory.tags) == [f"t{number}{tag}" for number in range(4) for tag in range(5)]
        assert engine.doctor() == ()
