"""What an agent keeps: memories, their versions and their renditions.

Level: model (imports errors only). Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self

from germane.model.columns import cut, line_of
from germane.model.copies import State, restore, state_of
from germane.model.forms import as_utc
from germane.model.scope import GLOBAL, Scope
from germane.model.stage import Stage

__all__ = [
    "Level",
    "Memory",
    "Outcome",
    "Rendition",
    "Renditions",
    "Status",
    "Trust",
    "as_utc",
    "day_of",
    "split_id",
]


_SHOWN = 60
"""Columns of its content that the representation of a memory shows."""


class Level(StrEnum):
    """How much of a memory is shown.

    Micro (about 20 tokens), summary (about 50 to 100) and full are made when a memory is written. An excerpt
    is made during packing: the first sentences of the full text, as many as the budget still allows.
    """

    MICRO = "micro"
    SUMMARY = "summary"
    EXCERPT = "excerpt"
    FULL = "full"


class Status(StrEnum):
    """Where a memory stands; only what is active is gathered unless a filter says otherwise."""

    ACTIVE = "active"  # A candidate for every context.
    SUPERSEDED = "superseded"  # A newer version stands in its place; kept as history.
    ARCHIVED = "archived"  # Its summary is kept; its detail no longer matters.
    FORGOTTEN = "forgotten"  # Never gathered; can be restored.


class Outcome(StrEnum):
    """How it turned out, for what can turn out one way or the other."""

    SUCCESS = "success"
    PARTIAL = "partial"
    PENDING = "pending"
    FAILURE = "failure"
    ABANDONED = "abandoned"


class Trust(StrEnum):
    """Whose word a memory is, from the most to the least trusted."""

    OWNER = "owner"  # The person or company that the agent works for.
    AGENT = "agent"  # The agent's own conclusions.
    EXTERNAL = "external"  # Tools, web pages, documents, other people.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendition:
    """One text of a memory, with its length in tokens."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renditions:
    """A memory at its three levels, made when it was written; `counter` counted the tokens."""

    micro: Rendition
    summary: Rendition
    full: Rendition
    counter: str

    def at(self, level: Level) -> Rendition:
        """The rendition of one level; an excerpt is cut from the full one."""
        if level is _MICRO:
            return self.micro
        if level is _SUMMARY:
            return self.summary
        return self.full


# Asked for hundreds of times a context. On Python 3.11 finding a member in its enum takes as long as a call.
_MICRO, _SUMMARY = Level.MICRO, Level.SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored record. Values of this class are never changed: `evolve` returns a changed copy.

    `id` names the memory for life: all its versions have it. `version` counts them from 1, and
    `version_id` names one of them. `superseded_by` names what replaces this version: the next version, or
    another memory that says the same; None for the current version.
    `importance` runs from 0 to 10 (1 unless set), `confidence` from 0 to 1. `source` says where the text
    came from, and is part of what makes two memories the same one. `seen_count` counts how often the same
    memory was remembered. `stage` is where it stands in the lifecycle of its kind, None where that has no
    stages. All times are aware and in UTC.
    """

    id: str
    agent: str
    kind: str
    content: str
    renditions: Renditions
    created_at: datetime
    updated_at: datetime
    version: int = 1
    status: Status = Status.ACTIVE
    scope: Scope = GLOBAL
    subject: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 1.0
    confidence: float = 1.0
    outcome: Outcome | None = None
    trust: Trust = Trust.AGENT
    source: str | None = None
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    content_hash: str = ""
    seen_count: int = 1
    access_count: int = 0
    accessed_at: datetime | None = None
    superseded_by: str | None = None
    stage: Stage | None = None

    def __repr__(self) -> str:
        # Its renditions say the same text again three times over, and that may be long.
        said = cut(line_of(self.content), _SHOWN)
        return f"<germane.Memory {self.ref} of {self.agent!r}, {self.kind}, {self.status}: {said!r}>"

    @property
    def version_id(self) -> str:
        """The name of this very version: the memory's id, an at sign and the version, as in `id@2`."""
        return f"{self.id}@{self.version}"

    @property
    def ref(self) -> str:
        """The shortest name of this version: the memory's id for the current one, else `version_id`."""
        return self.id if self.superseded_by is None else f"{self.id}@{self.version}"

    @property
    def supersedes(self) -> str | None:
        """The name of the version before; None for the first."""
        return f"{self.id}@{self.version - 1}" if self.version > 1 else None

    def __getstate__(self) -> State:
        return state_of(self)

    def __setstate__(self, state: State) -> None:
        restore(self, state)

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


def day_of(memory: Memory) -> str:
    """The day of a memory, such as `2026-11-21`: that in its metadata under `date`, else of its creation."""
    date = memory.metadata.get("date")
    return date[:10] if isinstance(date, str) and date else memory.created_at.date().isoformat()


def split_id(name: str) -> tuple[str, int]:
    """The id of a memory and the number of a version, from `id` or `id@n`; 0 where none is named."""
    memory_id, at, number = name.partition("@")
    # What can't be a version stays part of the name, so that nothing is found by it.
    return (memory_id, int(number)) if at and number.isdecimal() and number != "0" else (name, 0)
