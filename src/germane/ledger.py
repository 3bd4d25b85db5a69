"""The ledger: recorded assemblies, the parts of a trace, and how well contexts do over time.

They contain ids, numbers and hashes, and no text of a memory. The words of the question are stored: they
are the caller's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from germane.model.context import (
    Context,
    EmptyReason,
    Entry,
    Question,
    Reason,
    RefreshReason,
    SectionUsage,
    TraceNote,
)
from germane.model.memory import Level
from germane.model.query import EmbeddingIdentity, Filter

__all__ = [
    "Assembly",
    "AssemblyDiff",
    "Day",
    "EmptyReason",
    "Entry",
    "LedgerEntry",
    "LoggedChange",
    "MemoryChange",
    "MemoryChangeKind",
    "Metrics",
    "Question",
    "RefreshReason",
    "Replay",
    "SectionUsage",
    "TraceNote",
    "ValueChange",
]

MADE_FOR: Final = "made_for"
"""The option that says what an assembly was made for."""

SESSION: Final = "session"
"""The option that names the conversation that a request was made about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One candidate of a recorded assembly: a version of a memory.

    `agent` is the owner of the memory: the agent of the assembly, or a space. `pinned` says that the
    caller named it. `used` is what feedback reported since of this memory in this context, None without any.
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

    @property
    def is_message(self) -> bool:
        """Whether it is a message of a conversation, by its id, and no memory."""
        return self.version == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A recorded assembly: all that is needed to repeat it, and what came of it.

    `points` says by agent how far the store had come when it was made; `settled` is False where somebody
    wrote while it was. `makers` names what had a part in it besides the memories: the version of germane,
    tokenizer, embedder, counter, learned weights, what was used more than other memories. `unkept` names what
    the caller gave that can't be stored (a scorer, a plan of its own), so that a replay has to be given it
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
    empty_reason: EmptyReason | None = None
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


class MemoryChangeKind(StrEnum):
    """What happened to a memory, or to all of them, after an assembly was made."""

    ADDED = "added"
    REVISED = "revised"  # A newer version, or one that says the same, stands in its place.
    FORGOTTEN = "forgotten"
    MOVED = "moved"  # To another status: restored, archived.
    EMBEDDED = "embedded"  # It got a vector, or another one.
    SEEN = "seen"  # It was remembered again or used, or its counts changed.
    PURGED = "purged"
    REINDEXED = "reindexed"  # All of them: another tokenizer or language.


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One thing that happened since; a purged memory has no id any more, and neither have all of them."""

    what: MemoryChangeKind
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """One change of an agent's memories, without any text; `number` grows with each, across processes.

    A purged memory has no id any more. `version` is that of the memory to which it happened.
    """

    number: int
    what: MemoryChangeKind
    memory_id: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """Something that is one way in one assembly and another way in the other, by its name, as texts."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyDiff:
    """What differs between two assemblies: the inputs, and which memories are in them and how.

    `entered` stand only in the second and `left` only in the first; `altered` stand in both, at another
    level or in another section. `moved` are those that only their rank tells apart. `same_text` says that
    the hashes of both texts are known and equal.
    """

    inputs: tuple[ValueChange, ...] = ()
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
    makers: tuple[ValueChange, ...] = ()
    alterations: tuple[MemoryChange, ...] = ()
    difference: AssemblyDiff | None = None


def text_hash(text: str) -> str:
    """The SHA-256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# How well contexts do over time: figures made of what was recorded, fed back and stored.
#
# docs/explanation/metrics.md defines each figure.

TARGETS: Final[Mapping[str, tuple[float | None, float | None]]] = MappingProxyType(
    {
        "relevance": (0.6, None),
        "budget_use": (0.5, 0.9),
        "refreshes_per_turn": (None, 0.3),
        "recall_precision": (0.4, None),
        "cold_start": (None, 0.5),
        "memory_growth": (None, None),
        "fact_confirmation": (0.2, None),
    }
)
"""What the note on context management aims at: at least and at most. Nothing is padded to meet them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day in UTC: what was assembled and stored on it, and the figures of its assemblies alone."""

    date: date
    assemblies: int = 0
    added: int = 0
    relevance: float | None = None
    budget_use: float | None = None
    recall_precision: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures from `since` until `until`; None where there is nothing that one could be made of.

    `relevance`, `budget_use`, `recall_precision` and `fact_confirmation` are shares from 0 to 1,
    `refreshes_per_turn` is contexts made for each turn of the user, `cold_start` seconds, `memory_growth`
    memories a day. `assemblies` are those recorded, `with_feedback` those of them that feedback spoke of,
    `cold` those that were an engine's first; `turns` of the user and `facts` are counted too. `per_day` has
    every day, the first day first.
    """

    since: datetime
    until: datetime
    relevance: float | None = None
    budget_use: float | None = None
    refreshes_per_turn: float | None = None
    recall_precision: float | None = None
    cold_start: float | None = None
    memory_growth: float | None = None
    fact_confirmation: float | None = None
    assemblies: int = 0
    with_feedback: int = 0
    cold: int = 0
    turns: int = 0
    facts: int = 0
    per_day: tuple[Day, ...] = ()

    def figures(self) -> dict[str, float | None]:
        """The seven figures by name, in the order of the documentation."""
        return {name: getattr(self, name) for name in TARGETS}

    def on_target(self, name: str) -> bool | None:
        """Whether a figure is where it should be; None for one that is unknown or has no target."""
        value, (least, most) = self.figures()[name], TARGETS[name]
        if value is None or least is most is None:
            return None
        return (least is None or value >= least) and (most is None or value <= most)


# Figures and findings about a store.

LARGE = 4000
"""Tokens: what half of a usual budget of 8,000 can just hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMemory:
    """A memory so long that few others fit beside it; `label` is its shortest text."""

    id: str
    kind: str
    scope: str
    label: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Figures about one agent's memories and the store that holds them.

    `tokens` sums the stored counts of the full renditions; `bytes` is the size of the whole store on disk
    (0 in memory, and for an engine that is bound to a user). `pending` counts the memories that wait for
    a vector, forgotten ones aside; it is 0 while nobody has named a model. `language` is that of the
    agent's words. `tokens_by_scope` sums the tokens of the active memories by the name of their scope;
    `large` are the longest of these, where one alone takes more than `LARGE` tokens.
    """

    location: str
    schema_version: int
    agent: str
    memories: int
    by_kind: Mapping[str, int]
    by_status: Mapping[str, int]
    tokens: int
    vectors: int
    embedding: EmbeddingIdentity | None
    bytes: int
    oldest: datetime | None = None
    newest: datetime | None = None
    pending: int = 0
    language: str = "english"
    tokens_by_scope: Mapping[str, int] = field(default_factory=dict)
    large: tuple[LargeMemory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUsage:
    """The caches of a store in this process: how many agents or conversations they have, and their bytes.

    The least recently used leave where all take more than `most_bytes`. `hits` and `misses` count how often
    the wanted one was there, and wasn't.
    """

    entries: int
    bytes: int
    most_bytes: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUsage:
    """What a store takes of this process, whatever the number of engines that use it.

    `connections` are open now, `most_connections` the most that there may be; `caches` are those of agents,
    `conversation_caches` those of conversations.
    """

    location: str
    connections: int
    most_connections: int | None
    caches: CacheUsage
    conversation_caches: CacheUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found, with its remedy: damage, or `advice` where nothing is wrong."""

    code: str
    text: str
    remedy: str
    advice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that a repair couldn't save, or saved and set aside.

    `what` is "memory", "message" or the name of a table, and `id` the id of a memory or a message, if it is
    known. `agent` is None where it isn't known whose it was.
    """

    what: str
    agent: str | None
    id: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair found in a store, what was lost, and what is left to do.

    `found` is the damage before, and `left` the damage after. Memories that are `set_aside` differ from their
    checksum: they are in quarantine under the rule "damaged", and such messages are in hidden groups.
    `pending` counts the memories that wait for a vector, in all agents. `new_file` is the path of the file
    with what was saved, None where the store was repaired in place.
    """

    location: str
    found: tuple[Finding, ...]
    set_aside: tuple[Damage, ...]
    lost: tuple[Damage, ...]
    left: tuple[Finding, ...]
    pending: int
    new_file: str | None = None


# How a database that holds memories is doing, as whoever operates it asks.

Progress = Callable[[int, int], None]
"""Called with how much of a piece of work is done, and of how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """An agent of a store: how many memories it has, of any status, and the latest `updated_at` of them.

    A space is listed among them as `space:` and its name. `memories` is None where the user may not see them,
    `written_at` then too, and where there are none.
    """

    name: str
    memories: int | None
    written_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """The index of one agent's vectors: how many there are, and its size. One that isn't valid isn't used."""

    agent: str
    vectors: int
    bytes: int
    valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    """The database of a store, its schema and its size; nothing of it is about one agent.

    `engine` is the database and its version. `schema_version` is the store's, 0 where there is no schema
    yet, and `newest_version` that of this germane; `pending` are the migrations in between. `agents` counts
    spaces too, and `users` the users of agents, once for each agent. `memories` is None where the user can't
    see those of all agents. `standby` says that a server repeats what another one does, and `replicas` how
    many do so with this one; `distributed` that Citus spreads the tables. A file has none of these, and no
    `partitions`, `extensions` or `indexes`. `due` counts the agents of whom something was purged that isn't
    erased yet, and is 1 for a file that has to be rewritten; it is None where the user may not see it.
    `removing` counts the agents whose removal was interrupted. `encrypted` says whether it has a key.
    """

    location: str
    engine: str
    schema_version: int
    newest_version: int
    pending: tuple[str, ...]
    agents: int
    users: int
    memories: int | None
    bytes: int
    embedding: EmbeddingIdentity | None
    extensions: tuple[tuple[str, str], ...] = ()
    partitions: int = 0
    replicas: int = 0
    standby: bool = False
    distributed: bool = False
    indexes: tuple[VectorIndex, ...] = ()
    due: int | None = 0
    removing: int = 0
    encrypted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was done so that nothing is left of purges: the tables of a server that were written anew.

    `left` says where bytes of it may be all the same, each with what helps: sentences for who operates it.
    """

    tables: tuple[str, ...]
    left: tuple[str, ...]
