"""OpenAI Agents SDK memory in germane (extra `openai-agents`): a session, and requests that fit a window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from germane.engine import Engine
from germane.errors import MessageNotFound, MissingExtra
from germane.frameworks.shared import to_the_end

try:
    from agents import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.run_config import CallModelData, ModelInputData
except ImportError as error:
    raise MissingExtra(feature="The session of the OpenAI Agents SDK", extra="openai-agents") from error

__all__ = ["OpenAIAgentsSession", "openai_agents_filter"]

_FORM = "openai-responses"
"""The layout of the SDK's items."""


class OpenAIAgentsSession(SessionABC):
    """The items of a session in the engine's conversation log, as they were, for `Runner.run(session=...)`.

    The log survives restarts, and contexts of later sessions quote it. `engine.for_user(...)` keeps the
    sessions of a user apart. A cancelled call still finishes what it began.
    """

    def __init__(
        self,
        session_id: str,
        engine: Engine,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._conversation = engine.conversation(session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in their order; the latest `limit`, which falls back to that of the settings."""
        most = resolve_session_limit(limit, self.session_settings)
        items = await to_the_end(self._items)
        return (
            items
            if most is None
            else items[len(items) - most :]
            if 0 < most < len(items)
            else items[: max(most, 0)]
        )

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none. Raises InvalidInput for one that isn't JSON."""
        if items:
            given = [dict(item) for item in items]
            await to_the_end(lambda: self._conversation.extend(given, provider=_FORM))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item; None if there is none."""
        return await to_the_end(self._pop)

    async def clear_session(self) -> None:
        """Remove all items for good."""
        with suppress(MessageNotFound):  # Nothing was added yet.
            await to_the_end(lambda: self._conversation.purge(confirm=True))

    def _items(self) -> list[TResponseInputItem]:
        return cast("list[TResponseInputItem]", self._conversation.items(_FORM))

    def _pop(self) -> TResponseInputItem | None:
        messages = self._conversation.messages()
        if not messages:
            return None
        item = self._items()[-1]
        self._conversation.remove_message(messages[-1].id)
        return item


def openai_agents_filter(
    engine: Engine,
    *,
    window: int,
    reserve: int = 0,
    memory: str | None = "layered",
    engine_of: Callable[[Any], Engine] | None = None,
) -> Callable[[CallModelData[Any]], Any]:
    """A `RunConfig(call_model_input_filter=...)` that fits each model call into `window` tokens.

    Instructions, memory and the items share the window less `reserve` tokens, as in `Engine.request`: calls
    stay with their results, and the session keeps all items. `memory` is a plan, or None for none.
    `engine_of` gives the engine of a run's context. The call raises RequestTooLarge if what is required
    doesn't fit.
    """

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        chosen = engine if engine_of is None else engine_of(data.context)
        given = data.model_data

        def request() -> ModelInputData:
            items: list[Any] = list(given.input)
            made = chosen.request(
                items,
                provider=_FORM,
                system=given.instructions,
                memory=memory,
                window=window,
                reserve=reserve,
            )
            return ModelInputData(input=made.arguments()["input"], instructions=given.instructions)

        return await asyncio.to_thread(request)

    return fitted
