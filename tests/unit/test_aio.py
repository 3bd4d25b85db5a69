"""The awaited surface: the same names, the same arguments, the same results, and errors, as the engine."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import germane
import germane.aio
from germane import Conversation, Engine, Ledger, Space, WorkingSet
from germane.aio import AsyncConversation, AsyncEngine, AsyncLedger, AsyncSpace, AsyncWorkingSet
from germane.errors import NotInWorkingSet, UnknownSpace
from germane.testing.fakes import HashEmbedder


def public(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner) if not name.startswith("_")}


def test_both_surfaces_offer_the_same_names() -> None:
    assert public(Engine) == public(AsyncEngine)


def test_binding_to_a_user_is_not_awaited() -> None:
    """It does no work."""
    assert inspect.signature(AsyncEngine.for_user).parameters == inspect.signature(Engine.for_user).parameters


@pytest.mark.parametrize(
    "name", sorted({name for name in public(Engine) if callable(getattr(Engine, name))} - {"for_user"})
)
def test_each_verb_takes_the_same_arguments_and_says_the_same(name: str) -> None:
    awaited, verb = getattr(AsyncEngine, name), getattr(Engine, name)
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.signature(awaited) == inspect.signature(verb)
    assert awaited.__doc__ == verb.__doc__


def test_opening_takes_the_same_arguments() -> None:
    assert inspect.iscoroutinefunction(germane.aio.open)
    assert inspect.signature(germane.aio.open) == inspect.signature(germane.open)


def test_both_ledgers_offer_the_same() -> None:
    assert public(Ledger) == public(AsyncLedger) - {"ledger"}
    for name in public(Ledger):
        assert inspect.signature(getattr(AsyncLedger, name)) == inspect.signature(getattr(Ledger, name))


TYPES = {
    "after": {"int", "int | None", "str | None"},
    "agent": {"str", "str | None"},
    "budget": {"int", "int | None"},
    "confirm": {"bool"},
    "counter": {"str | TokenCounter | None"},
    "limit": {"int", "int | None"},
    "memory_id": {"str", "str | None"},
    "progress": {"Progress | None", "UpkeepCallback | None"},
    "scopes": {"Sequence[Scope | str]"},
    "since": {"datetime | str | None"},
    "spaces": {"Sequence[str]"},
    "until": {"datetime | str | None"},
    "where": {"Filter | str | Mapping[str, Any]", "Filter | str | Mapping[str, Any] | None"},
}
"""What an argument of a name is, in every method: `since` a time, and `after` the last one that was read."""


@pytest.mark.parametrize("owner", [Engine, Space, Conversation, WorkingSet, Ledger])
def test_an_argument_means_the_same_in_every_method(owner: type) -> None:
    wrong = [
        f"{name}({parameter.name}: {parameter.annotation})"
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
        for parameter in inspect.signature(method).parameters.values()
        if parameter.annotation not in TYPES.get(parameter.name, {parameter.annotation})
    ]
    assert wrong == []


def test_many_verbs_at_once_give_what_one_after_another_gives() -> None:
    async def main() -> tuple[str, int]:
        async with await germane.aio.open(":memory:", agent="a") as engine:
            await asyncio.gather(*(engine.remember(f"Fact number {n} about caching") for n in range(40)))
            contexts = await asyncio.gather(*(engine.assemble("caching", budget=300) for _ in range(8)))
            assert len({context.text for context in contexts}) == 1
            return contexts[0].text, (await engine.stats()).memories

    text, count = asyncio.run(main())
    assert count == 40
    assert "Fact number" in text


def test_errors_come_through_as_they_are() -> None:
    async def main() -> None:
        async with await germane.aio.open(":memory:") as engine:
            with pytest.raises(germane.NotFound):
                await engine.get("nobody")
            with pytest.raises(germane.InvalidInput):
                await engine.remember("")

    asyncio.run(main())


def test_both_working_sets_offer_the_same() -> None:
    assert public(WorkingSet) == public(AsyncWorkingSet) - {"working_set"}
    for name in public(WorkingSet):
        awaited, verb = getattr(AsyncWorkingSet, name), getattr(WorkingSet, name)
        assert awaited.__doc__ == verb.__doc__
        if callable(verb):
            assert inspect.iscoroutinefunction(awaited)
            assert inspect.signature(awaited) == inspect.signature(verb)


def test_a_working_set_is_awaited_as_it_is_called() -> None:
    async def main() -> None:
        async with await germane.aio.open(":memory:", embedder=None) as engine:
            working = await engine.working_set(max_tokens=50)
            memories = await asyncio.gather(*(engine.remember(f"Fact {n} of caching") for n in range(20)))
            await asyncio.gather(*(working.add(memory) for memory in memories))
            assert 0 < await working.tokens <= 50
            assert await working.utilization == await working.tokens / await working.max_tokens
            listed = [one async for one in working]
            assert tuple(listed) == await working.items() == working.working_set.items()
            assert await working.holds(listed[0])
            assert (await working.assemble()).text == working.working_set.assemble().text
            assert len(await working.changes()) == await working.moved
            await working.clear()
            await engine.recall("caching fact", into=working)
            assert (await working.items())[-1].recalled
            with pytest.raises(NotInWorkingSet):
                await working.touch((await engine.remember("elsewhere")).id)

    asyncio.run(main())


def test_both_spaces_offer_the_same() -> None:
    assert public(Space) == public(AsyncSpace)
    for name in public(Space):
        awaited, verb = getattr(AsyncSpace, name), getattr(Space, name)
        assert awaited.__doc__ == verb.__doc__
        if callable(verb):
            assert inspect.iscoroutinefunction(awaited)
            assert inspect.signature(awaited) == inspect.signature(verb)


def test_a_space_is_awaited_as_it_is_called() -> None:
    async def main() -> None:
        async with await germane.aio.open(":memory:", agent="ada") as engine:
            async with await engine.space("team", create=True) as space:
                own = await engine.remember("The demo is on Tuesday.")
                shared, _ = await asyncio.gather(space.share(own.id), space.join("ben", rights="read"))
                working = await space.working_set()
                await working.add(shared)
                assert [one.memory async for one in working] == [shared]
                assert [one.agent for one in await space.members()] == ["ada", "ben"]
                assert {event.by for event in await space.events()} == {"ada"}
                assert (space.name, space.member, space.agent) == ("team", "ada", "space:team")
            assert [info.name for info in await engine.spaces()] == ["team"]
            with pytest.raises(UnknownSpace):
                await engine.space("nowhere")

    asyncio.run(main())


def test_both_conversations_offer_the_same() -> None:
    assert public(Conversation) == public(AsyncConversation) - {"conversation"}
    for name in public(Conversation):
        awaited, verb = getattr(AsyncConversation, name), getattr(Conversation, name)
        assert awaited.__doc__ == verb.__doc__
        if callable(verb):
            assert inspect.iscoroutinefunction(awaited)
            assert inspect.signature(awaited) == inspect.signature(verb)


def test_a_conversation_with_await() -> None:
    async def main() -> list[str]:
        async with await germane.aio.open(":memory:") as engine:
            talk = await engine.conversation("chat")
            await talk.append("user", "Is Redis fast?")
            await talk.append("assistant", "Yes.")
            assert (talk.session, talk.agent) == ("chat", "default")
            return [message.text for message in (await talk.window(1)).messages]

    assert asyncio.run(main()) == ["Is Redis fast?", "Yes."]


def test_closing_waits_for_what_a_cancelled_task_had_begun(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Waiting(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            began.set()
            assert go_on.wait(30)
            return super().embed(texts)

    async def main() -> None:
        engine = await germane.aio.open(tmp_path / "agent.db", embedder=Waiting())
        remembering = asyncio.create_task(engine.remember("The pump hums."))
        await asyncio.to_thread(began.wait, 30)
        remembering.cancel()
        closing = asyncio.create_task(engine.close())
        assert not (await asyncio.wait([closing], timeout=0.05))[0]
        go_on.set()
        await closing
        assert remembering.cancelled()

    asyncio.run(main())
    with germane.open(tmp_path / "agent.db", embedder=HashEmbedder()) as engine:
        assert [memory.content for memory in engine.memories()] == ["The pump hums."]


def test_a_bad_argument_is_refused_as_the_engine_refuses_it() -> None:
    wrong: Any = object()

    async def main() -> None:
        async with await germane.aio.open(":memory:", embedder=None) as engine:
            with pytest.raises(germane.InvalidInput, match="limit='10' is str; pass a whole number"):
                await engine.recall("x", limit=cast("Any", "10"))
            with pytest.raises(germane.InvalidInput, match=r"group=<object .* is object; pass"):
                await (await engine.conversation("chat")).hide(wrong)
            with pytest.raises(germane.InvalidInput, match="max_tokens=True is bool; pass a whole number"):
                await (await engine.working_set()).resize(True)
        with pytest.raises(germane.InvalidInput, match="read_only='no' is str; pass True or False"):
            await germane.aio.open(":memory:", read_only=cast("Any", "no"))

    asyncio.run(main())
