"""What is selected of a conversation, and the account of what isn't.

Level: model (imports model only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from germane.model.message import Group, Message, Role, TextPart
from germane.model.recalled import fenced
from germane.model.trace import Note, Reason

__all__ = ["Anchored", "Cost", "DerivedQuery", "GroupScores", "LeftOut", "Selection", "beside_message"]

Cost: TypeAlias = Callable[[Message], int]
"""What a message costs in tokens, with all that its provider adds to it. Must be pure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A group that isn't selected, and why; `short_by` tokens were missing where that is the budget.

    `tokens` is what it costs, 0 where that wasn't the question.
    """

    group: str
    reason: Reason
    tokens: int = 0
    short_by: int = 0
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Messages of a conversation in their order, by whole groups.

    Every visible group stands once, in `groups` or in `left_out`, both in the order in which they were
    opened. System messages and those of no group are always among the messages. `scores` are those by
    which groups were ranked. `tokens` is what the messages cost; 0 where a caller of the pure functions gives
    no cost.
    """

    messages: tuple[Message, ...]
    groups: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tokens: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScores:
    """How well the visible groups of a session match a query, by group id; without a match there is no score.

    `scores` are BM25 over the session alone, in fixed point; `bound` is what a group of usual length
    would score that has every term once, in the same unit.
    """

    scores: Mapping[str, int] = field(default_factory=dict)
    bound: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedQuery:
    """What a conversation is searched for: the prompt's own terms, and those carried from before it.

    With neither, the prompt says nothing that could be searched for.
    """

    prompt: str = ""
    own: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, the prompt's own first."""
        return (*self.own, *self.carried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """A recent window, unbroken, and beside it what is recalled from before it and the anchors.

    `anchors` are texts by name, `section` the recalled groups in words, in the order of their
    opening; both are bare here and fenced in `beside`. `left_out` accounts for the groups in neither.
    """

    window: Selection
    current: str | None = None
    recalled: tuple[Group, ...] = ()
    section: str = ""
    anchors: Mapping[str, str] = field(default_factory=dict)
    query: DerivedQuery = field(default_factory=DerivedQuery)
    left_out: tuple[LeftOut, ...] = ()
    tokens: int = 0

    @property
    def beside(self) -> Message | None:
        """Anchors and the recalled section as one message of parts marked as recalled; None without any.

        It is the user's, not the system's: what was recalled informs and doesn't instruct.
        """
        return beside_message(self.anchors, self.section)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All as one list. What changes from turn to turn stands just before the current group.

        So the messages above it are a prefix that stays, and a provider's cache can keep it.
        """
        beside = self.beside
        if beside is None:
            return self.window.messages
        place = next(
            (
                index
                for index, message in enumerate(self.window.messages)
                if self.current is not None and message.group == self.current
            ),
            len(self.window.messages),
        )
        return (*self.window.messages[:place], beside, *self.window.messages[place:])


def beside_message(anchors: Mapping[str, str], section: str) -> Message | None:
    """The message that carries anchors, each a block of its own, and a recalled section."""
    blocks = [f"{name.capitalize()}:\n{text}" for name, text in anchors.items() if text.strip()]
    if section:
        blocks.append(section)
    if not blocks:
        return None
    return Message(
        role=Role.USER, parts=tuple(TextPart(text=fenced(block), recalled=True) for block in blocks)
    )
