"""What matches best stands in a context where tokens are left for it: cut to them, and before others grow."""

from __future__ import annotations

import pytest

import germane
from germane import Level
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


WEIGHED = " ".join(
    f"We looked at queue {number} and weighed its cost, its risk and the time to run it."
    for number in range(30)
)
REASON = "We keep the jobs in PostgreSQL because the broker lost 412 messages in March."
QUEUE = {
    "plain": f"A queue for the jobs. {WEIGHED} {REASON}",
    "headed": f"# 7. A queue for the jobs\n\n![](x.png)\n\n{WEIGHED}\n\n{REASON}",
    "record": f"# 7. A queue\n\nStatus: accepted\n\n## Context\n\n{WEIGHED}\n\n## Decision\n\n{REASON}",
}


@pytest.mark.parametrize("kind", ["decision", "adr"])
@pytest.mark.parametrize("form", QUEUE)
def test_a_decision_gives_its_reason_at_every_budget_that_shows_more_than_a_line(
    kind: str, form: str
) -> None:
    with germane.open(":memory:", agent="bea") as engine:
        engine.remember(QUEUE[form], kind=kind)
        for number in range(12):
            engine.remember(f"The jobs of queue {number} belong to team {number}.", kind="fact")
        for budget in range(100, 1000, 50):
            assert "412 messages" in engine.assemble("Why is PostgreSQL the queue?", budget=budget).text, (
                budget
            )


README = """# Taxes

[![CI](https://ci.example.org/badge.svg)](https://ci.example.org) ![logo](logo.png)

| a | b |
|---|---|
| 1 | 2 |

It computes the taxes of small shops \\#1 to \\#9. It needs [Python](https://python.example.org).

```python
taxes = sum(rate * share for rate, share in zip(rates, shares))
```

It stores its data in a file of its own. <!-- hidden --> Nobody else reads it.
"""


@pytest.mark.parametrize("budget", range(40, 125, 5))
def test_a_text_that_is_cut_has_sentences_alone(budget: int) -> None:
    with germane.open(":memory:", agent="bea") as engine:
        engine.remember(README, kind="note")
        context = engine.assemble("What does it compute?", budget=budget)
        (item,) = context.items
        assert item.level is not Level.FULL
        assert "It computes the taxes of small shops #1 to #9." in context.text
        assert not [mark for mark in ("![", "](", "|", "```", "<!--", "\\") if mark in context.text]
