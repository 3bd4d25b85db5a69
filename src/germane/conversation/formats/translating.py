"""What of a message another provider can be sent.

Level: ranking (imports model). Pure.

Calls and results are in the layout of their provider and are bound to its ids, so they stay with
it. What was said is text, and text goes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from germane.conversation.formats.fields import content_of
from germane.conversation.pairs import without_orphans
from germane.conversation.words import content_in_words
from germane.model.message import ContentPart, Message, Provider, TextPart

__all__ = ["translated"]


def translated(messages: Iterable[Message], provider: Provider) -> tuple[Message, ...]:
    """The messages as this provider can have them: its own and plain ones whole, of others what was said.

    A message of which nothing is left is left out, and so are results without their call.
    """
    kept = []
    for message in messages:
        if message.provider in (provider, Provider.PLAIN):
            kept.append(message)
        elif (said := _said(message)) is not None:
            kept.append(said)
    return without_orphans(kept)


def _said(message: Message) -> Message | None:
    spoken = [part for part in content_of(message.parts) if not _is_traffic(part, message)]
    recalled = bool(spoken) and all(isinstance(part, TextPart) and part.recalled for part in spoken)
    text = content_in_words(spoken)
    if not text.strip():
        return None
    part = TextPart(text=text, recalled=recalled)
    return message.evolve(parts=(part,), provider=Provider.PLAIN, form="", extra="")


def _is_traffic(part: ContentPart, message: Message) -> bool:
    """Whether a part is of tools that the provider runs itself."""
    if isinstance(part, TextPart):
        return False
    whole_item = message.provider is Provider.RESPONSES and message.form != ""
    return whole_item or part.form.endswith(("tool_use", "tool_result"))
