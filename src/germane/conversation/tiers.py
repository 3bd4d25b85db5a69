"""Tool results in three tiers: whole where they are in use, shorter later, shortest in what is over.

Level: ranking (imports model, errors, protocols and conversation). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from germane.conversation.cutting import cut_middle, length_by
from germane.conversation.words import content_in_words, kind_of
from germane.model.forms import checked_fields
from germane.model.message import Message, OpaquePart, TextPart, ToolResult
from germane.protocols import TokenCounter

__all__ = ["Tiers", "hint_of", "tiered", "tiering"]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(recent=(0, inf), older=(0, inf), inactive=(0, inf), head=(0, 1))
class Tiers:
    """How much of a tool's result is kept: characters, or tokens where a counter is given.

    The last `recent` results of the active group are whole, its others have at most `older`, those of
    other groups at most `inactive`; None sets no limit. `head` is the share of what is kept that comes
    from the beginning: errors and outcomes stand at the end.
    """

    recent: int = 5
    older: int | None = 2000
    inactive: int | None = 400
    head: float = 0.2
    counter: TokenCounter | None = None


def tiered(
    messages: Sequence[Message], *, active: str | None, tiers: Tiers | None = None
) -> tuple[Message, ...]:
    """The messages with their results cut to their tiers; all else is the very same value.

    Each cut says what is gone and by which message id the whole is had, where the limit has a place for that;
    a smaller limit shows "…" instead, one character at the least. Images and the like become their names in
    brackets: they are left out of a result of any length.
    """
    return tuple(map(tiering(messages, active=active, tiers=tiers), messages))


def tiering(
    messages: Sequence[Message], *, active: str | None, tiers: Tiers | None = None
) -> Callable[[Message], Message]:
    """What cuts any of these messages as `tiered` does, when it is asked for, and only once."""
    tiers = tiers or Tiers()
    whole = _recent_results(messages, active, tiers.recent)
    made: dict[int, Message] = {}

    def cut(message: Message) -> Message:
        limit = tiers.older if message.group == active and active is not None else tiers.inactive
        if limit is None or not message.results:
            return message
        if message.seq not in made:
            parts = tuple(
                _cut(part, message, limit, tiers)
                if isinstance(part, ToolResult) and (message.seq, place) not in whole
                else part
                for place, part in enumerate(message.parts)
            )
            made[message.seq] = message if parts == message.parts else message.evolve(parts=parts)
        return made[message.seq]

    return cut


def hint_of(message: Message, gone: int, parts: Sequence[OpaquePart] = ()) -> str:
    """What stands where something was cut: so many characters, and parts that have no text."""
    counted = Counter(kind_of(part.form) for part in parts)
    named = [f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in counted.items()]
    left_out = " and ".join([f"{gone:,} characters"] * bool(gone) + named)
    whole = f'; expand("{message.id}") returns the whole' if message.id else ""
    return f"[{left_out} left out{whole}]"


def _recent_results(messages: Iterable[Message], active: str | None, recent: int) -> set[tuple[int, int]]:
    """The places of the last results of the active group: message and part."""
    found = [
        (message.seq, place)
        for message in messages
        if message.group == active and active is not None
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    return set(found[len(found) - recent :] if recent < len(found) else found)


def _cut(result: ToolResult, message: Message, limit: int, tiers: Tiers) -> ToolResult:
    text = content_in_words(result.content)
    more = [part for part in result.content if isinstance(part, OpaquePart)]
    measure = length_by(tiers.counter)
    shown = cut_middle(
        text, limit, lambda gone: hint_of(message, gone, more), head=tiers.head, measure=measure
    )
    if shown == text and not more:
        return result
    if more and shown == text and measure(hinted := f"{text}\n{hint_of(message, 0, more)}") <= limit:
        shown = hinted
    recalled = any(isinstance(part, TextPart) and part.recalled for part in result.content)
    form = result.content[0].form if isinstance(result.content[0], TextPart) else ""
    return ToolResult(
        call_id=result.call_id,
        content=(TextPart(text=shown, recalled=recalled, form=form),),
        is_error=result.is_error,
        form=result.form,
        extra=result.extra,
    )
