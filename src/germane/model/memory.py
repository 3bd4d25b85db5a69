"""Memories: versions, renditions and stages of life; the drafts they are made from; where they apply.

Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.text import cut, line_of, user_and_agent
from germane.model.validation import checked_fields

# Copies and pickles of frozen values with unchangeable mappings: `types.MappingProxyType` can be neither, so
# a state has a plain copy of each, which is made unchangeable again.

State: TypeAlias = tuple[dict[str, Any], dict[str, dict[str, Any]]]
"""The fields of a value by name, and apart those that are unchangeable mappings."""


def state_of(value: Any) -> State:
    """The state of a dataclass, for its `__getstate__`."""
    plain = {field.name: getattr(value, field.name) for field in fields(value)}
    proxies = [name for name, each in plain.items() if isinstance(each, MappingProxyType)]
    return plain, {name: dict(plain.pop(name)) for name in proxies}


def restore(value: Any, state: State) -> None:
    """Fill a frozen dataclass with such a state, for its `__setstate__`."""
    plain, mappings = state
    proxies = {name: MappingProxyType(each) for name, each in mappings.items()}
    for name, each in {**plain, **proxies}.items():
        object.__setattr__(value, name, each)


# What changed from one version of a memory to the next.

_FIELDS = (
    *("kind", "subject", "scope", "tags", "importance", "confidence", "outcome", "pinned"),
    *("session", "key", "valid_from", "valid_until", "expires_at"),
)


def diff(before: Memory, after: Memory) -> str:
    """A unified diff of two versions: the fields that differ, then the content, line by line.

    Empty where they say the same. Each line ends in a line feed.
    """
    from difflib import unified_diff  # noqa: PLC0415 - Few processes compare versions.

    lines = unified_diff(
        list(_lines(before, after)),
        list(_lines(after, before)),
        fromfile=f"version {before.version}",
        tofile=f"version {after.version}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(memory: Memory, other: Memory) -> Iterator[str]:
    """The content, under the fields in which the two differ."""
    for name in _FIELDS:
        mine, theirs = getattr(memory, name), getattr(other, name)
        if mine != theirs:
            yield f"{name}: {', '.join(mine) if isinstance(mine, tuple) else mine}"
    for name in sorted({*memory.metadata, *other.metadata}):
        if memory.metadata.get(name) != other.metadata.get(name) and name in memory.metadata:
            yield f"{name}: {memory.metadata[name]}"
    yield from memory.content.splitlines()


# The lifecycle of a memory: stages, signs and counts. `germane.lifecycle` has the transitions.


class Stage(StrEnum):
    """Where a memory stands in the lifecycle of its kind; no lifecycle has all of them."""

    NEW = "new"  # A fact that was learned and not met again.
    CONFIRMED = "confirmed"  # A fact that was met again.
    CORE = "core"  # A fact that was confirmed three times or more, or by hand.
    SUPERSEDED = "superseded"  # A fact that a newer one replaces.
    INACTIVE = "inactive"  # A fact that was proven wrong.
    ACTIVE = "active"  # An episode of late, a procedure in use, a constraint that was triggered.
    SUMMARIZED = "summarized"  # An episode of which the summary matters.
    ARCHIVED = "archived"  # An episode that is found only on request.
    EFFECTIVE = "effective"  # A procedure that mostly works.
    INEFFECTIVE = "ineffective"  # A procedure that mostly fails, and wants a look.
    CREATED = "created"  # A constraint that was never triggered.
    ESCALATED = "escalated"  # A constraint that was triggered so often that it blocks.
    RETIRED = "retired"  # A procedure or constraint that is out of use.
    RECORDED = "recorded"  # A decision without an outcome.
    PENDING = "pending"  # A decision whose work is done, and whose outcome is awaited.
    REVIEWED = "reviewed"  # A decision with an outcome.


LEARNED_TAGS = "learned_tags"
"""The metadata of a constraint whose keys are the tags with which it was first remembered."""


REFLECTION: Final = "reflection:"
"""What the key of a reflection begins with: a summary of several memories, which ends with any of them."""
MEMBERS: Final = "_members"
"""The metadata of a reflection whose keys are the ids of these memories. No name with "_" is indexed."""


class LifecycleSignal(StrEnum):
    """What happens to a memory that may move it to another stage."""

    CONFIRM = "confirm"
    PROMOTE = "promote"
    CONTRADICT = "contradict"
    SUPERSEDE = "supersede"
    SUCCEED = "succeed"
    FAIL = "fail"
    TRIGGER = "trigger"
    FALSE_ALARM = "false_alarm"
    RESUME = "resume"
    AWAIT = "await"
    REVIEW = "review"
    AGE = "age"
    SETTLE = "settle"  # What is counted is looked at once more, as by `maintain`.
    RETIRE = "retire"
    RESTORE = "restore"


class Cause(StrEnum):
    """Why it happened."""

    REQUESTED = "asked"  # Somebody requested it.
    REPEATED = "repeated"  # The same text was remembered again.
    ALIKE = "alike"  # Something nearly identical was remembered.
    SUBJECT = "subject"  # Something similar was remembered of the same subject.
    REVISED = "revised"  # Its next version was stored.
    OUTCOME = "outcome"  # An outcome was reported.
    DUPLICATE = "duplicate"  # It had the same text as another memory.
    UPKEEP = "upkeep"  # Its age or its counts, when they were looked at.


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleState:
    """The stage of a memory, and what is counted of it. None as `stage`: its kind doesn't age.

    `false_alarms` are among the `triggers`. `renewed_at` is when it was last confirmed or restored.
    """

    stage: Stage | None
    confirmations: int = 0
    successes: int = 0
    failures: int = 0
    triggers: int = 0
    false_alarms: int = 0
    renewed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    """One thing that happened in the life of a memory: what, when, by whom and why; no text.

    `version` is that of the memory to which it happened. `other` is the id of the memory that had a part in
    it, None where there is none or it was purged.
    """

    number: int
    memory_id: str
    sign: LifecycleSignal
    before: Stage
    after: Stage
    cause: Cause
    by: str
    at: datetime
    other: str | None = None
    version: int = 1


# The counts of a memory's lifecycle; `germane.lifecycle` says what follows from them.


def counted(state: LifecycleState, sign: LifecycleSignal, *, at: datetime) -> LifecycleState:
    """The counts after a sign."""
    if sign is LifecycleSignal.CONFIRM:
        return replace(state, confirmations=state.confirmations + 1, renewed_at=at)
    if sign is LifecycleSignal.SUCCEED:
        return replace(state, successes=state.successes + 1)
    if sign is LifecycleSignal.FAIL:
        return replace(state, failures=state.failures + 1)
    if sign in (LifecycleSignal.TRIGGER, LifecycleSignal.FALSE_ALARM):
        false = int(sign is LifecycleSignal.FALSE_ALARM)
        return replace(state, triggers=state.triggers + 1, false_alarms=state.false_alarms + false)
    if sign is LifecycleSignal.RESTORE:
        # What was counted against a constraint was answered by restoring it.
        return replace(state, triggers=0, false_alarms=0, renewed_at=at)
    return state


def uncounted(state: LifecycleState, sign: LifecycleSignal | None) -> LifecycleState:
    """The counts without an outcome that was counted before, never below 0."""
    if sign is LifecycleSignal.SUCCEED:
        return replace(state, successes=max(0, state.successes - 1))
    if sign is LifecycleSignal.FAIL:
        return replace(state, failures=max(0, state.failures - 1))
    return state


def sign_of_outcome(lifecycle: str, *, worth: float, weight: float) -> LifecycleSignal | None:
    """What an attested outcome counts in the life of the memory that it speaks of; None for nothing.

    A procedure counts a whole success or failure (worth 1 or 0) that it was named with (weight 1). One
    that was merely shown may not have been followed.
    """
    if lifecycle != "procedure" or weight < 1.0:
        return None
    return {1.0: LifecycleSignal.SUCCEED, 0.0: LifecycleSignal.FAIL}.get(worth)


# Where a memory applies.

_KNOWN = frozenset({"global", "task", "path", "session"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
@checked_fields()
class Scope:
    """A named place where a memory applies: `global`, or a name with a value such as `task:T-42`.

    The names that the built-in plans know are global, task, path and session; any other name is
    the user's own. Everywhere a scope is expected, its text form is accepted too.
    """

    name: str
    value: str = ""

    @classmethod
    def parse(cls, text: str | Self) -> Self:
        """Read a scope from its text form, `name` or `name:value`; a scope is returned as it is.

        The names that the built-in plans know are read in any case, so that `Task:T-42` is `task:T-42`.
        Raises InvalidInput for what is no scope, and for the plural of such a name.
        """
        if isinstance(text, cls):
            return text
        name, _, value = str(text).partition(":")
        folded = name.strip().casefold()
        if folded in _KNOWN:
            name = folded
        elif folded.removesuffix("s") in _KNOWN:
            raise InvalidInput(
                f"scope={text!r} names no scope that a plan knows. Did you mean {folded.removesuffix('s')!r}?"
            )
        if not name or (value == "") != (name == "global"):
            raise InvalidInput(
                f"scope={text!r} is no scope. Write 'global', or a name and a value: "
                "'task:T-42', 'path:src/auth', 'session:2026-11-21'."
            )
        return cls(name=name, value=value)

    def __str__(self) -> str:
        return f"{self.name}:{self.value}" if self.value else self.name


GLOBAL = Scope(name="global")


_SHOWN = 60
"""Columns of its content that the representation of a memory shows."""


class Level(StrEnum):
    """How much of a memory is shown.

    Micro (about 20 tokens), summary (about 50 to 100) and full are made when a memory is written. An excerpt
    is made during packing: as many passages that answer the question, or first sentences, as fit.
    """

    MICRO = "micro"
    SUMMARY = "summary"
    EXCERPT = "excerpt"
    FULL = "full"


class Status(StrEnum):
    """Where a memory stands; only what is active is gathered unless a filter says otherwise."""

    ACTIVE = "active"  # A candidate for every context.
    SUPERSEDED = "superseded"  # A newer version replaces it; it is part of the history.
    ARCHIVED = "archived"  # Its summary remains; its detail no longer matters.
    FORGOTTEN = "forgotten"  # Never gathered; can be restored.


class Outcome(StrEnum):
    """How it turned out, for what can turn out one way or the other."""

    SUCCESS = "success"
    PARTIAL = "partial"
    ONGOING = "ongoing"  # The work goes on.
    PENDING = "pending"  # The work is done, and its outcome awaited.
    FAILURE = "failure"
    ABANDONED = "abandoned"


class Trust(StrEnum):
    """Whose word a memory is, from the most to the least trusted."""

    OWNER = "owner"  # The person or company that the agent works for.
    AGENT = "agent"  # The agent's own conclusions.
    PEER = "peer"  # Another agent, through a space that both are in.
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
        return self.summary if level is _SUMMARY else self.full


# Read hundreds of times per context. On Python 3.11 finding a member in its enum takes as long as a call.
_MICRO, _SUMMARY = Level.MICRO, Level.SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored record. Values of this class are never changed: `evolve` returns a changed copy.

    `agent` names whose it is: an agent, a space as `space:NAME`, or one user of an agent as
    `user:NAME:AGENT`. `id` names the memory for life: all its versions have it. `version` counts them from 1
    (0 is a message of a conversation, shown like a memory), and `version_id` names one of them.
    `superseded_by` names what replaces this version: the next version, or another memory that says the same;
    None for the current version. `importance` runs from 0 to 10 (1 unless set), `confidence` from 0 to 1.
    `source` says where the text came from, and is part of what makes two memories the same one. `seen_count`
    counts how often the same memory was remembered. `stage` is where it stands in the lifecycle of its kind,
    None where that has no stages. `session` names the session in which it was learned. `key` is the caller's
    own name for it: an agent has at most one current memory of each key. It holds from `valid_from` until
    before `valid_until`, where None leaves an end open. From `expires_at` on nothing finds it, and `maintain`
    removes it; all its versions have the same. All times are aware and in UTC.
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
    session: str | None = None
    key: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        # Its renditions say the same text again three times over, and that may be long.
        label = cut(line_of(self.content), _SHOWN)
        return f"<germane.Memory {self.ref} of {self.agent!r}, {self.kind}, {self.status}: {label!r}>"

    @property
    def user(self) -> str | None:
        """The user whose memory it is; None for one of an agent itself or of a space."""
        return user_and_agent(self.agent)[0]

    @property
    def version_id(self) -> str:
        """The name of this very version: the memory's id, an at sign and the version, as in `id@2`."""
        return f"{self.id}@{self.version}"

    @property
    def is_message(self) -> bool:
        """Whether it is a message of a conversation, which only the conversation stores."""
        return self.version == 0

    @property
    def learned_tags(self) -> tuple[str, ...]:
        """The tags with which a constraint was first remembered, whatever its `tags` are by now."""
        noted = self.metadata.get(LEARNED_TAGS)
        return tuple(map(str, noted)) if isinstance(noted, Mapping) else ()

    @property
    def ref(self) -> str:
        """The shortest name of this version: the memory's id for the current one, else `version_id`."""
        return self.id if self.superseded_by is None else f"{self.id}@{self.version}"

    @property
    def supersedes(self) -> str | None:
        """The name of the version before; None for the first."""
        return f"{self.id}@{self.version - 1}" if self.version > 1 else None

    __getstate__ = state_of
    __setstate__ = restore

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)

    def unused(self, **changes: Any) -> Self:
        """A copy with the named fields changed that was remembered once and never used."""
        return replace(self, **changes, seen_count=1, access_count=0, accessed_at=None)

    def has_expired(self, now: datetime) -> bool:
        """Whether `expires_at` has come by `now`."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def is_dated(self) -> bool:
        """Whether the memory says from when or until when it holds."""
        return self.valid_from is not None or self.valid_until is not None

    def holds(self, start: datetime, end: datetime) -> bool:
        """Whether it holds at any time from `start` until before `end`; at `start` where these are equal."""
        begun = self.valid_from is None or self.valid_from < end or self.valid_from == start
        return begun and (self.valid_until is None or self.valid_until > start)

    def repeated(self, again: Memory) -> Self:
        """This memory after `again` repeated it: counted once more, and active if it was forgotten.

        Where `again` expires, that is when this memory expires from now on.
        """
        return replace(
            self,
            seen_count=self.seen_count + 1,
            updated_at=max(self.updated_at, again.updated_at),
            status=Status.ACTIVE if self.status is Status.FORGOTTEN else self.status,
            expires_at=self.expires_at if again.expires_at is None else again.expires_at,
        )


def day_of(memory: Memory) -> str:
    """The day of a memory, such as `2026-11-21`: that in its metadata under `date`, else of its creation."""
    date = memory.metadata.get("date")
    return date[:10] if isinstance(date, str) and date else memory.created_at.date().isoformat()


def split_id(name: str) -> tuple[str, int]:
    """The id of a memory and the number of a version, from `id` or `id@n`; 0 where none is named."""
    memory_id, at, number = name.partition("@")
    # What can't be a version stays part of the name, so that nothing is found by it.
    return (memory_id, int(number)) if at and number.isdecimal() and number != "0" else (name, 0)


# What a caller hands in to be remembered, before it becomes a memory.


class QualityFlag(StrEnum):
    """Why a text may not be worth keeping."""

    SMALL_TALK = "empty_talk"  # A greeting, thanks, an agreement, and nothing besides.
    STATUS_DUMP = "status_dump"  # How things stand right now, which nobody will ask about later.
    META_ANSWER = "meta_answer"  # A model speaks of itself or asks for the text, in place of an answer.
    NEAR_DUPLICATE = "near_duplicate"  # Nearly the same was remembered within the last two days.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(ttl=(0, inf))
class Draft:
    """The arguments of `remember` as one value. None means: as the kind or the engine has it.

    `source` says where the text came from; it is part of what makes two memories the same one,
    so a re-import changes nothing and the same sentence in two places is two memories. `created_at` and
    `updated_at` are the source's own times; where it has only the first, that is both, and without either
    it is the time of storing.

    `session` names the session in which it was learned, `key` the memory that it updates. It holds from
    `valid_from` until before `valid_until`; a next version with a later `valid_from` ends the one before at
    that time. From `expires_at` on nothing finds it, and `maintain` removes it; in its place `ttl` says how
    long after its storing that is, as a timedelta or in seconds. A time may be a text such as "2026-03" or
    "last week", which stands for the moment at which what it names begins.
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
    session: str | None = None
    key: str | None = None
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    expires_at: datetime | str | None = None
    ttl: timedelta | float | None = None

    __getstate__ = state_of
    __setstate__ = restore


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberResult:
    """What became of a draft: the memory as it is stored, and whether it is a new one or a new text.

    `updated` names what a draft of a known text changed, such as "tags" and "outcome": the memory has a next
    version with it. `quality_flag` is why it may not be worth keeping, None where nothing speaks against it.
    """

    memory: Memory
    created: bool
    quality_flag: QualityFlag | None = None
    updated: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """What happened: "new", "revised", "repeated", or "updated" with the names of what was."""
        if self.updated:
            return f"updated: {', '.join(self.updated)}"
        if not self.created:
            return "repeated"
        return "new" if self.memory.version == 1 else "revised"


# The type of an embedding.

Vector: TypeAlias = NDArray[np.float32]
"""One dimension, float32, of unit length."""

NOWHERE: Final[Vector] = np.empty(0, dtype=np.float32)
"""In a change: the model has seen the text and gives it no direction, since it knows none of its words.

A memory without any vector waits for one; with this it doesn't, and is found by its words.
"""


# Makes many values of one frozen class quickly.

Made = TypeVar("Made")


def maker(cls: type[Made], *names: str, checks: bool = False) -> Callable[[Iterable[Any]], Made]:
    """A function that makes a value of a frozen dataclass with slots, from the values of its fields.

    They come in the order of `names`, and none is checked: it is for what was checked when it was stored. The
    class's own way looks up each field by its name again, which takes more than twice as long; that is felt
    where one search brings hundreds. Raises TypeError unless the names are the fields of the class, each
    once, and for a class that does more than fill them, or than `checks` them.
    """
    its_own = sorted(field.name for field in fields(cls))  # type: ignore[arg-type]  # It refuses another class itself.
    if sorted(names) != its_own or (hasattr(cls, "__post_init__") and not checks):
        raise TypeError(
            f"{cls.__name__} can't be made of {', '.join(names)}. "
            f"It takes {', '.join(its_own)}, each once, and a class that does nothing but keep them."
        )
    setters = tuple(getattr(cls, name).__set__ for name in names)
    new = object.__new__

    def made(values: Iterable[Any]) -> Made:
        value = new(cls)
        for setter, each in zip(setters, values, strict=True):
            setter(value, each)
        return value

    return made
