"""Define a plan: its sections, their shares of the budget, and what happens when a section is full.

This plan is for code review. House rules are required in full. Decisions get two thirds of the remaining
tokens, and recent changes get the rest, newest first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import germane
from germane import Level, Order, Overflow, Plan, RollOver, Section, Share
from germane.testing.fakes import FixedClock

REVIEW = Plan(
    name="review",
    sections=(
        Section(
            name="rules",
            heading="# House rules",
            kinds=("rule",),
            share=Share(weight=0, floor=40),
            order=Order.IMPORTANT,
            required=True,
            levels=(Level.FULL,),
        ),
        Section(
            name="decisions", heading="# Decisions that bear on it", kinds=("adr",), share=Share(weight=2)
        ),
        Section(
            name="changes",
            heading="# Latest changes",
            kinds=("changelog",),
            share=Share(weight=1, ceiling=60),
            order=Order.NEWEST,
            overflow=Overflow.STOP,
            levels=(Level.MICRO,),
        ),
    ),
    roll_over=RollOver.NEXT,
)

ADR = """# Keep sessions in the database

## Context

Two servers, one database, and sign-ins that were lost at each deploy.

## Decision

Sessions live in a table of the main database. A row is read once in a request and written when it changes.

## Consequences

The database sees two statements more in each request."""


def main() -> None:
    clock = FixedClock(datetime(2026, 3, 2, 9, 0, tzinfo=UTC), step=timedelta(hours=1))
    with germane.open(":memory:", agent="reviewer", kinds=[germane.Kind(name="rule")], clock=clock) as engine:
        engine.remember("No change without a test that fails without it.", kind="rule", importance=9)
        engine.remember("Errors name the value, the limit and the remedy.", kind="rule", importance=7)
        engine.remember(ADR, kind="adr", metadata={"status": "accepted"})
        for change in ("Add the sessions table", "Sign people out on all devices", "Rename login to sign-in"):
            engine.remember(f"{change}.", kind="changelog")
        for budget in (60, 90, 160):
            context = engine.assemble("Where do sessions live?", budget=budget, plan=REVIEW)
            print(f"--- {context.tokens} of {budget} tokens")
            print(context.text)
        try:
            engine.assemble("Where do sessions live?", budget=20, plan=REVIEW)
        except germane.BudgetTooSmall as error:
            print(f"--- 20 tokens are {error.shortfall} too few: the rules alone need {error.needed}")


if __name__ == "__main__":
    main()
