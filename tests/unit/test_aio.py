"""The awaited surface: the same names, the same arguments, the same results, and errors, as the engine."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import germane
import germane.aio
from germane import Engine
from germane.aio import AsyncEngine


def public(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner) if not name.startswith("_")}


def test_both_surfaces_offer_the_same_names() -> None:
    assert public(Engine) == public(AsyncEngine)


@pytest.mark.parametrize("name", sorted(name for name in public(Engine) if callable(getattr(Engine, name))))
def test_each_verb_takes_the_same_arguments_and_says_the_same(name: str) -> None:
    awaited, verb = getattr(AsyncEngine, name), getattr(Engine, name)
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.signature(awaited) == inspect.signature(verb)
    assert awaited.__doc__ == verb.__doc__


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
