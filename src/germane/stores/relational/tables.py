"""Tables of any database: named queries inside transactions, and memories as rows.

Each database brings its own; everything else here is the same for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from inspect import getmembers, isfunction, signature
from math import isfinite
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeVar

from germane.errors import InvalidInput
from germane.forks import Gate
from germane.ids import id_text
from germane.model.memory import (
    GLOBAL,
    Memory,
    Outcome,
    Rendition,
    Renditions,
    Scope,
    Stage,
    Status,
    Trust,
    as_utc,
    maker,
    split_id,
)
from germane.stores.sql.tables import RECORD, AgentRow, MemoryRow, TextsRow

__all__ = [
    "AGENT_SHIFT",
    "Connection",
    "Connections",
    "Dialect",
    "Purged",
    "Rows",
    "Why",
    "former_ref",
    "gated",
    "id_bytes",
    "id_text",
    "memory_of",
    "memory_row",
    "microseconds",
    "moment",
    "named",
    "number_of",
    "numbered_memory",
    "ref_of",
    "row_id",
    "span",
    "stamp_of",
    "storable",
    "texts_row",
    "try_id_bytes",
]

Kind = TypeVar("Kind", bound=type)

Dialect = Literal["sqlite", "postgres"]

Purged = Literal["memories", "conversations", "agent"]
"""What is purged: some of an agent's memories, some of its conversations, or all that there is of it."""


class Rows(Protocol):
    """What a query found; it can be gone through once."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Runs named queries. What it gives out holds within one transaction, from one snapshot.

    Statements are done in order. In a write transaction one may be done only when an answer is looked at, its
    own or a later one's, or at the end; what it raises is raised then, and nothing behind it is done. So what
    doesn't need an answer is run without looking at any, and what can be asked together before the first
    answer is looked at.
    """

    @property
    def dialect(self) -> Dialect:
        """The folder of the queries that it runs."""
        ...

    @property
    def refusal(self) -> type[Exception]:
        """What the driver raises when a constraint of a table refuses a row."""
        ...

    def run(self, name: str, values: Mapping[str, Any] | Sequence[Any] = ..., /) -> Rows:
        """What the query of this name finds or does."""
        ...

    def run_text(self, text: str, values: Mapping[str, Any], /) -> Rows:
        """The same for the text of a named query, with the conditions of a filter in place."""
        ...

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order."""
        ...

    def expect(self, rows: int, /) -> None:
        """Prepare for about so many rows more, which the statements to come look for or write."""
        ...

    def attempt(self, why: Why, /) -> AbstractContextManager[None]:
        """A block whose refusal by a constraint `why` may explain.

        It is given a connection that can be asked and the refusal, and raises what says more, or returns.
        What the transaction had done by then it may find there or not.
        """
        ...


Why = Callable[[Connection, Exception], None]
"""Asks why a row was refused, and raises what says more than the refusal; see `Connection.attempt`."""


class Connections(Protocol):
    """Opens what is needed and keeps it. Every transaction ends with its `with` block."""

    gate: Gate
    """What calls run inside, so that none is under way when the process forks.

    Where the database asks for work to be done again, the gate does it, from its beginning.
    """
    location: str
    read_only: bool
    timeout: float
    acting: str
    """Who reads and writes, where that isn't the agent whose memories they are."""

    def reading(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A read transaction: everything read inside comes from one snapshot.

        A database that keeps agents apart shows the rows of `agent` alone, None for none of them; and those
        of a space only where `acting`, when it is given, is a member.
        """
        ...

    def writing(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A write transaction: committed at the end, or rolled back when the block raised.

        Those of one agent come one after another.
        """
        ...

    def note_purge(self, connection: Connection, what: Purged = "memories") -> None:
        """Note inside a purge's transaction what has to be erased after it, should nobody come to do it.

        It is of the agent that the transaction is about.
        """
        ...

    def erase(self) -> None:
        """Leave nothing of what was purged, as far as the database can; see the store's own promise."""
        ...

    def size(self) -> int:
        """How many bytes the store takes; 0 in memory."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def gated(kind: Kind) -> Kind:
    """Make each public method of a class run inside the gate of its `_connections`."""
    for name, method in getmembers(kind, isfunction):
        if not name.startswith("_"):
            setattr(kind, name, _gated(method))
    return kind


def _gated(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._connections.gate.run(partial(method, self, *args, **kwargs))

    return through


# Memories as rows of numbers, bytes and text, and rows as memories.

AGENT_SHIFT: Final = 40
"""A num is the agent's number shifted by this much, plus a change number of that agent's."""

_BETWEEN: Final = (1 << 44) + 0x9E3779B97F5
"""How far apart the ids of the rows of two versions are: no two memories are that many random bits apart."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_NOTHING: Mapping[str, Any] = MappingProxyType({})

_STATUS = {each.value: each for each in Status}
_TRUST = {each.value: each for each in Trust}
_STAGE: dict[str | None, Stage | None] = {None: None, **{each.value: each for each in Stage}}
_OUTCOME: dict[str | None, Outcome | None] = {None: None, **{each.value: each for each in Outcome}}

_memory = maker(
    Memory,
    *("agent", "id", "kind", "status", "scope", "subject", "importance", "confidence", "outcome", "trust"),
    *("source", "pinned", "created_at", "updated_at", "version", "content_hash"),
    *("seen_count", "access_count", "accessed_at", "superseded_by", "stage"),
    *("content", "renditions", "tags", "metadata"),
)


def span(agent: int, *, above: int = 0) -> dict[str, int]:
    """The placeholders for an agent's nums that were given after the change number `above`."""
    return {"agent": agent, "above": (agent << AGENT_SHIFT) + above, "below": (agent + 1) << AGENT_SHIFT}


def number_of(connection: Connection, agent: str) -> int:
    """The number of an agent; 0 for one that the store doesn't know."""
    row = connection.run("agent", {"name": agent}).fetchone()
    return AgentRow._make(row).agent if row else 0


def id_bytes(text: str, *, name: str = "id") -> bytes:
    """The 16 bytes of an id; raises InvalidInput when it isn't a UUID in its canonical form."""
    found = try_id_bytes(text)
    if found is None:
        raise InvalidInput(
            f"{name}={text!r} is no id. Ids are UUIDs in their canonical form: 36 characters, lower case, "
            "such as '0192f0c4-7e1a-7cc3-98c4-dc0c0c07398f'."
        )
    return found


def try_id_bytes(text: str) -> bytes | None:
    """The 16 bytes of an id, or None for what can't be the id of any memory."""
    return bytes.fromhex(text.replace("-", "")) if _CANONICAL.fullmatch(text) else None


def row_id(memory_id: str, version: int) -> bytes:
    """The id of the row of a version: for the first the memory's own, for each later one a greater one."""
    raw = id_bytes(memory_id)
    if version == 1:
        return raw
    number = int.from_bytes(raw, "big") + (version - 1) * _BETWEEN
    return (number % (1 << 128)).to_bytes(16, "big")


def former_ref(raw: bytes, former: bytes) -> str:
    """The name `id@n` of a former version of the memory `raw`, by the id of its row."""
    apart = (int.from_bytes(former, "big") - int.from_bytes(raw, "big")) % (1 << 128)
    version, rest = divmod(apart, _BETWEEN)
    # Rows of before had ids of any kind; such an id still names the memory.
    return id_text(former) if rest else f"{id_text(raw)}@{version + 1}"


def named(name: str) -> dict[str, Any]:
    """The placeholders `id` and `version` of what a caller names: `id` or `id@n`. Nothing has the id None."""
    memory_id, version = split_id(name)
    return {"id": try_id_bytes(memory_id), "version": version}


def stamp_of(agent: int, count: int) -> int:
    """A number for what was recorded of an agent so many times, 0 for nothing.

    An agent that is removed and begins again has another number, and no stamp in common with its former one.
    """
    return (agent << AGENT_SHIFT) + count if count else 0


def ref_of(chain: bytes, version: int, superseded_by: bytes | None) -> str:
    """What `Memory.ref` is of a row."""
    return id_text(chain) if superseded_by is None else f"{id_text(chain)}@{version}"


def microseconds(when: datetime, *, name: str) -> int:
    """Microseconds since 1970 in UTC, exactly; raises InvalidInput for a naive time."""
    if when.tzinfo is not UTC:
        when = as_utc(when, name=name)
    return (when - _EPOCH) // _MICROSECOND


def moment(number: int) -> datetime:
    """The time that `microseconds` gave the number for."""
    return _EPOCH + timedelta(0, 0, number)


def memory_row(memory: Memory, num: int, agent: int) -> MemoryRow:
    """The row of `memories` that keeps a memory. Raises InvalidInput for what no store accepts."""
    _check(memory)
    return MemoryRow(
        num=num,
        agent=agent,
        id=row_id(memory.id, memory.version),
        kind=memory.kind,
        status=memory.status.value,
        scope=memory.scope.name,
        scope_value=memory.scope.value,
        subject=memory.subject,
        importance=memory.importance,
        confidence=memory.confidence,
        outcome=memory.outcome and memory.outcome.value,
        trust=memory.trust.value,
        source=memory.source,
        pinned=int(memory.pinned),
        created_at=microseconds(memory.created_at, name="created_at"),
        updated_at=microseconds(memory.updated_at, name="updated_at"),
        chain=id_bytes(memory.id),
        version=memory.version,
        content_hash=memory.content_hash,
        seen_count=memory.seen_count,
        access_count=memory.access_count,
        accessed_at=microseconds(memory.accessed_at, name="accessed_at") if memory.accessed_at else None,
        supersedes=row_id(memory.id, memory.version - 1) if memory.version > 1 else None,
        superseded_by=_named_row(memory.superseded_by) if memory.superseded_by else None,
        stage=memory.stage and memory.stage.value,
    )


def texts_row(memory: Memory, num: int, agent: int) -> TextsRow:
    """The row of `texts` that keeps the wordings of a memory."""
    renditions = memory.renditions
    return TextsRow(
        num=num,
        agent=agent,
        content=memory.content,
        micro=renditions.micro.text,
        micro_tokens=renditions.micro.tokens,
        summary=renditions.summary.text,
        summary_tokens=renditions.summary.tokens,
        full_text=None if renditions.full.text == memory.content else renditions.full.text,
        full_tokens=renditions.full.tokens,
        counter=renditions.counter,
        tags=_in_json(memory.tags) if memory.tags else "[]",
        metadata=_json(memory.metadata),
    )


def memory_of(row: Sequence[Any], agent: str) -> Memory:
    """The memory of a row of the query `records` or one like it; the agent's name is not in the row."""
    return numbered_memory(row, agent)[1]


def numbered_memory(row: Sequence[Any], agent: str) -> tuple[int, Memory]:
    """The num and the memory of a row of the query `records` or one like it."""
    return row[_NUM], _memory((agent, *_of_memories(*_memories(row)), *_of_texts(*_texts(row))))


def _of_memories(  # noqa: PLR0917 - One for each column.
    kind: str,
    status: str,
    scope: str,
    scope_value: str,
    subject: str | None,
    importance: float,
    confidence: float,
    outcome: str | None,
    trust: str,
    source: str | None,
    pinned: int,
    created_at: int,
    updated_at: int,
    chain: bytes,
    version: int,
    content_hash: str,
    seen_count: int,
    access_count: int,
    accessed_at: int | None,
    successor: bytes | None,
    stage: str | None,
) -> tuple[Any, ...]:
    """What `_memory` takes of a row of `memories`, by the names of its columns."""
    memory_id = id_text(chain)
    after = successor and (f"{memory_id}@{version + 1}" if successor == chain else id_text(successor))
    return (
        memory_id,
        kind,
        _STATUS[status],
        Scope(name=scope, value=scope_value) if scope_value or scope != GLOBAL.name else GLOBAL,
        subject,
        importance,
        confidence,
        _OUTCOME[outcome],
        _TRUST[trust],
        source,
        bool(pinned),
        moment(created_at),
        moment(updated_at),
        version,
        content_hash,
        seen_count,
        access_count,
        None if accessed_at is None else moment(accessed_at),
        after,
        _STAGE[stage],
    )


def _of_texts(  # noqa: PLR0917 - As above.
    content: str,
    micro: str,
    micro_tokens: int,
    summary: str,
    summary_tokens: int,
    full_text: str | None,
    full_tokens: int,
    counter: str,
    tags: str,
    metadata: str,
) -> tuple[Any, ...]:
    """What `_memory` takes of a row of `texts`, by the names of its columns."""
    renditions = Renditions(
        micro=Rendition(text=micro, tokens=micro_tokens),
        summary=Rendition(text=summary, tokens=summary_tokens),
        full=Rendition(text=content if full_text is None else full_text, tokens=full_tokens),
        counter=counter,
    )
    return (
        content,
        renditions,
        tuple(json.loads(tags)) if tags != "[]" else (),
        MappingProxyType(json.loads(metadata)) if metadata != "{}" else _NOTHING,
    )


def _columns_for(reader: Callable[..., Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What picks from a row of `records` the columns that the parameters of a function are named after."""
    return itemgetter(*map(_RECORD.index, signature(reader).parameters))


# Made once: a search reads hundreds of rows.
_RECORD = (*RECORD, "successor")
_NUM = _RECORD.index("num")
_memories, _texts = _columns_for(_of_memories), _columns_for(_of_texts)


def _named_row(name: str) -> bytes:
    memory_id, version = split_id(name)
    return row_id(memory_id, version or 1)


def _check(memory: Memory) -> None:
    if not memory.content_hash:
        raise InvalidInput(
            f"Memory {memory.id!r} has no content_hash, by which the same memory is recognised. Give it one."
        )
    if not 0 <= memory.importance <= 10:  # noqa: PLR2004 - the axis of importance.
        raise InvalidInput(f"importance={memory.importance!r} is outside 0 to 10.")
    if not 0 <= memory.confidence <= 1:
        raise InvalidInput(f"confidence={memory.confidence!r} is outside 0 to 1.")
    if memory.version < 1:
        raise InvalidInput(f"Memory {memory.id!r} has version {memory.version}. Versions count from 1.")


def _json(metadata: Mapping[str, Any]) -> str:
    if not metadata:
        return "{}"
    try:
        return _in_json(_plain(metadata, "metadata"))
    except RecursionError as error:
        raise InvalidInput("metadata is nested too deeply, or holds itself. Make it flatter.") from error


def _plain(value: Any, path: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each, f"{path}[{key!r}]") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{path}[{index}]") for index, each in enumerate(value)]
    raise InvalidInput(
        f"{path}={value!r} can't be kept as JSON. Use text, finite numbers, true, false, None, lists, "
        "and mappings with text keys."
    )


# What no database keeps, whichever it is: half characters and numbers of more than 64 bits.

_AROUND: Final = 20


@contextmanager
def storable() -> Iterator[None]:
    """Raise InvalidInput for a text or a number that a driver couldn't even write down."""
    try:
        yield
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - _AROUND) : error.start + _AROUND]
        raise InvalidInput(
            f"The text {around!r} holds a lone surrogate (U+{ord(error.object[error.start]):04X}), "
            "which is half a character and can't be written as UTF-8. "
            "Decode the text with errors='replace' before it is remembered."
        ) from error
    except OverflowError as error:
        raise InvalidInput(f"A number is too large to be stored ({error}); the limit is 64 bits.") from error
