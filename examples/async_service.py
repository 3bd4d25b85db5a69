"""An asyncio service with several agents and concurrent requests."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from germane import aio


async def answer(path: Path, agent: str, question: str) -> str:
    """Handle one request. Each agent reads only its own memories."""
    async with await aio.open(path, agent=agent) as engine:
        context = await engine.assemble(question, budget=100, plan="relevance")
    return f"{agent}: {context.tokens} tokens, {[item.memory.content for item in context.items]}"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agents.db"
        async with await aio.open(path, agent="ada") as ada, await aio.open(path, agent="ben") as ben:
            await asyncio.gather(
                ada.remember("The demo is on Tuesday at ten."),
                ada.remember("The demo needs the big screen."),
                ben.remember("The demo is cancelled, says the customer."),
            )
        for line in await asyncio.gather(
            answer(path, "ada", "big screen for the demo"),
            answer(path, "ben", "When is the demo?"),
            answer(path, "eve", "When is the demo?"),
        ):
            print(line)


if __name__ == "__main__":
    asyncio.run(main())
