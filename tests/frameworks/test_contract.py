"""What holds in every framework: users apart, nothing lost by a restart, budgets, many runs, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import agents
import pydantic_ai
import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework import AgentSession, BaseChatClient, ChatResponse, Message
from agents.testing import ScriptedModel, assistant_message
from anthropic.types.beta import BetaMemoryTool20250818CreateCommand
from google.adk.events import Event
from google.genai.types import Content, Part
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from pydantic import Field
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from sqlalchemy.ext.asyncio import create_async_engine

import germane
from germane.frameworks import (
    ADKMemoryService,
    ADKSessionService,
    AgentFrameworkContext,
    AgentFrameworkHistory,
    AsyncAnthropicMemoryTool,
    LangChainMemory,
    LangGraphStore,
    LlamaIndexMemoryBlock,
    OpenAIAgentsSession,
    PydanticAIMemory,
    openai_agents_filter,
)
from germane.stores import StoreHandle
from germane.tokens import get_counter

BUDGET = 600
Turn = Callable[[StoreHandle, str, str, str], Coroutine[Any, Any, str]]
"""One turn of a user's session: what the user writes in, what the model is sent out."""


def engine_of(store: StoreHandle, user: str) -> germane.Engine:
    return store.agent("support").for_user(user)


async def pydantic_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    engine = engine_of(store, user)
    seen: list[str] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        parts = [str(getattr(part, "content", "")) for message in messages for part in message.parts]
        seen.append("\n".join([info.instructions or "", *parts]))
        return ModelResponse(parts=[TextPart("Noted.")])

    memory = PydanticAIMemory(engine, session=session, budget=400, window=BUDGET, tools=False)
    await pydantic_ai.Agent(FunctionModel(answer), capabilities=[memory]).run(text)
    return seen[-1]


async def openai_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    engine = engine_of(store, user)
    model = ScriptedModel([[assistant_message("Noted.")]])
    agent: Any = agents.Agent(name="a", model=model)
    fit = openai_agents_filter(engine, window=BUDGET, memory="layered")
    seen: list[str] = []

    async def watched(data: Any) -> Any:
        made = await fit(data)
        seen.append("\n".join(str(item.get("content") or "") for item in made.input))
        return made

    config = agents.RunConfig(call_model_input_filter=watched, tracing_disabled=True)
    await agents.Runner.run(agent, text, session=OpenAIAgentsSession(session, engine), run_config=config)
    return seen[-1]


class Client(BaseChatClient):
    """Keeps what it is sent."""

    seen: str = ""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        assert not stream
        texts = [message.text for message in messages]
        self.seen = "\n".join([str(options.get("instructions") or ""), *texts])

        async def answer() -> ChatResponse:
            return ChatResponse(messages=Message("assistant", ["Noted."]))

        return answer()


async def agent_framework_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    engine = engine_of(store, user)
    client = Client()
    providers = [AgentFrameworkHistory(engine, budget=200), AgentFrameworkContext(engine, budget=300)]
    agent: Any = FrameworkAgent(client, context_providers=providers)
    await agent.run(text, session=AgentSession(session_id=session))
    return client.seen


async def langgraph_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    engine = engine_of(store, user)
    notes = LangGraphStore(engine)
    found = await notes.asearch(("notes",), query=text, limit=5)
    await notes.aput(("notes",), session, {"text": text})
    return "\n".join(str(item.value["text"]) for item in found)


async def anthropic_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    engine = engine_of(store, user)
    context = await asyncio.to_thread(engine.assemble, text, budget=BUDGET)
    command = BetaMemoryTool20250818CreateCommand(
        command="create", path=f"/memories/{session}.md", file_text=text
    )
    await AsyncAnthropicMemoryTool(engine).create(command)
    return context.text


class Model(FakeListChatModel):
    """Keeps what it is sent."""

    responses: list[str] = Field(default=["Noted."])
    seen: list[str] = Field(default=[])

    def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        self.seen.append("\n".join(message.text for message in messages))
        return super()._call(messages, *args, **kwargs)


async def langchain_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    model = Model(seen=[])
    memory = LangChainMemory(engine_of(store, user), window=BUDGET, budget=400)
    agent: Any = create_agent(model, middleware=[memory], checkpointer=InMemorySaver())
    await agent.ainvoke({"messages": [("user", text)]}, {"configurable": {"thread_id": session}})
    return model.seen[-1]


async def adk_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    service = ADKMemoryService(store, budget=BUDGET)
    of: dict[str, Any] = {"app_name": "support", "user_id": user}
    found = await service.search_memory(**of, query=text)
    event = Event(author="user", content=Content(role="user", parts=[Part(text=text)]))
    await service.add_events_to_memory(**of, events=[event], session_id=session)
    return "\n".join(part.text or "" for one in found.memories for part in one.content.parts or ())


async def adk_session_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    service = ADKSessionService(store)
    of: dict[str, Any] = {"app_name": "support", "user_id": user, "session_id": session}
    context = await asyncio.to_thread(engine_of(store, user).assemble, text, budget=BUDGET)
    event = Event(author="user", content=Content(role="user", parts=[Part(text=text)]))
    await service.append_event(await service.create_session(**of), event)
    return context.text


async def llama_turn(store: StoreHandle, user: str, session: str, text: str) -> str:
    """A session of one message, at whose end the block gets what is in short-term memory still."""
    engine = engine_of(store, user)
    block = LlamaIndexMemoryBlock(engine=engine, budget=400)
    own = create_async_engine("sqlite+aiosqlite:///:memory:")
    memory = Memory.from_defaults(
        session_id=session, token_limit=BUDGET, memory_blocks=[block], async_engine=own
    )
    try:
        shown = await memory.aget(input=text)
        await memory.aput(ChatMessage(role="user", content=text))
        await block.aput(await memory.aget_all(), session_id=session)
    finally:
        await own.dispose()  # The memory wouldn't close its database.
    return "\n".join([*(str(each.content) for each in shown), text])


TURNS: dict[str, Turn] = {
    "Pydantic AI": pydantic_turn,
    "OpenAI Agents": openai_turn,
    "Agent Framework": agent_framework_turn,
    "LangGraph": langgraph_turn,
    "Claude's tool": anthropic_turn,
    "LangChain": langchain_turn,
    "Google ADK": adk_turn,
    "Google ADK sessions": adk_session_turn,
    "LlamaIndex": llama_turn,
}
pytestmark = pytest.mark.parametrize("turn", TURNS.values(), ids=list(TURNS))


def run(path: Path, turn: Turn, user: str, *texts: tuple[str, str]) -> list[str]:
    """What the model is sent in these turns of sessions, by a process that starts and ends with them."""
    with germane.connect(path) as store:

        async def every() -> list[str]:
            return [await turn(store, user, session, text) for session, text in texts]

        return asyncio.run(every())


def stored_texts(store: StoreHandle, user: str) -> list[str]:
    engine = engine_of(store, user)
    messages = [each for one in engine.sessions() for each in engine.conversation(one.session).messages()]
    return [*(each.text for each in messages), *(memory.content for memory in engine.memories())]


def test_a_later_session_knows_it_after_a_restart_and_another_user_never(tmp_path: Path, turn: Turn) -> None:
    file = tmp_path / "a.db"
    run(file, turn, "anna", ("1", "The code of my locker is 4711."))
    assert "4711" in run(file, turn, "anna", ("2", "What is the code of my locker?"))[0]
    assert "4711" not in run(file, turn, "ben", ("3", "What is the code of my locker?"))[0]


def test_what_the_model_is_sent_fits_after_a_long_past(tmp_path: Path, turn: Turn) -> None:
    past = [(f"s{number}", f"Locker {number} has the code {37 * number}. " * 3) for number in range(30)]
    run(tmp_path / "a.db", turn, "anna", *past)
    seen = run(tmp_path / "a.db", turn, "anna", ("now", "Which codes do the lockers have?"))[0]
    assert "has the code" in seen
    assert get_counter("o200k").count(seen) <= BUDGET


def test_fifty_runs_at_once_lose_nothing(tmp_path: Path, turn: Turn) -> None:
    texts = [f"Locker {number} is {number * 37}." for number in range(50)]
    with germane.connect(tmp_path / "a.db") as store:

        async def every() -> None:
            await asyncio.gather(
                *(turn(store, "anna", f"s{place}", text) for place, text in enumerate(texts))
            )

        asyncio.run(every())
        assert set(texts) <= set(stored_texts(store, "anna"))


# A cancelled turn of LlamaIndex leaves a connection of its own open, of which Python 3.13 and later warn.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored while finalizing database connection:pytest.PytestUnraisableExceptionWarning",
    "ignore:unclosed database:ResourceWarning",
)
def test_a_cancelled_run_leaves_nothing_half(tmp_path: Path, turn: Turn) -> None:
    """Whenever it is cancelled, its text is stored whole or not at all, and the next run works."""
    with germane.connect(tmp_path / "a.db") as store:

        async def cancelled(delay: float, session: str, text: str) -> None:
            task = asyncio.ensure_future(turn(store, "anna", session, text))
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        async def every() -> None:
            # In one loop, since a database of LlamaIndex answers late to a turn that was cancelled.
            for number, delay in enumerate((0, 0.001, 0.01, 0.03, 0.06)):
                await cancelled(delay, f"s{number}", cut[number])
                await turn(store, "anna", f"t{number}", whole[number])

        cut = [f"Locker {number} is 4711." for number in range(5)]
        whole = [f"Which locker is it in run {number}?" for number in range(5)]
        asyncio.run(every())
        texts = stored_texts(store, "anna")
        assert set(texts) <= {*cut, *whole, "Noted."}
        assert all(texts.count(each) == 1 for each in whole)
        assert all(texts.count(each) <= 1 for each in cut)
