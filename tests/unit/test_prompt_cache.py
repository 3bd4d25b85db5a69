"""The marks that Anthropic's prompt cache goes by, and the user's first line that its API asks for."""

from __future__ import annotations

import json
from typing import Any

import germane
from germane import Request
from germane.conversation import Provider
from requests_of import TOOLS, check_accepted

_MARK = {"type": "ephemeral"}
MOST_MARKS = 4
"""What Anthropic's API takes at most."""


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with marks of a request of these parts, whose first two messages are stable."""
    texts = tuple(map(json.dumps, given["messages"]))
    head = (json.dumps(given.get("tools", [])), json.dumps(given["system"]))
    request = Request(
        provider=Provider.ANTHROPIC,
        counter="words",
        window=1000,
        reserve=0,
        limit=1000,
        tokens=10,
        stable=2,
        head=head,
        texts=texts,
    )
    return request.arguments(cache=True)


def _talk(engine: germane.Engine) -> germane.Conversation:
    talk = engine.conversation("chat")
    for number in range(3):
        talk.append("user", f"Question {number}?")
        talk.append("assistant", f"Answer {number}.")
    talk.append("user", "And what now?")
    return talk


def _marked(messages: list[dict[str, Any]]) -> list[int]:
    return [number for number, each in enumerate(messages) if "cache_control" in str(each["content"])]


def test_tools_system_and_the_ends_of_the_history_are_marked() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        request = engine.request(
            _talk(engine), system="Be terse.", tools=TOOLS[Provider.ANTHROPIC], provider="anthropic"
        )
        arguments = request.arguments(cache=True)
        check_accepted(arguments, Provider.ANTHROPIC)
        assert arguments["tools"][-1]["cache_control"] == _MARK
        assert arguments["system"] == [{"type": "text", "text": "Be terse.", "cache_control": _MARK}]
        assert _marked(arguments["messages"]) == [5, 6]
        assert arguments["messages"][6]["content"] == [
            {"type": "text", "text": "And what now?", "cache_control": _MARK}
        ]
        assert "cache_control" not in str(request.arguments())


def test_marks_follow_the_conversation() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        talk = _talk(engine)
        first = engine.request(talk, provider="anthropic")
        talk.append("assistant", "Go on.")
        talk.append("user", "And then?")
        then = engine.request(talk, provider="anthropic", previous=first)
        assert _marked(first.arguments(cache=True)["messages"]) == [5, 6]
        assert _marked(then.arguments(cache=True)["messages"]) == [7, 8]


def test_the_marks_of_the_caller_stay_and_never_more_than_four_are_set() -> None:
    long = {"type": "ephemeral", "ttl": "1h"}
    block = {"type": "text", "text": "x", "cache_control": long}
    given: dict[str, Any] = {
        "system": [block, block],
        "tools": [{"name": "a", "input_schema": {}}],
        "messages": [
            {"role": "user", "content": [block]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": " "}]},
        ],
    }
    marked = _arguments(given)
    assert marked["system"] == given["system"]
    assert marked["tools"] == given["tools"], "a mark that lasts longer must come first"
    assert [str(each).count("cache_control") for each in marked["messages"]] == [1, 0, 1]
    assert marked["messages"][0]["content"][0]["cache_control"] == _MARK
    assert "cache_control" in marked["messages"][2]["content"][0], "an empty text can't be marked"
    assert str(marked).count("cache_control") == MOST_MARKS
    full = _arguments({"system": [block] * MOST_MARKS, "messages": given["messages"]})
    assert str(full).count("cache_control") == MOST_MARKS


def test_no_other_provider_has_marks() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        talk = _talk(engine)
        for provider in ("openai", "openai-responses"):
            request = engine.request(talk, provider=provider)
            assert request.arguments(cache=True) == request.arguments()


def test_a_request_to_anthropic_begins_with_the_user() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        talk = engine.conversation("chat")
        talk.append("assistant", "Hello, how can I help?")
        talk.append("user", "What's up?")
        request = engine.request(talk, provider="anthropic")
        assert request.messages == [
            {"role": "user", "content": "[the conversation goes on from here]"},
            {"role": "assistant", "content": "Hello, how can I help?"},
            {"role": "user", "content": "What's up?"},
        ]
        assert {part.name: part.used for part in request.parts}["opening"] > 0
        assert request.messages[1:] == engine.request(talk).messages
