"""Pydantic AI memory in germane (extra `pydantic-ai`): a capability with context, tools and a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from germane.engine import Engine
from germane.errors import GermaneError, MissingExtra

try:
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.run import AgentRunResult
except ImportError as error:
    raise MissingExtra(feature="The capability for Pydantic AI", extra="pydantic-ai") from error

__all__ = ["PydanticAIMemory"]


@dataclass
class PydanticAIMemory(AbstractCapability[Any]):
    """An agent's memory as a capability: `Agent(..., capabilities=[PydanticAIMemory(engine)])`.

    Each run gets the best context for its prompt as instructions, within `budget` tokens, and the tools
    `recall`, `expand` and `remember`, unless `tools` is False. Its prompt and answer are logged in the
    conversation `session`, or in the one that `session_of` names for a run's dependencies; later runs quote
    them, unless it is None. `engine_of` gives the engine of a run's dependencies, for example one user's.
    """

    engine: Engine
    budget: int = 1000
    session: str | None = None
    tools: bool = True
    engine_of: Callable[[Any], Engine] | None = None
    session_of: Callable[[Any], str] | None = None
    _contexts: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def get_instructions(self) -> Any:
        """The best context for the prompt of a run, assembled once for all its requests."""

        async def context(run: RunContext[Any]) -> str:
            question = _text(run.prompt)
            key = run.run_id or ""
            if key not in self._contexts:
                text = await asyncio.to_thread(self._assembled, run, question) if question else ""
                self._contexts[key] = text
            return self._contexts[key]

        return context

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The tools `recall`, `expand` and `remember`; None without tools."""
        if not self.tools:
            return None

        def recall(run: RunContext[Any], query: str) -> str:
            """List the memories most relevant to a query, with ids. Times such as 'last week' count."""
            text = _refused(lambda: self._engine(run).recall(query, budget=self.budget).text)
            return text or "No memory to show."

        def expand(run: RunContext[Any], memory_id: str) -> str:
            """The whole text of a memory, by the id that `recall` shows."""
            return _refused(lambda: self._engine(run).expand(memory_id))

        def remember(run: RunContext[Any], content: str, kind: str = "note") -> str:
            """Store one memory for later sessions, a sentence that is understood alone.

            Kinds: fact, decision, preference, procedure, constraint, episode, note.
            """
            return f"Stored as {_refused(lambda: self._engine(run).remember(content, kind=kind).id)[:8]}."

        return FunctionToolset([recall, expand, remember])

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Log the prompts and answers of a run that has ended."""
        self._contexts.pop(ctx.run_id or "", None)
        session = self._session(ctx)
        if session is not None:
            messages = _logged(result.new_messages())
            await asyncio.shield(asyncio.to_thread(self._engine(ctx).conversation(session).extend, messages))
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Forget what was assembled for a run that failed, and raise its error."""
        self._contexts.pop(ctx.run_id or "", None)
        raise error

    def _engine(self, run: RunContext[Any]) -> Engine:
        return self.engine if self.engine_of is None else self.engine_of(run.deps)

    def _session(self, run: RunContext[Any]) -> str | None:
        return self.session if self.session_of is None else self.session_of(run.deps)

    def _assembled(self, run: RunContext[Any], question: str) -> str:
        session = self._session(run)
        return self._engine(run).assemble(question, budget=self.budget, conversation=session).text


def _refused(call: Callable[[], str | None]) -> str:
    """The text that a call returns; an error becomes a sentence that the model can act on."""
    try:
        return call() or ""
    except GermaneError as error:
        raise ModelRetry(str(error)) from error


def _text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt or () if isinstance(part, str))


def _logged(messages: Sequence[ModelMessage]) -> list[dict[str, str]]:
    """The prompts of a user and the texts of answers; tool calls and instructions are left out."""
    logged: list[dict[str, str]] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            texts = [_text(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
            logged += [{"role": "user", "content": text} for text in texts if text]
        elif isinstance(message, ModelResponse):
            answer = "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
            logged += [{"role": "assistant", "content": answer}] if answer else []
    return logged
