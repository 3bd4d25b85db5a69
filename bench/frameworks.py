"""Each framework's own memory beside germane's adapter: evidence shown, tokens, and time of a turn.

    python -P bench/frameworks.py --time
    python -P bench/frameworks.py FILE [...] [--budget 1000] [--questions 60] [--only LangGraph ...]

With `--time`, the same turns go to a framework's own store and to germane's by turns, and the medians of
their processor time in milliseconds are printed. With FILEs in LoCoMo's layout, each conversation becomes
the history of an agent, in the framework's own way and with germane, and each question is put to it:
printed are the tokens of what reaches the model as a share of the budget, the share of questions for which
they are over it, and the share of the evidence among them. Of LangGraph's stores the results of a search
are added as long as they fit; sessions without a limit in tokens give their last 20 messages, and
LangChain's agent has a middleware that calls its `trim_messages`. ADK, and Agent Framework with germane,
are asked in a session after that of the history. Tokens are counted by o200k.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

from agent_framework import Agent as FrameworkAgent
from agent_framework import AgentSession, BaseChatClient, ChatResponse, InMemoryHistoryProvider
from agent_framework import Message as FrameworkMessage
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai.types import Content, Part
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

import germane
from germane.embedders import StaticEmbedder
from germane.evaluation.result import holds_phrase, mean
from germane.frameworks import (
    ADKMemoryService,
    ADKSessionService,
    AgentFrameworkContext,
    AgentFrameworkHistory,
    AnthropicMemoryTool,
    LangChainMemory,
    LangGraphStore,
    LlamaIndexMemoryBlock,
    OpenAIAgentsSession,
    PydanticAIMemory,
    openai_agents_filter,
)
from germane.importers.locomo import ADVERSARIAL, DialogueTurn, LocomoConversation, read_locomo
from germane.tokens import get_counter

Ask: TypeAlias = Callable[[str], str]
"""A question in, what reaches the model out."""
_COUNTER = get_counter("o200k")
_EMBEDDER = StaticEmbedder()
# The SDK's package has the name of a program in this folder, so it isn't imported by a statement.
_MEMORY, _CONFIG = import_module("agents.memory"), import_module("agents.run_config")
_MESSAGES, _RESULTS = 20, 50
_TURNS = 60


def main() -> None:
    """Print the times, or the evidence for the questions of the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--time", action="store_true", help="time turns instead")
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=60, help="questions of each file, evenly spread")
    parser.add_argument("--only", nargs="+", choices=_FRAMEWORKS, default=[*_FRAMEWORKS])
    given = parser.parse_args()
    if given.time:
        print(f"{'one turn, CPU p50, ms':<34}{'own':>9}{'germane':>9}")
        for line in times():
            print(line, flush=True)
        return
    print(f"{'':<14}{'':<26}{'fill':>7}{'over':>7}{'evidence':>10}{'CPU ms':>9}")
    for file in given.files:
        for line in evidence(file, given.budget, given.questions, given.only):
            print(line, flush=True)


# Evidence.


@dataclass(frozen=True, slots=True)
class Answered:
    """What reached the model for one question."""

    tokens: int
    share: float
    seconds: float


def evidence(file: Path, budget: int, most: int, only: Sequence[str]) -> Iterator[str]:
    """A line for each framework, without germane and with it."""
    conversations = list(read_locomo(file))
    every = [
        (number, question.question, question.evidence)
        for number, conversation in enumerate(conversations)
        for question in conversation.questions
        if question.evidence and question.category != ADVERSARIAL
    ]
    chosen = every[:: max(1, len(every) // most)][:most]
    answers: dict[str, list[Answered]] = {}
    for number, conversation in enumerate(conversations):
        texts = {turn.dia_id: turn.text for turn in conversation.turns}
        for name, ask in histories(conversation, budget, only):
            for _, question, wanted in (one for one in chosen if one[0] == number):
                began = process_time()
                shown = ask(question)
                took = process_time() - began
                found = [float(holds_phrase(shown, texts[each])) for each in wanted if each in texts]
                answers.setdefault(name, []).append(Answered(_COUNTER.count(shown), mean(found), took))
    for name, results in answers.items():
        fill = mean([one.tokens / budget for one in results])
        over = mean([float(one.tokens > budget) for one in results])
        share = mean([one.share for one in results])
        middle = 1000 * statistics.median(one.seconds for one in results)
        yield f"{file.stem:<14}{name:<26}{fill:>7.0%}{over:>7.0%}{share:>10.1%}{middle:>9.1f}"


def histories(
    conversation: LocomoConversation, budget: int, only: Sequence[str]
) -> Iterator[tuple[str, Ask]]:
    """For each framework, a function from a question to what reaches the model, twice."""
    for name in only:
        own, ours = _FRAMEWORKS[name]
        yield name, own(conversation.turns, budget)
        with germane.connect(":memory:") as handle:
            yield f"{name}, germane", ours(handle, conversation.turns, budget)


def turns_of(turns: Sequence[DialogueTurn]) -> Iterator[tuple[str, str]]:
    """Role and text of each turn; of two people the first to speak is the user."""
    first = turns[0].speaker
    for turn in turns:
        known = turn.speaker.lower()
        if known in ("user", "assistant"):
            yield known, turn.text
        else:
            yield ("user" if turn.speaker == first else "assistant"), f"{turn.speaker}: {turn.text}"


def embedded(texts: Sequence[str]) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in _EMBEDDER.embed(list(texts))]


def langgraph(store: BaseStore, turns: Sequence[DialogueTurn], budget: int) -> Ask:
    """What a store's search finds, best first, as long as it fits. Both have vectors of the same embedder."""
    for number, (_, text) in enumerate(turns_of(turns)):
        store.put(("a", "turns"), str(number), {"text": text})

    def ask(question: str) -> str:
        shown: list[str] = []
        for item in store.search(("a", "turns"), query=question, limit=_RESULTS):
            if _COUNTER.count("\n".join([*shown, str(item.value["text"])])) <= budget:
                shown.append(str(item.value["text"]))
        return "\n".join(shown)

    return ask


def items_of(turns: Sequence[DialogueTurn]) -> list[Any]:
    return [{"role": role, "content": text} for role, text in turns_of(turns)]


def openai_session(turns: Sequence[DialogueTurn], _: int) -> Ask:
    session = _MEMORY.SQLiteSession("s", session_settings=_MEMORY.SessionSettings(limit=_MESSAGES))
    asyncio.run(session.add_items(items_of(turns)))
    return lambda question: texts_of([*asyncio.run(session.get_items()), {"content": question}])


def openai_with_germane(engine: germane.Engine, turns: Sequence[DialogueTurn], budget: int) -> Ask:
    session = OpenAIAgentsSession("s", engine)
    asyncio.run(session.add_items(items_of(turns)))
    fit = openai_agents_filter(engine, window=budget, memory=None)
    agent: Any = import_module("agents").Agent(name="a")

    def ask(question: str) -> str:
        items: list[Any] = [*asyncio.run(session.get_items()), {"role": "user", "content": question}]
        made = asyncio.run(fit(_CONFIG.CallModelData(_CONFIG.ModelInputData(items, None), agent, None)))
        return texts_of(made.input)

    return ask


def texts_of(items: Iterable[Any]) -> str:
    return "\n".join(str(item.get("content") or "") for item in items)


def pydantic(turns: Sequence[DialogueTurn], capability: AbstractCapability[Any]) -> Ask:
    """An agent with a history and a model that keeps what it was sent."""
    sent: list[str] = []
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(text)])
        if role == "user"
        else ModelResponse(parts=[TextPart(text)])
        for role, text in turns_of(turns)
    ]

    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        parts = [str(getattr(part, "content", "")) for message in messages for part in message.parts]
        sent.append("\n".join([info.instructions or "", *parts]))
        return ModelResponse(parts=[TextPart("Yes.")])

    agent = Agent(FunctionModel(answer), capabilities=[capability])

    def ask(question: str) -> str:
        asyncio.run(agent.run(question, message_history=history))
        return sent[-1]

    return ask


def llama(turns: Sequence[DialogueTurn], budget: int, block: LlamaIndexMemoryBlock | None) -> Ask:
    """A memory of LlamaIndex whose older messages go to the block, where there is one."""

    def tokens(text: str) -> list[int]:
        return [0] * _COUNTER.count(str(text))

    memory = Memory.from_defaults(
        session_id="s",
        token_limit=budget,
        chat_history_token_ratio=0.3 if block else 0.9,
        token_flush_size=budget // 5,
        tokenizer_fn=tokens,
        memory_blocks=[block] if block else [],
    )
    loop = asyncio.new_event_loop()
    for role, text in turns_of(turns):
        loop.run_until_complete(memory.aput(ChatMessage(role=role, content=text)))

    def ask(question: str) -> str:
        shown = loop.run_until_complete(memory.aget(input=question))
        return texts_of({"content": one.content} for one in shown)

    return ask


def langchain(turns: Sequence[DialogueTurn], budget: int, memory: Any | None) -> Ask:
    """An agent with a history, which its middleware fits: by germane, or by LangChain's `trim_messages`."""
    model = _ChatModel(responses=["Yes."], sent=[])

    @wrap_model_call
    def trimmed(request: Any, handler: Any) -> Any:
        counter: Any = count_tokens_approximately
        trimmed_messages = trim_messages(
            request.messages, max_tokens=budget, token_counter=counter, strategy="last"
        )
        return handler(request.override(messages=trimmed_messages))

    agent: Any = create_agent(model, middleware=[memory or trimmed])
    history = [*turns_of(turns)]

    def ask(question: str) -> str:
        agent.invoke({"messages": [*history, ("user", question)]})
        return model.sent[-1]

    return ask


class _ChatModel(FakeListChatModel):
    sent: list[str]

    def _call(self, messages: Any, *arguments: Any, **named: Any) -> str:
        self.sent.append("\n".join(message.text for message in messages))
        return super()._call(messages, *arguments, **named)


def adk(turns: Sequence[DialogueTurn], memory: Any) -> Ask:
    """A runner that puts what its memory service finds of an earlier session into the request."""
    model = _Llm(model="fake")
    loop, sessions = asyncio.new_event_loop(), InMemorySessionService()
    runner = Runner(
        app_name="a",
        agent=LlmAgent(name="a", model=model, tools=[PreloadMemoryTool()]),
        session_service=sessions,
        memory_service=memory,
    )
    events = [
        Event(author=role, content=Content(role="user", parts=[Part(text=text)]))
        for role, text in turns_of(turns)
    ]
    past = Session(id="past", app_name="a", user_id="u", events=events)
    loop.run_until_complete(memory.add_session_to_memory(past))

    async def run(question: str) -> str:
        session = await sessions.create_session(app_name="a", user_id="u")
        message = Content(role="user", parts=[Part(text=question)])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        return model.sent[-1]

    return lambda question: loop.run_until_complete(run(question))


class _Llm(BaseLlm):
    sent: list[str] = []  # noqa: RUF012 - A field of pydantic's, which copies it.

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        del stream
        parts = [part.text for each in llm_request.contents for part in each.parts if part.text]
        # The rest of the instruction names the agent, and is the same for both.
        self.sent.append("\n".join(parts))
        yield LlmResponse(content=Content(role="model", parts=[Part(text="Yes.")]))


def agent_framework(turns: Sequence[DialogueTurn], providers: Sequence[Any], past: bool) -> Ask:
    """An agent that is asked in new sessions, which have the history or come after a session with it."""
    client: Any = _Client()
    agent: Any = FrameworkAgent(client, context_providers=providers)
    loop, history, numbers = asyncio.new_event_loop(), providers[0], count()
    messages = [FrameworkMessage(role, [text]) for role, text in turns_of(turns)]
    if past:
        loop.run_until_complete(history.save_messages("past", messages, state={}))

    async def run(question: str) -> str:
        session = AgentSession(session_id=f"s{next(numbers)}")
        if not past:
            state = session.state.setdefault(history.source_id, {})
            await history.save_messages(session.session_id, messages, state=state)
        await agent.run(question, session=session)
        return str(client.sent[-1])

    return lambda question: loop.run_until_complete(run(question))


class _Client(BaseChatClient):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        del stream
        texts = [str(options.get("instructions") or ""), *(message.text for message in messages)]
        self.sent.append("\n".join(texts))

        async def answer() -> ChatResponse:
            return ChatResponse(messages=FrameworkMessage("assistant", ["Yes."]))

        return answer()


class _Latest(InMemoryHistoryProvider):
    """The framework's own history, of which a run gets the last messages."""

    async def get_messages(self, *arguments: Any, **named: Any) -> list[FrameworkMessage]:
        return (await super().get_messages(*arguments, **named))[-_MESSAGES:]


_FRAMEWORKS: Mapping[str, tuple[Callable[..., Ask], Callable[..., Ask]]] = {
    "LangGraph": (
        lambda turns, budget: langgraph(
            InMemoryStore(index={"dims": _EMBEDDER.dimension, "embed": embedded}), turns, budget
        ),
        lambda handle, turns, budget: langgraph(LangGraphStore(handle.agent("a")), turns, budget),
    ),
    "LangChain": (
        lambda turns, budget: langchain(turns, budget, None),
        lambda handle, turns, budget: langchain(
            turns, budget, LangChainMemory(handle.agent("a"), window=budget, budget=100)
        ),
    ),
    "OpenAI Agents": (
        openai_session,
        lambda handle, turns, budget: openai_with_germane(handle.agent("a"), turns, budget),
    ),
    "Pydantic AI": (
        lambda turns, _: pydantic(turns, ProcessHistory(lambda messages: messages[-_MESSAGES:])),
        lambda handle, turns, budget: pydantic(
            turns, PydanticAIMemory(handle.agent("a"), budget=100, window=budget, tools=False)
        ),
    ),
    "LlamaIndex": (
        lambda turns, budget: llama(turns, budget, None),
        lambda handle, turns, budget: llama(
            turns, budget, LlamaIndexMemoryBlock(engine=handle.agent("a"), budget=int(budget * 0.7))
        ),
    ),
    "Google ADK": (
        lambda turns, _: adk(turns, InMemoryMemoryService()),
        # The tool writes two sentences around the memories, and the question comes after them.
        lambda handle, turns, budget: adk(
            turns, ADKMemoryService(handle, limit=_RESULTS, budget=int(budget * 0.9))
        ),
    ),
    "Agent Framework": (
        lambda turns, _: agent_framework(turns, [_Latest()], past=False),
        lambda handle, turns, budget: agent_framework(
            turns,
            [
                AgentFrameworkHistory(handle.agent("a"), budget=int(budget * 0.2)),
                AgentFrameworkContext(handle.agent("a"), budget=int(budget * 0.75)),
            ],
            past=True,
        ),
    ),
}


# Time.


def times() -> Iterator[str]:
    """A line for each adapter: the median time of a turn in the framework's own store and in germane's."""
    for name, work in _WORKS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            germane.open(Path(folder) / "a.db", agent="a") as engine,
        ):
            own, ours = work(Path(folder), engine)
            taken: dict[str, list[float]] = {"own": [], "ours": []}
            for turn in range(_TURNS):
                for side, run in (("own", own), ("ours", ours)):
                    began = process_time()
                    run(turn)
                    taken[side].append(process_time() - began)
        first, second = (1000 * statistics.median(each) for each in taken.values())
        yield f"{name:<34}{first:>9.2f}{second:>9.2f}"


_Run: TypeAlias = Callable[[int], object]
_TEXT = "The worker of queue {} reads its orders from the shard in Oslo, as the last run of its tests shows."


def _langgraph_turns(_: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(store: Any) -> _Run:
        def run(turn: int) -> None:
            store.put(("a",), str(turn), {"text": _TEXT.format(turn)})
            store.search(("a",), query=f"orders of queue {turn}", limit=_RESULTS)

        return run

    own = InMemoryStore(index={"dims": _EMBEDDER.dimension, "embed": embedded})
    return run_with(own), run_with(LangGraphStore(engine))


def _openai_turns(folder: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(session: Any) -> _Run:
        def run(turn: int) -> None:
            pair: list[Any] = [
                {"role": "user", "content": f"Which worker is {turn}?"},
                {"role": "assistant", "content": _TEXT.format(turn)},
            ]

            async def go() -> None:
                await session.add_items(pair)
                await session.get_items()

            asyncio.run(go())

        return run

    return run_with(_MEMORY.SQLiteSession("s", folder / "own.db")), run_with(OpenAIAgentsSession("s", engine))


def _anthropic_turns(folder: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(tool: Any) -> _Run:
        def run(turn: int) -> None:
            path, text = f"/memories/{turn}.md", _TEXT.format(turn)
            tool.create(BetaMemoryTool20250818CreateCommand(command="create", path=path, file_text=text))
            tool.str_replace(
                BetaMemoryTool20250818StrReplaceCommand(
                    command="str_replace", path=path, old_str="Oslo", new_str="Bergen"
                )
            )
            tool.view(BetaMemoryTool20250818ViewCommand(command="view", path="/memories"))

        return run

    return run_with(BetaLocalFilesystemMemoryTool(str(folder))), run_with(AnthropicMemoryTool(engine))


def _framework_turns(_: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(history: Any, state: dict[str, Any]) -> _Run:
        def run(turn: int) -> None:
            pair = [
                FrameworkMessage("user", [f"Which worker is {turn}?"]),
                FrameworkMessage("assistant", [_TEXT.format(turn)]),
            ]

            async def go() -> None:
                await history.save_messages("s", pair, state=state)
                await history.get_messages("s", state=state)

            asyncio.run(go())

        return run

    return run_with(InMemoryHistoryProvider(), {}), run_with(AgentFrameworkHistory(engine), {})


def _pydantic_turns(_: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(capabilities: Sequence[AbstractCapability[Any]]) -> _Run:
        model = FunctionModel(lambda *_: ModelResponse(parts=[TextPart("Yes.")]))
        agent = Agent(model, capabilities=capabilities)
        return lambda turn: asyncio.run(agent.run(f"Which worker is {turn}?"))

    engine.remember_many([_TEXT.format(number) for number in range(100)])
    return run_with([]), run_with([PydanticAIMemory(engine, session="s")])


def _langchain_turns(_: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(middleware: Sequence[Any]) -> _Run:
        agent: Any = create_agent(_ChatModel(responses=["Yes."], sent=[]), middleware=middleware)
        return lambda turn: agent.invoke({"messages": [("user", f"Which worker is {turn}?")]})

    engine.remember_many([_TEXT.format(number) for number in range(100)])
    return run_with([]), run_with([LangChainMemory(engine, window=8000)])


def _llama_turns(_: Path, engine: germane.Engine) -> tuple[_Run, _Run]:
    loop = asyncio.new_event_loop()

    def run_with(blocks: Sequence[Any]) -> _Run:
        memory = Memory.from_defaults(session_id=f"s{len(blocks)}", token_limit=1000, memory_blocks=[*blocks])

        async def go(turn: int) -> None:
            await memory.aput(ChatMessage(role="user", content=_TEXT.format(turn)))
            await memory.aget(input=f"Which worker is {turn}?")

        return lambda turn: loop.run_until_complete(go(turn))

    return run_with([]), run_with([LlamaIndexMemoryBlock(engine=engine, budget=500)])


def _adk_turns(folder: Path, _: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(memory: Any) -> _Run:
        async def go(turn: int) -> None:
            event = Event(author="user", content=Content(parts=[Part(text=_TEXT.format(turn))]))
            session = Session(id=f"s{turn}", app_name="a", user_id="u", events=[event])
            await memory.add_session_to_memory(session)
            await memory.search_memory(app_name="a", user_id="u", query=f"Which worker is {turn}?")

        return lambda turn: asyncio.run(go(turn))

    return run_with(InMemoryMemoryService()), run_with(ADKMemoryService(germane.connect(folder / "adk.db")))


def _adk_session_turns(folder: Path, _: germane.Engine) -> tuple[_Run, _Run]:
    def run_with(service: Any) -> _Run:
        async def go(turn: int) -> None:
            of: dict[str, Any] = {"app_name": "a", "user_id": "u", "session_id": "s"}
            session = await service.get_session(**of) or await service.create_session(**of)
            for role in ("user", "a"):
                text = Content(parts=[Part(text=_TEXT.format(turn))])
                await service.append_event(session, Event(author=role, content=text))

        return lambda turn: asyncio.run(go(turn))

    own = SqliteSessionService(str(folder / "own.db"))
    return run_with(own), run_with(ADKSessionService(germane.connect(folder / "sessions.db")))


_WORKS: Mapping[str, Callable[[Path, germane.Engine], tuple[_Run, _Run]]] = {
    "LangGraph: put, search": _langgraph_turns,
    "OpenAI Agents: add two, get": _openai_turns,
    "Claude's tool: create, edit, view": _anthropic_turns,
    "Agent Framework: save two, get": _framework_turns,
    "Pydantic AI: run with context, log": _pydantic_turns,
    "LangChain: run with context": _langchain_turns,
    "LlamaIndex: put, get with context": _llama_turns,
    "Google ADK: add session, search": _adk_turns,
    "Google ADK: get session, two events": _adk_session_turns,
}

if __name__ == "__main__":
    main()
