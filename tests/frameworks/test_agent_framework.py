"""Microsoft Agent Framework with germane: a fake client sees the context, and the log survives restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Content, Message

import germane
from germane.frameworks import AgentFrameworkContext, AgentFrameworkHistory


class Client(BaseChatClient):
    """Answers with how many messages it was sent, and keeps the last request."""

    last: Sequence[Message] = ()
    instructions: str = ""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Any:
        assert not stream
        type(self).last, type(self).instructions = messages, str(options.get("instructions") or "")

        async def answer() -> ChatResponse:
            return ChatResponse(messages=Message("assistant", [f"{len(messages)} messages"]))

        return answer()


def answered(agent: Any, question: str, *, session: str) -> str:
    async def run() -> str:
        return str((await agent.run(question, session=AgentSession(session_id=session))).text)

    return asyncio.run(run())


def test_the_context_of_the_question_is_among_the_instructions() -> None:
    with germane.open(":memory:", agent="support") as engine:
        engine.remember("Anna is allergic to nuts.", kind="fact")
        agent = Agent(Client(), "Be brief.", context_providers=[AgentFrameworkContext(engine, budget=100)])
        answered(agent, "Which allergy does Anna have?", session="a")

        assert Client.instructions.startswith("Be brief.")
        assert "Anna is allergic to nuts." in Client.instructions
        added = Client.instructions.removeprefix("Be brief.").strip()
        assert engine.counter.count(added) <= 100


def test_a_session_goes_on_after_a_restart_and_is_known_in_the_next(tmp_path: Path) -> None:
    def run(question: str, session: str, user: str = "anna") -> str:
        with germane.connect(tmp_path / "a.db") as store:
            engine = store.agent("support").for_user(user)
            providers = [AgentFrameworkHistory(engine), AgentFrameworkContext(engine)]
            agent = Agent(Client(), context_providers=providers)
            return answered(agent, question, session=session)

    assert run("I moved to Oslo in May.", "1") == "1 messages"
    assert run("Where did I move?", "1") == "3 messages"
    assert "Oslo" not in Client.instructions  # The session's own messages are there already.
    assert run("Where did I move?", "2") == "1 messages"
    assert "I moved to Oslo in May." in Client.instructions
    run("Where did I move?", "3", user="ben")
    assert "Oslo" not in Client.instructions


def test_messages_come_back_as_they_were() -> None:
    messages = [
        Message("user", ["What is the weather?"], author_name="anna"),
        Message("assistant", [Content.from_function_call("c1", "weather", arguments={"city": "Rome"})]),
        Message("tool", [Content.from_function_result("c1", result={"degrees": 21})]),
        Message("assistant", ["21 degrees."], additional_properties={"mood": "dry"}),
    ]
    with germane.open(":memory:", agent="support") as engine:
        history = AgentFrameworkHistory(engine)
        asyncio.run(history.save_messages("s", messages))
        asyncio.run(history.save_messages(None, messages))
        back = asyncio.run(history.get_messages("s"))
        assert [each.to_dict() for each in back] == [each.to_dict() for each in messages]
        assert asyncio.run(history.get_messages("other")) == []
        assert len(engine.conversation("s").groups()) == 1


def test_a_history_has_the_latest_exchanges_that_fit_its_budget() -> None:
    with germane.open(":memory:", agent="support") as engine:
        agent = Agent(Client(), context_providers=[AgentFrameworkHistory(engine, budget=400)])
        for turn in range(40):
            answered(agent, f"Question {turn}: " + "word " * 30, session="a")
        texts = [message.text for message in Client.last]
        numbers = [int(text.split()[1][:-1]) for text in texts if text.startswith("Question")]
        assert numbers == list(range(numbers[0], 40))
        tokens = engine.counter.count("\n".join(texts[:-1]))
        assert 250 < tokens <= 400
        assert len(engine.conversation("a").messages()) == 80
