"""Pydantic AI with germane: the context is in the instructions, the tools work, and users never meet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResult

import germane
from germane.frameworks import PydanticAIMemory


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="support") as engine:
        engine.remember("Anna is allergic to nuts.", kind="fact")
        yield engine


def ran(agent: Agent[Any, str], prompt: str, **options: Any) -> AgentRunResult[str]:
    """What `run_sync` returns, without the event loop that it leaves open."""
    return asyncio.run(agent.run(prompt, **options))


def echo(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers with the instructions."""
    return ModelResponse(parts=[TextPart(info.instructions or "none")])


def test_the_context_is_in_the_instructions_within_its_budget(engine: germane.Engine) -> None:
    memory = PydanticAIMemory(engine, budget=100)
    agent = Agent(FunctionModel(echo), instructions="Be brief.", capabilities=[memory])
    answer = ran(agent, "Which allergy does Anna have?").output
    assert "Be brief." in answer
    assert "Anna is allergic to nuts." in answer
    assert engine.counter.count(answer.replace("Be brief.", "").strip()) <= 100


def test_runs_are_logged_and_quoted_by_later_sessions(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "a.db") as store:
        support = store.agent("support")
        memory = PydanticAIMemory(
            support, engine_of=lambda deps: support.for_user(deps[0]), session_of=lambda deps: deps[1]
        )
        agent = Agent(FunctionModel(echo), deps_type=tuple, capabilities=[memory])
        ran(agent, "I moved to Oslo in May.", deps=("anna", "1"))
        logged = support.for_user("anna").conversation("1").messages()
        assert [one.role for one in logged] == ["user", "assistant"]
        assert "I moved to Oslo in May." in ran(agent, "Where did I move?", deps=("anna", "2")).output
        assert "Oslo" not in ran(agent, "Where did I move?", deps=("ben", "3")).output


def test_a_session_is_not_quoted_to_itself(engine: germane.Engine) -> None:
    agent = Agent(FunctionModel(echo), capabilities=[PydanticAIMemory(engine, session="chat-1")])
    ran(agent, "I moved to Oslo in May.")
    assert "Oslo" not in ran(agent, "Where did I move?").output


def test_a_model_uses_the_tools_and_reads_their_errors(engine: germane.Engine) -> None:
    def steps(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        calls = sum(isinstance(each, ModelResponse) for each in messages)
        if calls == 0:
            return ModelResponse(parts=[ToolCallPart("recall", {"query": "allergy"})])
        if calls == 1:
            return ModelResponse(parts=[ToolCallPart("expand", {"memory_id": "ffffffff"})])
        if calls == 2:
            return ModelResponse(
                parts=[ToolCallPart("remember", {"content": "Ben likes tea.", "kind": "fact"})]
            )
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        seen = [str(part.content) for one in messages for part in one.parts if hasattr(part, "content")]
        return ModelResponse(parts=[TextPart("\n".join(seen))])

    agent = Agent(FunctionModel(steps), capabilities=[PydanticAIMemory(engine)])
    answer = ran(agent, "Find out.").output
    assert "Anna is allergic to nuts." in answer
    assert "No memory" in answer
    assert "Stored as" in answer
    assert engine.recall("tea")[0].content == "Ben likes tea."


def test_the_frameworks_own_test_model_calls_a_tool(engine: germane.Engine) -> None:
    model = TestModel(call_tools=["recall"])
    result = ran(Agent(model, capabilities=[PydanticAIMemory(engine)]), "hello")
    returned = [
        part.tool_name
        for one in result.all_messages()
        for part in one.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert returned == ["recall"]


def test_fifty_runs_at_once_log_each_its_own(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db", agent="support") as engine:
        memory = PydanticAIMemory(engine, session_of=lambda deps: f"s{deps}", tools=False)
        agent = Agent(FunctionModel(echo), deps_type=int, capabilities=[memory])

        async def every() -> None:
            await asyncio.gather(*(agent.run(f"I am number {number}.", deps=number) for number in range(50)))

        asyncio.run(every())
        for number in range(50):
            assert engine.conversation(f"s{number}").messages()[0].text == f"I am number {number}."
        assert memory == PydanticAIMemory(engine, session_of=memory.session_of, tools=False)


def test_a_long_talk_with_tools_fit_the_window_and_stay_stored(engine: germane.Engine) -> None:
    """Never over by the counter, no call without its result or the other way round, nothing lost."""
    sizes: list[int] = []

    def steps(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        called = {
            part.tool_call_id for one in messages for part in one.parts if isinstance(part, ToolCallPart)
        }
        results = [part for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
        assert called == {part.tool_call_id for part in results}
        texts = [
            str(getattr(part, "content", getattr(part, "args", ""))) for one in messages for part in one.parts
        ]
        sizes.append(engine.counter.count("\n".join([info.instructions or "", *texts])))
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        if isinstance(last.parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart("Looked up. " + "word " * 20)])
        assert "Question" in str(last.parts[-1])
        return ModelResponse(parts=[ToolCallPart("look_up", {"what": "it"})])

    memory = PydanticAIMemory(engine, budget=200, window=2000, reserve=400, tools=False)
    agent = Agent(FunctionModel(steps), instructions="Be brief.", capabilities=[memory])

    @agent.tool_plain
    def look_up(what: str) -> str:
        return f"{what}: " + "a long answer " * 60

    async def talk() -> list[ModelMessage]:
        history: list[ModelMessage] = []
        for turn in range(40):
            result = await agent.run(f"Question {turn} on nuts?", message_history=history)
            history = result.all_messages()
        return history

    history = asyncio.run(talk())
    assert len(history) == 160
    assert len(sizes) == 80
    assert max(sizes) <= 1600
    assert max(sizes) > 1200
    assert "a long answer " * 60 in str(history[2])


def test_a_window_that_is_too_small_is_refused(engine: germane.Engine) -> None:
    memory = PydanticAIMemory(engine, window=60, tools=False)
    agent = Agent(FunctionModel(echo), capabilities=[memory])
    with pytest.raises(germane.RequestTooLarge):
        ran(agent, "Tell me " + "a lot of words " * 50)
