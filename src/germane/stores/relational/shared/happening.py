"""The log of what happens in a space, written inside the transaction in which it happens.

Level: stores (imports model). It holds ids, names, numbers and times, and no text of any memory.
"""

from __future__ import annotations

from typing import Any

from germane.model.space import Happening, SpaceEvent
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import former_ref, id_text, moment, row_id
from germane.stores.relational.shared.membership import KeptSpace

__all__ = ["EventLog", "events_of"]

# What a change of a memory is told as; the others change nothing that a member could see. That a
# version was superseded is told by the one that came in its place.
_TOLD_BY_STATUS = {
    "active": Happening.RESTORE,
    "superseded": Happening.RESTORE,
    "archived": Happening.ARCHIVE,
    "forgotten": Happening.FORGET,
}
# Moves of working sets that aren't told: a touch changes nothing that a set holds, and the others
# follow from what became of the memory, which is told.
_UNTOLD_MOVES = frozenset({"touch", "forget", "purge", "revise"})


class EventLog:
    """The events of one transaction in one space, all by one agent."""

    def __init__(self, connection: Connection, space: KeptSpace, *, by: str) -> None:
        self._connection = connection
        self._space = space.number
        self._happened = space.happened
        self._by = by
        self._seq, self._moved = space.seq, space.moved
        self._purged: set[bytes | None] = set()

    def note(self, what: Happening, **of: Any) -> None:
        """Add an event, with what it is of: `num`, `id` and `former`, a `member`, `held_in`, a time `at`."""
        self._happened += 1
        absent = dict.fromkeys(("num", "id", "former", "member", "held_in", "at"))
        values = {"space": self._space, "number": self._happened, "what": what, "by": self._by}
        self._connection.run("insert_event", {**absent, **values, **of})

    def note_written(self) -> None:
        """Add what became of memories and working sets since the space was looked up."""
        changes = self._connection.run("changes_to_tell", {"agent": self._space, "seq": self._seq})
        moves = self._connection.run("moves_to_tell", {"agent": self._space, "number": self._moved})
        for row in changes.fetchall():
            self._note_change(*row)
        for what, raw, held_in, at in moves.fetchall():
            if what not in _UNTOLD_MOVES:
                self.note(Happening(what), id=raw, held_in=held_in, at=at)

    def finish(self) -> None:
        """Note how far the log goes, by which others see that something happened."""
        values = {"space": self._space, "happened": self._happened}
        self._connection.run("set_happened", values)

    def _note_change(self, num: int, what: str, raw: bytes | None, version: int | None, status: str) -> None:
        if what == "purge":
            memory_id = self._told_id(num)
            # The versions of a memory go together.
            if memory_id is None or memory_id not in self._purged:
                self._purged.add(memory_id)
                self.note(Happening.PURGE, num=num, id=memory_id)
        elif raw is None:
            # It came and was purged in this very transaction: nobody ever saw it.
            return
        elif what == "insert":
            former = row_id(id_text(raw), version - 1) if version and version > 1 else None
            what_new = Happening.REMEMBER if former is None else Happening.REVISE
            self.note(what_new, num=num, id=raw, former=former)
        elif what == "see" and status != "superseded":
            # What happens to a former version is part of the revision, which is told.
            self.note(Happening.REPEAT, num=num, id=raw)
        elif what == "status":
            self.note(_TOLD_BY_STATUS[status], num=num, id=raw)

    def _told_id(self, num: int) -> bytes | None:
        values = {"space": self._space, "num": num}
        row = self._connection.run("told_id", values).fetchone()
        return None if row is None else bytes(row[0])


def events_of(
    connection: Connection, space: KeptSpace, *, since: int, limit: int | None
) -> tuple[SpaceEvent, ...]:
    """What happened in a space after an event, in order."""
    values = {"space": space.number, "since": since, "limit": -1 if limit is None else limit}
    return tuple(_event(row) for row in connection.run("events", values))


def _event(row: tuple[Any, ...]) -> SpaceEvent:
    number, what, by, raw, former, member, held_in, at = row
    return SpaceEvent(
        number=number,
        what=Happening(what),
        by=by,
        memory_id=None if raw is None else id_text(raw),
        former_id=None if former is None else former_ref(raw, former),
        agent=member,
        working_set=held_in,
        at=None if at is None else moment(at),
    )
