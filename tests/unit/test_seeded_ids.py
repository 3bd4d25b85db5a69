"""Ids that repeat, for tests that show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

import germane
from germane import Engine, InvalidInput
from germane.testing.fakes import FixedClock, seeded_ids

START = datetime(2026, 1, 5, tzinfo=UTC)


def opened(path: str | Path = ":memory:", *, seed: int | None = 1) -> Engine:
    ids = None if seed is None else seeded_ids(seed)
    return germane.open(path, embedder=None, clock=FixedClock(START, timedelta(seconds=1)), ids=ids)


def used(engine: Engine) -> list[str]:
    """Ids of all that makes some: memories and versions, messages, a space, an assembly."""
    first = engine.remember("The API listens on port 8080.")
    many = engine.remember_many(["Deploys run on Fridays.", "Tests run at night."])
    memories = [first, *(one.memory for one in many)]
    second = engine.revise(first.id, content="The API listens on port 9090.")
    shared = engine.space("team", create=True).remember("Releases are on Mondays.")
    talk = engine.conversation("monday")
    talk.append("user", "Which port?")
    messages = [message.id for message in talk.messages()]
    context = engine.assemble("port", budget=500, record=True)
    return [*(memory.id for memory in (*memories, second, shared)), *messages, context.text]


def test_each_run_makes_the_same_ids() -> None:
    with opened() as one, opened() as other:
        assert used(one) == used(other)


def test_they_are_ids_like_others_and_grow() -> None:
    with opened() as engine:
        ids = [engine.remember(f"Room {number} is painted.").id for number in range(50)]
    assert ids == sorted(set(ids))
    assert {UUID(each).version for each in ids} == {7}


@pytest.mark.parametrize("seed", [2, None])
def test_another_seed_or_none_makes_others(seed: int | None) -> None:
    with opened() as one, opened(seed=seed) as other:
        assert one.remember("The API.").id != other.remember("The API.").id


def test_two_engines_of_one_seed_refuse_what_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as one, opened(path) as other:
        one.remember("The API listens on port 8080.")
        with pytest.raises(InvalidInput, match="is taken by another memory"):
            other.remember("Deploys run on Fridays.")
        assert one.stats().memories == 1
