"""Changes what working sets hold, inside one write transaction, and notes each move before it is done.

Level: stores (imports model and errors). The log holds ids, numbers and times, and no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound, NotHeld
from germane.model.holding import Clear, Enter, HeldChange, Leave, MoveKind, Pin, Resize, Touch
from germane.model.memory import Status
from germane.stores.relational.connection import Connection, Rows
from germane.stores.relational.rows import id_text, microseconds, named

__all__ = ["KEPT_TOUCHES", "Moving", "Noted"]

KEPT_TOUCHES: Final = 10_000
"""Touches older than this many moves are dropped from the log; everything else stays in it."""

_PRUNED_AT_ONCE: Final = 1000


class Noted(NamedTuple):
    """A move as it stands in the log; `at` in microseconds."""

    number: int
    what: str
    id: bytes | None
    former: bytes | None
    at: int


@dataclass(slots=True)
class Moving:
    """One transaction's moves in one owner's working sets; `finish` ends it."""

    connection: Connection
    agent: int
    by: int
    owner: str = ""
    before: int = -1
    """The number of the owner's latest move, if it is known."""
    noted: list[Noted] = field(init=False, default_factory=list)
    touched_sets: dict[int, int] = field(init=False, default_factory=dict)
    number: int = field(init=False)

    def __post_init__(self) -> None:
        if self.before < 0:
            (self.before,) = self.run("last_move").fetchone()
        self.number = self.before

    def apply(self, working_set: int, name: str, changes: Sequence[HeldChange]) -> None:
        """Do all changes to a set in order. Raises NotFound, NotHeld or InvalidInput."""
        for change in changes:
            if isinstance(change, Enter):
                self._enter(working_set, change)
            elif isinstance(change, Touch | Leave | Pin):
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
        kind: MoveKind,
        raw: bytes | None,
        *,
        at: datetime,
        former: bytes | None = None,
    ) -> int:
        """Write a move into the log, and return its number."""
        self.number += 1
        when = microseconds(at, name="at")
        row = (self.agent, self.number, working_set, kind.value, raw, former, self.by, when)
        self.connection.run("insert_move", row)
        self.noted.append(Noted(self.number, kind.value, raw, former, when))
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
            below = self.number - KEPT_TOUCHES
            above = self.before - KEPT_TOUCHES - 2 * _PRUNED_AT_ONCE
            self.run("prune_touches", above=above, below=below)

    def run(self, query: str, **values: Any) -> Rows:
        """Run a statement about this owner."""
        return self.connection.run(query, {"agent": self.agent, **values})

    def id_of(self, num: int) -> bytes:
        """The id that a memory's number stands for."""
        raw: bytes = self.run("memory_to_hold", num=num).fetchone()[0]
        return raw

    def _enter(self, working_set: int, change: Enter) -> None:
        num = self._current(change.memory_id)
        if num is None:
            raise NotFound(change.memory_id, self.owner)
        entry = self.run("held_entry", working_set=working_set, num=num)
        raw, status = self.run("memory_to_hold", num=num).fetchone()
        if status == Status.FORGOTTEN:
            raise InvalidInput(f"Memory {id_text(raw)!r} is forgotten; restore it before you hold it.")
        known = entry.fetchone()
        place = self.note(working_set, MoveKind.TOUCH if known else MoveKind.ADD, raw, at=change.at)
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
            self.note(working_set, MoveKind.PIN, raw, at=change.at)
        self.run("touch_held" if known else "insert_held", **values)

    def _current(self, memory_id: str) -> int | None:
        """The number of a memory's current version, whichever version is named; None where there is none."""
        values = {**named(memory_id), "version": 0}
        row = values["id"] and self.run("num", **values).fetchone()
        return row[0] if row else None

    def _move_one(self, working_set: int, name: str, change: Touch | Leave | Pin) -> None:
        num = self._current(change.memory_id)
        if num is None:
            raise NotHeld(change.memory_id, name, self.owner)
        entry = self.run("held_entry", working_set=working_set, num=num)
        asked = self.run("memory_to_hold", num=num)
        known = entry.fetchone()
        if not known:
            raise NotHeld(change.memory_id, name, self.owner)
        num, pinned = known
        raw: bytes = asked.fetchone()[0]
        if isinstance(change, Touch):
            place = self.note(working_set, MoveKind.TOUCH, raw, at=change.at)
            at = microseconds(change.at, name="at")
            values = {"place": place, "at": at, "pinned": 0, "recalled": 0}
            self.run("touch_held", working_set=working_set, num=num, **values)
        elif isinstance(change, Leave):
            kind = MoveKind.EVICT if change.evicted else MoveKind.REMOVE
            self.note(working_set, kind, raw, at=change.at)
            self.run("remove_held", working_set=working_set, num=num)
        elif bool(pinned) is not change.pinned:
            self.note(working_set, MoveKind.PIN if change.pinned else MoveKind.UNPIN, raw, at=change.at)
            self.run("pin_held", working_set=working_set, num=num, pinned=int(change.pinned))

    def _clear(self, working_set: int, change: Clear) -> None:
        for num, raw, pinned in self.run("held_entries", working_set=working_set).fetchall():
            if not (pinned and change.keep_pinned):
                self.note(working_set, MoveKind.CLEAR, raw, at=change.at)
                self.run("remove_held", working_set=working_set, num=num)

    def _resize(self, working_set: int, change: Resize) -> None:
        if change.max_tokens < 0:
            raise InvalidInput(
                f"max_tokens={change.max_tokens} is negative; a working set holds 0 tokens or more."
            )
        self.note(working_set, MoveKind.RESIZE, None, at=change.at)
        self.run("resize_set", working_set=working_set, max_tokens=change.max_tokens)
