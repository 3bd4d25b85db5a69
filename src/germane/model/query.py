"""Requests to a store and their results: filters, queries and candidates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.memory import Memory, Outcome, Scope, Status, Vector
from germane.model.validation import checked_fields

if TYPE_CHECKING:
    from germane.model.conditions import Condition

LEAST_COSINE = 0.18
"""The cosine below which likeness may be chance, for an embedder without a `least_cosine` of its own."""

_SHORT_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingIdentity:
    """Which model made the vectors of a store; vectors of two models can't be compared."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions)"


class Order(StrEnum):
    """The order of memories that no question ranks; ties fall to the newer id, so it is total."""

    NEWEST = "newest"  # Latest created first.
    OLDEST = "oldest"  # In order of creation, as an export needs it.
    IMPORTANT = "important"  # Most important first, then newest.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class TimeRange:
    """From `since` (inclusive) until `until` (exclusive), both aware; None leaves an end open.

    A text such as "last week", "yesterday" or "2026-03" stands for the moment at which what it names begins;
    the engine resolves it by its clock. Raises InvalidInput for a range that is empty.
    """

    since: datetime | str | None = None
    until: datetime | str | None = None

    def __post_init__(self) -> None:
        since, until = self.since, self.until
        if isinstance(since, datetime) and isinstance(until, datetime) and since >= until:
            raise InvalidInput(
                f"The time range from {since.isoformat()} until {until.isoformat()} is empty: "
                "until must come after since."
            )

    @property
    def start(self) -> datetime | None:
        """The first moment, or None. Raises InvalidInput for a text, which only an engine can read."""
        return _read_end(self.since, name="since")

    @property
    def end(self) -> datetime | None:
        """The first moment after it, or None. Raises InvalidInput for a text."""
        return _read_end(self.until, name="until")

    @property
    def in_words(self) -> bool:
        """Whether an end is a text that is still to be read."""
        return isinstance(self.since, str) or isinstance(self.until, str)

    def __contains__(self, moment: datetime) -> bool:
        start, end = self.start, self.end
        return (start is None or start <= moment) and (end is None or moment < end)

    def __str__(self) -> str:
        since = f"from {_in_words(self.since)}" if self.since else ""
        until = f"before {_in_words(self.until)}" if self.until else ""
        return " and ".join(filter(None, [since, until])) or "any time"


def _read_end(end: datetime | str | None, *, name: str) -> datetime | None:
    if isinstance(end, str):
        raise InvalidInput(
            f"{name}={end!r} is a text, which only an engine can read, by its clock. Pass it to a verb of "
            "the engine, or give a datetime."
        )
    return end


def _in_words(end: datetime | str) -> str:
    return end if isinstance(end, str) else end.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(min_importance=(0, 10))
class Filter:
    """Which memories may be found. An empty tuple or None doesn't restrict.

    A field of several values takes any sequence, and a scope, status or outcome may be given as
    its text; raises InvalidInput for what is none, and for a value of another type.

    `tags` match by hierarchy: the filter `a:b` finds the tag `a:b:c`; a memory passes with any of
    them. `scopes` match exactly. `when` restricts `created_at`. `statuses` is what lifecycle allows,
    `without` leaves out what turned out in one of these ways.
    `metadata` asks for fields with these very values: texts, numbers, True, False or None; it is stored as
    pairs of a name and the value in JSON.
    `session` asks for the session in which a memory was learned, `key` for the current memory of that key,
    `short_id` for those whose ids end with these eight hexadecimal digits.
    `embedded` False admits what waits for a vector, True what doesn't. `applies_to` asks where a memory
    stands: in one of these scopes by its own, by the `scopes` in its metadata, or, for the scope
    `path:FILE`, by a path scope or `paths` in its metadata that cover the file (see `germane.scopes`).
    `where` is a condition on metadata and other fields: one of `germane.filters`, its text such as
    'team = "core" and score >= 3', or its JSON form. It is stored as the condition.
    `expires_by` asks for what will have expired by that time. `valid_at` asks for what holds at a moment, or
    at any time of a range, by its `valid_from` and `valid_until`; a text stands for a moment, as in `when`.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ()
    subject: str | None = None
    source: str | None = None
    session: str | None = None
    key: str | None = None
    short_id: str | None = None
    metadata: Mapping[str, str | float | bool | None] | tuple[tuple[str, str], ...] | None = ()
    when: TimeRange | None = None
    min_importance: float | None = None
    pinned: bool | None = None
    embedded: bool | None = None
    expires_by: datetime | None = None
    valid_at: datetime | TimeRange | str | None = None
    applies_to: tuple[Scope, ...] = ()
    statuses: tuple[Status, ...] = (Status.ACTIVE,)
    without: tuple[Outcome, ...] = ()
    where: Condition | str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", _fields(self.metadata) if self.metadata else ())
        if self.short_id is not None and not _SHORT_ID.fullmatch(self.short_id):
            raise InvalidInput(
                f"short_id={self.short_id!r} isn't the end of an id: give its last eight hexadecimal digits, "
                "such as '1a2b3c4d'."
            )
        if self.where is not None:
            from germane.model.condition_texts import read_condition  # noqa: PLC0415 - Few filters have one.

            object.__setattr__(self, "where", read_condition(self.where))

    @classmethod
    def of(cls, given: Filter | str | Mapping[str, Any] | None) -> Filter:
        """The filter, or one by the text or JSON form of a condition; None admits active memories."""
        if isinstance(given, Filter):
            return given
        return cls() if given is None else cls(where=given)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What `metadata` and `where` ask for, as conditions that all have to be true."""
        if self.where is None and not self.metadata:
            return ()
        from germane.model.conditions import Comparison, Condition  # noqa: PLC0415 - As above.

        fields: Any = self.metadata or ()
        equal = (Comparison(json.dumps(name), "=", json.loads(value)) for name, value in fields)
        return (*equal, *((self.where,) if isinstance(self.where, Condition) else ()))

    @property
    def whenever(self) -> Filter:
        """The same filter without its time range: it still says whose memories these are, and which."""
        return self if self.when is None else replace(self, when=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a search with a limit of its own: the best `limit` memories of these kinds.

    `kinds` empty means every kind that the filter admits. `order` None asks for the best by
    relevance (`limit` of each signal, united); an order asks for the first by that order whatever
    the question is, which is how always-present sections are gathered in the same round trip.
    `where` replaces the query's filter for this slice, and `also` is a second filter that has to admit
    each memory as well: what is always present passes the caller's filter without its time range, and
    what a section of a plan asks for by itself.
    """

    kinds: tuple[str, ...] = ()
    limit: int = 200
    order: Order | None = None
    where: Filter | None = None
    also: Filter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(information=(0, inf), least_cosine=(-1, 1), named_share=(0, 1))
class Query:
    """One search. `terms` are the question's index terms, `vector` its embedding (unit length).

    `informative` are those terms that say what it is about, the date that it names left out; with
    them each candidate gets the signal `coverage`. `information` is what these terms say together, in
    nats, by their frequencies in English: times its coverage, what a memory shares with the question.
    0 says that it isn't known. A memory that holds an identifier of `text` verbatim has a coverage of at
    least `named_share`. `least_cosine` is what tells a text of the same matter from chance.
    With neither, slices that ask for relevance fall to Order.NEWEST and the result says so.
    `language` is the one that the terms were made by; a store that knows the agent's language refuses
    terms of another. None asks for no such check. What has expired by `now` isn't found, and counts only as
    stored; None finds it. `deferred` allows the store to leave memories unread until more of them is needed
    than ranking needs of most (see `UnreadMemory`); reading them then sees what has changed since, and raises
    NotFound for what was purged.
    """

    text: str = ""
    terms: tuple[str, ...] = ()
    informative: tuple[str, ...] = ()
    vector: Vector | None = field(default=None, compare=False)
    filter: Filter = field(default_factory=Filter)
    slices: tuple[Slice, ...] = (Slice(),)
    language: str | None = None
    information: float = 0.0
    named_share: float = 0.0
    least_cosine: float = LEAST_COSINE
    now: datetime | None = field(default=None, compare=False)
    deferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory with the raw signals that gathering found.

    `signals` may hold `lexical` (BM25, unbounded) and `semantic` (cosine, -1 to 1), and for a memory
    of a session, a turn of dialogue, the same of the turns around it: `window_lexical` and
    `window_semantic`. `coverage` is the share, from 0 to 1, of the question's information that stands
    in the memory, by frequencies of English and not of the store. A signal that the search did not
    compute for this memory is absent, which is not the same as zero.
    """

    memory: Memory
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningStatus:
    """Whether an agent learns; `stamp` moves whenever its examples do, so that weights can be cached."""

    on: bool
    stamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What one search found: per slice the candidates, each once, in the order of their ids.

    A slice equals a tuple of its candidates, which may be made when they are first looked at.
    `lexical_bound` is 0.95 times the summed idf of the distinct query terms, the floor that keeps
    a weak best match from passing as a perfect one; `window_bound` is the same for the windows of
    dialogue. `stored` counts the agent's memories before,
    `admitted` after the filter, so that an empty result can say why. `failed` holds, by the place of a
    slice, the error of one that could not be searched while others were; a store leaves it empty.
    `learning` is how the agent's learning stood, where the store tells it, and `stamp` how far its memories
    had come: equal stamps, equal memories. `term_weights` are the inverse document frequencies of the query's
    terms by their hashes, and `average_terms` is how many terms a memory has, where the store tells them.
    `converses` is False where the store says that the agent has no conversation.
    `expiring` says whether any memory of the agent expires at any time.
    """

    slices: tuple[Sequence[Candidate], ...]
    lexical_bound: float = 0.0
    window_bound: float = 0.0
    stored: int = 0
    admitted: int = 0
    by_relevance: bool = True
    failed: Mapping[int, Exception] = field(default_factory=dict, compare=False)
    learning: LearningStatus | None = field(default=None, compare=False)
    stamp: tuple[int, ...] | None = field(default=None, compare=False)
    term_weights: Mapping[int, float] = field(default_factory=dict, compare=False)
    average_terms: float = field(default=1.0, compare=False)
    converses: bool = field(default=True, compare=False)
    expiring: bool = field(default=False, compare=False)


def _fields(given: Any) -> tuple[tuple[str, str], ...]:
    """Pairs in which 1 and True differ, as they do in JSON; from a mapping, or from such pairs."""
    try:
        metadata = given if isinstance(given, Mapping) else {name: json.loads(text) for name, text in given}
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"metadata={given!r} is no mapping of names to values; pass one such as {{'ticket': 'T-1'}}."
        ) from error
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | None):
            raise InvalidInput(
                f"metadata {name!r}: {value!r} can't be a filter. "
                "Ask for a text, a number, True, False or None."
            )
        if isinstance(value, int | float) and not -float_info.max <= value <= float_info.max:
            raise InvalidInput(f"metadata {name!r}: {value!r} is no number that is ever stored.")
    return tuple(sorted((name, json.dumps(value, ensure_ascii=False)) for name, value in metadata.items()))


# A sequence whose elements are made when they are read.
#
# Pure: the same element is made each time.

T = TypeVar("T")


class Deferred(Sequence[T]):
    """As long as `count`, with `make(place)` at each place; equal to any sequence of the same elements.

    An account of ten thousand candidates is mostly never read, and costs more to write than the
    context that it accounts for. Copied or pickled, it becomes a tuple.
    """

    __slots__ = ("_count", "_make")

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        places = range(self._count)[index]
        return self._make(places) if isinstance(places, int) else tuple(map(self._make, places))

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(self._count))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Deferred):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[T, ...]], tuple[tuple[T, ...]]]:
        return tuple, (tuple(self),)


# Memories of a search whose records are read when ranking has chosen among them.


class Reading(NamedTuple):
    """Reads what a search left unread, by its numbers: whole memories, or only their contents and subjects.

    Both raise NotFound for a memory that is gone.
    """

    records: Callable[[Sequence[int]], Mapping[int, Memory]]
    texts: Callable[[Sequence[int]], Mapping[int, tuple[str, str | None]]]


class UnreadRecords:
    """The records that a search left unread, each with a number of the store's own."""

    __slots__ = ("_numbers", "_records", "reading")

    def __init__(self, numbers: Sequence[int], reading: Reading) -> None:
        self._numbers, self.reading = numbers, reading
        self._records: dict[int, Memory] = {}

    def of(self, number: int) -> Memory:
        """The memory of one number; if it is unread, all are read, by one query."""
        if number not in self._records:
            self.read(self._numbers)
        return self._records[number]

    def read(self, numbers: Sequence[int]) -> None:
        """Read those of these numbers that are unread, by one query."""
        missing = [number for number in numbers if number not in self._records]
        if missing:
            self._records.update(self.reading.records(missing))


class UnreadMemory:
    """Stands for a memory whose record is unread; any field that isn't here reads it, and all of its search.

    It is the first and current version of the memory, active and without a validity: a store reads the
    records of all others at once. `digest` is the `text_digest` of its full rendition where that is long, and
    None for a short one. `withdrawn` says whether the status in its metadata withdraws it.
    """

    __slots__ = ("digest", "kind", "number", "records", "withdrawn")

    def __init__(self, records: UnreadRecords, number: int, kind: str, digest: str | None = None) -> None:
        self.records, self.number, self.kind, self.digest = records, number, kind, digest
        self.withdrawn = False

    status: ClassVar = Status.ACTIVE
    superseded_by: ClassVar = None
    version: ClassVar = 1
    is_dated: ClassVar = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.records.of(self.number), name)


def is_unread(memory: object) -> TypeGuard[UnreadMemory]:
    """Whether it stands for a memory whose record is unread."""
    return isinstance(memory, UnreadMemory)


def read_memories(memories: Sequence[Memory]) -> list[Memory]:
    """The memories themselves, those that are unread read by one query for each search that found them."""
    for records in {id(one.records): one.records for one in memories if is_unread(one)}.values():
        records.read([one.number for one in memories if is_unread(one) and one.records is records])
    return [one.records.of(one.number) if is_unread(one) else one for one in memories]


def texts_of(memories: Sequence[Memory]) -> list[tuple[str, str | None]]:
    """The content and the subject of each memory; of unread ones, only these two are read."""
    read: dict[int, Mapping[int, tuple[str, str | None]]] = {}
    for records in {id(one.records): one.records for one in memories if is_unread(one)}.values():
        numbers = [one.number for one in memories if is_unread(one) and one.records is records]
        read[id(records)] = records.reading.texts(numbers)
    return [
        read[id(one.records)][one.number] if is_unread(one) else (one.content, one.subject)
        for one in memories
    ]


# Candidates whose signals are columns of numbers, so that hundreds can be judged without an object for each.
#
# Pure: the same candidates are made each time.


class CandidateTable(Deferred[Candidate]):
    """A sequence of candidates, each made when it is read, and all by an iteration.

    `memories` are theirs, some perhaps unread, and `made` the candidates themselves if they were made before.
    `signals` has a column for each signal, where NaN stands for a memory that doesn't have it.
    """

    __slots__ = ("made", "memories", "signals")

    def __init__(
        self,
        memories: Sequence[Memory],
        signals: Mapping[str, NDArray[np.float64]],
        *,
        made: Sequence[Candidate] | None = None,
    ) -> None:
        super().__init__(
            len(memories), partial(_candidate, memories, signals) if made is None else made.__getitem__
        )
        self.memories, self.signals, self.made = memories, signals, made

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> CandidateTable:
        """The same candidates with their signals in columns.

        A signal that is no number stands there as infinite: it is there, and it can't be ranked.
        """
        if isinstance(candidates, CandidateTable):
            return candidates
        names = dict.fromkeys(name for one in candidates for name in one.signals)
        columns = {name: [one.signals.get(name) for one in candidates] for name in names}
        signals = {name: np.array(column, dtype=np.float64) for name, column in columns.items()}
        for name, column in columns.items():
            given = np.array([value is not None for value in column], dtype=np.bool_)
            signals[name][given & np.isnan(signals[name])] = np.inf
        return cls([one.memory for one in candidates], signals, made=tuple(candidates))

    @classmethod
    def joined(cls, tables: Sequence[CandidateTable]) -> CandidateTable:
        """The candidates of all tables, one table after the other."""
        if len(tables) == 1:
            return tables[0]
        names = dict.fromkeys(name for table in tables for name in table.signals)
        return cls(
            [memory for table in tables for memory in table.memories],
            {name: np.concatenate([table.column(name) for table in tables]) for name in names},
        )

    @classmethod
    def united(cls, several: Sequence[Sequence[Candidate]]) -> CandidateTable:
        """The candidates of all sequences, each memory once, in the order of their ids."""
        table = cls.joined([cls.of(candidates) for candidates in several])
        place_of = {memory.ref: place for place, memory in enumerate(table.memories)}
        return table.at([place_of[ref] for ref in sorted(place_of)])

    def column(self, name: str) -> NDArray[np.float64]:
        """The values of a signal; NaN where a candidate doesn't have it."""
        found = self.signals.get(name)
        return np.full(len(self), np.nan) if found is None else found

    def at(self, places: Sequence[int]) -> CandidateTable:
        """The candidates at these places, in the order in which they are named."""
        chosen, made = np.array(places, dtype=np.int64), self.made
        return CandidateTable(
            [self.memories[place] for place in places],
            {name: column[chosen] for name, column in self.signals.items()},
            made=None if made is None else Deferred(len(places), lambda number: made[places[number]]),
        )

    def __iter__(self) -> Iterator[Candidate]:
        if self.made is None:
            found: list[dict[str, float]] = [{} for _ in self.memories]
            for name, column in self.signals.items():
                for each, value in zip(found, column.tolist(), strict=True):
                    # NaN is not itself.
                    if value == value:  # noqa: PLR0124 - the fastest test for NaN in a loop over hundreds.
                        each[name] = value
            pairs = zip(read_memories(self.memories), found, strict=True)
            self.made = tuple([Candidate(memory=one, signals=signals) for one, signals in pairs])
        return iter(self.made)


def _candidate(
    memories: Sequence[Memory], signals: Mapping[str, NDArray[np.float64]], place: int
) -> Candidate:
    values = {name: column.item(place) for name, column in signals.items()}
    present = {name: value for name, value in values.items() if not math.isnan(value)}
    (memory,) = read_memories([memories[place]])
    return Candidate(memory=memory, signals=present)


# One result of a search of several indexes: an agent's and its spaces', or memories and messages.


def joined_results(found: Sequence[SearchResult]) -> SearchResult:
    """One result of several indexes, each's words in units of what a full match is worth there."""
    if len(found) == 1:
        return found[0]
    most = max(found, key=lambda one: one.stored)
    return replace(spaces_united(found), term_weights=most.term_weights, average_terms=most.average_terms)


def spaces_united(found: Sequence[SearchResult]) -> SearchResult:
    """One result of several, its words' signals in units of what a full match is worth in each of them.

    The stamp is that of the first, the agent's own.
    """
    scaled = [_scaled(one) for one in found]
    return SearchResult(
        slices=tuple(_each_once(parts) for parts in zip(*(one.slices for one in scaled), strict=True)),
        lexical_bound=max(one.lexical_bound for one in scaled),
        window_bound=max(one.window_bound for one in scaled),
        stored=sum(one.stored for one in found),
        admitted=sum(one.admitted for one in found),
        by_relevance=all(one.by_relevance for one in scaled),
        failed={place: error for one in reversed(found) for place, error in one.failed.items()},
        stamp=found[0].stamp,
        term_weights=found[0].term_weights,
        average_terms=found[0].average_terms,
        converses=any(one.converses for one in found),
    )


def _scaled(found: SearchResult) -> SearchResult:
    # Where no word of the question is known there is no signal of words to scale.
    units = {"lexical": found.lexical_bound or 1.0, "window_lexical": found.window_bound or 1.0}

    def scaled(table: CandidateTable) -> CandidateTable:
        signals = {name: column / units.get(name, 1.0) for name, column in table.signals.items()}
        return CandidateTable(table.memories, signals)

    return replace(
        found,
        slices=tuple(scaled(CandidateTable.of(candidates)) for candidates in found.slices),
        lexical_bound=1.0 if found.lexical_bound else 0.0,
        window_bound=1.0 if found.window_bound else 0.0,
    )


def _each_once(parts: Sequence[Sequence[Candidate]]) -> CandidateTable:
    """The candidates of all, in the order of their ids, a memory that several have from the first of them."""
    table = CandidateTable.united(parts)
    memories = [memory for part in parts for memory in CandidateTable.of(part).memories]
    owners: dict[str, str] = {}
    for memory in memories:
        owners.setdefault(memory.content_hash, memory.agent)
    return table.at(
        [place for place, one in enumerate(table.memories) if owners[one.content_hash] == one.agent]
    )
