"""Random conversations and what a provider accepts, for tests of requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anthropic.types import MessageParam, TextBlockParam, ToolParam
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import FunctionToolParam, ResponseInputItemParam
from pydantic import TypeAdapter

from conversations import plain, request_tokens
from germane import Message
from germane.conversation import Provider

__all__ = [
    "PROVIDERS",
    "TOOLS",
    "check_accepted",
    "check_pairs",
    "conversations",
    "numbered_talk",
    "request_tokens",
]

PROVIDERS = (Provider.OPENAI, Provider.RESPONSES, Provider.ANTHROPIC)
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: dict[Provider, list[dict[str, Any]]] = {
    Provider.OPENAI: [{"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}],
    Provider.RESPONSES: [{"type": "function", "name": "weather", "parameters": _SCHEMA, "strict": False}],
    Provider.ANTHROPIC: [{"name": "weather", "description": "Rain?", "input_schema": _SCHEMA}],
}
_MESSAGES: dict[Provider, TypeAdapter[Any]] = {
    Provider.OPENAI: TypeAdapter(list[ChatCompletionMessageParam]),
    Provider.RESPONSES: TypeAdapter(list[ResponseInputItemParam]),
    Provider.ANTHROPIC: TypeAdapter(list[MessageParam]),
}
_TOOLS: dict[Provider, TypeAdapter[Any]] = {
    Provider.OPENAI: TypeAdapter(list[ChatCompletionToolParam]),
    Provider.RESPONSES: TypeAdapter(list[FunctionToolParam]),
    Provider.ANTHROPIC: TypeAdapter(list[ToolParam]),
}
_SYSTEM: TypeAdapter[Any] = TypeAdapter(str | list[TextBlockParam] | None)

_WORDS = [
    "redis",
    "cache",
    "Überlauf",
    "雨ですか",
    "C++",
    "path/to/file.cpp",
    'say "hi',
    "\n",
    "a longer text",
]
_TEXTS = st.builds(
    lambda word, times: " ".join([word] * times),
    st.sampled_from(_WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from([0, 1, 3, 30, 300]),
)
_IDS = st.sampled_from(["c1", "c2", "c3", "c4", "c5"])


def conversations() -> st.SearchStrategy[tuple[Message, ...]]:
    """Turns of any kind in any order: parallel calls, late, doubled and missing results, empty texts."""
    call = st.fixed_dictionaries(
        {"id": _IDS, "name": st.just("weather"), "arguments": st.just('{"city":"Rome"}')}
    )
    result = st.fixed_dictionaries({"call_id": _IDS, "content": _TEXTS})
    spoken = st.one_of(
        st.builds(lambda text: {"role": "user", "content": text}, _TEXTS),
        st.builds(lambda text: {"role": "user", "content": text}, _TEXTS),
        st.builds(lambda text: {"role": "assistant", "content": text}, _TEXTS),
        st.builds(lambda text: {"role": "system", "content": text}, st.sampled_from(["Be brief.", ""])),
        st.builds(
            lambda text, calls: {"role": "assistant", "content": text, "tool_calls": calls},
            _TEXTS,
            st.lists(call, min_size=1, max_size=3, unique_by=lambda each: str(each["id"])),
        ),
        st.builds(
            lambda given: {"role": "tool", "tool_results": given}, st.lists(result, min_size=1, max_size=3)
        ),
        st.builds(
            lambda given, text: {"role": "user", "content": text, "tool_results": [given]}, result, _TEXTS
        ),
    )
    groups = st.sampled_from([None, None, None, None, "a", "b"])
    hidden = st.sets(st.sampled_from(["a", "m1", "m5"]))
    return st.builds(numbered_talk, st.lists(st.tuples(spoken, groups), max_size=40), hidden)


def numbered_talk(
    turns: Sequence[tuple[Mapping[str, Any], str | None]], hidden: Iterable[str] = ()
) -> tuple[Message, ...]:
    """Plain messages as a log would hold them."""
    gone = set(hidden)
    return tuple(message.evolve(hidden=message.group in gone) for message in plain(turns))


def check_accepted(arguments: Mapping[str, Any], provider: Provider) -> None:
    """The request is what the provider's own client declares, and as plain as JSON."""
    messages = arguments["input" if provider is Provider.RESPONSES else "messages"]
    assert _exhausted(_MESSAGES[provider].validate_python(messages)) == messages
    _SYSTEM.validate_python(arguments.get("system"))
    assert isinstance(arguments.get("instructions", ""), str)
    _TOOLS[provider].validate_python(arguments.get("tools", []))
    assert json.loads(json.dumps(arguments)) == arguments


def check_pairs(messages: Sequence[Mapping[str, Any]], provider: Provider) -> None:
    """Every call is answered once, where the provider wants it, and nothing else is."""
    if provider is Provider.RESPONSES:
        waiting: list[str] = []
        for item in messages:
            if item.get("type") == "function_call":
                waiting.append(item["call_id"])
            elif item.get("type") == "function_call_output":
                waiting.remove(item["call_id"])
        assert waiting == []
        return
    expected: list[str] = []
    for message in messages:
        answered = _answered(message)
        if expected or answered:
            assert answered, "something stands between a call and its result"
            if provider is Provider.ANTHROPIC:
                assert answered == expected
            for call_id in answered:
                expected.remove(call_id)
            continue
        expected = _called(message)
    assert expected == []


def _called(message: Mapping[str, Any]) -> list[str]:
    if message["role"] != "assistant":
        return []
    if "tool_calls" in message:
        return [call["id"] for call in message["tool_calls"]]
    content = message["content"]
    return [] if isinstance(content, str) else [each["id"] for each in content if each["type"] == "tool_use"]


def _answered(message: Mapping[str, Any]) -> list[str]:
    if message["role"] == "tool":
        return [message["tool_call_id"]]
    content = message["content"]
    if message["role"] != "user" or isinstance(content, str):
        return []
    found = [each["tool_use_id"] for each in content if each["type"] == "tool_result"]
    assert not found or len(found) == len(content)
    return found


def _exhausted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _exhausted(each) for key, each in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [_exhausted(each) for each in value]
