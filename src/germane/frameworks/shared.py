"""What several adapters do alike: work on a thread, memories by key, deletion, and calls in OpenAI's form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from germane.engine import Engine
from germane.errors import NotFound
from germane.model.memory import Memory, Status

Deletion: TypeAlias = Literal["purge", "forget"]
_Result = TypeVar("_Result")


async def to_the_end(work: Callable[[], _Result]) -> _Result:
    """The result of work on a worker thread, which ends what it began if the caller is cancelled."""
    return await asyncio.shield(asyncio.to_thread(work))


def current(engine: Engine, key: str) -> Memory | None:
    """The memory of a key, unless it is unknown or forgotten."""
    try:
        memory = engine.get(key=key)
    except NotFound:
        return None
    return memory if memory.status is Status.ACTIVE else None


def remove(engine: Engine, ids: Sequence[str], how: Deletion) -> None:
    """Forget or purge memories, all or none. Raises NotFound."""
    if how == "forget":
        engine.forget_many(ids)
    elif ids:
        engine.purge_many(ids, confirm=True)


def call_form(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call of an assistant's message in OpenAI's form; the arguments are JSON."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
