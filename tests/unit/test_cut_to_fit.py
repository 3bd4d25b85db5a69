"""What matches best is cut to the tokens that are left, rather than left out while they stay free."""

from __future__ import annotations

import pytest

import germane
from germane.model.memory import Level

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
