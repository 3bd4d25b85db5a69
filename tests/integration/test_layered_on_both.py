"""The layered plans, their note and their refreshes give the same bytes on either database."""

from __future__ import annotations

from datetime import UTC, datetime

import germane
from germane import Context, Draft, Engine, Outcome
from germane.demo import DEMO_NOW, DEMO_QUESTION, load_demo
from germane.testing.fakes import FixedClock

AT = datetime(2026, 1, 1, tzinfo=UTC)


def contexts_of(engine: Engine) -> list[Context]:
    load_demo(engine)
    contexts = [
        engine.assemble(DEMO_QUESTION, plan=plan, frame="auto") for plan in ("layered", "layered_strict")
    ]
    engine.remember_many(
        Draft(
            content=f"Bet number {place} on the weather.",
            kind="decision",
            outcome=Outcome.FAILURE,
            confidence=0.9,
            created_at=AT,
        )
        for place in range(30)
    )
    contexts.append(engine.assemble(DEMO_QUESTION, frame="auto"))
    contexts.append(engine.refresh(contexts[0], "Go ahead.", acting=True, free_tokens=900).context)
    return contexts


def test_both_databases_tell_the_same(postgres_store: str) -> None:
    clock = FixedClock(DEMO_NOW)
    with (
        germane.open(":memory:", agent="newton", clock=clock) as embedded,
        germane.open(postgres_store, agent="newton", clock=clock) as server,
    ):
        one, other = contexts_of(embedded), contexts_of(server)
    assert [each.text for each in one] == [each.text for each in other]
    first, exact, later = (each.text.rpartition("## Note\n")[2].splitlines()[0] for each in one[:3])
    assert first == exact != later
    assert all(note.startswith("Of ") for note in (first, later))
    # In 900 tokens not all that is relevant stands whole, and the note comes after it.
    assert "## Note" not in one[3].text
    assert "text_left_out" in [note.code for note in one[3].trace.notes]
