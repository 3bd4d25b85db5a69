"""An agent loop: assemble a context, let the model expand a memory, and remember the answer.

The model is a script, so the program needs no API key and its output is deterministic. Replace it with a
real model that takes a system prompt and a message, and returns a text or a tool call.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import germane
from germane.testing.fakes import FixedClock

BUDGET = 120


@dataclass(frozen=True)
class ToolCall:
    name: str
    memory_id: str


class ScriptedModel:
    """Expands the first shortened memory, then answers."""

    def answer(self, system: str, message: str, shortened: list[str], result: str | None) -> ToolCall | str:
        if result is None and shortened:
            return ToolCall(name="expand", memory_id=shortened[0])
        source = "the whole record" if result else "what was shown"
        return f"(having read {source}, {len(system.split())} words of context) Re: {message}"


def turn(engine: germane.Engine, model: ScriptedModel, message: str) -> str:
    """Runs one turn: assemble a context, execute a tool call if there is one, remember the answer."""
    context = engine.assemble(message, budget=BUDGET)
    # The ids of shortened memories are the valid arguments of the tool.
    shortened = [item.memory.id for item in context.items if is_short(item)]
    print(f"> {message}")
    print(f"  context: {context.tokens} of {BUDGET} tokens, {len(context.items)} memories")
    reply = model.answer(context.text, message, shortened, result=None)
    if isinstance(reply, ToolCall):
        whole = engine.expand(reply.memory_id)
        print(f"  the model called expand and read {engine.counter.count(whole)} tokens more")
        reply = str(model.answer(context.text, message, shortened, result=whole))
    engine.remember(
        f"Asked: {message} Answered: {reply}", kind="episode", metadata={"title": "a turn"}, trust="agent"
    )
    print(f"  {reply}")
    return reply


def is_short(item: germane.Item) -> bool:
    """Return whether the context shows less than the full memory."""
    renditions = item.memory.renditions
    return item.level is germane.Level.EXCERPT or renditions.at(item.level).tokens < renditions.full.tokens


def main() -> None:
    clock = FixedClock(datetime(2026, 3, 2, 9, 0, tzinfo=UTC), step=timedelta(seconds=1))
    with germane.open(":memory:", agent="newton", clock=clock) as engine:
        engine.remember("I answer questions about the billing service.", kind="identity")
        engine.remember(
            "Refund an order",
            kind="procedure",
            metadata={
                "name": "Refund an order",
                "steps": [f"{number}. {step}" for number, step in enumerate(STEPS, 1)],
            },
        )
        engine.remember("Refunds above 500 euro need a second person.", kind="constraint", trust="owner")
        model = ScriptedModel()
        turn(engine, model, "How do I refund an order?")
        clock.advance(timedelta(days=1))
        turn(engine, model, "What did I ask about refunds yesterday?")
        print(f"{engine.stats().memories} memories are stored.")


STEPS = (
    "Find the order by its number and open the payment that belongs to it.",
    "Check that the payment was settled; one that is only authorised is cancelled instead.",
    "Compare the amount with what the customer asks for, shipping included, and write the difference down.",
    "Choose a reason from the list, since the monthly report is grouped by it.",
    "Start the refund and wait for the provider's number before the window is closed.",
    "Send the customer the template in the language of the order, with the provider's number in it.",
)


if __name__ == "__main__":
    main()
