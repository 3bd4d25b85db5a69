"""Google ADK with germane: the memory service beside the framework's own, and in a runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai.types import Content, FunctionCall, Part
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane.frameworks import ADKMemoryService
from germane.tokens import get_counter

WHO: dict[str, Any] = {"app_name": "support", "user_id": "anna"}
TEXTS = (
    "Anna is allergic to nuts.",
    "The tiger sleeps.",
    "Our choir sings Bach.",
    "The parcel waits in Osaka.",
    "Locker nine has the code 333.",
)
WORDS = ("allergic", "tiger", "choir", "parcel", "locker")


@pytest.fixture
def service() -> Iterator[ADKMemoryService]:
    with germane.connect(":memory:") as handle:
        yield ADKMemoryService(handle)


def event(name: str, text: str | None, author: str = "user") -> Event:
    parts = [Part(function_call=FunctionCall(name="look"))] if text is None else [Part(text=text)]
    return Event(id=name, author=author, timestamp=1.7e9, content=Content(role="user", parts=parts))


def session(name: str, *events: Event, user: str = "anna") -> Session:
    return Session(id=name, app_name="support", user_id=user, events=list(events))


async def found(service: BaseMemoryService, query: str, **who: str) -> list[tuple[str | None, str]]:
    answer = await service.search_memory(**(WHO | who), query=query)
    return [(each.id, str((each.content.parts or [Part()])[0].text)) for each in answer.memories]


def test_it_answers_as_the_frameworks_own_service_does(service: ADKMemoryService) -> None:
    async def both() -> None:
        for one in (InMemoryMemoryService(), service):
            await one.add_session_to_memory(
                session("1", event("a", TEXTS[0]), event("b", None), event("c", TEXTS[1], "agent"))
            )
            assert await found(one, "allergic") == [("a", TEXTS[0])]
            assert await found(one, "allergic", user_id="ben") == []
            assert await found(one, "allergic", app_name="sales") == []
            # Added again, the session replaces itself.
            await one.add_session_to_memory(session("1", event("a", TEXTS[0]), event("d", TEXTS[2])))
            assert await found(one, "allergic") == [("a", TEXTS[0])]
            assert await found(one, "tiger") == []
            # Of the events that are added, known ones count once.
            await one.add_events_to_memory(
                **WHO, session_id="1", events=[event("d", TEXTS[2]), event("e", TEXTS[3])]
            )
            assert await found(one, "choir") == [("d", TEXTS[2])]
            assert await found(one, "parcel") == [("e", TEXTS[3])]
            # What is deleted doesn't come back.
            await one.delete_memory(**WHO, memory_id="a")
            await one.delete_memory(**WHO, memory_id="unknown")
            await one.delete_memory(**WHO)
            await one.add_session_to_memory(session("1", event("a", TEXTS[0]), event("d", TEXTS[2])))
            assert await found(one, "allergic") == []
            assert await found(one, "choir") == [("d", TEXTS[2])]

    asyncio.run(both())


STEPS = st.one_of(
    st.tuples(
        st.just("session"), st.sampled_from("12"), st.lists(st.integers(0, 4), max_size=4, unique=True)
    ),
    st.tuples(st.just("events"), st.sampled_from("12"), st.lists(st.integers(0, 4), max_size=4)),
    st.tuples(st.just("delete"), st.sampled_from("12"), st.lists(st.integers(0, 4), min_size=1, max_size=1)),
)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(STEPS, max_size=8))
def test_after_any_steps_both_find_the_same(steps: list[tuple[str, str, list[int]]]) -> None:
    async def each(one: BaseMemoryService) -> list[set[tuple[str | None, str]]]:
        for what, name, numbers in steps:
            events = [event(f"{name}-{number}", TEXTS[number]) for number in numbers]
            if what == "session":
                await one.add_session_to_memory(session(name, *events))
            elif what == "events":
                await one.add_events_to_memory(**WHO, session_id=name, events=events)
            else:
                await one.delete_memory(**WHO, memory_id=events[0].id)
        return [set(await found(one, word)) for word in WORDS]

    async def both() -> None:
        with germane.connect(":memory:", embedder=None) as handle:
            assert await each(ADKMemoryService(handle)) == await each(InMemoryMemoryService())

    asyncio.run(both())


def test_memories_are_added_and_deleted_by_their_ids(service: ADKMemoryService) -> None:
    async def add() -> None:
        entry = MemoryEntry(
            content=Content(parts=[Part(text="We ship on Mondays.")]), timestamp="2026-05-01T10:00:00+00:00"
        )
        await service.add_memory(**WHO, memories=[entry], custom_metadata={"kind": "decision"})
        answer = await service.search_memory(**WHO, query="When do we ship?")
        (one,) = answer.memories
        assert one.custom_metadata["kind"] == "decision"
        assert str(one.timestamp).startswith("2026-05-01")
        await service.delete_memory(**WHO, memory_id=one.id)
        assert await found(service, "When do we ship?") == []

    asyncio.run(add())


def test_a_search_is_within_its_limits_and_finds_what_the_agent_knows() -> None:
    with germane.connect(":memory:") as handle:
        for number in range(20):
            handle.agent("support").remember(f"Locker {number} has the code {number * 37}.", kind="fact")
        assert len(asyncio.run(found(ADKMemoryService(handle), "locker codes"))) == 10
        assert len(asyncio.run(found(ADKMemoryService(handle, limit=3), "locker codes"))) == 3
        assert len(asyncio.run(found(ADKMemoryService(handle, budget=60), "locker codes"))) < 4


@pytest.mark.parametrize("budget", [0, 60, 150, 400])
def test_what_is_preloaded_is_within_the_budget(budget: int) -> None:
    async def preloaded() -> str:
        service = ADKMemoryService(handle, limit=50, budget=budget)
        events = [event(f"e{number}", f"Locker {number} is {37 * number}.") for number in range(40)]
        await service.add_session_to_memory(session("past", *events))
        return await turn(runner_of(service), "anna", "now", "Which lockers are there?")

    with germane.connect(":memory:") as handle:
        answer = asyncio.run(preloaded())
    _, _, rest = answer.partition("<PAST_CONVERSATIONS>\n")
    written = rest.partition("\n</PAST_CONVERSATIONS>")[0]
    assert get_counter("o200k").count(written) <= budget
    assert ("Locker" in written) is (budget > 0)


class Model(BaseLlm):
    """A stand-in for a model: it answers with all that it reads."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        del stream
        texts = [part.text for each in llm_request.contents for part in each.parts or () if part.text]
        texts.append(str(llm_request.config.system_instruction or ""))
        yield LlmResponse(content=Content(role="model", parts=[Part(text="\n".join(texts))]))


async def turn(runner: Runner, user: str, name: str, text: str) -> str:
    """The answer to a message, after which the session is in memory."""
    sessions: Any = runner.session_service
    if await sessions.get_session(app_name="support", user_id=user, session_id=name) is None:
        await sessions.create_session(app_name="support", user_id=user, session_id=name)
    message = Content(role="user", parts=[Part(text=text)])
    answer = ""
    async for each in runner.run_async(user_id=user, session_id=name, new_message=message):
        answer = "".join(part.text or "" for part in (each.content.parts or ())) if each.content else answer
    ended = await sessions.get_session(app_name="support", user_id=user, session_id=name)
    assert runner.memory_service is not None
    await runner.memory_service.add_session_to_memory(ended)
    return answer


def runner_of(service: ADKMemoryService) -> Runner:
    agent = LlmAgent(name="support", model=Model(model="fake"), tools=[PreloadMemoryTool()])
    return Runner(
        app_name="support", agent=agent, session_service=InMemorySessionService(), memory_service=service
    )


def test_a_runner_recalls_earlier_sessions_of_its_user_alone_after_a_restart(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "m.db") as handle:
        asyncio.run(turn(runner_of(ADKMemoryService(handle)), "anna", "1", "I moved to Oslo in May."))
    with germane.connect(tmp_path / "m.db") as handle:
        runner = runner_of(ADKMemoryService(handle))
        assert "I moved to Oslo in May." in asyncio.run(turn(runner, "anna", "2", "When did I move?"))
        assert "Oslo" not in asyncio.run(turn(runner, "ben", "3", "When did I move?"))


def test_fifty_sessions_at_once_are_all_stored(service: ADKMemoryService) -> None:
    async def every() -> None:
        await asyncio.gather(
            *(
                service.add_session_to_memory(
                    session(str(number), event(f"e{number}", f"I am {number}."), user=f"u{number}")
                )
                for number in range(50)
            )
        )
        for number in range(50):
            assert await found(service, f"{number}", user_id=f"u{number}") == [
                (f"e{number}", f"I am {number}.")
            ]

    asyncio.run(every())
