"""Changes that a store writes, as values that are applied together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from germane.model.learning import Example, OutcomeRecord
from germane.model.memory import (
    Cause,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Status,
    Vector,
)

if TYPE_CHECKING:
    from germane.model.extraction import LearningRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySignal:
    """Let something happen to a memory, by the rules of the lifecycle named.

    `escalated` is the version to store in its place where that makes it escalate, with its `vector`.
    `instead_of` is an outcome counted before that this one corrects, and that is taken back. Raises
    NotFound, StaleRevision where `escalated` doesn't follow the head, or InvalidInput where the rules have no
    such move.
    """

    memory_id: str
    lifecycle: str
    sign: LifecycleSignal
    cause: Cause
    at: datetime
    other: str | None = None
    instead_of: LifecycleSignal | None = None
    escalated: Memory | None = None
    vector: Vector | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Let the memory `into`, which says the same, stand for this one, and be confirmed by that.

    Raises NotFound, StaleRevision for what isn't the head of its chain, or InvalidInput where the
    rules of the lifecycle have no such move.
    """

    memory_id: str
    into: str
    lifecycle: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword:
    """Store `memory.renditions` and `memory.metadata` in place of those that the memory of that id has.

    What is indexed of it stays. Raises NotFound when the agent has no such memory.
    """

    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Store a new memory, or recognise it.

    A memory is the same one when its agent and `content_hash` are. When somebody says it anew
    (`revive`), the stored one is counted once more (`Memory.repeated`), and it becomes active again if
    it was forgotten. When an import comes across the same text (`revive` False), nothing changes.
    A memory stored with `vector` None waits for one. `lifecycle` is that of its kind: by its rules a fact
    that somebody says anew is confirmed, and what was out of use is taken up again. A memory that is new
    here begins with what `lifecycle_state` has counted, as when it was exported elsewhere. `at` is when it is
    stored, for what happens to other records by it; None where that is the memory's `updated_at`.

    With `dated` it is the same one only on the same day (`day_of`). Where the same was stored of another day,
    it is stored with `dated` as its `content_hash`.
    """

    memory: Memory
    vector: Vector | None = field(default=None, compare=False)
    revive: bool = True
    lifecycle: str = ""
    lifecycle_state: LifecycleState | None = None
    at: datetime | None = None
    dated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Store `memory` as the next version of the memory of its id; the one before must be the current one.

    What is counted of the one before goes over to it where it `carries` on with its life. `at` is when it is
    stored; None where that is its `updated_at`. Raises StaleRevision, naming the current version, where
    `memory.version` doesn't follow that.
    """

    memory: Memory
    vector: Vector | None = field(default=None, compare=False)
    carries: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    """Move a memory to another status. Raises NotFound when the agent has no such memory."""

    memory_id: str
    status: Status
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVector:
    """Store or replace the vector of a memory; NOWHERE removes it, and the memory doesn't wait for one."""

    memory_id: str
    vector: Vector = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Remove a memory with all its versions from every form, and what was merged into them.

    What an earlier one of the same transaction took along may be named too, and is gone already. Without
    `erases` the bytes of its texts are left in unused parts of a file until the next purge that erases, or
    until the store is opened again. Raises NotFound when the agent has no such memory.
    """

    memory_id: str
    at: datetime
    erases: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUse:
    """Say whether a memory that a context showed was used there.

    A use adds one to `access_count` and moves `accessed_at` forward to `at`: once for each `context` (32
    hexadecimal digits), however often reported; what was used once stays used. A store that can keeps each
    showing and whether it was a use, and while the agent learns `parts`, those of its score there, as an
    example.
    Raises NotFound when the agent has no such memory.
    """

    memory_id: str
    context: str
    used: bool
    at: datetime
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOutcome(OutcomeRecord):
    """Say how work turned out with a memory that a context showed.

    `worth` is 1 for success, 0 for failure, or between; `weight`, above 0 and at most 1, how much that says
    of this very memory. For the same `context` (32 hexadecimal digits), the latest report counts. By the
    rules of its `lifecycle` a procedure counts what it was named with: `sign_of_outcome`. Raises NotFound
    when the agent has no such memory.
    """

    lifecycle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportUsage:
    """Import a usage record of another store; it moves and counts nothing, since it was counted there.

    It comes after what is known here, a showing by as many numbers after the latest as `number` says, so that
    those between which others were reported stay as far apart. What is known stays as it is: a showing or an
    outcome by its context, an event where as many like it are there as `number` says. Raises NotFound when
    the agent has no such memory.
    """

    record: UsageRecord
    number: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRun:
    """Store a learning run, with the changes that it decided; one of a known id takes its place.

    `expected` is how far the run's session was read before it, None where that doesn't matter. Raises
    StaleRevision where it was read further meanwhile.
    """

    run: LearningRun
    expected: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstate:
    """Undo what a learning run did to a memory: the version `memory` becomes the current one again.

    `expected` is the version that the run left, which has to be the current one still. The versions after
    `memory` are removed, and what is counted becomes `lifecycle_state`; with None as `memory` the whole
    memory is removed. Unlike a purge it leaves the bytes of the removed texts in unused parts of a file until
    the next purge. Raises NotFound, or StaleRevision where another version is current.
    """

    memory_id: str
    expected: int
    at: datetime
    memory: Memory | None = None
    lifecycle_state: LifecycleState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeConversation:
    """Delete a conversation with its messages, anchors and learning runs, in the transaction of the others.

    A store without conversations ignores it. Raises MessageNotFound where there is no such conversation.
    """

    session: str
    at: datetime


Change = (
    Insert
    | Revise
    | SetStatus
    | SetVector
    | Purge
    | RecordUse
    | RecordOutcome
    | ImportUsage
    | ApplySignal
    | Merge
    | Reword
    | RecordRun
    | Reinstate
    | PurgeConversation
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What one change did: the memory as it is now stored (None after a purge).

    `created` is False when an Insert met a memory that was already there, and for a RecordUse, a
    RecordOutcome or an ImportUsage unless it reported something new.
    """

    memory: Memory | None
    created: bool = False
    purged: int = 0


# The usage history of an agent: ids, hashes, numbers and times, and no text of a memory.

UsageRecord: TypeAlias = Example | OutcomeRecord | LifecycleEvent
"""One record of a memory's use: it was shown, work with it had an outcome, or its stage changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """All usage records of an agent, each kind in the order of reporting; `learns`: whether learning is on.

    `showings` say which memories contexts showed and whether they were used, `outcomes` how work turned out
    with them, `events` what moved them from stage to stage. `runs` are the learning runs with their texts,
    the earliest first. The counts of a memory (`access_count`, its lifecycle state) belong to the memory and
    aren't included.
    """

    learns: bool = False
    showings: tuple[Example, ...] = ()
    outcomes: tuple[OutcomeRecord, ...] = ()
    events: tuple[LifecycleEvent, ...] = ()
    runs: tuple[LearningRun, ...] = ()

    def __len__(self) -> int:
        return len(self.showings) + len(self.outcomes) + len(self.events) + len(self.runs)

    def __bool__(self) -> bool:
        # Whether an agent learns is worth storing even before anything was reported.
        return self.learns or len(self) > 0


def version_of(record: UsageRecord) -> str:
    """The name of the version that a record concerns: for an event `id@n`, otherwise its `memory_id`."""
    if isinstance(record, LifecycleEvent):
        return f"{record.memory_id}@{record.version}"
    return record.memory_id
