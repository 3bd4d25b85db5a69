"""Requests that show what a space knows, and the record of it: in whose name, for whom, and made again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import germane
import germane.aio
from germane import Conversation, Engine, Space
from germane.errors import UnknownSpace
from germane.testing.fakes import START, FixedClock

PROMPT = "When is the demo?"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def path(tmp_path: Path, clock: FixedClock) -> Path:
    made = tmp_path / "agents.db"
    with germane.open(made, agent="ada", clock=clock) as engine:
        team = engine.space("team", create=True)
        team.remember("The demo is on Tuesday.", kind="fact")
        team.join("ben", rights="read")
    return made


@pytest.fixture
def ada(path: Path, clock: FixedClock) -> Iterator[Engine]:
    with germane.open(path, agent="ada", clock=clock) as engine:
        yield engine


@pytest.fixture
def ben(path: Path, clock: FixedClock) -> Iterator[Engine]:
    with germane.open(path, agent="ben", clock=clock) as engine:
        engine.remember("Ben brings the projector to the demo.", kind="fact")
        yield engine


@pytest.fixture
def team(ben: Engine) -> Space:
    return ben.space("team")


@pytest.fixture
def chat(ben: Engine) -> Conversation:
    chat = ben.conversation("chat")
    chat.append("user", PROMPT)
    return chat


def owners(request: germane.Request) -> list[str]:
    assert request.memory is not None
    return sorted({item.memory.agent for item in request.memory.items})


def test_a_member_asks_what_the_space_knows_in_a_conversation_of_its_own(
    chat: Conversation, team: Space
) -> None:
    request = team.request(chat, memory="layered", window=2000, reserve=500)
    assert "Tuesday" in request.serialised()
    assert "projector" not in request.serialised()
    assert request.messages[-1] == {"role": "user", "content": PROMPT}
    assert owners(request) == ["space:team"]
    # It is the context that the space assembles, and costs what it costs there.
    assert request.memory is not None
    budget = request.memory.trace.budget
    assert request.memory.text == team.assemble(PROMPT, budget=budget).text


def test_messages_and_a_context_of_the_space_do_as_well(team: Space) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    assert "Tuesday" in team.request(messages, memory="layered").serialised()
    assert "Tuesday" in team.request(messages, memory=team.assemble(PROMPT, budget=200)).serialised()


def test_what_is_recalled_is_the_members_own_conversation(ben: Engine, team: Space) -> None:
    chat = ben.conversation("long")
    chat.append("user", "The redis cache expires after ninety seconds.")
    chat.append("assistant", "Noted.")
    for number in range(30):
        chat.append("user", f"Question {number}: what does the parser of the warehouse read next?")
        chat.append("assistant", f"Answer {number}: the parser of the warehouse reads the next invoice.")
    chat.append("user", "When does the redis cache expire, and when is the demo?")
    request = team.request(chat, memory="layered", window=900, reserve=100)
    assert "ninety seconds" in request.serialised()
    assert "Tuesday" in request.serialised()


def test_own_memory_and_spaces_are_queried_together(ben: Engine, chat: Conversation) -> None:
    request = ben.request(chat, memory="layered", spaces=["team"], window=2000, reserve=500)
    assert "Tuesday" in request.serialised()
    assert "projector" in request.serialised()
    assert owners(request) == ["ben", "space:team"]


def test_what_a_request_shows_of_a_space_goes_when_it_is_forgotten_there(
    ada: Engine, ben: Engine, chat: Conversation
) -> None:
    first = ben.request(chat, memory="layered", spaces=["team"])
    request = ben.request(chat, memory="layered", spaces=["team"], previous=first)
    assert request.memory is None
    assert request.serialised() == first.serialised()
    alone = ben.request(chat, memory="layered", previous=request)
    assert "Tuesday" not in alone.serialised()
    theirs = ada.space("team")
    theirs.forget(theirs.memories()[0].id)
    assert (
        "Tuesday" not in ben.request(chat, memory="layered", spaces=["team"], previous=request).serialised()
    )


def test_who_was_put_out_is_shown_nothing_more(ada: Engine, chat: Conversation, team: Space) -> None:
    first = team.request(chat, memory="layered")
    ada.space("team").leave("ben")
    for previous in (None, first):
        with pytest.raises(germane.NotAllowed):
            team.request(chat, memory="layered", previous=previous)


def test_the_record_of_a_spaces_request_is_the_spaces(ada: Engine, team: Space, clock: FixedClock) -> None:
    theirs = ada.space("team")
    chat = ada.conversation("chat")
    chat.append("user", PROMPT)
    request = theirs.request(chat, memory="layered", record=True)
    clock.advance(timedelta(days=40))
    theirs.remember("The demo was called off.", kind="fact")

    (one,) = theirs.ledger().list()
    replay = theirs.ledger().replay(one.id)

    assert (one.agent, one.made_for, one.question, one.cold) == ("space:team", "request", PROMPT, True)
    assert ada.ledger().list() == ()
    assert request.memory is not None
    assert replay.context is not None
    assert (replay.same, replay.context.text) == (True, request.memory.text)
    with pytest.raises(germane.NotAllowed, match="may only read"):
        team.request([{"role": "user", "content": PROMPT}], memory="layered", record=True)


def test_a_request_of_both_is_recorded_with_its_spaces_and_made_again(
    ada: Engine, ben: Engine, chat: Conversation, clock: FixedClock
) -> None:
    request = ben.request(chat, memory="layered", spaces=["team"], record=True)
    clock.advance(timedelta(days=40))
    ada.space("team").remember("The demo was called off.", kind="fact")
    ben.remember("Ben forgot the projector of the demo.", kind="fact")

    (one,) = ben.ledger().list()
    replay = ben.ledger().replay(one.id)

    assert (one.agent, one.spaces, sorted(one.points)) == ("ben", ("team",), ["ben", "space:team"])
    assert request.memory is not None
    assert replay.context is not None
    assert (replay.same, replay.context.text) == (True, request.memory.text)


def test_what_no_request_of_a_space_can_be(ada: Engine, ben: Engine, chat: Conversation, team: Space) -> None:
    with pytest.raises(germane.InvalidInput, match="the space 'team' holds, but memory isn't given"):
        team.request(chat)
    with pytest.raises(germane.InvalidInput, match="memory isn't given"):
        ben.request(chat, spaces=["team"])
    made = ben.assemble(PROMPT, budget=300)
    with pytest.raises(germane.InvalidInput, match="Name the spaces where it is assembled"):
        ben.request(chat, memory=made, spaces=["team"])
    with pytest.raises(germane.InvalidInput, match="belongs to agent 'ben', and the engine to 'ada'"):
        ada.space("team").request(chat, memory="layered")
    with pytest.raises(UnknownSpace):
        ben.request(chat, memory="layered", spaces=["nowhere"])
    ada.space("board", create=True)
    with pytest.raises(germane.NotAllowed):
        ben.request(chat, memory="layered", spaces=["board"])
    with pytest.raises(germane.NotAllowed):
        ben.space("board").request(chat, memory="layered")


def test_a_request_of_a_space_with_await(path: Path) -> None:
    async def main() -> list[str]:
        async with await germane.aio.open(path, agent="ben") as engine:
            chat = await engine.conversation("chat")
            await chat.append("user", PROMPT)
            async with await engine.space("team") as team:
                alone = await team.request(chat, memory="layered")
            both = await engine.request(chat, memory="layered", spaces=["team"])
            return [alone.serialised(), both.serialised()]

    assert all("Tuesday" in text for text in asyncio.run(main()))
