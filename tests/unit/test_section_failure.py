"""One section's source failing leaves the others built; what must not be missing fails aloud."""

from __future__ import annotations

import pytest

import germane
from germane import BudgetTooSmall, Engine, InvalidInput, StoreError
from germane.stores import SqliteStore
from germane.testing.fakes import FailingStore, HashEmbedder


def opened(*failing: str, error: Exception | None = None) -> Engine:
    inner = SqliteStore(":memory:")
    with_all = germane.open(inner, embedder=None)
    with_all.remember("I am newton.", kind="identity")
    with_all.remember("Adding a service without its cost.", kind="constraint", metadata={"action": "block"})
    with_all.remember("Redis holds sessions.", kind="fact")
    with_all.remember("Chose Redis for sessions.", kind="decision")
    with_all.remember("Redis was down for an hour.", kind="episode")
    return germane.open(FailingStore(inner, failing, error), embedder=None)


def test_the_others_are_built_and_the_trace_says_what_failed() -> None:
    with opened("fact", error=OSError("disk on fire")) as engine:
        context = engine.assemble("What about Redis?")
        assert [item.section for item in context.items] == [
            "identity",
            "constraints",
            "decisions",
            "episodes",
        ]
        failed = [note.text for note in context.trace.notes if note.code == "section_failed"]
        assert failed == [
            f"Section {name!r} could not be searched and is empty: OSError: disk on fire"
            for name in ("user_facts", "facts")
        ]
        assert "Note  Section 'facts'" in context.explain()


def test_several_can_fail() -> None:
    with opened("fact", "decision", error=StoreError("locked")) as engine:
        context = engine.assemble("What about Redis?")
        assert [item.section for item in context.items] == ["identity", "constraints", "episodes"]


def test_a_time_in_the_question_makes_no_difference() -> None:
    with opened("fact") as engine:
        context = engine.assemble("What about Redis in May 2026?")
        assert "Chose Redis" in context.text
        failed = [note.text for note in context.trace.notes if note.code == "section_failed"]
        assert len(failed) == 2  # Facts, and facts about the user.


@pytest.mark.parametrize("kind", ["constraint", "identity"])
def test_what_may_have_to_stand_there_fails_aloud(kind: str) -> None:
    with opened(kind) as engine, pytest.raises(RuntimeError, match="always fails"):
        engine.assemble("What about Redis?")


def test_a_store_that_finds_nothing_at_all_fails_aloud() -> None:
    every = (
        "fact",
        "decision",
        "episode",
        "procedure",
        "constraint",
        "identity",
        "focus",
        "calibration",
        "note",
    )
    with opened(*every) as engine, pytest.raises(RuntimeError, match="always fails"):
        engine.assemble("What about Redis?", plan="relevance")


def test_a_question_that_is_at_fault_is_reported_at_once() -> None:
    with opened("fact", error=InvalidInput("no such scope")) as engine, pytest.raises(InvalidInput):
        engine.assemble("What about Redis?")


def test_the_constraints_borrow_from_the_others_and_the_trace_warns() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        for number in range(30):
            engine.remember(
                f"Rule {number} says that nobody may touch system number {number} without a second person.",
                kind="constraint",
                metadata={"action": ("absolute", "block", "warn")[number % 3]},
            )
        engine.remember("System facts are here.", kind="fact")
        context = engine.assemble("system", budget=1000)
        shown = [item.memory.metadata["action"] for item in context.items if item.section == "constraints"]
        assert shown[:20] == ["absolute"] * 10 + ["block"] * 10
        assert "lent" in [note.code for note in context.trace.notes]
        assert context.tokens <= 1000
        with pytest.raises(BudgetTooSmall) as caught:
            engine.assemble("system", budget=200)
        assert len(caught.value.required) == 20


def test_a_hundred_constraints_are_all_attempted() -> None:
    with germane.open(":memory:", embedder=HashEmbedder()) as engine:
        for number in range(120):
            action = "block" if number == 0 else "warn"
            engine.remember(
                f"Rule {number}.",
                kind="constraint",
                importance=0 if number == 0 else 9,
                metadata={"action": action},
            )
        context = engine.assemble("anything")
        assert context.items[0].text == "- **Never:** Rule 0."
        assert len(context.items) == 120


def test_the_focus_holds_twenty_and_what_has_least_to_do_with_the_question_leaves() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Task: ship Redis.", kind="focus", importance=0)
        for number in range(21):
            engine.remember(
                f"Thread {number} about gardens.", kind="focus", importance=5, metadata={"role": "thread"}
            )
        engine.remember("Thread about Redis ports.", kind="focus", importance=1, metadata={"role": "thread"})
        context = engine.assemble("Which Redis?")
        shown = [item.text for item in context.items]
        assert len(shown) == 20
        assert shown[0] == "- Task: ship Redis."
        assert shown[-1] == "- Thread about Redis ports."
        assert [str(entry.reason) for entry in context.trace.excluded] == ["limit"] * 3


def test_what_is_known_of_the_user_stands_apart_and_answers_questions_too() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Celsius, never Fahrenheit.", kind="preference", importance=9)
        engine.remember("Ana runs operations.", kind="person")
        engine.remember("Ask before deleting.", kind="rule")
        engine.remember("I am newton.", kind="identity", importance=0)
        context = engine.assemble("anything at all")
        assert context.text == (
            "## Identity\n- I am newton.\n\n## About the user\n- Celsius, never Fahrenheit.\n"
            "- Ana runs operations.\n\n## Active Constraints\n- Ask before deleting."
        )
        assert [one.kind for one in engine.recall("Who is Ana?")] == ["person"]
        assert "Ana" in engine.assemble("Who is Ana?", plan="relevance").text
        # Only who the agent is must stand there; the rest may give way.
        assert "Ana" not in engine.assemble("x", budget=14).text
