"""What matches best stands in a context where tokens are left for it: cut to them, and before others grow."""

from __future__ import annotations

import pytest

import germane
from germane.model.memory import Level
from germane.tokens import get_counter

STEPS = (
    "1. Find the payment that belongs to the order.",
    "2. Check that it is settled; one that is only authorised is cancelled instead.",
    "3. Compare the amount with what the customer asks for.",
    "4. Start the refund, and wait for the provider's number.",
)


@pytest.mark.parametrize(
    ("budget", "level"), [(40, Level.MICRO), (50, Level.EXCERPT), (80, Level.FULL), (500, Level.FULL)]
)
def test_a_procedure_is_cut_where_no_level_of_whole_sentences_fits(budget: int, level: Level) -> None:
    with germane.open(":memory:", agent="bea") as engine:
        engine.remember(
            "Refund an order", kind="procedure", metadata={"name": "Refund an order", "steps": list(STEPS)}
        )
        context = engine.assemble("How do I refund an order?", budget=budget)
        assert [item.level for item in context.items] == [level]
        assert context.trace.excluded == ()


IDENTITY = (
    "I am bea, the agent that looks after the billing service of a small company. I weigh before I speak. "
    "I ask before I guess. I write my decisions down before I build. I never quote a customer in a log."
)


def test_who_the_agent_is_grows_only_after_what_matches_best() -> None:
    with germane.open(":memory:", agent="bea") as engine:
        engine.remember(IDENTITY, kind="identity")
        engine.remember("Refunds are started in the order view, under Payments.", kind="fact")
        short = get_counter("o200k").count(IDENTITY) + 12
        items = engine.assemble("How do I refund an order?", budget=short).items
        assert [(item.memory.kind, item.level) for item in items] == [
            ("identity", Level.MICRO),
            ("fact", Level.FULL),
        ]
