"""Tables of any database: named queries inside transactions, and memories as rows.

Each database brings its own; everything else here is the same for all.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial, wraps
from inspect import getmembers, isfunction
from math import isfinite
from operator import attrgetter, itemgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar, get_args, get_origin, get_type_hints

from germane.errors import InvalidInput, StoreUnavailable
from germane.forks import Gate
from germane.ids import id_text
from germane.model.memory import GLOBAL, Memory, Rendition, Renditions, Scope, maker, split_id
from germane.model.query import EmbeddingIdentity, LearningStatus
from germane.model.validation import as_utc
from germane.stores.relational.checksums import CHECKED, REPAIR, checksum_of, wrong_checksum
from germane.stores.sql import memory_columns

Kind = TypeVar("Kind", bound=type)

Dialect = Literal["sqlite", "postgres"]

Purged = Literal["memories", "conversations", "ledger", "agent"]
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
    doesn't need an answer is run without looking at any, and what can be queried together before the first
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

        It is given an open connection and the refusal, and raises what says more, or returns.
        What the transaction had done by then it may find there or not.
        """
        ...


Why = Callable[[Connection, Exception], None]
"""Asks why a row was refused, and raises what says more than the refusal; see `Connection.attempt`."""


POOL_SIZE: Final = 10
"""How many connections a process may have to a store by default."""


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

    @property
    def connected(self) -> Callable[[], tuple[int, int | None]]:
        """How many connections are open, and the most that there may be; None where nothing limits them."""

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


class SharedConnections:
    """The connections of a store, as something uses them that doesn't own them."""

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self.gate, self.location = shared.gate, shared.location
        self.read_only, self.timeout, self.acting = shared.read_only, shared.timeout, shared.acting
        self.note_purge, self.erase = shared.note_purge, shared.erase
        self.size, self.connected = shared.size, shared.connected


class LeasedConnections(SharedConnections):
    """The connections of a store that several users in a process share, for one of them.

    Closing them ends only this user's access, and calls `release` once; `collected` is called instead where
    nobody closes them.
    """

    def __init__(
        self, shared: Connections, release: Callable[[], None], collected: Callable[[], None]
    ) -> None:
        super().__init__(shared)
        self._release: Callable[[], None] | None = release
        self._collected = weakref.finalize(self, collected)
        self._collected.atexit = False

    def reading(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A read transaction, as the shared connections begin it. Raises StoreUnavailable when closed."""
        self._check_open()
        return self._shared.reading(agent, acting=acting)

    def writing(
        self, agent: str | None = None, *, acting: str | None = None
    ) -> AbstractContextManager[Connection]:
        """A write transaction, as the shared connections begin it. Raises StoreUnavailable when closed."""
        self._check_open()
        return self._shared.writing(agent, acting=acting)

    def close(self) -> None:
        """End this access. Closing twice is fine."""
        release, self._release = self._release, None
        if release is not None:
            self._collected.detach()
            release()

    def _check_open(self) -> None:
        if self._release is None:
            raise StoreUnavailable(f"The store {self.location} is closed. Open it again.")


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


def span(agent: int, *, above: int = 0) -> dict[str, int]:
    """The placeholders for an agent's nums that were given after the change number `above`."""
    return {"agent": agent, "above": (agent << AGENT_SHIFT) + above, "below": (agent + 1) << AGENT_SHIFT}


class AgentRow(NamedTuple):
    """What the query `agent` finds: an agent's numbers, and the settings that a process has to agree with.

    The numbers of an agent that the store doesn't know are 0.
    """

    agent: int = 0
    seq: int = 0
    language: str | None = None
    judged: int = 0
    attested: int = 0
    lived: int = 0
    learning: int = 0
    tokenizer: str = ""
    embedding_name: str | None = None
    embedding_dimension: str | None = None
    converses: int = 0
    memories: int = 0

    @property
    def embedding(self) -> EmbeddingIdentity | None:
        """The model of the store's vectors."""
        if not (self.embedding_name and self.embedding_dimension):
            return None
        return EmbeddingIdentity(name=self.embedding_name, dimension=int(self.embedding_dimension))

    @property
    def learning_status(self) -> LearningStatus:
        """Whether the agent learns, and a number for what it has learned from."""
        return LearningStatus(on=bool(self.learning), stamp=stamp_of(self.agent, self.judged))

    @property
    def stamp(self) -> tuple[int, ...]:
        """Numbers that are equal where the agent's memories are; none for an unknown agent."""
        numbers = (self.agent, self.seq, self.judged, self.attested, self.lived, self.learning)
        return numbers if self.agent else ()


def checked_limit(limit: int | None) -> int:
    """How many rows to read at most, -1 for all. Raises InvalidInput for a negative limit."""
    if limit is not None and limit < 0:
        raise InvalidInput(f"limit={limit} is negative. Use 0 or more, or None for all.")
    return -1 if limit is None else limit


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


def placeholder(dialect: Dialect, name: str) -> str:
    """A named placeholder as the driver of a database takes it."""
    return f":{name}" if dialect == "sqlite" else f"%({name})s"


def microseconds(when: datetime, *, name: str) -> int:
    """Microseconds since 1970 in UTC, exactly; raises InvalidInput for a naive time."""
    if when.tzinfo is not UTC:
        when = as_utc(when, name=name)
    return (when - _EPOCH) // _MICROSECOND


def moment(number: int) -> datetime:
    """The time that `microseconds` gave the number for; raises StoreUnavailable where damage changed it."""
    try:
        return _read_moment(number)
    except OverflowError as error:
        raise damaged("A time", error, REPAIR) from error


def memory_values(memory: Memory, num: int, agent: int) -> dict[str, Any]:
    """The values of a memory's columns in `memories` and `texts`, by name.

    Raises InvalidInput for what no store accepts.
    """
    _check(memory)
    renditions = memory.renditions
    values = {
        "num": num,
        "agent": agent,
        "id": row_id(memory.id, memory.version),
        "chain": id_bytes(memory.id),
        "supersedes": row_id(memory.id, memory.version - 1) if memory.version > 1 else None,
        "superseded_by": _named_row(memory.superseded_by) if memory.superseded_by else None,
        "scope": memory.scope.name,
        "scope_value": memory.scope.value,
        "micro": renditions.micro.text,
        "micro_tokens": renditions.micro.tokens,
        "summary": renditions.summary.text,
        "summary_tokens": renditions.summary.tokens,
        "full_text": None if renditions.full.text == memory.content else renditions.full.text,
        "full_tokens": renditions.full.tokens,
        "counter": renditions.counter,
    }
    values.update(zip(_ALIKE, _values_alike(memory), strict=True))
    for name, write in _WRITES.items():
        if (value := values[name]) is not None:
            values[name] = write(value, name)
    values["checksum"] = checksum_of(_checked_values(values))
    return values


def numbered_memory(row: Sequence[Any], agent: str) -> tuple[int, Memory]:
    """The num and the memory of a row of the query `records` or one like it."""
    num, chain, version, successor, scope, scope_value, checksum = _named(row)
    content, full_text, full_tokens, micro, micro_tokens, summary, summary_tokens, counter = _texts_of(row)
    memory_id = id_text(chain)
    after = successor and (f"{memory_id}@{version + 1}" if successor == chain else id_text(successor))
    place = Scope(name=scope, value=scope_value) if scope_value or scope != GLOBAL.name else GLOBAL
    full = Rendition(text=content if full_text is None else full_text, tokens=full_tokens)
    # Most texts are short enough to be their own summary.
    alike = summary_tokens == full_tokens and summary == full.text
    renditions = Renditions(
        micro=Rendition(text=micro, tokens=micro_tokens),
        summary=full if alike else Rendition(text=summary, tokens=summary_tokens),
        full=full,
        counter=counter,
    )
    values = list(_columns_alike(row))
    for at, read in _READS:
        if values[at] is None:
            continue
        try:
            values[at] = read(values[at])
        except UNREADABLE as error:
            remedy = f"purge the memory (`germane memory purge {memory_id} --yes`)"
            raise damaged(f"The {_ALIKE[at]} of memory {memory_id!r}", error, remedy) from error
    if checksum is not None and checksum != checksum_of(_checked_columns(row)):
        raise damaged(f"Memory {memory_id!r}", wrong_checksum(), REPAIR)
    return num, _memory((agent, memory_id, after, place, renditions, *values))


UNREADABLE: Final = (KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""What reading a stored value raises that isn't what germane wrote."""


def damaged(what: str, error: Exception, remedy: str = "") -> StoreUnavailable:
    """What to raise for such an error; `remedy` is what may be done beside restoring the store."""
    return StoreUnavailable(
        f"{what} can't be read ({type(error).__name__}: {error}): the store is damaged, or another program "
        f"changed it. Restore the store from a backup{remedy and f', or {remedy}'}."
    )


def _forms(hint: Any) -> tuple[Callable[[Any, str], Any] | None, Callable[[Any], Any] | None]:
    """How a value of a field of this type is written to its column and read from it; None for as it is."""
    optional = NoneType in get_args(hint)
    kind = get_args(hint)[0] if optional else get_origin(hint) or hint
    if kind is datetime:
        return _write_moment, _read_moment
    if kind is bool:
        return _write_flag, bool
    if issubclass(kind, StrEnum):
        return _write_word, {each.value: each for each in kind}.__getitem__
    if kind is float:
        return _write_float, None
    if kind is Mapping:
        return _write_object, _object
    return (_write_texts, _texts) if kind is tuple else (None, None)


def _read_moment(number: int) -> datetime:
    return _EPOCH + timedelta(0, 0, number)


def _write_moment(value: datetime, name: str) -> int:
    return microseconds(value, name=name)


def _write_flag(value: bool, _: str) -> int:
    return int(value)


def _write_float(value: float, _: str) -> float:
    """A whole number and -0.0 as they are read again, so that their checksum is the same."""
    return value + 0.0


def _write_word(value: StrEnum, _: str) -> str:
    return value.value


def _write_texts(value: tuple[str, ...], _: str) -> str:
    return _in_json(value) if value else "[]"


def _texts(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text != "[]" else ()


def _write_object(value: Mapping[str, Any], name: str) -> str:
    if not value:
        return "{}"
    try:
        return _in_json(_plain(value, name))
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deeply, or holds itself. Make it flatter.") from error


def _object(text: str) -> Mapping[str, Any]:
    return MappingProxyType(json.loads(text)) if text != "{}" else _NOTHING


def _picker(*names: str) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What picks the columns of these names from a row of `records`."""
    record = (*memory_columns(), "successor")
    return itemgetter(*map(record.index, names))


# The fields that are columns of the same name, and those of another form. Made once: a search reads hundreds
# of rows.
_OTHER: Final = ("agent", "id", "superseded_by", "scope", "renditions")
_HINTS: Final = {name: hint for name, hint in get_type_hints(Memory).items() if name not in _OTHER}
_ALIKE: Final = tuple(_HINTS)
_memory: Final = maker(Memory, *_OTHER, *_ALIKE)

_WRITES: Final = {name: write for name, hint in _HINTS.items() if (write := _forms(hint)[0])}
_READS: Final = tuple((at, read) for at, name in enumerate(_ALIKE) if (read := _forms(_HINTS[name])[1]))
_columns_alike: Final = _picker(*_ALIKE)
_values_alike: Final = attrgetter(*_ALIKE)
_checked_values: Final = itemgetter(*CHECKED)
_checked_columns: Final = _picker(*CHECKED)
_named: Final = _picker("num", "chain", "version", "successor", "scope", "scope_value", "checksum")
_texts_of: Final = _picker(
    *("content", "full_text", "full_tokens", "micro", "micro_tokens", "summary", "summary_tokens", "counter")
)


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
        f"{path}={value!r} can't be stored as JSON. Use text, finite numbers, true, false, None, lists, "
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
