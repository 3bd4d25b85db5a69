"""What stands before the dialogue of a request and never gives way: tools, and what the system says.

Level: ranking (imports model and conversation). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from germane.conversation.arranging import Arrangement, Entry
from germane.conversation.counting import (
    as_json,
    message_tokens,
    priming_tokens,
    system_tokens,
    tools_tokens,
)
from germane.conversation.formats import anthropic, openai, responses
from germane.conversation.wanted import Wanted
from germane.model.message import Provider

__all__ = ["OPENING", "Head", "head_of"]

OPENING: Final = "[the conversation goes on from here]"
"""The user's first line where a request would else begin with somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Tools and system as JSON, the messages that are always kept, and what all that costs, by part."""

    tools: str = "[]"
    system: str = "null"
    entries: tuple[Entry, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """What all of it costs."""
        return sum(self.parts.values())


def head_of(arranged: Arrangement, wanted: Wanted) -> Head:
    """What the caller's system and tools and the messages of no group come to."""
    provider, counter = arranged.provider, arranged.counter
    given = list(wanted.system)
    beside: str | list[dict[str, Any]] | None = None
    entries: list[Entry] = []
    if provider is Provider.ANTHROPIC:
        beside = anthropic.write_system([*given, *arranged.beside])
    elif provider is Provider.RESPONSES:
        instructions = [
            each.evolve(form=responses.INSTRUCTIONS, provider=Provider.RESPONSES) for each in given
        ]
        beside = responses.write_instructions([*instructions, *arranged.beside])
    else:
        entries = [
            Entry((-1, number), as_json(each), message_tokens(each, provider, counter))
            for number, each in enumerate(openai.write(given))
        ]
    opening: list[Entry] = []
    if wanted.opens:
        line = {"role": "user", "content": OPENING}
        opening = [Entry((-2, 0), as_json(line), message_tokens(line, provider, counter))]
    always = arranged.shown(None)
    parts = {
        "opening": sum(entry.tokens for entry in opening),
        "tools": tools_tokens(wanted.tools, provider, counter),
        "system": system_tokens(beside, provider, counter) + sum(entry.tokens for entry in entries),
        "messages of no group": always.tokens,
        "priming": priming_tokens(provider),
    }
    return Head(
        tools=as_json(list(wanted.tools)),
        system=as_json(beside),
        entries=(*opening, *entries, *always.entries),
        parts={name: tokens for name, tokens in parts.items() if tokens},
    )
