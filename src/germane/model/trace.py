"""The account of an assembly: how the question was understood, and where each candidate went.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from germane.model.memory import Level, Memory
from germane.model.query import Candidate, Filter, Order, TimeRange

__all__ = [
    "Emptiness",
    "Entry",
    "Fused",
    "Note",
    "Question",
    "Ranked",
    "Reason",
    "SectionUse",
    "Trace",
]


class Reason(StrEnum):
    """Why a candidate stands outside the context: the closed list."""

    OVER_BUDGET = "over_budget"  # No level of it fitted what its section had left.
    STOPPED = "stopped"  # Ranked below the first that didn't fit, in a section that stops there.
    DUPLICATE = "duplicate"  # The same text already stands in the context.
    LIMIT = "limit"  # The section already holds as many items as its plan allows.
    NOT_RELEVANT = "not_relevant"  # It has too little to do with the question to take part.
    SAID = "said"  # It stands in the running conversation already.
    ALIKE = "alike"  # The section shows as many of its subject as the plan allows.
    EVICTED = "evicted"  # It stood in the context, and left it under pressure for something else.


class Emptiness(StrEnum):
    """Why a context or a recall holds nothing."""

    NOTHING_STORED = "nothing_stored"  # The agent has no memory at all.
    NOTHING_HELD = "nothing_held"  # The working set is empty.
    FILTERED = "filtered"  # It has, but none passes the filter.
    NOTHING_RELEVANT = "nothing_relevant"  # Some pass, but none has to do with the question.
    OVER_BUDGET = "over_budget"  # Some are relevant, but none fits.


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How the caller's words were understood.

    `cleaned` is the text without the time expression that became `when`; `terms` are what the
    index was asked for. With no terms left the question says nothing, and recency ranks instead.
    `order` is that of time where the question asks for the first of something, or for the last.
    """

    text: str = ""
    cleaned: str = ""
    terms: tuple[str, ...] = ()
    when: TimeRange | None = None
    order: Order | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """What several ranked lists say of one of their members: one score, and what each list adds to it.

    `sources` names the lists that it stands in; their numbers add up to `score`.
    """

    score: float
    sources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its score and the named parts of it. Higher is better.

    `fused` is what a ranker that fuses several lists made of the places that it has in them.
    """

    candidate: Candidate
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    fused: Fused | None = None

    @property
    def memory(self) -> Memory:
        """The memory that was ranked."""
        return self.candidate.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One candidate's place in the trace: included at a level, or excluded for one reason.

    `tokens` is the cost of the level shown, or of the smallest level tried; `short_by` how many
    tokens were missing for that smallest level, where the budget was the reason. `label` is the
    beginning of the memory's shortest rendition, for people. `agent` is whose memory it is: the one
    that asked, or a space. `memory_id` is the memory's id, and `id@n` for a version that isn't the current
    one; `version` is the number of the version. `scope`, `created_at` and `source` are those of the memory.
    """

    memory_id: str
    kind: str
    section: str
    score: float
    parts: Mapping[str, float]
    level: Level | None = None
    reason: Reason | None = None
    tokens: int = 0
    short_by: int = 0
    label: str = ""
    agent: str = ""
    version: int = 1
    scope: str = ""
    created_at: datetime | None = None
    source: str | None = None

    @property
    def included(self) -> bool:
        """Whether the candidate stands in the context."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionUse:
    """What a section was given and what it used, in tokens; `flowed` came from other sections."""

    name: str
    heading: str
    share: int
    used: int
    flowed: int
    included: int
    excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that a reader of the trace should know: a fall-back, a degraded part, a margin."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The whole account of one assembly: every candidate gathered stands in `entries` once.

    `entries` may be written when they are first looked at; they equal a tuple of the same entries.
    `weights` are those that the parts of the scores were multiplied by, where use has taught some. `frame`
    is the name of the frame that the plan was built for, if it was for one, and `frame_confidence` how
    surely it was chosen, from 0 to 1. `where` is the filter that the caller gave.
    """

    plan: str
    question: Question
    budget: int
    counter: str
    now: datetime
    entries: Sequence[Entry]
    sections: tuple[SectionUse, ...]
    notes: tuple[Note, ...] = ()
    emptiness: Emptiness | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    frame: str | None = None
    frame_confidence: float | None = None
    where: Filter = field(default_factory=Filter)

    def __repr__(self) -> str:
        shown = len(self.included)
        return f"<germane.Trace of plan {self.plan!r}, {shown} of {len(self.entries)} candidates are in>"

    @property
    def included(self) -> tuple[Entry, ...]:
        """The entries that stand in the context, in rank order."""
        return tuple(entry for entry in self.entries if entry.included)

    @property
    def excluded(self) -> tuple[Entry, ...]:
        """The entries that were left out, each with its reason."""
        return tuple(entry for entry in self.entries if not entry.included)
