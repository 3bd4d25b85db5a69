"""LangChain memory in germane (extra `langchain`): a middleware, a chat history and a retriever."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from germane.engine import Engine
from germane.errors import MissingExtra, RequestTooLarge
from germane.frameworks.shared import to_the_end
from germane.model.context import Context
from germane.model.request import Request

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, message_to_dict
    from langchain_core.messages.utils import (
        convert_to_openai_messages,
        count_tokens_approximately,
        messages_from_dict,
    )
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.runtime import Runtime
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtra(feature="The memory of LangChain", extra="langchain") from error

__all__ = ["LangChainHistory", "LangChainMemory", "LangChainRetriever"]

_FIELD: Final = "langchain"  # Of a logged message, with the framework's own form of it.
_MOST_THREADS: Final = 1000


class LangChainMemory(AgentMiddleware[Any, Any, Any]):
    """An agent's memory as a middleware: `create_agent(..., middleware=[...])`.

    Each model call fits in `window` tokens less `reserve` for the answer, with system message and tools: the
    best context for the latest prompt within `budget` tokens, and as much of the history as there are tokens
    for, calls with their results. The context stays while it serves, and the beginning of the history stays
    where it can, for the provider's prompt cache. Matching older turns are quoted, long tool results
    shortened; the agent's state stays whole. The engine's counter and `token_counter`, LangChain's own unless
    given, both stay within the limit. The context yields first; a call raises RequestTooLarge where system,
    tools and current turn alone don't fit.

    After a run it counts which memories the answer uses, and logs new messages in the conversation that
    `session_of` names, by default the id of the thread; without a thread nothing is logged. `engine_of` gives
    the engine of a run's context, for example one user's.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        window: int,
        reserve: int = 0,
        budget: int = 1000,
        token_counter: Callable[..., int] = count_tokens_approximately,
        engine_of: Callable[[Any], Engine] | None = None,
        session_of: Callable[[Runtime[Any]], str | None] | None = None,
    ) -> None:
        super().__init__()
        self._window = window
        self._reserve = reserve
        self._budget = budget
        self._count = token_counter
        self._engine_of = engine_of or (lambda _: engine)
        self._session_of = session_of or _thread_id
        self._threads: OrderedDict[tuple[str, str | None, str], _Thread] = OrderedDict()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with messages that fit. Raises RequestTooLarge."""
        return handler(self._fitted(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`; the work is done on a worker thread."""
        return await handler(await asyncio.to_thread(self._fitted, request))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Count what the answer uses, and log the messages that the log doesn't have."""
        engine, session = self._engine_of(runtime.context), self._session_of(runtime)
        if session is None:
            return
        messages = state["messages"]
        shown = self._thread(engine, session).shown
        if shown is not None and messages and isinstance(messages[-1], AIMessage):
            engine.observe(shown, messages[-1].text)
        history = LangChainHistory(engine, session)
        known = {message.id for message in history.messages}
        history.add_messages([each for each in messages if each.id not in known])

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `after_agent`; a cancelled run still finishes what it began."""
        await to_the_end(lambda: self.after_agent(state, runtime))

    def _thread(self, engine: Engine, session: str | None) -> _Thread:
        if session is None:
            return _Thread()
        key = (engine.agent, engine.user, session)
        found = self._threads[key] = self._threads.pop(key, _Thread())
        if len(self._threads) > _MOST_THREADS:
            self._threads.popitem(last=False)
        return found

    def _fitted(self, given: ModelRequest[Any]) -> ModelRequest[Any]:
        engine, session = self._engine_of(given.runtime.context), self._session_of(given.runtime)
        thread = self._thread(engine, session)
        context = thread.context = self._context(engine, session, thread.context, given.messages)
        sent = [(place, each) for place, one in enumerate(given.messages) for each in _openai_forms(one)]
        system = [] if given.system_message is None else [given.system_message]
        tools: Any = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in given.tools]
        limit = free = self._window - self._reserve
        memory = context if context.text else None
        while True:
            try:
                made = engine.request(
                    [each for _, each in sent],
                    provider="openai",
                    system=_openai_forms(system[0])[0]["content"] if system else None,
                    tools=tools,
                    memory=memory,
                    window=free + self._reserve,
                    reserve=self._reserve,
                    previous=thread.request,
                )
            except RequestTooLarge:
                if memory is None:
                    raise
                memory = None
                continue
            messages: list[Any] = _chosen(made, [place for place, _ in sent], given.messages)
            counted = self._count([*system, *messages], tools=tools)
            if counted <= limit:
                thread.request, thread.shown = made, memory
                return given.override(messages=messages)
            free = min(made.tokens - 1, made.tokens * limit // counted)

    def _context(
        self, engine: Engine, session: str | None, last: Context | None, messages: Sequence[BaseMessage]
    ) -> Context:
        prompt = next((each.text for each in reversed(messages) if isinstance(each, HumanMessage)), "")
        if last is not None and last.trace.question.text == prompt:
            return last
        # What the thread's log has is among the messages already.
        log = None if session is None else engine.conversation(session)
        return engine.refresh(last, prompt, budget=self._budget, conversation=log).context


class LangChainHistory(BaseChatMessageHistory):
    """The messages of a session in the engine's log, as they were; contexts of later sessions quote them."""

    def __init__(self, engine: Engine, session: str) -> None:
        super().__init__()
        self._conversation = engine.conversation(session)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # The framework allows a property.
        """The messages in their order; those of other programs aren't among them."""
        items = self._conversation.items("openai")
        return messages_from_dict([each[_FIELD] for each in items if _FIELD in each])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all or none. Raises InvalidInput."""
        forms = [_openai_forms(each)[0] | {_FIELD: message_to_dict(each)} for each in messages]
        if forms:
            self._conversation.extend(forms, provider="openai")

    def clear(self) -> None:
        """Remove all messages for good."""
        if self._conversation.messages(hidden=True):
            self._conversation.purge(confirm=True)


class LangChainRetriever(BaseRetriever):
    """`engine.recall` as a retriever: documents with the memory's id, text, kind and score.

    `k` is how many documents a question gets at most; `filters` are arguments of `recall`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    engine: Engine = Field(exclude=True)
    k: int = 10
    filters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - The framework passes it.
        k: int | None = None,
    ) -> list[Document]:
        found = self.engine.recall(query, limit=self.k if k is None else k, **self.filters)
        return [
            Document(id=one.id, page_content=one.content, metadata={"kind": one.kind, "score": one.score})
            for one in found
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        manager = run_manager.get_sync()
        return await asyncio.to_thread(self._get_relevant_documents, query, run_manager=manager, k=k)


@dataclass
class _Thread:
    """What the latest call of a thread was made of, from which the next one goes on."""

    context: Context | None = None
    shown: Context | None = None
    request: Request | None = None


def _thread_id(runtime: Runtime[Any]) -> str | None:
    return None if runtime.execution_info is None else runtime.execution_info.thread_id


def _openai_forms(message: BaseMessage) -> list[dict[str, Any]]:
    """The message in OpenAI's form: one, or several for one with results of several calls."""
    return list(convert_to_openai_messages([message]))


def _chosen(made: Request, places: Sequence[int], given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The given messages that stand in a request, and what was put in, without the system message."""
    chosen: list[BaseMessage] = []
    for sent, origins in zip(made.messages, made.origins, strict=True):
        if origins:
            message = given[places[origins[0]]]
            if made.shortened.intersection(origins):
                message = message.model_copy(update={"content": sent["content"]})
            if not chosen or chosen[-1] is not message:
                chosen.append(message)
        elif sent["role"] == "tool":
            chosen.append(ToolMessage(sent["content"], tool_call_id=sent["tool_call_id"]))
        elif sent["role"] != "system":
            chosen.append(HumanMessage(sent["content"]))
    return chosen
