"""LlamaIndex with germane: an agent's memory block and a retriever."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLMWithChatMemoryOfLastCall
from llama_index.core.memory import Memory

import germane
from germane.frameworks import LlamaIndexMemoryBlock, LlamaIndexRetriever

# LlamaIndex's memory never closes its own database, which may be collected at any time.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="llama") as engine:
        engine.remember("Anna is allergic to nuts.", kind="fact")
        engine.remember("The invoice is due on Friday.", kind="fact")
        yield engine


@pytest.fixture(autouse=True)
def _connections_of_the_framework_are_collected() -> Iterator[None]:
    """In the tests that make them, and not in others."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def memory_of(engine: germane.Engine, *, session: str, limit: int = 600) -> Memory:
    block = LlamaIndexMemoryBlock(engine=engine, budget=200)
    return Memory.from_defaults(
        session_id=session,
        token_limit=limit,
        chat_history_token_ratio=0.5,
        token_flush_size=100,
        memory_blocks=[block],
        tokenizer_fn=lambda text: [0] * engine.counter.count(text),
    )


def test_the_context_of_the_last_question_is_in_the_messages(engine: germane.Engine) -> None:
    memory = memory_of(engine, session="a")
    messages = asyncio.run(memory.aget(input="Which allergy does Anna have?"))
    assert "Anna is allergic to nuts." in str(messages[0].content)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # The framework's agents use old names of pydantic.
def test_an_agent_is_sent_the_context_and_what_it_answers_is_logged(engine: germane.Engine) -> None:
    async def chat() -> str:
        model = MockFunctionCallingLLMWithChatMemoryOfLastCall()
        agent = FunctionAgent(llm=model, system_prompt="Be brief.")
        memory = memory_of(engine, session="a")
        await agent.run("Which allergy does Anna have?", memory=memory)
        sent = "\n".join(str(message.content) for message in model.last_chat_messages or ())
        block = memory.memory_blocks[0]
        await block.aput(await memory.aget_all(), session_id="a")
        return sent

    sent = asyncio.run(chat())
    assert "Be brief." in sent
    assert "Anna is allergic to nuts." in sent
    logged = engine.conversation("a").messages()
    assert [message.role.value for message in logged] == ["user", "assistant"]


def test_what_leaves_the_short_term_memory_is_found_in_the_next_session(engine: germane.Engine) -> None:
    async def chat() -> None:
        memory = memory_of(engine, session="a", limit=300)
        for number in range(40):
            text = f"Note {number}: the code of locker {number} is {number * 37}."
            await memory.aput(ChatMessage(role="user", content=text))
            await memory.aput(ChatMessage(role="assistant", content="Noted."))

    asyncio.run(chat())
    assert engine.conversation("a").messages()

    later = asyncio.run(memory_of(engine, session="b").aget(input="What is the code of locker 3?"))
    assert "the code of locker 3 is 111" in str(later[0].content)


def test_a_block_is_assembled_anew_where_fewer_tokens_are_left(engine: germane.Engine) -> None:
    block = LlamaIndexMemoryBlock(engine=engine, budget=200)
    question = [ChatMessage(role="user", content="Which allergy does Anna have?")]
    whole = asyncio.run(block.aget(question))
    shorter = asyncio.run(block.atruncate(whole, engine.counter.count(whole) - 25))
    assert shorter is not None
    assert "Anna is allergic to nuts." in shorter
    assert engine.counter.count(shorter) <= 25
    assert asyncio.run(block.atruncate(whole, engine.counter.count(whole))) is None
    assert asyncio.run(block.aget([])) == ""


def test_a_block_that_knows_nothing_is_no_obstacle_to_a_long_message() -> None:
    with germane.open(":memory:", agent="llama") as engine:
        memory = memory_of(engine, session="a", limit=100)

        async def chat() -> list[ChatMessage]:
            await memory.aput(ChatMessage(role="user", content="Which allergy does Anna have? " * 40))
            return await memory.aget()

        assert [str(each.content)[:7] for each in asyncio.run(chat())] == ["Which a"]


@pytest.mark.parametrize("delay", [0, 0.001, 0.01])
def test_a_cancelled_block_logs_all_messages_or_none(engine: germane.Engine, delay: float) -> None:
    async def cancelled() -> None:
        messages = [ChatMessage(role="user", content=f"Locker {number} is free.") for number in range(20)]
        task = asyncio.ensure_future(LlamaIndexMemoryBlock(engine=engine).aput(messages, session_id="a"))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert len(engine.conversation("a").messages()) in (0, 20)


def test_the_retriever_gives_the_memories_with_their_scores(engine: germane.Engine) -> None:
    retriever = LlamaIndexRetriever(engine, limit=1, kinds=["fact"])
    for nodes in (retriever.retrieve("Anna's allergy"), asyncio.run(retriever.aretrieve("Anna's allergy"))):
        (node,) = nodes
        assert node.text == "Anna is allergic to nuts."
        assert node.metadata["kind"] == "fact"
        assert node.score is not None
        assert engine.get(node.node_id).content == node.text
