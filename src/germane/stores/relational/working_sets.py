"""Working sets: written in one transaction, every move noted, read from what a process keeps of them.

The sets in memory are a cache: every read begins by comparing two numbers with the store's, and follows the
logs of moves and changes where they differ.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from threading import Lock, RLock
from typing import Any, Final, NamedTuple

import numpy as np

from germane.errors import InvalidInput, NotFound, NotInWorkingSet
from germane.ids import id_text
from germane.model.memory import Memory, Status
from germane.model.text import check_free_name
from germane.stores.relational.checksums import REPAIR, is_intact, wrong_checksum
from germane.stores.relational.tables import (
    Connection,
    Connections,
    Rows,
    checked_limit,
    damaged,
    former_ref,
    gated,
    microseconds,
    moment,
    named,
    numbered_memory,
)
from germane.working_sets import (
    DEFAULT_MAX_TOKENS,
    AddItem,
    Clear,
    Features,
    Pin,
    RemoveItem,
    Resize,
    SetChange,
    StoredWorkingSet,
    Touch,
    WorkingSetEvent,
    WorkingSetEventKind,
    WorkingSetItem,
)

_MOST_SETS: Final = 64
"""Sets that a process keeps in memory."""
_MANY_MOVES: Final = 1000
"""With more moves than this, reading the whole set is shorter; fewer are never pruned."""

# The changes that alter the record of a set's memory, or what it is compared by.
_ALTERED = frozenset({"see", "supersede", "status", "vector"})


@gated
class WorkingSetTables:
    """The working sets, by owner and name, with the log of their changes.

    Each method takes the name of the tenant that owns set and memories. A memory that is forgotten or
    purged leaves every set in the same transaction, and a revised one gives its place to its next
    version; both are logged as every change. `cached` holds sets of this process; `guard` locks it.
    """

    def __init__(
        self, connections: Connections, cached: OrderedDict[tuple[str, str], CachedWorkingSet], guard: Lock
    ) -> None:
        self._connections = connections
        self._cached = cached
        self._guard = guard

    def apply(
        self, owner: str, name: str, changes: Sequence[SetChange], *, seen: int | None = None, by: str = ""
    ) -> tuple[WorkingSetEvent, ...] | None:
        """Apply all changes to a set in one transaction, in order, or none of them; returns the events.

        With `seen`, only if the set's latest event has that number; else nothing is done, and None
        returned: somebody changed it since, so the caller has to decide again. `by` is who does it, the
        owner unless named. Raises NotFound, NotInWorkingSet or InvalidInput.
        """
        for text in (owner, by or owner, name):
            check_free_name(text, "name")
        with self._connections.writing(owner) as connection:
            state, actor = _states(connection, (owner, by or owner), name)
            if seen is not None and seen != state.set_moved:
                return None
            if not changes:
                return ()
            if not (state.working_set and actor.agent):
                state, actor = _begun(connection, (owner, by or owner), name)
            moving = WorkingSetWriter(
                connection, state.agent, by=actor.agent, owner=owner, before=state.moved
            )
            moving.apply(state.working_set, name, changes)
            moving.finish()
            return tuple(_move(name, by or owner, each) for each in moving.noted)

    def get(self, owner: str, name: str) -> StoredWorkingSet:
        """A set as it is now, from one snapshot of the store; an empty one where there is none."""
        with self._guard:
            cached = self._cached.setdefault((owner, name), CachedWorkingSet(owner, name))
            self._cached.move_to_end((owner, name))
            if len(self._cached) > _MOST_SETS:
                self._cached.popitem(last=False)
        with cached.lock, self._connections.reading(owner) as connection:
            return cached.caught_up(connection)

    def names(self, owner: str) -> tuple[str, ...]:
        """The names of the sets of an owner that anything was ever done to, in order."""
        with self._connections.reading(owner) as connection:
            agent = _state(connection, owner, "").agent
            return tuple(name for (name,) in connection.run("working_sets", {"agent": agent}))

    def events(self, owner: str, *, since: int = 0, limit: int | None = None) -> tuple[WorkingSetEvent, ...]:
        """What happened to the owner's sets after the event numbered `since`, in order, at most `limit`.

        Touches older than the latest 10,000 events may be left out.
        """
        most = checked_limit(limit)
        with self._connections.reading(owner) as connection:
            return _moves(connection, _state(connection, owner, "").agent, since=since, limit=most)

    def latest_event(self, owner: str) -> int:
        """The number of the owner's latest event; cheap enough to read many times a second."""
        with self._connections.reading(owner) as connection:
            row = connection.run("moved", {"owner": owner}).fetchone()
            return int(row[0]) if row else 0

    def features(self, owner: str, ids: Sequence[str]) -> tuple[Features | None, ...]:
        """What the index knows of these memories, in the order of `ids`; None where there is no memory."""
        with self._connections.reading(owner) as connection:
            agent = _state(connection, owner, "").agent
            rows = [connection.run("num", {"agent": agent, **named(each)}).fetchone() for each in ids]
            nums = [None if row is None else int(row[0]) for row in rows]
            wanted = {"agent": agent, "nums": json.dumps([num for num in nums if num is not None])}
            found = {num: _features(*stored) for num, *stored in connection.run("features", wanted)}
        return tuple(None if num is None else found.get(num) for num in nums)


class _State(NamedTuple):
    """The numbers of an owner and of one of its sets; 0 for what isn't there."""

    agent: int = 0
    seq: int = 0
    moved: int = 0
    working_set: int = 0
    max_tokens: int = DEFAULT_MAX_TOKENS
    set_moved: int = 0


class _ItemRow(NamedTuple):
    """A row of `held_rows`, or of `held_rows_moved`, where all is None of what the set holds no more."""

    num: int
    place: int
    entered_at: int
    touched_at: int
    touches: int
    pinned: int
    recalled: int


class CachedWorkingSet:
    """One set as of one move and one change of its owner. Hold `lock` while it catches up."""

    def __init__(self, owner: str, name: str) -> None:
        self.lock = RLock()
        self._owner = owner
        self._name = name
        self._state = _State()
        self._entries: dict[int, WorkingSetItem] = {}
        self._set = StoredWorkingSet(name=name)

    def caught_up(self, connection: Connection) -> StoredWorkingSet:
        """The set as the snapshot has it."""
        state = _state(connection, self._owner, self._name)
        if state.agent != self._state.agent:
            # An owner that was removed and begins again has another number, and nothing of before.
            self._state, self._entries, self._set = _State(), {}, StoredWorkingSet(name=self._name)
        known = self._state
        if (state.seq, state.set_moved) == (known.seq, known.set_moved):
            return self._set
        # Half caught up is of no use to anybody; after an error the next read begins from nothing.
        entries, self._entries, self._state = self._entries, {}, _State()
        few_moves = known.working_set and state.moved - known.moved <= min(_MANY_MOVES, MOST_TOUCHES)
        if few_moves and state.seq - known.seq <= _MANY_MOVES + len(entries):
            altered = self._follow(connection, state, known, entries)
        else:
            altered = self._load(connection, state, entries)
        if altered or state.set_moved != known.set_moved:
            self._set = StoredWorkingSet(
                name=self._name,
                max_tokens=state.max_tokens,
                moved=state.set_moved,
                items=tuple(sorted(entries.values(), key=attrgetter("order"))),
            )
        self._entries, self._state = entries, state
        return self._set

    def _load(self, connection: Connection, state: _State, entries: dict[int, WorkingSetItem]) -> bool:
        entries.clear()
        values = {"agent": state.agent, "working_set": state.working_set}
        rows = list(map(_ItemRow._make, connection.run("held_rows", values)))
        memories = self._records(connection, state.agent, [row.num for row in rows])
        entries.update((row.num, _item_of(row, memories[row.num])) for row in rows)
        return True

    def _follow(
        self, connection: Connection, state: _State, known: _State, entries: dict[int, WorkingSetItem]
    ) -> bool:
        """Bring the entries up to date by the two logs; returns whether a record of theirs was altered."""
        altered: set[int] = set()
        if state.seq != known.seq:
            since = {"agent": state.agent, "seq": known.seq}
            changes = connection.run("changes", since).fetchall()
            if any(num == 0 for num, _ in changes):
                return self._load(connection, state, entries)
            altered = {num for num, what in changes if what in _ALTERED}
        values = {"agent": state.agent, "working_set": state.working_set, "since": known.set_moved}
        rows: list[_ItemRow] = []
        memories: dict[int, Memory] = {}
        if state.set_moved != known.set_moved:
            moved = connection.run("held_rows_moved", values).fetchall()
            ids = {id_text(raw) for raw, *_ in moved}
            gone = [num for num, one in entries.items() if one.memory.id in ids]
            memories = {num: entries.pop(num).memory for num in gone}
            found = [_ItemRow._make(row) for _, *row in moved]
            rows = list({row.num: row for row in found if row.num}.values())
        here = altered & entries.keys()
        wanted = [row.num for row in rows if row.num not in memories or row.num in altered]
        memories |= self._records(connection, state.agent, [*here, *wanted])
        entries.update((row.num, _item_of(row, memories[row.num])) for row in rows)
        for num in here:
            entries[num] = entries[num].evolve(
                memory=memories[num], tokens=memories[num].renditions.full.tokens
            )
        return bool(here)

    def _records(self, connection: Connection, agent: int, nums: Iterable[int]) -> dict[int, Memory]:
        wanted = json.dumps(list(nums))
        if wanted == "[]":
            return {}
        rows = connection.run("records", {"agent": agent, "nums": wanted})
        return dict(numbered_memory(row, self._owner) for row in rows)


def _item_of(row: _ItemRow, memory: Memory) -> WorkingSetItem:
    return WorkingSetItem(
        memory=memory,
        entered_at=moment(row.entered_at),
        touched_at=moment(row.touched_at),
        order=row.place,
        tokens=memory.renditions.full.tokens,
        touches=row.touches,
        pinned=bool(row.pinned),
        recalled=bool(row.recalled),
    )


def _features(hashes: bytes, vector: bytes | None, checksum: int | None) -> Features:
    if vector is not None and not is_intact(vector, checksum):
        error = wrong_checksum()
        raise damaged("The vector of a memory", error, REPAIR) from error
    found = None if vector is None else np.frombuffer(vector, dtype="<f2").astype(np.float32)
    return Features(hashes=np.frombuffer(hashes, dtype="<u4"), vector=found)


def _state(connection: Connection, owner: str, name: str) -> _State:
    return _states(connection, (owner,), name)[0]


def _states(connection: Connection, owners: Sequence[str], name: str) -> list[_State]:
    """For each owner its numbers, and those of its set of that name."""
    results = [connection.run("held_state", {"owner": each, "set_name": name}) for each in owners]
    return [_state_of(each.fetchone()) for each in results]


def _state_of(row: tuple[Any, ...] | None) -> _State:
    if row is None:
        return _State()
    state = _State._make(row)
    return state if state.working_set else _State(agent=state.agent, seq=state.seq, moved=state.moved)


def _begun(connection: Connection, owners: tuple[str, str], name: str) -> list[_State]:
    """Add an owner, an actor and a set that aren't stored yet, and return what `_states` gives for them."""
    for each in dict.fromkeys(owners):
        connection.run("add_agent", {"name": each})
    agent = _state(connection, owners[0], name).agent
    values = {"agent": agent, "set_name": name, "max_tokens": DEFAULT_MAX_TOKENS}
    connection.run("add_working_set", values)
    return _states(connection, owners, name)


def _moves(connection: Connection, agent: int, *, since: int, limit: int) -> tuple[WorkingSetEvent, ...]:
    values = {"agent": agent, "since": since, "limit": limit}
    return tuple(
        _move(name, by, WorkingSetEventRow(number, what, raw, former, at))
        for number, name, what, raw, former, by, at in connection.run("moves", values)
    )


def _move(name: str, by: str, noted: WorkingSetEventRow) -> WorkingSetEvent:
    return WorkingSetEvent(
        number=noted.number,
        working_set=name,
        kind=WorkingSetEventKind(noted.what),
        memory_id=None if noted.id is None else id_text(noted.id),
        former_id=None if noted.id is None or noted.former is None else former_ref(noted.id, noted.former),
        by=by,
        at=moment(noted.at),
    )


# Changes what working sets hold, inside one write transaction, and notes each move before it is done.
#
# The log holds ids, numbers and times, and no text.

MOST_TOUCHES: Final = 10_000
"""Touches older than this many moves are dropped from the log; everything else stays in it."""

_PRUNED_AT_ONCE: Final = 1000


class WorkingSetEventRow(NamedTuple):
    """A move as it stands in the log; `at` in microseconds."""

    number: int
    what: str
    id: bytes | None
    former: bytes | None
    at: int


@dataclass(slots=True)
class WorkingSetWriter:
    """One transaction's moves in one owner's working sets; `finish` ends it."""

    connection: Connection
    agent: int
    by: int
    owner: str = ""
    before: int = -1
    """The number of the owner's latest move, if it is known."""
    noted: list[WorkingSetEventRow] = field(init=False, default_factory=list)
    touched_sets: dict[int, int] = field(init=False, default_factory=dict)
    number: int = field(init=False)

    def __post_init__(self) -> None:
        if self.before < 0:
            (self.before,) = self.run("last_move").fetchone()
        self.number = self.before

    def apply(self, working_set: int, name: str, changes: Sequence[SetChange]) -> None:
        """Do all changes to a set in order. Raises NotFound, NotInWorkingSet or InvalidInput."""
        for change in changes:
            if isinstance(change, AddItem):
                self._enter(working_set, change)
            elif isinstance(change, Touch | RemoveItem | Pin):
                self._move_one(working_set, name, change)
            elif isinstance(change, Clear):
                self._clear(working_set, change)
            elif isinstance(change, Resize):
                self._resize(working_set, change)
            else:
                raise InvalidInput(
                    f"{change!r} is no change of a set. Use Enter, Touch, Leave, Pin, Clear or Resize."
                )

    def note(
        self,
        working_set: int,
        kind: str,
        raw: bytes | None,
        *,
        at: datetime,
        former: bytes | None = None,
    ) -> int:
        """Write a move into the log, and return its number."""
        self.number += 1
        when = microseconds(at, name="at")
        row = (self.agent, self.number, working_set, str(kind), raw, former, self.by, when)
        self.connection.run("insert_move", row)
        self.noted.append(WorkingSetEventRow(self.number, str(kind), raw, former, when))
        self.touched_sets[working_set] = self.number
        return self.number

    def finish(self) -> None:
        """Move the numbers that other processes look at."""
        if self.number == self.before:
            return
        self.run("advance_moves", number=self.number)
        for working_set, number in self.touched_sets.items():
            self.run("advance_set", working_set=working_set, number=number)
        if self.number // _PRUNED_AT_ONCE > self.before // _PRUNED_AT_ONCE:
            below = self.number - MOST_TOUCHES
            above = self.before - MOST_TOUCHES - 2 * _PRUNED_AT_ONCE
            self.run("prune_touches", above=above, below=below)

    def run(self, query: str, **values: Any) -> Rows:
        """Run a statement about this owner."""
        return self.connection.run(query, {"agent": self.agent, **values})

    def id_of(self, num: int) -> bytes:
        """The id that a memory's number stands for."""
        raw: bytes = self.run("memory_to_hold", num=num).fetchone()[0]
        return raw

    def _enter(self, working_set: int, change: AddItem) -> None:
        num = self._current(change.memory_id)
        if num is None:
            raise NotFound(change.memory_id, self.owner)
        entry = self.run("held_entry", working_set=working_set, num=num)
        raw, status = self.run("memory_to_hold", num=num).fetchone()
        if status == Status.FORGOTTEN:
            raise InvalidInput(f"Memory {id_text(raw)!r} is forgotten; restore it before you hold it.")
        known = entry.fetchone()
        place = self.note(
            working_set, WorkingSetEventKind.TOUCH if known else WorkingSetEventKind.ADD, raw, at=change.at
        )
        values = {
            "working_set": working_set,
            "num": num,
            "place": place,
            "at": microseconds(change.at, name="at"),
            "pinned": int(change.pinned),
            "recalled": int(change.recalled),
        }
        _, is_pinned = known or (num, False)
        if known and change.pinned and not is_pinned:
            self.note(working_set, WorkingSetEventKind.PIN, raw, at=change.at)
        self.run("touch_held" if known else "insert_held", **values)

    def _current(self, memory_id: str) -> int | None:
        """The number of a memory's current version, whichever version is named; None where there is none."""
        values = {**named(memory_id), "version": 0}
        row = values["id"] and self.run("num", **values).fetchone()
        return row[0] if row else None

    def _move_one(self, working_set: int, name: str, change: Touch | RemoveItem | Pin) -> None:
        num = self._current(change.memory_id)
        if num is None:
            raise NotInWorkingSet(change.memory_id, name, self.owner)
        entry = self.run("held_entry", working_set=working_set, num=num)
        memory = self.run("memory_to_hold", num=num)
        known = entry.fetchone()
        if not known:
            raise NotInWorkingSet(change.memory_id, name, self.owner)
        num, pinned = known
        raw: bytes = memory.fetchone()[0]
        if isinstance(change, Touch):
            place = self.note(working_set, WorkingSetEventKind.TOUCH, raw, at=change.at)
            at = microseconds(change.at, name="at")
            values = {"place": place, "at": at, "pinned": 0, "recalled": 0}
            self.run("touch_held", working_set=working_set, num=num, **values)
        elif isinstance(change, RemoveItem):
            kind = WorkingSetEventKind.EVICT if change.evicted else WorkingSetEventKind.REMOVE
            self.note(working_set, kind, raw, at=change.at)
            self.run("remove_held", working_set=working_set, num=num)
        elif bool(pinned) is not change.pinned:
            self.note(
                working_set,
                WorkingSetEventKind.PIN if change.pinned else WorkingSetEventKind.UNPIN,
                raw,
                at=change.at,
            )
            self.run("pin_held", working_set=working_set, num=num, pinned=int(change.pinned))

    def _clear(self, working_set: int, change: Clear) -> None:
        for num, raw, pinned in self.run("held_entries", working_set=working_set).fetchall():
            if not (pinned and change.keep_pinned):
                self.note(working_set, WorkingSetEventKind.CLEAR, raw, at=change.at)
                self.run("remove_held", working_set=working_set, num=num)

    def _resize(self, working_set: int, change: Resize) -> None:
        if change.max_tokens < 0:
            raise InvalidInput(
                f"max_tokens={change.max_tokens} is negative; a working set holds 0 tokens or more."
            )
        self.note(working_set, WorkingSetEventKind.RESIZE, None, at=change.at)
        self.run("resize_set", working_set=working_set, max_tokens=change.max_tokens)
