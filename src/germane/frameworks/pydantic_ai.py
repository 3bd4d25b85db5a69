"""Pydantic AI memory in germane (extra `pydantic-ai`): a capability with context, tools and a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from germane.engine import Engine
from germane.errors import GermaneError, MissingExtra
from germane.frameworks.shared import call_form, to_the_end

try:
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        BaseToolReturnPart,
        BinaryContent,
        ImageUrl,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        RetryFeedbackPart,
        TextPart,
        ToolCallPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition
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

    With `window`, each request to the model fits in so many tokens less `reserve`: instructions, tools and
    as much of the message history as there are tokens for, calls with their results. Matching older turns are
    quoted, long tool results shortened, and the stored history stays whole. A run whose instructions, tools
    and current turn alone don't fit raises RequestTooLarge.
    """

    engine: Engine
    budget: int = 1000
    session: str | None = None
    tools: bool = True
    window: int | None = None
    reserve: int = 0
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

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit the messages of a request into the window, if there is one. Raises RequestTooLarge."""
        if self.window is None:
            return request_context
        messages = await asyncio.to_thread(self._fitted, ctx, request_context, self.window)
        return replace(request_context, messages=messages)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Log the prompts and answers of a run that has ended."""
        self._contexts.pop(ctx.run_id or "", None)
        session = self._session(ctx)
        if session is not None:
            log, messages = self._engine(ctx).conversation(session), _logged(result.new_messages())
            await to_the_end(lambda: log.extend(messages))
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Forget what was assembled for a run that failed, and raise its error."""
        self._contexts.pop(ctx.run_id or "", None)
        raise error

    def _engine(self, run: RunContext[Any]) -> Engine:
        return self.engine if self.engine_of is None else self.engine_of(run.deps)

    def _session(self, run: RunContext[Any]) -> str | None:
        return self.session if self.session_of is None else self.session_of(run.deps)

    def _fitted(self, run: RunContext[Any], context: ModelRequestContext, window: int) -> list[ModelMessage]:
        """The messages that fit: whole, without the parts that are left out, or with shorter results."""
        settings = context.model_request_parameters
        parts = [
            (number, part, sent)
            for number, message in enumerate(context.messages)
            for part, sent in _sent(message)
        ]
        request = self._engine(run).request(
            [sent for _, _, sent in parts],
            provider="openai",
            system="\n\n".join(part.content for part in settings.instruction_parts or ()) or None,
            tools=[_declared(tool) for tool in (*settings.function_tools, *settings.output_tools)],
            window=window,
            reserve=self.reserve,
        )
        fitted: list[ModelMessage] = []
        before: int | None = None
        for sent, places in zip(request.messages, request.origins, strict=True):
            if not places:
                if sent["role"] == "user":  # The other one that is put in has the instructions.
                    fitted.append(ModelRequest(parts=[UserPromptPart(content=str(sent["content"]))]))
                before = None
                continue
            number, part, _ = parts[places[0]]
            message = context.messages[number]
            if isinstance(message, ModelResponse) or part is None:
                fitted.append(message)
            else:
                cut = places[0] in request.shortened
                shown: Any = replace(cast("Any", part), content=str(sent["content"])) if cut else part
                if number == before and isinstance(fitted[-1], ModelRequest):
                    fitted[-1] = replace(fitted[-1], parts=[*fitted[-1].parts, shown])
                else:
                    fitted.append(replace(message, parts=[shown]))
            before = number
        return fitted

    def _assembled(self, run: RunContext[Any], question: str) -> str:
        engine, session = self._engine(run), self._session(run)
        log = None if session is None else engine.conversation(session)
        return engine.assemble(question, budget=self.budget, conversation=log).text


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


def _sent(message: ModelMessage) -> Iterator[tuple[ModelRequestPart | None, dict[str, Any]]]:
    """The parts of a request, each as a message in OpenAI's form, or a response as one."""
    if isinstance(message, ModelResponse):
        text = "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
        sent: dict[str, Any] = {"role": "assistant", "content": text}
        if calls := [part for part in message.parts if isinstance(part, ToolCallPart)]:
            sent["tool_calls"] = [
                call_form(call.tool_call_id, call.tool_name, call.args_as_json_str()) for call in calls
            ]
        yield None, sent
        return
    if not message.parts:
        yield None, {"role": "system", "content": ""}
    for part in message.parts:
        if isinstance(part, BaseToolReturnPart):
            text = part.model_response_str()
            yield part, {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
        elif isinstance(part, RetryFeedbackPart):
            yield part, {"role": "user", "content": part.model_response()}
        elif isinstance(part, UserPromptPart):
            content = part.content
            sent = {"role": "user", "content": content if isinstance(content, str) else _pieces(content)}
            yield part, sent
        else:
            yield part, {"role": "system", "content": str(getattr(part, "content", part))}


def _pieces(content: Sequence[Any]) -> list[dict[str, Any]]:
    """The texts and images of a prompt, and the addresses of other files."""
    pieces: list[dict[str, Any]] = []
    for piece in content:
        if isinstance(piece, ImageUrl):
            pieces.append({"type": "image_url", "image_url": {"url": piece.url}})
        elif isinstance(piece, BinaryContent) and piece.is_image:
            pieces.append({"type": "image_url", "image_url": {"url": piece.data_uri}})
        else:
            text = piece if isinstance(piece, str) else getattr(piece, "url", type(piece).__name__)
            pieces.append({"type": "text", "text": text})
    return pieces


def _declared(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}
