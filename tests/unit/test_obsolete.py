"""What is superseded, rejected or deprecated says so, and stands behind what holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import germane
from germane import Engine, Status
from germane.lifecycle import is_obsolete, obsolete_label, replaces
from germane.testing.fakes import make_memory

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
