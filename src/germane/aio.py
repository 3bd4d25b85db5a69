"""The same surface with await: each verb of the engine, run on a worker thread.

Level: aio (imports the engine). There is no second implementation: the synchronous core is the
only one, and SQLite's work never blocks the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from germane.engine import Engine, open_engine
from germane.protocols import Store, TokenCounter

__all__ = ["AsyncEngine", "open"]

P = ParamSpec("P")
R = TypeVar("R")


async def open(location: str | Path | Store, **options: Any) -> AsyncEngine:  # noqa: A001 - As `germane.open`.
    """Open an agent's memory as `germane.open` does, with the same options and errors."""
    return AsyncEngine(await asyncio.to_thread(open_engine, location, **options))


def _awaited(
    verb: Callable[Concatenate[Engine, P], R],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, R]]:
    """The awaited form of a verb: same arguments, result and errors."""

    async def awaited(self: AsyncEngine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self.engine, *args, **kwargs)

    update_wrapper(awaited, verb)
    return awaited


class AsyncEngine:
    """An engine whose verbs are awaited. `engine` is the synchronous one behind it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def agent(self) -> str:
        """Whose memory this is."""
        return self.engine.agent

    @property
    def counter(self) -> TokenCounter:
        """The counter that judges budgets unless a call names another."""
        return self.engine.counter

    remember = _awaited(Engine.remember)
    remember_many = _awaited(Engine.remember_many)
    adopt = _awaited(Engine.adopt)
    get = _awaited(Engine.get)
    history = _awaited(Engine.history)
    memories = _awaited(Engine.memories)
    revise = _awaited(Engine.revise)
    supersede = _awaited(Engine.supersede)
    forget = _awaited(Engine.forget)
    restore = _awaited(Engine.restore)
    purge = _awaited(Engine.purge)
    recall = _awaited(Engine.recall)
    assemble = _awaited(Engine.assemble)
    feedback = _awaited(Engine.feedback)
    learn = _awaited(Engine.learn)
    unlearn = _awaited(Engine.unlearn)
    expand = _awaited(Engine.expand)
    embed_pending = _awaited(Engine.embed_pending)
    stats = _awaited(Engine.stats)
    doctor = _awaited(Engine.doctor)
    close = _awaited(Engine.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
