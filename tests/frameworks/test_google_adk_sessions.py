"""Google ADK's sessions with germane: the service beside the framework's own, and in a runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import InvalidInput
from germane.frameworks import ADKSessionService
from germane.stores import StoreHandle

WHO: dict[str, Any] = {"app_name": "support", "user_id": "anna"}


@pytest.fixture(name="service")
def service_fixture() -> Iterator[ADKSessionService]:
    with germane.connect(":memory:", embedder=None) as handle:
        yield ADKSessionService(handle)


# Beside the framework's own service.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(
    [
        "a",
        "updated",
        "",
        "app:a",
        "app:b",
        "user:a",
        "user:",
        "temp:a",
        "app:user:a",
        "ü\x00\ud800",
        "other:a",
    ]
)
STATES = st.dictionaries(KEYS, VALUES, max_size=4)
PARTS = st.sampled_from(
    [
        [Part(text="I moved to Oslo.")],
        [Part(text="Hm.", thought=True), Part(text="Noted.")],
        [Part(function_call=FunctionCall(id="c", name="look", args={"x": None}))],
        [Part(function_response=FunctionResponse(id="c", name="look", response={"found": [1, None]}))],
        [Part(inline_data=Blob(data=b"\x00\xff", mime_type="image/png"))],
        [],
    ]
)
APPS, USERS, NAMES = (
    st.sampled_from(["support", "sales"]),
    st.sampled_from(["anna", "ben"]),
    st.sampled_from("123"),
)
STEPS = st.one_of(
    st.tuples(st.just("create"), APPS, USERS, NAMES, STATES),
    st.tuples(st.just("delete"), APPS, USERS, NAMES),
    st.tuples(
        st.just("append"),
        APPS,
        USERS,
        NAMES,
        STATES,
        PARTS,
        st.integers(0, 20),
        st.sampled_from(["user", "bot"]),
    ),
    st.tuples(st.just("again"), APPS, USERS, NAMES),
    st.tuples(st.just("partial"), APPS, USERS, NAMES),
)
CONFIGS = st.builds(
    GetSessionConfig,
    num_recent_events=st.none() | st.integers(0, 3),
    after_timestamp=st.none() | st.integers(0, 20).map(lambda at: 1.7e9 + at),
)


def shown(session: Session | None) -> Any:
    """All of a session, but for its time if nothing was appended: each service has its own clock."""
    if session is None:
        return None
    fields = session.model_dump(mode="json")
    return fields | {
        "last_update_time": session.last_update_time if session.last_update_time < 1.71e9 else None
    }


async def result(service: BaseSessionService, step: Any) -> Any:
    what, app, user, name, *rest = step
    of = {"app_name": app, "user_id": user, "session_id": name}
    if what == "create":
        try:
            return shown(await service.create_session(**of, state=rest[0]))
        except AlreadyExistsError as error:
            return str(error)
    if what == "delete":
        return await service.delete_session(**of)
    session = await service.get_session(**of)
    found = Session(id=name, app_name=app, user_id=user) if session is None else session
    if what == "again" and not found.events:
        return None
    if what == "append":
        content = Content(role="user", parts=rest[1]) if rest[1] else None
        actions = EventActions(state_delta=dict(rest[0]))
        event = Event(
            id=f"e{rest[2]}", author=rest[3], timestamp=1.7e9 + rest[2], content=content, actions=actions
        )
    else:
        event = found.events[-1] if what == "again" else Event(author="bot", partial=True)
    try:
        stored = await service.append_event(found, event)
    except SessionNotFoundError as error:
        return str(error)
    return shown(found), None if what == "partial" else stored.model_dump(mode="json")


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), config=st.none() | CONFIGS)
def test_after_any_steps_both_have_the_same_sessions(
    steps: list[Any], config: GetSessionConfig | None
) -> None:
    async def each(service: BaseSessionService) -> list[Any]:
        given: list[Any] = [await result(service, step) for step in steps]
        for app in ("support", "sales"):
            listed = (await service.list_sessions(app_name=app)).sessions
            given.append(sorted((shown(one) for one in listed), key=lambda one: (one["user_id"], one["id"])))
            for user in ("anna", "ben"):
                given.append(await service.get_user_state(app_name=app, user_id=user))
                own = (await service.list_sessions(app_name=app, user_id=user)).sessions
                given.append(sorted(one.id for one in own))
                for name in "123":
                    of = {"app_name": app, "user_id": user, "session_id": name}
                    given.append(shown(await service.get_session(**of, config=config)))
        return given

    async def both() -> None:
        with germane.connect(":memory:", embedder=None) as handle:
            assert await each(ADKSessionService(handle)) == await each(InMemorySessionService())

    asyncio.run(both())


def test_sessions_are_listed_with_the_latest_last(service: ADKSessionService) -> None:
    async def listed(one: BaseSessionService) -> list[str]:
        for name, at in (("a", 3), ("b", 1), ("c", 2)):
            session = await one.create_session(**WHO, session_id=name)
            await one.append_event(session, Event(author="user", timestamp=1.7e9 + at))
        return [each.id for each in (await one.list_sessions(**WHO)).sessions]

    assert asyncio.run(listed(service)) == asyncio.run(listed(InMemorySessionService())) == ["b", "c", "a"]


def test_an_id_is_made_and_spaces_around_one_are_ignored(service: ADKSessionService) -> None:
    async def made() -> None:
        first, second = [await service.create_session(**WHO) for _ in range(2)]
        assert first.id != second.id
        assert (await service.create_session(**WHO, session_id=" s ")).id == "s"
        assert await service.get_session(**WHO, session_id=" s ") is not None
        await service.delete_session(**WHO, session_id=" s ")
        assert await service.get_session(**WHO, session_id="s") is None

    asyncio.run(made())


def test_what_is_no_json_is_stored_as_text(service: ADKSessionService) -> None:
    async def made() -> None:
        await service.create_session(**WHO, session_id="1", state={"who": object()})
        session = await service.get_session(**WHO, session_id="1")
        assert session is not None
        assert isinstance(session.state["who"], str)

    asyncio.run(made())


def test_names_that_cant_be_stored_are_refused(service: ADKSessionService) -> None:
    for of in (WHO | {"user_id": ""}, WHO | {"app_name": "space:x"}):
        with pytest.raises(InvalidInput):
            asyncio.run(service.create_session(**of))


# In a runner.


class Model(BaseLlm):
    """A stand-in for a model: it calls a tool, then answers."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        del stream
        last = (llm_request.contents[-1].parts or [Part()])[-1]
        part = Part(text="Noted.")
        if last.function_response is None:
            part = Part(function_call=FunctionCall(name="note", args={"city": (last.text or "").split()[-1]}))
        yield LlmResponse(content=Content(role="model", parts=[part]))


def note(city: str, tool_context: ToolContext) -> str:
    """Note a city."""
    tool_context.state["user:city"] = city
    tool_context.state["count"] = tool_context.state.get("count", 0) + 1
    return city


async def turn(handle: StoreHandle, user: str, name: str, text: str) -> Session:
    service = ADKSessionService(handle)
    agent = LlmAgent(name="support", model=Model(model="fake"), tools=[note])
    runner = Runner(app_name="support", agent=agent, session_service=service)
    of: dict[str, Any] = {"app_name": "support", "user_id": user, "session_id": name}
    if await service.get_session(**of) is None:
        await service.create_session(**of)
    message = Content(role="user", parts=[Part(text=text)])
    async for _ in runner.run_async(user_id=user, session_id=name, new_message=message):
        pass
    ended = await service.get_session(**of)
    assert ended is not None
    return ended


def test_a_runner_goes_on_after_a_restart_and_users_are_apart(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "a.db") as handle:
        asyncio.run(turn(handle, "anna", "1", "I moved to Oslo"))
    with germane.connect(tmp_path / "a.db") as handle:
        session = asyncio.run(turn(handle, "anna", "1", "I moved to Bergen"))
        assert session.state == {"user:city": "Bergen", "count": 2}
        assert len(session.events) == 8
        assert asyncio.run(turn(handle, "anna", "2", "I moved to Rome")).state == {
            "user:city": "Rome",
            "count": 1,
        }
        service = ADKSessionService(handle)
        ben = asyncio.run(service.create_session(app_name="support", user_id="ben"))
        assert ben.state == {}
        engine = handle.agent("support").for_user("anna")
        assert "I moved to Bergen" in engine.assemble("Where did I move to?", budget=500).text
        assert "Oslo" not in handle.agent("support").for_user("ben").assemble("Oslo", budget=500).text
        handle.purge_user("anna", confirm=True)
        assert asyncio.run(service.list_sessions(app_name="support", user_id="anna")).sessions == []


def test_state_is_shown_in_no_context() -> None:
    with germane.connect(":memory:", embedder=None) as handle:
        service = ADKSessionService(handle)
        asyncio.run(service.create_session(**WHO, session_id="1", state={"user:plan": "gold", "a": "Osaka"}))
        engine = handle.agent("support").for_user("anna")
        assert engine.assemble("gold plan in Osaka", budget=500).text == ""
        assert engine.memories() == ()


def test_fifty_events_at_once_are_all_stored(tmp_path: Path) -> None:
    async def every(service: ADKSessionService) -> None:
        session = await service.create_session(**WHO, session_id="1")

        async def add(number: int) -> None:
            actions = EventActions(state_delta={f"k{number}": number, "user:last": number})
            await service.append_event(session, Event(author="user", actions=actions))

        await asyncio.gather(*(add(number) for number in range(50)))
        stored = await service.get_session(**WHO, session_id="1")
        assert stored is not None
        assert len({event.id for event in stored.events}) == len(stored.events) == 50
        assert {f"k{number}": number for number in range(50)}.items() <= stored.state.items()
        assert stored.state["user:last"] in range(50)

    with germane.connect(tmp_path / "a.db", embedder=None) as handle:
        asyncio.run(every(ADKSessionService(handle)))


def test_a_cancelled_append_is_whole_or_absent(tmp_path: Path) -> None:
    async def cut(service: ADKSessionService, delay: float, number: int) -> None:
        session = await service.get_session(**WHO, session_id="1")
        assert session is not None
        actions = EventActions(state_delta={"app:last": number, "last": number})
        task = asyncio.ensure_future(service.append_event(session, Event(author="user", actions=actions)))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with germane.connect(tmp_path / "a.db", embedder=None) as handle:
        service = ADKSessionService(handle)
        asyncio.run(service.create_session(**WHO, session_id="1"))
        for number, delay in enumerate((0, 0.0005, 0.001, 0.002, 0.005, 0.02)):
            asyncio.run(cut(service, delay, number))
            stored = asyncio.run(service.get_session(**WHO, session_id="1"))
            assert stored is not None
            changes = [event.actions.state_delta["last"] for event in stored.events]
            latest = changes[-1] if changes else None
            assert (stored.state.get("last"), stored.state.get("app:last")) == (latest, latest)
