"""The signals of a search, the columns they are computed from, and filters as conditions in SQL.

Over the arrays of one agent's cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.memory import Status
from germane.model.query import Filter, Order, Query, TimeRange
from germane.retrieval.bm25 import UNIT, Postings, Scores, TermPostings
from germane.retrieval.quality import shares_of
from germane.retrieval.tokenizer import term_hash
from germane.retrieval.windows import Sessions
from germane.scopes import covers
from germane.stores.relational.tables import (
    Connection,
    Dialect,
    microseconds,
    placeholder,
)
from germane.stores.sql import queries


class Cosines(Protocol):
    """The cosines of a question with an agent's memories, by ordinal, as retrieval's `Compared` has them."""

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]: ...

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]: ...

    def rough(self, count: int) -> NDArray[np.float64]: ...

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]: ...


class Signal(Protocol):
    """One signal of a search. A value of NaN says that a memory doesn't have it."""

    @property
    def name(self) -> str: ...

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Admitted ordinals and their values: at least the best `limit`, where there are so many."""
        ...

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value of each of these ordinals."""
        ...


class Lexical:
    """BM25, of memories or of windows. `members` restricts it to those that have the signal."""

    def __init__(self, name: str, scores: Scores, members: NDArray[np.bool_] | None = None) -> None:
        self.name = name
        self._scores = scores
        self._members = members

    def nearest(
        self,
        admitted: NDArray[np.bool_],
        limit: int,  # noqa: ARG002 - What shares a term is given whole; choosing costs as much here as later.
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted memories that share a term with the question, with their scores."""
        mask = admitted if self._members is None else admitted & self._members
        selected = mask[self._scores.ordinals]
        return self._scores.ordinals[selected], self._scores.scores[selected] / UNIT

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score of each, 0.0 for one that shares no term with the question."""
        found = np.zeros(len(ordinals))
        having = self._scores.ordinals
        if len(having):
            places = np.searchsorted(having, ordinals)
            places[places == len(having)] = 0
            present = having[places] == ordinals
            found[present] = self._scores.scores[places[present]] / UNIT
        if self._members is not None:
            found[~self._members[ordinals]] = np.nan
        return found


class Coverage:
    """The share of the question's information that stands in a memory. It judges and finds nothing."""

    name = "coverage"

    def __init__(
        self,
        shares: NDArray[np.float64],
        postings: TermPostings,
        count: int,
    ) -> None:
        """`shares` has one number for each term's postings; `count` is the number of ordinals."""
        covered = np.bincount(postings.ordinals, shares[postings.terms], minlength=count)
        # Without any posting numpy counts in integers.
        self._covered = covered.astype(np.float64, copy=False)

    def nearest(
        self,
        admitted: NDArray[np.bool_],  # noqa: ARG002 - It finds nothing by itself.
        limit: int,  # noqa: ARG002 - As above.
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Nothing: what shares a term is found by the lexical signal."""
        return np.empty(0, dtype=np.int64), np.empty(0)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of each, from 0 to 1."""
        return self._covered[ordinals]


class Semantic:
    """The cosine of a memory's own vector with the question's."""

    name = "semantic"

    def __init__(self, compared: Cosines) -> None:
        self._compared = compared

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest admitted memories, with their cosines."""
        near = self._compared.nearest(admitted, limit)
        return near, self._compared.cosines(near)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each."""
        return self._compared.cosines(ordinals)


class WindowSemantic:
    """The cosine of the question's vector with the summed vectors of a turn's window."""

    name = "window_semantic"

    def __init__(self, compared: Cosines, sessions: Sessions, members: NDArray[np.bool_]) -> None:
        self._compared = compared
        self._sessions = sessions
        self._members = members
        self._rough = sessions.smoothed(compared.rough(len(members)))

    def nearest(
        self, admitted: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted turns whose windows are nearest, with their cosines.

        The mean of a window's cosines chooses, with a margin for what it leaves out and for the
        rounding of its sums; the exact cosine ranks.
        """
        selected = np.flatnonzero(admitted & self._members & ~np.isnan(self._rough))
        if len(selected) > 2 * limit > 0:
            rough = self._rough[selected]
            last = np.partition(rough, len(rough) - 2 * limit)[len(rough) - 2 * limit]
            selected = selected[rough >= np.round(last, 4) - 1e-4]
        return selected, self.values(selected)

    def values(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each turn's window; NaN for what is no turn or has no vector around it."""
        members, weights = self._sessions.around(ordinals)
        found = self._compared.mixed(members, weights)
        found[~self._members[ordinals]] = np.nan
        return found


def signals_for(
    query: Query,
    *,
    postings: Callable[[Sequence[int]], Postings],
    sessions: Sessions | None,
    turns: NDArray[np.bool_],
    compared: Cosines | None,
) -> tuple[list[Signal], Scores | None, float]:
    """The signals that a query asks for, the scores by its words, and the bound of those of windows.

    They score all memories or messages: whoever asks admits its own. `postings` finds those of the hashes of
    terms; `sessions` are the windows, in which `turns` stand.
    """
    signals: list[Signal] = []
    scores, window_bound = None, 0.0
    if query.terms:
        hashes = [term_hash(term) for term in query.terms]
        informative = sorted({term_hash(term) for term in query.informative})
        index = postings([*hashes, *informative])
        scores = index.score(hashes)
        signals.append(Lexical("lexical", scores))
        if sessions is not None:
            windows = sessions.score(index.of_terms(hashes))
            signals.append(Lexical("window_lexical", windows, turns))
            window_bound = windows.bound
        if query.informative:
            shares = shares_of(np.array(informative, dtype=np.uint32))
            signals.append(Coverage(shares, index.of_terms(informative), len(turns)))
    if compared is not None:
        signals.append(Semantic(compared))
        if sessions is not None:
            signals.append(WindowSemantic(compared, sessions, turns))
    return signals, scores, window_bound


def distinct(several: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Every ordinal once, ascending. As `np.unique`, which imports all of numpy's masked arrays."""
    ordered = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *several]))
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered


# Columns of numbers about an agent's memories, one place for each, in the order of their writing.

_FEWEST = 64
_NEVER = np.iinfo(np.int64).max


class Columns:
    """Grows at its end and never moves: a memory keeps its place, its ordinal, until all is loaded anew.

    Arrays may have spare elements behind `used`; `nums` ascend.
    """

    def __init__(self) -> None:
        self.used = 0
        self.dead = 0
        self.nums = np.empty(0, dtype=np.int64)
        self.ids = np.empty(0, dtype="S16")
        self._kinds = np.empty(0, dtype=np.int32)
        self.created = np.empty(0, dtype=np.int64)
        self._importance = np.empty(0, dtype=np.float64)
        self._alive = np.empty(0, dtype=np.bool_)
        self._sessions = np.empty(0, dtype=np.int32)
        self._expires: NDArray[np.int64] | None = None
        self._numbers: dict[str, int] = {}
        self._codes: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        arrays = (
            self.nums,
            self.ids,
            self._kinds,
            self.created,
            self._importance,
            self._alive,
            self._sessions,
        )
        return sum(each.nbytes for each in arrays) + (0 if self._expires is None else self._expires.nbytes)

    @property
    def expiring(self) -> bool:
        """Whether any memory expires, or expired, at any time."""
        return self._expires is not None

    @property
    def turns(self) -> NDArray[np.bool_]:
        """By ordinal, which memories belong to a session."""
        return self._sessions[: self.used] >= 0

    @property
    def has_sessions(self) -> bool:
        """Whether any memory belongs, or belonged, to a session."""
        return bool(self._numbers)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """By ordinal, which memories are still there."""
        return self._alive[: self.used]

    def sessions(self, admitted: NDArray[np.bool_]) -> Sessions | None:
        """The admitted memories in the order of their sessions; None where no memory belongs to any.

        What was purged counts no more, so that who saw it before finds what somebody new does.
        """
        if not self._numbers or not np.any(self.turns & self._alive[: self.used]):
            return None
        return Sessions(
            self._sessions[: self.used], self.created[: self.used], self.ids[: self.used], admitted
        )

    def append(self, rows: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
        """Add rows of num, id, kind, created_at, importance, session and expiry; returns their ordinals."""
        start = self.used
        if rows:
            self.append_columns(list(zip(*rows, strict=True)))
        return np.arange(start, self.used, dtype=np.int64)

    def append_columns(self, given: Sequence[Sequence[Any]]) -> None:
        """The same from the seven columns of the rows."""
        nums, ids, kinds, created, importance, sessions, expires = given
        ordinals = self._append(
            nums=nums,
            ids=np.frombuffer(b"".join(ids), dtype="S16"),
            _kinds=_numbers_of(kinds, self._codes),
            created=created,
            _importance=importance,
            _sessions=_numbers_of(sessions, self._numbers),
        )
        self.set_expiry(ordinals, expires)

    def append_block(
        self, rows: NDArray[Any], kinds: Sequence[str], sessions: Sequence[str]
    ) -> NDArray[np.int64]:
        """Add the rows of a block, in which kinds and sessions are places in these lists; their ordinals.

        A session of -1 is none. None of them expires until `set_expiry` says so.
        """
        codes = np.array(_numbers_of(kinds, self._codes), dtype=np.int32)
        numbers = np.array([*_numbers_of(sessions, self._numbers), -1], dtype=np.int32)
        ordinals = self._append(
            nums=rows["num"],
            ids=rows["id"],
            _kinds=codes[rows["kind"]],
            created=rows["created"],
            _importance=rows["importance"],
            _sessions=numbers[rows["session"]],
        )
        if self._expires is not None:
            self._expires[ordinals] = _NEVER
        return ordinals

    def _append(self, **given: Any) -> NDArray[np.int64]:
        """Add a value to each of the arrays of these names, for each of some memories; their ordinals."""
        start, stop = self.used, self.used + len(given["nums"])
        if stop > len(self.nums):
            self._grow(max(stop, len(self.nums) * 3 // 2, _FEWEST))
        for name, values in given.items():
            getattr(self, name)[start:stop] = values
        self._alive[start:stop] = True
        self.used = stop
        return np.arange(start, stop, dtype=np.int64)

    def set_expiry(self, ordinals: NDArray[np.int64], expires: Sequence[int | None]) -> None:
        """Note when these memories expire; None for never."""
        if self._expires is None and expires.count(None) < len(expires):
            self._expires = np.full(len(self.nums), _NEVER, dtype=np.int64)
        if self._expires is not None:
            self._expires[ordinals] = [_NEVER if each is None else each for each in expires]

    def expired(self, now: int) -> NDArray[np.bool_]:
        """By ordinal, which memories have expired by a time in microseconds."""
        if self._expires is None:
            return np.zeros(self.used, dtype=np.bool_)
        found: NDArray[np.bool_] = self._expires[: self.used] <= now
        return found

    def remove(self, ordinal: int) -> None:
        """Note that a memory is gone; its place stays empty."""
        if self._alive[ordinal]:
            self._alive[ordinal] = False
            self.dead += 1

    def session(self, ordinal: int) -> int:
        """The number of the session that a memory belongs to; below 0 for none."""
        return self._sessions.item(ordinal)

    def ordinals(self, nums: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ordinals of these nums; a num that isn't here is left out."""
        places = np.searchsorted(self.nums[: self.used], nums)
        inside = places < self.used
        places, nums = places[inside], nums[inside]
        found: NDArray[np.int64] = places[self.nums[places] == nums]
        return found

    def raw_id(self, ordinal: int) -> bytes:
        """The 16 bytes of the id of a memory's row; numpy drops zeros at their end."""
        found: bytes = self.ids.item(ordinal)
        return found.ljust(16, b"\0")

    def kinds(self, ordinals: NDArray[np.int64]) -> list[str]:
        """The kind of each of these memories."""
        names = list(self._codes)
        return [names[code] for code in self._kinds[ordinals].tolist()]

    def of_time(self, when: TimeRange) -> NDArray[np.bool_]:
        """By ordinal, which memories were created in a time."""
        created = self.created[: self.used]
        found = np.ones(self.used, dtype=np.bool_)
        if when.start is not None:
            found &= created >= microseconds(when.start, name="when.since")
        if when.end is not None:
            found &= created < microseconds(when.end, name="when.until")
        return found

    def of_kinds(self, kinds: Sequence[str]) -> NDArray[np.bool_]:
        """By ordinal, which memories are of one of these kinds."""
        wanted = [self._codes[kind] for kind in kinds if kind in self._codes]
        # A lookup by code is several times faster than np.isin, which sorts.
        known = np.zeros(max(len(self._codes), 1), dtype=np.bool_)
        known[wanted] = True
        found: NDArray[np.bool_] = known[self._kinds[: self.used]]
        return found

    def best(self, ordinals: NDArray[np.int64], scores: NDArray[Any], limit: int) -> NDArray[np.int64]:
        """The `limit` ordinals of the highest scores, the newer id where scores tie; in no order."""
        if limit <= 0:
            return ordinals[:0]
        if len(ordinals) <= limit:
            return ordinals
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        sure = np.flatnonzero(scores > last)
        tied = np.flatnonzero(scores == last)
        newest = np.argsort(self.ids[ordinals[tied]])[len(sure) - limit :]
        chosen: NDArray[np.int64] = ordinals[np.concatenate([sure, tied[newest]])]
        return chosen

    def first(self, admitted: NDArray[np.bool_], order: Order, limit: int) -> NDArray[np.int64]:
        """The first `limit` admitted ordinals by an order; in no order themselves."""
        ordinals = np.flatnonzero(admitted)
        if len(ordinals) <= limit:
            return ordinals
        if order is Order.OLDEST:
            # The exact reverse of newest: the older id comes first where times tie.
            newest = self.best(ordinals, self.created[ordinals], len(ordinals) - limit)
            rest = np.ones(len(admitted), dtype=np.bool_)
            rest[newest] = False
            oldest: NDArray[np.int64] = np.flatnonzero(admitted & rest)
            return oldest
        if order is Order.NEWEST:
            return self.best(ordinals, self.created[ordinals], limit)
        importance = self._importance[ordinals]
        last = (
            np.partition(importance, len(importance) - limit)[len(importance) - limit]
            if limit > 0
            else np.inf
        )
        sure = ordinals[importance > last]
        tied = ordinals[importance == last]
        return np.concatenate([sure, self.best(tied, self.created[tied], limit - len(sure))])

    def _grow(self, size: int) -> None:
        names = ("nums", "ids", "_kinds", "created", "_importance", "_alive", "_sessions")
        for name in names if self._expires is None else (*names, "_expires"):
            old = getattr(self, name)
            new = np.zeros(size, dtype=old.dtype)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)


def _numbers_of(names: Sequence[str | None], known: dict[Any, int]) -> list[int]:
    """The number of each name, -1 for None; a name that isn't known yet gets the next one."""
    for name in dict.fromkeys(names):
        if name is not None:
            known.setdefault(name, len(known))
    return list(map(known.get, names, repeat(-1)))


# Filters as conditions in SQL.
#
# The conditions come from the named queries; only placeholders are added.

MOST_VALUES = 1000
"""How many values a filter may name in one field; SQLite limits the placeholders of a statement."""


def filtered(
    dialect: Dialect,
    query: str,
    where: Filter,
    places: Sequence[str] = (),
    *,
    now: datetime | None = None,
) -> tuple[str, dict[str, Any]]:
    """The named query with the filter's conditions in place, and the values of their placeholders.

    `places` are those that `places_for` finds for the filter. What has expired by `now` is left out.
    """
    known = queries(dialect)
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for name, given in _lists(where).items():
        if len(given) > MOST_VALUES:
            raise InvalidInput(
                f"The filter names {len(given)} {name}, more than {MOST_VALUES}. Ask in several calls."
            )
        if given:
            rows, bound = _placeholders(dialect, name, given)
            condition = "tags_of_few" if name == "tags" and query == "admitted_among" else name
            conditions.append(known[f"where_{condition}"].replace(placeholder(dialect, name), rows))
            values.update(bound)
    for condition, name, value in _scalars(where, now):
        if value is not None:
            conditions.append(known[f"where_{condition}"])
            values[name] = value
    text = known[query]
    if where.metadata or where.where is not None:
        from germane.stores.relational.conditions import ConditionCompiler  # noqa: PLC0415 - Few filters have one.

        compiler = ConditionCompiler(dialect)
        conditions += [f"AND {compiler.sql(each)}" for each in where.conditions]
        values.update(compiler.values)
    if where.applies_to:
        values["places"] = json.dumps(places)
    if where.embedded is not None:
        conditions.append(known["where_embedded" if where.embedded else "where_unembedded"])
    if dialect == "sqlite":
        text = _led_by_few(text, where)
    return text.replace("{filter}", "\n".join(conditions)), values


def _led_by_few(text: str, where: Filter) -> str:
    """The query so that SQLite doesn't go by time through all memories where few pass."""
    if where.embedded is False or where.short_id is not None:
        return text.replace("WHERE agent =", "WHERE +agent =")
    if where.statuses and Status.ACTIVE not in where.statuses:
        # Most often none passes, which an index says at once.
        return text.replace("WHERE agent = :agent", queries("sqlite")["where_any_inactive"])
    return text


def places_for(connection: Connection, agent: int, where: Filter) -> list[str]:
    """The places among those of the agent's memories that a filter's `applies_to` means."""
    if not where.applies_to:
        return []
    rows = connection.run("places", {"agent": agent})
    return [place for (place,) in rows if covers(place, where.applies_to)]


def _lists(where: Filter) -> Mapping[str, Sequence[tuple[str, ...]]]:
    return {
        "statuses": [(each.value,) for each in where.statuses],
        "kinds": [(each,) for each in where.kinds],
        "scopes": [(each.name, each.value) for each in where.scopes],
        "applies_to": [(each.name, each.value) for each in where.applies_to],
        "tags": [(each,) for each in where.tags],
        "without": [(each.value,) for each in where.without],
    }


def _scalars(where: Filter, now: datetime | None) -> tuple[tuple[str, str, Any], ...]:
    since = where.when and where.when.start
    until = where.when and where.when.end
    return (
        ("subject", "subject", where.subject),
        ("source", "source", where.source),
        ("session", "session", where.session),
        ("key", "key", where.key),
        ("short_id", "short_id", where.short_id and bytes.fromhex(where.short_id)),
        ("since", "since", since and microseconds(since, name="when.since")),
        ("until", "until", until and microseconds(until, name="when.until")),
        ("importance", "min_importance", where.min_importance),
        ("pinned", "pinned", where.pinned),
        *_validity(where),
        ("unexpired", "now", now and microseconds(now, name="now")),
        ("expires", "expires_by", where.expires_by and microseconds(where.expires_by, name="expires_by")),
    )


def _validity(where: Filter) -> tuple[tuple[str, str, Any], ...]:
    """What `valid_at` asks for: to begin before its end, and to end after its start."""
    valid_at = where.valid_at
    if isinstance(valid_at, str):
        raise InvalidInput(
            f"valid_at={valid_at!r} is a text, which only an engine can read, by its clock. Pass it to a "
            "verb of the engine, or give a datetime."
        )
    if isinstance(valid_at, datetime):
        valid_at = TimeRange(since=valid_at, until=valid_at + timedelta(microseconds=1))
    start, end = valid_at and valid_at.start, valid_at and valid_at.end
    return (
        ("valid_from", "valid_end", end and microseconds(end, name="valid_at")),
        ("valid_until", "valid_start", start and microseconds(start, name="valid_at")),
    )


def _placeholders(
    dialect: Dialect, name: str, given: Sequence[tuple[str, ...]]
) -> tuple[str, dict[str, str]]:
    # One column stands in an IN list or in a list of VALUES, which takes rows in parentheses.
    bound: dict[str, str] = {}
    rows: list[str] = []
    for number, row in enumerate(given):
        keys = [f"{name}_{number}_{column}" for column in range(len(row))]
        bound.update(zip(keys, row, strict=True))
        written = ", ".join(placeholder(dialect, key) for key in keys)
        rows.append(f"({written})" if name in {"scopes", "tags", "applies_to"} else written)
    return ", ".join(rows), bound
