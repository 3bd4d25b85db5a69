"""A team of agents: each has a memory of its own, and they share a space with rights, in one asyncio program.

The researcher finds, the writer writes from what was found, and the reviewer, who may only read, checks.
All three work at once on one file. `python examples/team.py --model NAME` lets a real model write.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from model import Model, model_or

import germane
from germane import aio

FINDINGS = (
    "The ferry Aurora sails 40 kilometres on one charge.",
    "A charge takes 25 minutes at the pier of Lisbon.",
)


async def main() -> None:
    model = model_or(script)
    with TemporaryDirectory() as folder:
        async with aio.connect(Path(folder) / "team.db") as store:
            researcher, writer, reviewer = map(store.agent, ("researcher", "writer", "reviewer"))
            team = await researcher.space("ferry", create=True, admits=None)
            await team.join("writer", rights="write")
            await team.join("reviewer", rights="read")
            await writer.remember("Write one sentence, and begin with the ferry's name.", kind="rule")
            await asyncio.gather(*(team.remember(each, kind="fact") for each in FINDINGS))
            draft = await write(writer, model)
            print(f"writer: {draft}")
            shared = await (await writer.space("ferry")).remember(draft, kind="note", tags=["draft"])
            print(f"reviewer: {await review(reviewer, shared.id)}")


async def write(writer: aio.AsyncEngine, model: Model) -> str:
    """A text from the writer's own rule and what the team knows."""
    request = await writer.request(
        [{"role": "user", "content": "Write about the ferry Aurora and its charge."}],
        memory="layered",
        spaces=["ferry"],
        window=2000,
        reserve=300,
    )
    return str((await asyncio.to_thread(model, request))["content"])


async def review(reviewer: aio.AsyncEngine, name: str) -> str:
    """What the reviewer finds in the space, and that it may not change it."""
    space = await reviewer.space("ferry")
    draft = await space.get(name)
    facts = await space.recall("How far and how long?", where='kind = "fact"')
    missing = [each.content for each in facts if not numbers(each.content) <= numbers(draft.content)]
    try:
        await space.forget(name)
    except germane.NotAllowed:
        return f"{draft.agent}'s draft has all figures: {not missing}. I may not change it."
    return "I changed it."


def numbers(text: str) -> set[str]:
    return {word for word in text.split() if word.isdigit()}


def script(shown: str, last: str) -> str:
    """Writes from what the request shows, and from nothing else."""
    known = "40 kilometres" in shown and "25 minutes" in shown and "begin with the ferry's name" in shown
    return "Aurora sails 40 kilometres on one charge of 25 minutes." if known else f"I know nothing: {last}"


if __name__ == "__main__":
    asyncio.run(main())
