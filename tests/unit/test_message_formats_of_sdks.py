"""What is written for a provider is what its own client's types accept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from anthropic.types import MessageParam, TextBlockParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

import germane
from germane import Conversation
from germane.conversation import MessageRole, OpaquePart, Payload, Provider, TextPart, ToolCall, ToolResult
from germane.errors import InvalidInput
from support.examples import examples
from transcripts import plain_messages

OF_OPENAI: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
OF_RESPONSES: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
OF_ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
OF_ANTHROPIC_SYSTEM: TypeAdapter[Any] = TypeAdapter(str | list[TextBlockParam] | None)

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Rain in Paris and in Rome?"},
    {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {"id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'},
            {"id": "c2", "name": "weather", "arguments": "Rome"},
        ],
    },
    {"role": "tool", "tool_results": [{"call_id": "c1", "content": "dry"}]},
    {"role": "tool", "tool_results": [{"call_id": "c2", "content": "no such city", "is_error": True}]},
    {"role": "assistant", "content": "Dry in Paris."},
]


def appended(given: Any, provider: str | None = None) -> Conversation:
    """A new conversation of these messages."""
    chat = germane.open(":memory:", embedder=None).conversation("chat")
    chat.extend(given, provider=provider)
    return chat


def written(given: Any, provider: Provider | str) -> Payload:
    """Plain messages as one of the layouts."""
    return appended(given, "plain").payload(provider)


def checked(adapter: TypeAdapter[Any], value: Any) -> Any:
    """The value as the types accept it; what they read late is read now."""
    return exhausted(adapter.validate_python(value))


def exhausted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: exhausted(each) for key, each in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [exhausted(each) for each in value]


def test_plain_messages_in_openais_layout() -> None:
    payload = written(TALK, "openai")
    assert payload.arguments() == {"messages": payload.messages}
    assert payload.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain in Paris and in Rome?"},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "Rome"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "dry"},
        {"role": "tool", "tool_call_id": "c2", "content": "no such city"},
        {"role": "assistant", "content": "Dry in Paris."},
    ]
    assert checked(OF_OPENAI, payload.messages) == payload.messages


def test_plain_messages_in_anthropics_layout() -> None:
    payload = written(TALK, "anthropic")
    assert payload.arguments() == {"messages": payload.messages, "system": "Be brief."}
    assert payload.messages == [
        {"role": "user", "content": "Rain in Paris and in Rome?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "c2", "name": "weather", "input": {"input": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "dry"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no such city", "is_error": True},
            ],
        },
        {"role": "assistant", "content": "Dry in Paris."},
    ]
    assert checked(OF_ANTHROPIC, payload.messages) == payload.messages


def test_plain_messages_as_items_of_responses() -> None:
    payload = written(TALK, "responses")
    assert payload.arguments() == {"input": payload.messages}
    assert payload.messages[1:5] == [
        {"role": "user", "content": "Rain in Paris and in Rome?"},
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "Rome"},
    ]
    assert checked(OF_RESPONSES, payload.messages) == payload.messages


@settings(max_examples=examples(60))
@given(st.lists(plain_messages(), max_size=6))
def test_any_plain_conversation_is_valid_everywhere(messages: list[dict[str, Any]]) -> None:
    chat = appended(messages, "plain")
    for provider, adapter in (
        (Provider.OPENAI, OF_OPENAI),
        (Provider.RESPONSES, OF_RESPONSES),
        (Provider.ANTHROPIC, OF_ANTHROPIC),
    ):
        payload = chat.payload(provider)
        assert checked(adapter, payload.messages) == payload.messages
        checked(OF_ANTHROPIC_SYSTEM, payload.system)


def test_what_a_provider_alone_understands_stays_with_it() -> None:
    request = {
        "system": "Be brief.",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x.org"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                    {"type": "text", "text": "A cat."},
                    {"type": "tool_use", "id": "t1", "name": "save", "input": {"x": 1}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
        ],
    }
    chat = appended(request)
    read = chat.messages()
    assert [message.provider for message in read[:2]] == [Provider.ANTHROPIC] * 2
    assert [message.role for message in read] == [
        MessageRole.SYSTEM,
        MessageRole.USER,
        MessageRole.ASSISTANT,
        MessageRole.TOOL,
    ]
    assert isinstance(read[2].parts[0], OpaquePart)
    assert read[2].parts[3] == ToolCall(id="t1", name="save", arguments='{"x":1}', form="tool_use")
    assert read[3].results == (ToolResult(call_id="t1", content=(TextPart(text="ok"),), form="tool_result"),)
    assert chat.payload("anthropic").arguments() == request
    assert chat.payload("openai").messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "[image]"},
        {"role": "assistant", "content": "A cat."},
    ]


@pytest.mark.parametrize(
    ("message", "provider"),
    [
        ({"role": "user", "content": "hi"}, Provider.PLAIN),
        ({"role": "assistant", "tool_calls": [{"id": "1", "name": "now"}]}, Provider.PLAIN),
        ({"role": "tool", "tool_results": [{"call_id": "1", "content": "x"}]}, Provider.PLAIN),
        (
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "n", "arguments": "{}"}}]},
            Provider.OPENAI,
        ),
        ({"role": "tool", "tool_call_id": "1", "content": "x"}, Provider.OPENAI),
        ({"role": "developer", "content": "x"}, Provider.OPENAI),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, Provider.OPENAI),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, Provider.OPENAI),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]},
            Provider.ANTHROPIC,
        ),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}, Provider.ANTHROPIC),
        ({"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "1"}]}, Provider.ANTHROPIC),
        ({"role": "user", "content": [{"type": "input_text", "text": "x"}]}, Provider.RESPONSES),
        ({"type": "function_call", "call_id": "1", "name": "n", "arguments": ""}, Provider.RESPONSES),
    ],
)
def test_the_layout_is_found_out(message: dict[str, Any], provider: Provider) -> None:
    (read,) = appended([message]).messages()
    assert read.provider is provider


@pytest.mark.parametrize(
    ("value", "provider", "words"),
    [
        (
            [{"role": "user", "content": "a"}, {"role": "user", "content": 5}],
            "openai",
            "In message 2: 'content'",
        ),
        ({"messages": [7]}, None, "In message 1: a message must be an object"),
        ([{"role": "robot", "content": "a"}], "openai", "'role' must be one of system, developer"),
        ([{"role": "user", "content": [{"text": "a"}]}], "openai", "'content'[0]['type'] must be the name"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], "openai", "'tool_calls'[0]['function']"),
        ([{"role": "assistant", "tool_calls": {"id": "1"}}], "openai", "'tool_calls' must be a list"),
        ([{"role": "tool", "content": "a"}], "plain", "a tool's message must be one with 'tool_results'"),
        ([{"role": "user", "tool_calls": [{"id": "1", "name": "n"}]}], "plain", "must be assistant"),
        ([{"role": "user", "content": "a", "x": float("nan")}], "openai", "is no JSON"),
        ([{"type": "function_call", "call_id": "1", "name": "n"}], "responses", "a text 'arguments'"),
        (
            [{"role": "user", "content": [{"type": "tool_result"}]}],
            "anthropic",
            "'tool_use_id' must be a text",
        ),
        ({"messages": 5}, None, "messages must be a list of messages"),
        ([], "gpt", "provider='gpt' is unknown: take one of openai, openai-responses, anthropic, plain."),
    ],
)
def test_what_is_no_message_is_refused(value: Any, provider: str | None, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        appended(value, provider)
    assert words in str(caught.value)


def test_a_message_is_json_and_nothing_else() -> None:
    message: dict[str, Any] = {"role": "user", "content": "a"}
    message["itself"] = message
    with pytest.raises(InvalidInput, match="holds itself"):
        appended([message], "openai")
    hello = written([{"role": "user", "content": "hello"}], "openai")
    assert json.dumps(hello.messages) == '[{"role": "user", "content": "hello"}]'
