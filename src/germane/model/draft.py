"""What a caller hands in to be remembered, before it becomes a memory.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from germane.model.copies import State, restore, state_of
from germane.model.forms import checked_fields
from germane.model.memory import Memory, Outcome, Trust
from germane.model.scope import GLOBAL, Scope

__all__ = ["Doubt", "Draft", "Remembered"]


class Doubt(StrEnum):
    """Why a text may not be worth keeping."""

    EMPTY_TALK = "empty_talk"  # A greeting, thanks, an agreement, and nothing besides.
    STATUS_DUMP = "status_dump"  # How things stand right now, which nobody will ask about later.
    META_ANSWER = "meta_answer"  # A model speaks of itself or asks for the text, in place of an answer.
    NEAR_DUPLICATE = "near_duplicate"  # Nearly the same was remembered within the last two days.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Draft:
    """The arguments of `remember` as one value. None means: as the kind or the engine has it.

    `source` says where the text came from; it is part of what makes two memories the same one,
    so a re-import changes nothing and the same sentence in two places is two memories. `created_at` and
    `updated_at` are the source's own times; where it has only the first, that is both, and without either
    it is the time of storing.
    """

    content: str
    kind: str = "note"
    subject: str | None = None
    tags: Sequence[str] = ()
    scope: Scope | str = GLOBAL
    importance: float | None = None
    confidence: float | None = None
    outcome: Outcome | str | None = None
    trust: Trust | str | None = None
    source: str | None = None
    pinned: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __getstate__(self) -> State:
        return state_of(self)

    def __setstate__(self, state: State) -> None:
        restore(self, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of a draft: the memory as it is stored, and whether it is a new one or a new text.

    `updated` names what a draft of a known text changed, such as "tags" and "outcome": the memory has a next
    version with it. `doubt` is why it may not be worth keeping, None where nothing speaks against it.
    """

    memory: Memory
    created: bool
    doubt: Doubt | None = None
    updated: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """What happened: "new", "revised", "repeated", or "updated" with the names of what was."""
        if self.updated:
            return f"updated: {', '.join(self.updated)}"
        if not self.created:
            return "repeated"
        return "new" if self.memory.version == 1 else "revised"
