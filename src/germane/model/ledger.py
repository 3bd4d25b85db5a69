"""What the ledger keeps of an assembly, and what comes of comparing or repeating one.

Level: model (imports errors and model). No text of a memory stands in any of these: ids, numbers and hashes.
The words of the question are the caller's own, and are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from germane.model.context import Context
from germane.model.memory import Level
from germane.model.query import Filter
from germane.model.trace import Emptiness, Reason

__all__ = [
    "MADE_FOR",
    "Alteration",
    "Altered",
    "Assembly",
    "Changed",
    "Difference",
    "LedgerEntry",
    "Replay",
    "text_hash",
]


MADE_FOR: Final = "made_for"
"""The option that says what an assembly was made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One candidate of a recorded assembly: a version of a memory.

    `agent` is whose memory it is: the one that asked, or a space. `pinned` says that the
    caller named it. `used` is what feedback has said since of this memory in this context, None where it has
    said nothing.
    """

    memory_id: str
    version: int = 1
    kind: str
    agent: str
    section: str
    score: float
    parts: Mapping[str, float]
    level: Level | None = None
    reason: Reason | None = None
    tokens: int = 0
    short_by: int = 0
    pinned: bool = False
    used: bool | None = None

    @property
    def version_id(self) -> str:
        """The name of the version that was a candidate, as `Memory.version_id`."""
        return f"{self.memory_id}@{self.version}"

    @property
    def included(self) -> bool:
        """Whether it stood in the context."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A recorded assembly: all that is needed to repeat it, and what came of it.

    `points` says by agent how far the store had come when it was made; `settled` is False where somebody
    wrote while it was. `makers` names what had a part in it besides the memories: the version of germane,
    tokenizer, embedder, counter, learned weights, what was used more than other memories. `unkept` names what
    the caller gave that can't be kept (a scorer, a plan of its own), so that a replay has to be given it
    again. `key` is that of `germane.model.learning.context_key`. `sha256` is the hash of the text; None once
    a memory that stood in it was purged, since a hash of few words can be guessed. `candidates` counts the
    entries that there were; those of purged memories are gone. `seconds` is how long it took, and `cold` says
    that it was the first of its engine. `given_budget` is False where the budget was the frame's total.
    `options` are the task, the paths and what changed of them, for a plan that goes by these; `made_for` what
    it was made for, and how a working set was ordered, where it was one.
    """

    id: str
    agent: str
    at: datetime
    question: str
    plan: str
    frame: str
    budget: int
    counter: str
    key: str
    points: Mapping[str, Mapping[str, int]]
    makers: Mapping[str, str]
    tokens: int
    sha256: str | None
    candidates: int
    entries: tuple[LedgerEntry, ...] = ()
    where: Filter = field(default_factory=Filter)
    spaces: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    emptiness: Emptiness | None = None
    given_budget: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    settled: bool = True
    cold: bool = False
    seconds: float | None = None

    @property
    def included(self) -> tuple[LedgerEntry, ...]:
        """The entries that stood in the context, best first."""
        return tuple(entry for entry in self.entries if entry.included)

    @property
    def made_for(self) -> str:
        """What it was made for: "assemble", the "request" that it stands in, a "working_set", or a "cut".

        A cut is what `refresh` leaves of a context that is too large; its `at` is when that was done.
        """
        return str(self.options.get(MADE_FOR, "assemble"))

    @property
    def purged(self) -> int:
        """How many of its candidates were purged since."""
        return self.candidates - len(self.entries)


class Altered(StrEnum):
    """What happened to a memory, or to all of them, after an assembly was made."""

    ADDED = "added"
    REVISED = "revised"  # A newer version, or one that says the same, stands in its place.
    FORGOTTEN = "forgotten"
    MOVED = "moved"  # To another status: restored, archived.
    EMBEDDED = "embedded"  # It got a vector, or another one.
    SEEN = "seen"  # It was said again or used, or its counts moved.
    PURGED = "purged"
    REINDEXED = "reindexed"  # All of them: another tokenizer or language.


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One thing that happened since; a purged memory has no id any more, and neither have all of them."""

    what: Altered
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Something that is one way in one assembly and another way in the other, by its name, as texts."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between two assemblies: what was asked, and which memories stand in them and how.

    `entered` stand only in the second and `left` only in the first; `altered` stand in both, at another
    level or in another section. `moved` are those that only their rank tells apart. `same_text` says that
    the hashes of both texts are known and equal.
    """

    asked: tuple[Changed, ...] = ()
    entered: tuple[LedgerEntry, ...] = ()
    left: tuple[LedgerEntry, ...] = ()
    altered: tuple[tuple[LedgerEntry, LedgerEntry], ...] = ()
    moved: tuple[str, ...] = ()
    same_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A recorded assembly made again, against the store as it was then as far as that can be known.

    `same` says that the bytes are the same, proved by their hash and by nothing else. `why` says in
    sentences what stands in the way where they aren't; it is empty where they are. `alterations` is what
    happened to memories since, whether it matters or not, and `difference` what differs in the result.
    `context` is what the replay made; None where it could not be made at all.
    """

    assembly: Assembly
    same: bool
    context: Context | None
    why: tuple[str, ...] = ()
    makers: tuple[Changed, ...] = ()
    alterations: tuple[Alteration, ...] = ()
    difference: Difference | None = None


def text_hash(text: str) -> str:
    """The SHA-256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
