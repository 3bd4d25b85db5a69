"""Conversations for tests: messages of few words, numbered, random ones, and what a request of them costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from germane import Message
from germane.conversation import MessageRole, Provider, TextPart, ToolCall, ToolResult
from germane.conversation.compaction import PRIMING, message_tokens, system_tokens, tools_tokens
from germane.conversation.formats import read_messages
from germane.conversation.groups import grouped
from germane.protocols import TokenCounter

__all__ = [
    "answer",
    "call",
    "conversations",
    "exchange",
    "message",
    "numbered",
    "plain",
    "prompt",
    "request_tokens",
    "result",
    "system",
    "word_cost",
]


def message(role: MessageRole, text: str, **more: Any) -> Message:
    return Message(role=role, parts=(TextPart(text=text),), **more)


def system(text: str, **more: Any) -> Message:
    return message(MessageRole.SYSTEM, text, **more)


def prompt(text: str, **more: Any) -> Message:
    return message(MessageRole.USER, text, **more)


def answer(text: str, **more: Any) -> Message:
    return message(MessageRole.ASSISTANT, text, **more)


def call(*ids: str, **more: Any) -> Message:
    return Message(
        role=MessageRole.ASSISTANT, parts=tuple(ToolCall(id=each, name="look") for each in ids), **more
    )


def result(call_id: str, text: str = "found", **more: Any) -> Message:
    part = ToolResult(call_id=call_id, content=(TextPart(text=text),))
    return Message(role=MessageRole.TOOL, parts=(part,), **more)


def exchange(name: str, text: str = "") -> list[Message]:
    """A prompt and its answer in a group of this name."""
    return [prompt(text or f"ask {name}", group=name), answer(f"say {name}", group=name)]


def numbered(*messages: Message | list[Message]) -> tuple[Message, ...]:
    """The messages in order, each with its place and an id, and with the group that follows."""
    flat = [each for one in messages for each in (one if isinstance(one, list) else [one])]
    return grouped(
        each.evolve(seq=place, id=each.id or f"m{place}") for place, each in enumerate(flat, start=1)
    )


def plain(turns: Sequence[tuple[Mapping[str, Any], str | None]]) -> tuple[Message, ...]:
    """Messages in germane's own layout, each with its group if it has one, numbered as a log has them."""
    read = read_messages([turn for turn, _ in turns], "plain")
    return grouped(
        message.evolve(id=f"m{message.seq}", group=group)
        for message, (_, group) in zip(read, turns, strict=True)
    )


def request_tokens(
    provider: Provider,
    counter: TokenCounter,
    *,
    messages: Sequence[Mapping[str, Any]],
    system: str | Sequence[Mapping[str, Any]] | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> int:
    """What a whole request costs, counted on what is sent, without the counter's margin."""
    total = PRIMING[provider] + tools_tokens(tools, provider, counter)
    total += system_tokens(system, provider, counter)
    parallel = False
    for message in messages:
        if message.get("role") not in ("tool", "function"):
            parallel = len(message.get("tool_calls") or ()) > 1
        total += message_tokens(message, provider, counter, parallel=parallel)
    return total


def word_cost(message: Message) -> int:
    """One for the message, and one for each word."""
    texts = [message.text, *(part.text for part in message.results), *(part.name for part in message.calls)]
    return 1 + sum(len(text.split()) for text in texts)


WORDS = st.sampled_from(
    ["redis", "cache", "go on", "why?", "C++", "", "雨", "a much longer text than others"]
)
SPOKEN = st.one_of(
    st.builds(prompt, WORDS),
    st.builds(answer, WORDS),
    st.builds(system, WORDS),
    st.builds(call, st.sampled_from(["c1", "c2", "c3"]), st.sampled_from(["c4", "c5"])),
    st.builds(result, st.sampled_from(["c1", "c2", "c3", "c4", "c9"]), WORDS),
)
GROUPS = st.sampled_from([None, None, None, "a", "b", "c"])


def conversations() -> st.SearchStrategy[tuple[Message, ...]]:
    """Any conversation: given and derived groups, hidden ones, calls without results and the reverse."""
    messages = st.lists(
        st.builds(lambda message, name: message.evolve(group=name), SPOKEN, GROUPS), max_size=14
    )
    hidden = st.sets(st.sampled_from(["a", "b", "m1", "m3"]))
    return st.builds(
        lambda made, gone: tuple(each.evolve(hidden=each.group in gone) for each in numbered(made)),
        messages,
        hidden,
    )
