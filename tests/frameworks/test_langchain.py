"""LangChain with germane: an agent that never leaves its window, a history and a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

import germane
from germane import RequestTooLarge
from germane.frameworks import LangChainHistory, LangChainMemory, LangChainRetriever


@tool
def look(place: str) -> str:
    """Look up what is known of a place."""
    return f"The report on {place}. " + "It is quiet there. " * 40


class Model(BaseChatModel):
    """A stand-in for a model: it calls `look` where a prompt says so, and has a memory of its calls."""

    calls: list[list[BaseMessage]] = Field(default_factory=list)
    answer: str = "That is all there is to say of it. " * 5

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Model:
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.calls.append(messages)
        last, number = messages[-1], len(self.calls)
        if isinstance(last, HumanMessage) and "look" in last.text:
            calls = [
                {"id": f"call-{number}-{place}", "name": "look", "args": {"place": place}}
                for place in ("Oslo", "Osaka")
            ]
            made = AIMessage("", tool_calls=calls)
        else:
            made = AIMessage(self.answer)
        return ChatResult(generations=[ChatGeneration(message=made)])


@dataclass
class Who:
    """The context of a run."""

    user: str


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def prompt(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="support", embedder=None) as engine:
        engine.remember("Anna is allergic to nuts.", kind="fact")
        for number in range(20):
            engine.remember(f"Locker {number} has the code {number * 37}.", kind="fact")
        yield engine


def calls_and_results_match(messages: Sequence[BaseMessage]) -> bool:
    """Whether the results after each message with calls are those of its calls."""
    waiting: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
        elif waiting:
            return False
        elif isinstance(message, AIMessage):
            waiting = {call["id"] for call in message.tool_calls}
    return not waiting


@pytest.mark.parametrize("turns", [24, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_no_call_leaves_the_window_and_no_result_its_call(turns: int, engine: germane.Engine) -> None:
    window, reserve, model = 1200, 200, Model()
    memory = LangChainMemory(engine, window=window, reserve=reserve, budget=200)
    saver = InMemorySaver()
    agent = create_agent(model, [look], system_prompt="Be brief.", middleware=[memory], checkpointer=saver)
    state: dict[str, Any] = {}
    for number in range(turns):
        prompts = (f"What is the code of locker {number % 20}?", "Go on.", "Please look at both places.")
        state = agent.invoke(prompt(prompts[number % 3]), thread("1"))

    assert len(model.calls) == turns + turns // 3
    assert max(count_tokens_approximately(call, tools=[look]) for call in model.calls) <= window - reserve
    assert all(calls_and_results_match(call) for call in model.calls)
    assert all(call[0] == SystemMessage("Be brief.") for call in model.calls)
    # The state and the log stay whole, and most calls begin as the one before.
    assert len(state["messages"]) == turns * 2 + turns // 3 * 3
    assert len(engine.conversation("1").messages()) == len(state["messages"])
    pairs = list(zip(model.calls, model.calls[1:], strict=False))
    assert sum(one[:3] == two[:3] for one, two in pairs) > len(pairs) // 4


def test_messages_are_the_given_objects_with_what_was_put_in(engine: germane.Engine) -> None:
    model = Model()
    agent = create_agent(model, middleware=[LangChainMemory(engine, window=4000)])
    messages: list[Any] = [
        HumanMessage("Hello.", id="h1", name="anna"),
        AIMessage("Hello!", id="a1", response_metadata={"model": "x"}),
        HumanMessage("Which allergy does Anna have?", id="h2"),
    ]
    agent.invoke({"messages": messages})
    (call,) = model.calls
    assert [each for each in call if each.id] == messages
    (added,) = [each for each in call if not each.id]
    assert "Anna is allergic to nuts." in added.text


def test_tools_of_a_provider_are_passed_on_as_they_are(engine: germane.Engine) -> None:
    tools: list[Any] = [look, {"type": "web_search"}, {"type": "computer_2030", "width": 100}]
    system = SystemMessage([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
    model = Model()
    agent = create_agent(
        model, tools, system_prompt=system, middleware=[LangChainMemory(engine, window=4000)]
    )
    agent.invoke(prompt("Which allergy does Anna have?"))
    assert model.calls[0][0] == system
    assert "Anna is allergic to nuts." in model.calls[0][1].text


def test_a_turn_that_does_not_fit_raises(engine: germane.Engine) -> None:
    agent = create_agent(Model(), middleware=[LangChainMemory(engine, window=300)])
    with pytest.raises(RequestTooLarge):
        agent.invoke(prompt("word " * 1000))


def test_a_counter_of_ones_own_is_never_exceeded(engine: germane.Engine) -> None:
    def strict(messages: Sequence[BaseMessage], **_: Any) -> int:
        return sum(len(message.text) for message in messages)

    model = Model()
    memory = LangChainMemory(engine, window=1500, token_counter=strict)
    agent = create_agent(model, middleware=[memory], checkpointer=InMemorySaver())
    for number in range(12):
        agent.invoke(prompt(f"What is the code of locker {number}?"), thread("1"))
    assert max(strict(call) for call in model.calls) <= 1500
    assert max(strict(call) for call in model.calls) > 1000


def test_the_answer_teaches_what_was_used(engine: germane.Engine) -> None:
    model = Model(answer="Anna is allergic to nuts.")
    memory = LangChainMemory(engine, window=4000)
    agent = create_agent(model, middleware=[memory], checkpointer=InMemorySaver())
    agent.invoke(prompt("Which allergy does Anna have?"), thread("1"))
    (used,) = [one for one in engine.memories() if one.access_count]
    assert used.content == "Anna is allergic to nuts."


def test_users_never_meet_and_later_threads_quote_earlier_ones(tmp_path: Path) -> None:
    with germane.open(tmp_path / "m.db", agent="support") as engine:
        model = Model()
        memory = LangChainMemory(engine, window=4000, engine_of=lambda who: engine.for_user(who.user))
        agent = create_agent(model, middleware=[memory], context_schema=Who, checkpointer=InMemorySaver())

        async def turns() -> None:
            await agent.ainvoke(prompt("I moved to Oslo in May."), thread("1"), context=Who("anna"))
            await agent.ainvoke(prompt("Where did I move?"), thread("2"), context=Who("anna"))
            await agent.ainvoke(prompt("Where did I move?"), thread("3"), context=Who("ben"))

        asyncio.run(turns())
        first, quoting, other = ("\n".join(each.text for each in call) for call in model.calls)
        assert first == "I moved to Oslo in May."
        assert "I moved to Oslo in May." in quoting
        assert "Oslo" not in other
        assert [each.text for each in LangChainHistory(engine.for_user("anna"), "1").messages] == [
            "I moved to Oslo in May.",
            model.answer,
        ]


def test_fifty_threads_at_once_log_each_its_own(engine: germane.Engine) -> None:
    agent = create_agent(
        Model(), middleware=[LangChainMemory(engine, window=4000)], checkpointer=InMemorySaver()
    )

    async def every() -> None:
        turns = (
            agent.ainvoke(prompt(f"I am number {number}."), thread(f"t{number}")) for number in range(50)
        )
        await asyncio.gather(*turns)

    asyncio.run(every())
    for number in range(50):
        logged = engine.conversation(f"t{number}").messages()
        assert logged[0].text == f"I am number {number}."
        assert len(logged) == 2


def test_a_history_gives_back_what_was_added(tmp_path: Path) -> None:
    messages: list[BaseMessage] = [
        HumanMessage("Look at this.", id="1", name="anna"),
        AIMessage("", id="2", tool_calls=[{"id": "c", "name": "look", "args": {"place": "Oslo"}}]),
        ToolMessage("Quiet.", id="3", tool_call_id="c"),
        AIMessage([{"type": "text", "text": "It is quiet."}], id="4", response_metadata={"model": "x"}),
    ]
    with germane.open(tmp_path / "m.db") as engine:
        history = LangChainHistory(engine, "chat-1")
        history.add_messages(messages)
        asyncio.run(LangChainHistory(engine, "chat-2").aadd_messages(messages[:1]))
    with germane.open(tmp_path / "m.db") as engine:
        history = LangChainHistory(engine, "chat-1")
        assert history.messages == messages
        history.clear()
        history.clear()
        assert history.messages == []
        assert asyncio.run(LangChainHistory(engine, "chat-2").aget_messages()) == messages[:1]


def test_the_retriever_gives_documents_with_their_memories(engine: germane.Engine) -> None:
    retriever = LangChainRetriever(engine=engine, k=1, filters={"kinds": ["fact"]})
    for found in (retriever.invoke("Anna's allergy"), asyncio.run(retriever.ainvoke("Anna's allergy"))):
        (document,) = found
        assert document.page_content == "Anna is allergic to nuts."
        assert document.metadata["kind"] == "fact"
        assert engine.get(str(document.id)).content == document.page_content
