"""What a process keeps in memory of its agents, so that a search reads little from the database.

A cache only: the database is the truth, and every use begins by catching up with the agent's change log
inside the reading transaction.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.ids import id_text
from germane.model.memory import Memory, Vector
from germane.model.query import (
    CandidateTable,
    Filter,
    Order,
    Reading,
    SearchResult,
    Slice,
    UnreadMemory,
    UnreadRecords,
    is_unread,
)
from germane.renditions.passages import LONG_TOKENS
from germane.retrieval.bm25 import Postings
from germane.retrieval.windows import Sessions
from germane.stores.relational.signals import Columns, Cosines, filtered, places_for
from germane.stores.relational.tables import Connection, microseconds, moment, numbered_memory, span
from germane.stores.sql import queries

if TYPE_CHECKING:
    from germane.ledger import CacheUsage

_MOST_MASKS: Final = 32
_MOST_SEARCHES: Final = 4
_MOST_FOUND: Final = 5000  # Candidates of one search; its records are cached besides those of the cache.
_MOST_UNREAD: Final = 5000  # Looking through more texts takes longer than reading the records of a search.
_MOST_RECORD_BYTES: Final = 64 << 20
_RECORD_BYTES: Final = 2500  # What a memory takes beside its text, by measurement.

OFTEN: Final = 10
"""After so many uses since an agent was loaded or shed, what a search needs of it is cached as it is read."""

# Past this share of purged memories the arrays are reloaded.
_DEAD_SHARE = 4
_FEW_DEAD = 1000

# With more changes than this, and than memories, reloading is shorter.
_MANY_CHANGES = 1000

# The changes that move a memory's row and so may move it into or out of a filter.
_MOVED = frozenset({"see", "supersede", "status", "expire"})


class AgentCache(ABC):
    """The arrays, filters' results and records of one agent, as of one change.

    Where its terms and vectors are compared is for each database to say. Hold `lock` from before the
    reading transaction begins until the results are used: then the snapshot can't be older than the cache.
    """

    def __init__(self, name: str) -> None:
        self.lock = RLock()
        self.name = name
        self.agent = 0
        self._uses = 0
        self._loaded = 0  # Whose latest change `_seq` is. Who is removed and comes again has another number.
        self._empty()

    def _empty(self) -> None:
        self._seq = 0
        self.columns = Columns()
        self._masks: dict[Filter | None, NDArray[np.bool_]] = {}
        self._latest: dict[int, tuple[Filter | None, NDArray[np.bool_]]] = {}
        self._unexpired: NDArray[np.bool_] | None = None
        self._expired = 0
        self._records: dict[int, Memory] = {}
        self._record_bytes = 0
        self._sessions: dict[Filter, Sessions | None] = {}
        self._firsts: dict[tuple[Slice, Filter], NDArray[np.int64]] = {}
        self._found: dict[Hashable, tuple[SearchResult, int]] = {}
        # Of the ordinals whose records may be read late, the long ones with the digests of their texts, and
        # those whose status withdraws them.
        self._long = np.empty(0, dtype=np.int64)
        self._digests = np.empty(0, dtype="S32")
        self._withdrawn = frozenset[int]()

    @property
    def nbytes(self) -> int:
        """About how much memory the cache takes."""
        masks = sum(mask.nbytes for mask in self._masks.values())
        found = _RECORD_BYTES * sum(count for _, count in self._found.values())
        long = self._long.nbytes + self._digests.nbytes
        return self.columns.nbytes + masks + self._record_bytes + found + long

    def shed(self) -> bool:
        """Let go of what is large and quickly read again: records, and what searches found.

        False where the cache is being used just now.
        """
        if not self.lock.acquire(blocking=False):
            return False
        try:
            self._uses = 0
            self._records, self._record_bytes = {}, 0
            self._sessions, self._firsts, self._found = {}, {}, {}
            self._shed()
        finally:
            self.lock.release()
        return True

    def _shed(self) -> None:  # noqa: B027 - Not every cache keeps more of it.
        """Let go of more that is quickly made again."""

    @abstractmethod
    def postings(self, connection: Connection, hashes: Sequence[int]) -> Postings:
        """An index that holds at least the postings of these terms, and the counts of the whole one."""

    @abstractmethod
    def compared(self, connection: Connection, vector: Vector) -> Cosines:
        """How near the agent's vectors are to this one of the same length."""

    def catch_up(self, connection: Connection, seq: int) -> None:
        """Become as the snapshot is, whose latest change of this agent is `seq`; a search begins with it."""
        self._uses += 1
        if (self.agent, seq) == (self._loaded, self._seq):
            return
        try:
            if self._seq and self.agent == self._loaded and not self._is_worn():
                self._follow(connection)
            else:
                self._empty()
                self._load(connection)
        except BaseException:
            # Half caught up is of no use to anybody; the next use begins from nothing.
            self._empty()
            raise
        self._loaded, self._seq = self.agent, seq
        self._drop_results()

    def set_time(self, now: datetime | None) -> None:
        """Leave out of all results from now on what has expired by this time; nothing for None.

        The masks of filters stay: they say nothing of the time.
        """
        unexpired, expired = None, 0
        if now is not None and self.columns.expiring:
            unexpired = ~self.columns.expired(microseconds(now, name="now"))
            expired = self.columns.used - int(np.count_nonzero(unexpired))
        if expired != self._expired:
            # More memories have expired with every moment, so that equal counts are the same memories.
            self._drop_results()
        self._unexpired, self._expired = unexpired, expired

    def _drop_results(self) -> None:
        """Forget what depends on all memories, or on the time."""
        self._latest = {}
        self._sessions = {}
        self._firsts = {}
        self._found = {}

    def known(self, key: Hashable) -> SearchResult | None:
        """The cached result of this search since the last change, if any."""
        known = self._found.get(key)
        return None if known is None else known[0]

    def keep(self, key: Hashable, found: SearchResult) -> None:
        """Keep what a search found until the next change: an agent at one task asks the same many times."""
        tables = [CandidateTable.of(part) for part in found.slices]
        if any(map(is_unread, chain.from_iterable(table.memories for table in tables))):
            # What is unread holds on to the store of this call, which others outlive.
            return
        count = sum(map(len, tables))
        if count > _MOST_FOUND:
            return
        if len(self._found) >= _MOST_SEARCHES:
            del self._found[next(iter(self._found))]
        self._found[key] = found, count

    def sessions(self, connection: Connection, where: Filter) -> Sessions | None:
        """The order of the admitted active memories in their sessions; None where there are no sessions.

        What is forgotten or superseded, or what the filter excludes, is nobody's neighbour: it must not
        lift what stands beside it.
        """
        if not self.columns.has_sessions:
            return None
        if where not in self._sessions:
            if len(self._sessions) >= _MOST_SEARCHES:
                del self._sessions[next(iter(self._sessions))]
            active = self.admitted(connection, Filter())
            self._sessions[where] = self.columns.sessions(active & self.admitted(connection, where))
        return self._sessions[where]

    def of_slice(self, connection: Connection, part: Slice, where: Filter) -> NDArray[np.bool_]:
        """By ordinal, which memories a slice admits: of its kinds, by the filter and by its own."""
        mask = self.admitted(connection, where)
        mask = mask & self.admitted(connection, part.also) if part.also is not None else mask
        return mask & self.columns.of_kinds(part.kinds) if part.kinds else mask

    def admitted(self, connection: Connection, where: Filter) -> NDArray[np.bool_]:
        """By ordinal, which memories the filter admits that haven't expired."""
        mask = self._of_filter(connection, where)
        return mask if self._unexpired is None else mask & self._unexpired

    def _of_filter(self, connection: Connection, where: Filter | None) -> NDArray[np.bool_]:
        """By ordinal, which memories a filter admits; None for those whose records may be read late."""
        if where is not None and where.when is not None:
            # Every question may name another time, and the columns have what it is compared with.
            return self._of_filter(connection, where.whenever) & self.columns.of_time(where.when)
        latest = self._latest.get(id(where))  # Slices share filters, which take long to hash.
        if latest is not None and latest[0] is where:
            return latest[1]
        mask = self._masks.pop(where, None)
        if mask is None:
            mask = np.zeros(self.columns.used, dtype=np.bool_)
            query, values = self._condition(connection, "admitted", where)
            rows = connection.run_text(query, values | span(self.agent))
            mask[self.columns.ordinals(np.fromiter(chain.from_iterable(rows), dtype=np.int64))] = True
        self._masks[where] = mask
        if len(self._masks) > _MOST_MASKS:
            del self._masks[next(iter(self._masks))]
        if len(self._latest) >= _MOST_MASKS:
            self._latest = {}
        self._latest[id(where)] = where, mask
        return mask

    def _condition(
        self, connection: Connection, query: str, where: Filter | None
    ) -> tuple[str, dict[str, Any]]:
        """The text of a query with a filter's condition, and the values of its placeholders."""
        if where is not None:
            return filtered(connection.dialect, query, where, places_for(connection, self.agent, where))
        known = queries(connection.dialect)
        return known[query].replace("{filter}", known["where_readable_late"]), {"short": LONG_TOKENS}

    def first(self, connection: Connection, part: Slice, where: Filter) -> NDArray[np.int64]:
        """The ordinals of a slice that an order fills, ascending by id; no question changes them."""
        found = self._firsts.get((part, where))
        if found is None:
            mask = self.of_slice(connection, part, where)
            found = self.columns.first(mask, part.order or Order.NEWEST, part.limit)
            found = found[np.argsort(self.columns.ids[found])]
            if len(self._firsts) >= _MOST_MASKS:
                del self._firsts[next(iter(self._firsts))]
            self._firsts[part, where] = found
        return found

    def records(self, connection: Connection, ordinals: Sequence[int]) -> dict[int, Memory]:
        """The memories of these ordinals. What was read first is dropped first, where many are cached."""
        cached = self._records
        found = {ordinal: memory for ordinal in ordinals if (memory := cached.get(ordinal)) is not None}
        if len(found) < len(ordinals):
            missing = [ordinal for ordinal in ordinals if ordinal not in found]
            for ordinal, memory in stored(connection, self.agent, self.name, self.columns, missing).items():
                found[ordinal] = cached[ordinal] = memory
                self._record_bytes += _size(memory)
            while self._record_bytes > _MOST_RECORD_BYTES and cached:
                self._drop_record(next(iter(cached)))
        return found

    def unread(
        self, connection: Connection, ordinals: Sequence[int], reading: Reading
    ) -> dict[int, Memory | UnreadMemory]:
        """The memories of these ordinals; unread what can be read later.

        None is unread of an agent that is used often, so that the next searches find them cached. Of others
        no record is cached: their vectors save more in the same memory.
        """
        if self._uses >= OFTEN or self.columns.used > _MOST_UNREAD:
            return {**self.records(connection, ordinals)}
        late, places = self._of_filter(connection, None), np.array(ordinals, dtype=np.int64)
        places = places[late[places]]
        waiting: list[int] = places.tolist()
        starts, stops = (np.searchsorted(places, self._long, side) for side in ("left", "right"))
        long = np.flatnonzero(starts < stops)
        digests = dict(zip(self._long[long].tolist(), self._digests[long].tolist(), strict=True))
        records = UnreadRecords(waiting, reading)
        unread = {
            ordinal: UnreadRow(records, ordinal, kind, self.columns, digests.get(ordinal))
            for ordinal, kind in zip(waiting, self.columns.kinds(places), strict=True)
        }
        for ordinal in self._withdrawn.intersection(waiting):
            unread[ordinal].withdrawn = True
        found: dict[int, Memory | UnreadMemory] = {**unread}
        if rest := [ordinal for ordinal in ordinals if ordinal not in found]:
            found.update(stored(connection, self.agent, self.name, self.columns, rest))
        return found

    def _is_worn(self) -> bool:
        return self.columns.dead > max(_FEW_DEAD, self.columns.used // _DEAD_SHARE)

    def _follow(self, connection: Connection) -> None:
        values = {"agent": self.agent, "seq": self._seq}
        changes = connection.run("changes", values).fetchall()
        if len(changes) > max(_MANY_CHANGES, self.columns.used) or any(num == 0 for num, _ in changes):
            self._empty()
            self._load(connection)
            return
        added = {num for num, what in changes if what == "insert"}
        purged = {num for num, what in changes if what == "purge"}
        self._remove(purged)
        if added:
            self._add(connection, span(self.agent, above=self._seq))
        moved = {num for num, what in changes if what in _MOVED} - purged
        for ordinal in self.columns.ordinals(as_array(moved - added)).tolist():
            self._drop_record(ordinal)
        self._follow_expiry(connection, {num for num, what in changes if what == "expire"} - purged - added)
        embedded = {num for num, what in changes if what == "vector"} - purged
        self._renew_masks(connection, ((moved | added) - purged) | embedded)
        self._embedded(connection, embedded, added - purged)

    @abstractmethod
    def _load(self, connection: Connection) -> None:
        """Become as the snapshot is, from nothing."""

    @abstractmethod
    def _add(self, connection: Connection, place: dict[str, int]) -> None:
        """Take in the memories of these nums, which are new."""

    def _lose(self, ordinal: int) -> None:  # noqa: B027 - Not every cache keeps more of it.
        """Drop what is cached of a memory that was purged."""

    def _embedded(  # noqa: B027 - As above.
        self, connection: Connection, renewed: set[int], added: set[int]
    ) -> None:
        """Note that these memories have other vectors now, or none, and that those may have their first."""

    def _remove(self, nums: set[int]) -> None:
        for ordinal in self.columns.ordinals(as_array(nums)).tolist():
            self.columns.remove(ordinal)
            self._lose(ordinal)
            self._drop_record(ordinal)
            for mask in self._masks.values():
                mask[ordinal] = False

    def _renew_masks(self, connection: Connection, nums: set[int]) -> None:
        renewed = self.columns.ordinals(as_array(nums))
        for where, old in list(self._masks.items()):
            mask = np.zeros(self.columns.used, dtype=np.bool_)
            mask[: len(old)] = old
            mask[renewed] = False
            query, values = self._condition(connection, "admitted_among", where)
            values |= {"agent": self.agent, "nums": json.dumps(sorted(nums))}
            admitted = {num for (num,) in connection.run_text(query, values)}
            mask[self.columns.ordinals(as_array(admitted))] = True
            self._masks[where] = mask

    def _follow_expiry(self, connection: Connection, nums: set[int]) -> None:
        if nums:
            wanted = {"agent": self.agent, "nums": json.dumps(sorted(nums))}
            changed, expires = zip(*connection.run("expiries", wanted).fetchall(), strict=True)
            self.columns.set_expiry(self.columns.ordinals(np.array(changed, dtype=np.int64)), expires)

    def _drop_record(self, ordinal: int) -> None:
        memory = self._records.pop(ordinal, None)
        if memory is not None:
            self._record_bytes -= _size(memory)


def _size(memory: Memory) -> int:
    return _RECORD_BYTES + 2 * len(memory.content)


def as_array(nums: set[int]) -> NDArray[np.int64]:
    """Nums in ascending order."""
    return np.fromiter(sorted(nums), dtype=np.int64, count=len(nums))


# Records that are read after a search, when ranking has chosen among its memories.


class UnreadRow(UnreadMemory):
    """A memory in a table whose record is unread, with the columns that are cached of it."""

    __slots__ = ("_columns",)

    def __init__(
        self, records: UnreadRecords, ordinal: int, kind: str, columns: Columns, digest: bytes | None
    ) -> None:
        # Without a call of the other's, since a search makes hundreds.
        self.records, self.number, self.kind, self._columns = records, ordinal, kind, columns
        self.withdrawn = False
        self.digest = None if digest is None else digest.decode("ascii")

    @property
    def id(self) -> str:
        """The id of the memory."""
        return id_text(self._columns.raw_id(self.number))

    @property
    def ref(self) -> str:
        """The same: it is the current version."""
        return self.id

    @property
    def created_at(self) -> datetime:
        """When the memory was made."""
        return moment(self._columns.created.item(self.number))


def stored(
    connection: Connection, agent: int, name: str, columns: Columns, ordinals: Sequence[int]
) -> dict[int, Memory]:
    """The records of these ordinals that are in the snapshot, of the agent of this number and name."""
    rows = rows_of(connection, "records", agent, columns, ordinals)
    return {ordinal: numbered_memory(row, name)[1] for ordinal, row in rows}


def rows_of(
    connection: Connection, query: str, agent: int, columns: Columns, ordinals: Sequence[int]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows of a query that begin with the nums of these ordinals, each after its ordinal."""
    nums = columns.nums[ordinals].tolist()
    ordinal_of = dict(zip(nums, ordinals, strict=True))
    rows = connection.run(query, {"agent": agent, "nums": json.dumps(nums)})
    return ((ordinal_of[row[0]], row) for row in rows)


# The caches of a process, of agents or of conversations, within a limit of memory.

MOST_CACHE_BYTES: Final = 450 << 20
"""What the caches of a store's agents may take together, in bytes."""

MOST_CONVERSATION_BYTES: Final = 256 << 20
"""What the caches of a store's conversations may take together, in bytes."""


class _Cache(Protocol):
    @property
    def nbytes(self) -> int: ...

    def shed(self) -> bool: ...


Key = TypeVar("Key", bound=Hashable)
Cache = TypeVar("Cache", bound=_Cache)


class Caches(Generic[Key, Cache]):
    """Caches by key, of at most `most` bytes together; the least recently used leaves first.

    Before any leaves, the least recently used shed what is quickly read again. Threads may share it. The last
    used cache stays, however large it is.
    """

    def __init__(self, new: Callable[[Key], Cache], *, most: int = MOST_CACHE_BYTES) -> None:
        self._new = new
        self._most = most
        self._guard = Lock()
        self._caches: OrderedDict[Key, Cache] = OrderedDict()
        # What each took when it was last used: to ask all of them each time costs more, the more there are.
        self._sizes: dict[Key, int] = {}
        self._total = 0
        self._unshed: OrderedDict[Key, None] = OrderedDict()
        self._hits = self._misses = 0

    def usage(self) -> CacheUsage:
        """How many caches there are, what they take, and how often the one that was wanted was there."""
        from germane.ledger import CacheUsage  # noqa: PLC0415 - For statistics alone.

        with self._guard:
            return CacheUsage(
                entries=len(self._caches),
                bytes=self._total,
                most_bytes=self._most,
                hits=self._hits,
                misses=self._misses,
            )

    def of(self, key: Key) -> Cache:
        """The cache of a key, a new one where there was none."""
        with self._guard:
            cache = self._caches.get(key)
            if cache is None:
                self._misses += 1
                cache = self._caches[key] = self._new(key)
            else:
                self._hits += 1
            self._caches.move_to_end(key)
            return cache

    def peek(self, key: Key) -> Cache | None:
        """The cache of a key where there is one; it isn't used by that."""
        with self._guard:
            return self._caches.get(key)

    def replace(self, key: Key, cache: Cache) -> None:
        """Put another cache in the place of the key's."""
        with self._guard:
            self._caches[key] = cache

    def settle(self, key: Key) -> None:
        """Note what the key's cache takes by now, and let others go where all take too much."""
        with self._guard:
            cache = self._caches.get(key)
            if cache is None:
                # Another thread has let it go in the meantime.
                return
            size = cache.nbytes
            self._total += size - self._sizes.get(key, 0)
            self._sizes[key] = size
            self._unshed[key] = None
            self._unshed.move_to_end(key)
            if self._total > self._most:
                self._free(key)

    def _free(self, used: Key) -> None:
        """Make what all take fit the limit again, without the cache that was used last."""
        # Taken one by one, since to go through all of them takes longer, the more there are.
        busy = []
        while self._total > self._most and self._unshed:
            key, _ = self._unshed.popitem(last=False)
            cache = self._caches[key]
            if key == used or not cache.shed():
                busy.append(key)
                continue
            size = cache.nbytes
            self._total += size - self._sizes.get(key, 0)
            self._sizes[key] = size
        for key in reversed(busy):
            self._unshed[key] = None
            self._unshed.move_to_end(key, last=False)
        while self._total > self._most and (oldest := next(iter(self._caches))) != used:
            self._forget(oldest)

    def _forget(self, key: Key) -> None:
        self._caches.pop(key, None)
        self._unshed.pop(key, None)
        self._total -= self._sizes.pop(key, 0)

    def drop(self, key: Key) -> None:
        """Let the key's cache go."""
        with self._guard:
            self._forget(key)

    def clear(self) -> None:
        """Let all of them go."""
        with self._guard:
            self._caches.clear()
            self._sizes.clear()
            self._unshed.clear()
            self._total = 0
