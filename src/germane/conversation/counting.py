"""What a request costs in tokens, counted on what is sent: the provider's own JSON.

Level: ranking (imports model and protocols). Pure.

Providers don't publish all of what they put around a message. Calls in OpenAI's chat are counted by what
its users measured, and a little more; what nobody measured is counted as the JSON that is sent, which is
more than the provider makes of it. See docs/reference/tokens.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from germane.model.message import Provider
from germane.protocols import TokenCounter

__all__ = [
    "IMAGE",
    "as_json",
    "message_tokens",
    "priming_tokens",
    "request_tokens",
    "system_tokens",
    "tools_tokens",
]

IMAGE: Final = 4800
"""What an image counts: the most that either provider charges for one, at full resolution."""

_PER_MESSAGE: Final = {Provider.OPENAI: 3, Provider.RESPONSES: 3, Provider.ANTHROPIC: 4}
_PRIMING: Final = {Provider.OPENAI: 3, Provider.RESPONSES: 3, Provider.ANTHROPIC: 8}
_PER_NAME: Final = 1
_PER_PART: Final = 2
_PER_CALL: Final = 8
"""What OpenAI writes around a call in its chat: measured are 2 to 7, and its name a second time. Ids of calls
cost nothing. https://community.openai.com/t/538914, https://github.com/forestwanglin/openai-java/issues/5"""
_PARALLEL: Final = 24
"""What OpenAI wraps around the calls of one message where there are several, by the same measurements. The
results of such calls it shows to the model as texts in JSON, with what isn't ASCII as escapes: of the 39,235
tokens that it reported for three results in Korean, 39,000 are these; the texts themselves would be 3,003.
https://community.openai.com/t/1375117, https://community.openai.com/t/816259"""
_TOOLS: Final = {Provider.OPENAI: 12, Provider.RESPONSES: 12, Provider.ANTHROPIC: 1000}
"""What stands around the tools; Anthropic puts a prompt of 159 to 935 tokens there, by model and choice."""
_PER_TOOL: Final = 8

_RESULTS = frozenset({"tool", "function"})
_TEXTS = frozenset({"text", "input_text", "output_text"})
_IMAGES = frozenset({"image", "image_url", "input_image"})
_Count = Callable[[str], int]


def as_json(value: object) -> str:
    """The one way in which germane writes JSON of a request: compact, in the order given, no escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def request_tokens(
    provider: Provider,
    counter: TokenCounter,
    *,
    messages: Sequence[Mapping[str, Any]],
    system: str | Sequence[Mapping[str, Any]] | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> int:
    """What a whole request costs, by the counter and without its margin; the sum of its parts below."""
    beside = priming_tokens(provider) + tools_tokens(tools, provider, counter)
    total = beside + system_tokens(system, provider, counter)
    parallel = False
    for message in messages:
        if message.get("role") not in _RESULTS:
            parallel = len(message.get("tool_calls") or ()) > 1
        total += message_tokens(message, provider, counter, parallel=parallel)
    return total


def priming_tokens(provider: Provider) -> int:
    """What stands before the answer whatever the request is."""
    return _PRIMING[provider]


def message_tokens(
    message: Mapping[str, Any], provider: Provider, counter: TokenCounter, *, parallel: bool = False
) -> int:
    """What one message or item costs as it is sent.

    3 tokens for a message, its role, and each of its values, 1 more for a name: OpenAI's rule for
    chat, https://github.com/openai/openai-cookbook (How to count tokens with tiktoken). `parallel` says
    that a result belongs to one of several calls of one message.
    """
    count: _Count = counter.count
    if parallel and provider is Provider.OPENAI and message.get("role") in _RESULTS:
        count = _escaped(count)
    if "role" not in message:
        return _PER_MESSAGE[provider] + _item(message, count)
    total = _PER_MESSAGE[provider] + 1
    for key, value in message.items():
        if key == "content":
            total += _content(value, count)
        elif key == "tool_calls" and value:
            total += sum(_call(call, count) for call in value) + (_PARALLEL if len(value) > 1 else 0)
        elif key == "name":
            total += count(str(value)) + _PER_NAME
        elif key not in ("role", "tool_call_id"):
            total += _any(value, count)
    return total


def system_tokens(
    system: str | Sequence[Mapping[str, Any]] | None, provider: Provider, counter: TokenCounter
) -> int:
    """What stands beside the messages as the system's; 0 without it."""
    if not system:
        return 0
    return _PER_MESSAGE[provider] + 1 + _content(system, counter.count)


def tools_tokens(tools: Sequence[Mapping[str, Any]], provider: Provider, counter: TokenCounter) -> int:
    """What the definitions of tools cost: their JSON, and what the provider puts around it."""
    if not tools:
        return 0
    return _TOOLS[provider] + sum(_PER_TOOL + counter.count(as_json(tool)) for tool in tools)


def _escaped(count: _Count) -> _Count:
    """Counts a text as it stands in JSON of ASCII alone; what is written around it is counted already."""

    def counted(text: str) -> int:
        escaped = json.dumps(text)[1:-1]
        return count(text) if escaped == text else max(count(text), count(escaped))

    return counted


def _content(content: object, count: _Count) -> int:
    if isinstance(content, str):
        return count(content)
    if not isinstance(content, Sequence):
        return 0
    return sum(_part(part, count) for part in content)


def _part(part: Mapping[str, Any], count: _Count) -> int:
    kind = part.get("type")
    if kind in _IMAGES:
        return IMAGE
    if kind in _TEXTS and isinstance(part.get("text"), str):
        rest = {key: value for key, value in part.items() if key not in ("type", "text") and value}
        return _PER_PART + count(part["text"]) + (count(as_json(rest)) if rest else 0)
    if kind == "tool_result":
        rest = {key: value for key, value in part.items() if key != "content"}
        return _PER_PART + count(as_json(rest)) + _content(part.get("content"), count)
    return _PER_PART + count(as_json(part))


def _call(call: Mapping[str, Any], count: _Count) -> int:
    """A call in OpenAI's chat: its values, the name of what is called twice, and what is written around."""
    total = _PER_CALL
    for key, value in call.items():
        if key in ("function", "custom"):
            total += sum(_any(each, count) for each in value.values()) + _any(value.get("name"), count)
        elif key not in ("id", "type"):
            total += _any(value, count)
    return total


def _item(item: Mapping[str, Any], count: _Count) -> int:
    """An item of the Responses API that is no message."""
    output = item.get("output")
    if isinstance(output, str | list):
        rest = {key: value for key, value in item.items() if key != "output"}
        return count(as_json(rest)) + _content(output, count)
    return count(as_json(item))


def _any(value: object, count: _Count) -> int:
    if value is None or value == []:
        return 0
    return count(value) if isinstance(value, str) else count(as_json(value))
