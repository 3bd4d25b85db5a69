"""supersede: a draft as the next version of a memory, as when its source was edited."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import germane
from germane import Draft, Engine, InvalidInput, NotFound, Scope, StaleRevision, Status

WHEN = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


def test_everything_a_draft_says_may_change_and_the_chain_goes_on(engine: Engine) -> None:
    old = engine.remember("We use Redis.", kind="note", source="a.md", metadata={"line": 3})
    draft = Draft(
        content="We use Postgres.",
        kind="adr",
        subject="Database",
        scope="path:src",
        source="b.md",
        tags=["storage"],
        created_at=WHEN,
        metadata={"status": "accepted"},
    )

    new = engine.supersede(old.id, draft)

    assert (new.id, new.version, new.supersedes) == (old.id, 2, old.version_id)
    assert (new.kind, new.subject, new.scope, new.source) == (
        "adr",
        "Database",
        Scope.parse("path:src"),
        "b.md",
    )
    assert (new.created_at, new.tags, dict(new.metadata)) == (WHEN, ("storage",), {"status": "accepted"})
    assert engine.get(old.version_id).status is Status.SUPERSEDED
    assert [memory.id for memory in engine.memories()] == [new.id]
    assert [found.id for found in engine.recall("Postgres").ranked] == [new.id]
    assert engine.recall("Redis").ranked == ()


def test_what_the_draft_leaves_open_stays_as_it_was(engine: Engine) -> None:
    old = engine.remember("One.", importance=7, confidence=0.5, outcome="success", trust="owner", pinned=True)
    new = engine.supersede(old.id, {"content": "Two."})
    assert (new.importance, new.confidence, new.outcome, new.trust, new.pinned) == (
        old.importance,
        old.confidence,
        old.outcome,
        old.trust,
        True,
    )


def test_only_a_head_that_is_not_forgotten_is_superseded(engine: Engine) -> None:
    first = engine.remember("One.")
    second = engine.supersede(first.id, Draft(content="Two."))
    with pytest.raises(StaleRevision) as caught:
        engine.supersede(first.id, Draft(content="Three."), expected=first.version)
    assert caught.value.head_id == second.version_id
    engine.forget(second.id)
    with pytest.raises(InvalidInput, match="restore it before"):
        engine.supersede(second.id, Draft(content="Three."))
    with pytest.raises(NotFound):
        engine.supersede("0199a000-0000-7000-8000-000000000000", Draft(content="Three."))
    assert [memory.content for memory in engine.history(first.id)] == ["One.", "Two."]


def test_a_draft_that_cannot_be_stored_changes_nothing(engine: Engine) -> None:
    old = engine.remember("One.")
    for bad in (
        Draft(content=" "),
        Draft(content="Two.", kind="nonsense"),
        Draft(content="x", importance=11),
    ):
        with pytest.raises(InvalidInput):
            engine.supersede(old.id, bad)
    assert engine.memories() == (old,)
