"""Microsoft Agent Framework memory in germane (extra `agent-framework`): providers of context and history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from germane.engine import Engine
from germane.errors import MissingExtra
from germane.frameworks.shared import call_form, to_the_end

try:
    from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext
except ImportError as error:
    raise MissingExtra(feature="The memory of Agent Framework", extra="agent-framework") from error

__all__ = ["AgentFrameworkContext", "AgentFrameworkHistory"]

_FIELD = "agent_framework"
"""The field of a logged message that holds the framework's own form of it."""


class AgentFrameworkContext(ContextProvider):
    """Adds the best context of an engine for a run's input to its instructions, within `budget` tokens.

    `engine_of` gives the engine of a session, for example `handle.agent("support").for_user(...)`; by default
    all sessions have `engine`. For `Agent(context_providers=[...])`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        budget: int = 1000,
        engine_of: Callable[[AgentSession], Engine] | None = None,
        source_id: str = "germane",
    ) -> None:
        super().__init__(source_id)
        self._budget = budget
        self._engine_of = engine_of or (lambda _: engine)

    async def before_run(
        self,
        *,
        agent: Any,  # noqa: ARG002 - The framework passes it.
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002 - As above.
    ) -> None:
        """Assemble a context for the last user message of the input, and add it as instructions."""
        questions = [
            message.text for message in context.input_messages if message.role == "user" and message.text
        ]
        if questions:
            engine = self._engine_of(session)
            # What the session's log contains is among the messages already.
            log = engine.conversation(session.session_id)
            made = await asyncio.to_thread(
                engine.assemble, questions[-1], budget=self._budget, conversation=log
            )
            if made.text:
                context.extend_instructions(self.source_id, made.text)


class AgentFrameworkHistory(HistoryProvider):
    """The messages of each session in the engine's conversation log, as they were.

    The log survives restarts and is searched with the agent's memory in later sessions; the running session
    is never quoted to itself. `engine_of` is as for `AgentFrameworkContext`, by the session's id. With
    `budget`, a run gets the latest exchanges that fit in so many tokens, each whole; the log keeps all.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        budget: int | None = None,
        engine_of: Callable[[str], Engine] | None = None,
        source_id: str = "germane-history",
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._budget = budget
        self._engine_of = engine_of or (lambda _: engine)

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - As above.
        **_: Any,
    ) -> list[Message]:
        """The messages of a session in their order; none without a session's id. Raises BudgetTooSmall."""
        return await asyncio.to_thread(self._read, session_id) if session_id else []

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - As above.
        **_: Any,
    ) -> None:
        """Append messages to the log of a session; a cancelled call still finishes. Raises InvalidInput."""
        if session_id:
            await to_the_end(lambda: self._append(session_id, list(messages)))

    def _read(self, session_id: str) -> list[Message]:
        conversation = self._engine_of(session_id).conversation(session_id)
        budget = self._budget
        logged = conversation.messages() if budget is None else conversation.window(budget=budget).messages
        fields = [json.loads(message.extra) for message in logged if message.extra]
        return [Message.from_dict(each[_FIELD]) for each in fields if _FIELD in each]

    def _append(self, session_id: str, messages: Sequence[Message]) -> None:
        conversation = self._engine_of(session_id).conversation(session_id)
        conversation.extend([_logged(message) for message in messages], provider="openai")


def _logged(message: Message) -> dict[str, Any]:
    """A message in OpenAI's form, with the framework's own form of it in a field of its own."""
    own = json.loads(message.to_json())
    calls = [each for each in own["contents"] if each["type"] == "function_call"]
    results = [each for each in own["contents"] if each["type"] == "function_result"]
    logged: dict[str, Any] = {"role": str(message.role), "content": message.text, _FIELD: own}
    if calls:
        logged["tool_calls"] = [
            call_form(call["call_id"], call["name"], _text(call.get("arguments"))) for call in calls
        ]
    elif results:
        logged |= {
            "role": "tool",
            "tool_call_id": results[0]["call_id"],
            "content": "\n".join(_text(each.get("result")) for each in results),
        }
    return logged


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
