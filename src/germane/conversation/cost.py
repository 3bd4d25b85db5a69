"""What a message costs, for windows that are filled by tokens.

Level: ranking (imports model and protocols). Pure.
"""

from __future__ import annotations

from germane.model.conversation import Cost
from germane.model.message import Message, OpaquePart, TextPart, ToolCall, ToolResult
from germane.protocols import TokenCounter

__all__ = ["PER_MESSAGE", "cost_by"]

PER_MESSAGE = 4
"""What OpenAI's chat format adds to each message, its role among it."""


def cost_by(counter: TokenCounter) -> Cost:
    """Counts texts, names, arguments and opaque parts, and adds what the chat format does.

    What a whole request costs is more than its messages; only counting that request tells.
    """

    def cost(message: Message) -> int:
        return PER_MESSAGE + sum(map(of_part, message.parts))

    def of_part(part: TextPart | OpaquePart | ToolCall | ToolResult) -> int:
        if isinstance(part, TextPart):
            return counter.count(part.text)
        if isinstance(part, ToolCall):
            return counter.count(part.id) + counter.count(part.name) + counter.count(part.arguments)
        if isinstance(part, ToolResult):
            return counter.count(part.call_id) + sum(map(of_part, part.content))
        return counter.count(part.json)

    return cost
