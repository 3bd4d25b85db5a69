"""What an agent has learned is never taken for that of another one of its name, which came after it."""

from __future__ import annotations

from pathlib import Path

import pytest

import germane
from germane.stores import remove_agent


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, without any agent."""
    if request.param == "file":
        return str(tmp_path / "agent.db")
    return str(request.getfixturevalue("postgres_store"))


def test_what_was_learned_is_not_taken_for_a_namesakes(store: str) -> None:
    def taught(engine: germane.Engine, used: int) -> None:
        engine.set_learning(on=True)
        for text in ("Oolong tea in the morning", "Oolong tea in the evening, with milk"):
            engine.remember(text)
        shown = engine.recall("oolong tea", limit=2)
        engine.feedback(shown, used=[shown[used]])
        engine.outcome(shown, "success" if used else "failure")

    with germane.open(store, agent="ada") as before:
        taught(before, 1)
        learned = before.set_learning().weights
        assert before.recall("oolong tea").weights
        remove_agent(store, "ada", confirm=True)
        with germane.open(store, agent="ada") as other:
            # As many judgements and outcomes as the one before has, and others.
            taught(other, 0)
            expected, after = other.recall("oolong tea"), other.set_learning()
        assert (before.set_learning(), before.recall("oolong tea").weights) == (after, expected.weights)
        assert before.set_learning().weights != learned
