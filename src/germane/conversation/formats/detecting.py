"""Finds out in whose layout a message is.

Level: ranking (imports model). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from germane.model.message import Provider

__all__ = ["provider_of"]

_OF_OPENAI = ("tool_call_id", "function_call", "refusal", "audio", "name")
_OF_RESPONSES = frozenset({"input_text", "input_image", "input_file", "output_text"})
_OF_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"}
)


def provider_of(fields: Mapping[str, Any]) -> Provider:
    """The provider in whose layout a message is; PLAIN where it could be anybody's.

    Where a list of texts alone leaves it open, it is taken for OpenAI's.
    """
    if "role" not in fields or fields.get("type") == "message":
        return Provider.RESPONSES
    if "tool_results" in fields:
        return Provider.PLAIN
    calls = fields.get("tool_calls")
    if isinstance(calls, list) and calls:
        plain = all(isinstance(call, Mapping) and "name" in call for call in calls)
        return Provider.PLAIN if plain else Provider.OPENAI
    if fields["role"] in ("tool", "function", "developer") or any(name in fields for name in _OF_OPENAI):
        return Provider.OPENAI
    content = fields.get("content")
    if isinstance(content, list):
        return _provider_of_parts([part for part in content if isinstance(part, Mapping)])
    return Provider.PLAIN


def _provider_of_parts(parts: list[Mapping[str, Any]]) -> Provider:
    kinds = {part.get("type") for part in parts}
    if kinds & _OF_RESPONSES:
        return Provider.RESPONSES
    if kinds & _OF_ANTHROPIC or any(str(kind).endswith(("_tool_use", "_tool_result")) for kind in kinds):
        return Provider.ANTHROPIC
    if any("cache_control" in part or "citations" in part for part in parts):
        return Provider.ANTHROPIC
    return Provider.OPENAI
