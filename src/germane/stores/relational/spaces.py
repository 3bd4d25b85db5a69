"""Spaces in tables: their members, rights and event logs.

A space's memories and working sets belong to an agent of its own; `MemberConnections` gives members access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from germane.errors import UnknownSpace
from germane.ids import id_text
from germane.model.change import Purge
from germane.model.text import space_of, tenant_of
from germane.spaces import (
    Disband,
    Member,
    Right,
    Role,
    SpaceAct,
    SpaceEvent,
    SpaceEventKind,
    SpaceInfo,
    admit,
    decide,
)
from germane.stores.relational.tables import (
    Connection,
    Connections,
    SharedConnections,
    checked_limit,
    former_ref,
    gated,
    microseconds,
    moment,
    row_id,
)
from germane.stores.relational.writes import WriteTransaction

if TYPE_CHECKING:
    from germane.protocols import Store


@gated
class SpaceTables:
    """Spaces: memories that agents share by being members.

    The rules are those of `germane.spaces`, applied inside each transaction. A space's memories and working
    sets are those of an agent of its own, whose name is `germane.spaces.tenant_of` the space's.
    `store_with` is the store by other connections.
    """

    def __init__(self, connections: Connections, store_with: Callable[[Connections], Store]) -> None:
        self._connections = connections
        self._store_with = store_with

    def apply(self, space: str, act: SpaceAct) -> SpaceInfo | None:
        """Do one act to a space in one transaction, or nothing where the rules don't allow it.

        Returns the space as it is afterwards; None when it was disbanded, and all its memories purged, which
        rewrites a file as a purge does. Raises what `germane.spaces.decide` raises.
        """
        with self._connections.writing(tenant_of(space)) as connection:
            known = space_row(connection, space)
            decided = decide(space, known.info if known else None, act)
            if decided.space is not None:
                keep_members(connection, known.info if known else None, decided.space)
                now = required_space(connection, space)
                log = EventLog(connection, now, by=act.by)
                for what, agent in decided.events:
                    log.note(what, member=agent, at=microseconds(act.at, name="at"))
                log.finish()
            elif known is not None and isinstance(act, Disband):
                _end(connection, known, act)
                self._connections.note_purge(connection, "agent")
        if decided.space is None:
            self._connections.erase()
        return decided.space

    def get(self, name: str) -> SpaceInfo | None:
        """A space as it is now; None where there is none of the name."""
        with self._connections.reading(tenant_of(name)) as connection:
            known = space_row(connection, name)
        return known.info if known else None

    def find(
        self, agent: str, *, limit: int | None = None, after: str | None = None
    ) -> tuple[SpaceInfo, ...]:
        """The spaces that an agent is in, by name; `after` is the name that ended the page before."""
        with self._connections.reading(agent) as connection:
            names = spaces_of(connection, agent, limit=limit, after=after)
            return tuple(required_space(connection, name).info for name in names)

    def enter(self, space: str, agent: str) -> Store:
        """The store as a member uses it, for the space's own memories; closing it closes nothing.

        It offers all that the store does. Each of its reads raises NotAllowed unless the agent is a member
        in that very snapshot, each write unless it is an active one that may write.
        """
        return self._store_with(MemberConnections(self._connections, space=space, agent=agent))

    def events(
        self, space: str, agent: str, *, since: int = 0, limit: int | None = None
    ) -> tuple[SpaceEvent, ...]:
        """What happened in a space after the event numbered `since`, in order, for a member.

        Members, memories, and what working sets hold; touches and vectors are left out. Raises
        UnknownSpace or NotAllowed.
        """
        most = checked_limit(limit)
        with self._connections.reading(tenant_of(space)) as connection:
            known = required_space(connection, space)
            admit(known.info, agent, Right.READ)
            values = {"space": known.number, "since": since, "limit": most}
            return tuple(map(_event, connection.run("events", values)))

    def latest_event(self, space: str) -> int:
        """The number of a space's latest event; 0 where there never was one."""
        with self._connections.reading(tenant_of(space)) as connection:
            row = connection.run("happened", {"name": tenant_of(space)}).fetchone()
            return int(row[0]) if row else 0


def _end(connection: Connection, space: SpaceRow, act: Disband) -> None:
    """Leave nothing of a space but its name and the number of its latest event."""
    tenant = tenant_of(space.info.name)
    seq, _ = connection.run("written", {"agent": space.number}).fetchone()
    ids = connection.run("one_of_each_chain", {"agent": space.number}).fetchall()
    writing = WriteTransaction(connection, space.number, tenant, seq, None)
    writing.apply([Purge(memory_id=id_text(raw), at=act.at) for (raw,) in ids])
    connection.run("remove_working_sets", {"agent": space.number})
    connection.run("remove_events", {"space": space.number})
    connection.run("remove_members", {"space": space.number})
    # Followers see that something happened, read the space, and find that it is gone.
    values = {"space": space.number, "happened": space.latest_event + 1}
    connection.run("set_happened", values)


# Access of members: every transaction applies the rules first, and logs its events.


class MemberConnections(SharedConnections):
    """The connections of a store, as a member of a space uses them.

    The right is looked up in the transaction that it is for. So an agent that has left can't read or write
    any more, whatever its process believes; and each write is in the log, or isn't done at all.
    """

    def __init__(self, shared: Connections, *, space: str, agent: str) -> None:
        super().__init__(shared)
        self._space = space
        self.acting = agent

    @contextmanager
    def reading(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:  # noqa: ARG002 - The member it is.
        """A read transaction of a member's. Raises UnknownSpace or NotAllowed."""
        with self._shared.reading(agent, acting=self.acting) as connection:
            self._admitted(connection, Right.READ)
            yield connection

    @contextmanager
    def writing(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:  # noqa: ARG002 - The member it is.
        """A write transaction of a member's, with its events. Raises UnknownSpace or NotAllowed."""
        with self._shared.writing(agent, acting=self.acting) as connection:
            space = self._admitted(connection, Right.WRITE)
            log = EventLog(connection, space, by=self.acting)
            yield connection
            log.note_written()
            log.finish()

    def close(self) -> None:
        """Nothing: the connections belong to the store that was opened."""

    def _admitted(self, connection: Connection, right: Right) -> SpaceRow:
        space = required_space(connection, self._space)
        admit(space.info, self.acting, right)
        return space


# Who is in a space, as rows: read whole, and written as the rules have decided.


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRow:
    """A space with the number that stands for it, and the number of its latest event.

    `seq` and `moved` say how far its memories and working sets have come, where it is the agent entered.
    """

    number: int
    latest_event: int
    info: SpaceInfo
    seq: int = 0
    moved: int = 0


def spaces_of(
    connection: Connection, agent: str, *, limit: int | None = None, after: str | None = None
) -> list[str]:
    """The names of the spaces that an agent is in, in order, after the name `after`."""
    start = "" if after is None else tenant_of(after)
    values = {"name": agent, "after": start, "limit": checked_limit(limit)}
    return [space_of(tenant) for (tenant,) in connection.run("spaces_of", values)]


def space_row(connection: Connection, name: str) -> SpaceRow | None:
    """The space of that name; None where there is none, or none any more."""
    results = [connection.run(each, {"name": tenant_of(name)}) for each in ("space", "members_of")]
    row, rows = results[0].fetchone(), results[1].fetchall()
    if row is None or not rows:
        return None
    number, admits, created_at, joined, happened, seq, moved = row
    info = SpaceInfo(
        name=name,
        created_at=moment(created_at),
        admits=Right(admits) if admits else None,
        members=tuple(_member(each) for each in rows),
        joined=joined,
    )
    return SpaceRow(number=number, latest_event=happened, info=info, seq=seq or 0, moved=moved or 0)


def required_space(connection: Connection, name: str) -> SpaceRow:
    """The space of that name. Raises UnknownSpace."""
    known = space_row(connection, name)
    if known is None:
        raise UnknownSpace(name)
    return known


def keep_members(connection: Connection, before: SpaceInfo | None, after: SpaceInfo) -> None:
    """Store what differs between a space as it was, None for a new one, and as it is now."""
    tenant = tenant_of(after.name)
    for name in (tenant, *(one.agent for one in after.members)):
        connection.run("add_agent", {"name": name})
    values = {
        "name": tenant,
        "admits": after.admits,
        "created_at": microseconds(after.created_at, name="created_at"),
        "joined": after.joined,
    }
    connection.run("set_space", values)
    (number, *_) = connection.run("space", {"name": tenant}).fetchone()
    known = set(before.members) if before else set()
    for gone in {one.agent for one in known} - {one.agent for one in after.members}:
        connection.run("remove_member", {"space": number, "name": gone})
    for one in after.members:
        if one not in known:
            joined_at = microseconds(one.joined_at, name="joined_at")
            member = {"name": one.agent, "rights": one.rights, "role": one.role, "place": one.order}
            connection.run("set_member", {"space": number, "joined_at": joined_at, **member})


def _member(row: tuple[str, str, str, int, int]) -> Member:
    agent, rights, role, joined_at, place = row
    return Member(
        agent=agent, rights=Right(rights), role=Role(role), joined_at=moment(joined_at), order=place
    )


# The log of what happens in a space, written inside the transaction in which it happens.
#
# It holds ids, names, numbers and times, and no text of any memory.

# The event for a change of status. Other changes alter nothing that a member could see; that a version was
# superseded is logged as the revision.
_EVENT_BY_STATUS = {
    "active": SpaceEventKind.RESTORE,
    "superseded": SpaceEventKind.RESTORE,
    "archived": SpaceEventKind.ARCHIVE,
    "forgotten": SpaceEventKind.FORGET,
}
# Events of working sets that aren't logged again: a touch changes nothing that a set holds, and the others
# follow from an event of the memory.
_UNLOGGED_EVENTS = frozenset({"touch", "forget", "purge", "revise"})


class EventLog:
    """The events of one transaction in one space, all by one agent."""

    def __init__(self, connection: Connection, space: SpaceRow, *, by: str) -> None:
        self._connection = connection
        self._space = space.number
        self._latest_event = space.latest_event
        self._by = by
        self._seq, self._moved = space.seq, space.moved
        self._purged: set[bytes | None] = set()

    def note(self, what: SpaceEventKind, **of: Any) -> None:
        """Add an event, with what it is of: `num`, `id` and `former`, a `member`, `held_in`, a time `at`."""
        self._latest_event += 1
        absent = dict.fromkeys(("num", "id", "former", "member", "held_in", "at"))
        values = {"space": self._space, "number": self._latest_event, "what": what, "by": self._by}
        self._connection.run("insert_event", {**absent, **values, **of})

    def note_written(self) -> None:
        """Add what became of memories and working sets since the space was looked up."""
        changes = self._connection.run("changes_to_tell", {"agent": self._space, "seq": self._seq})
        moves = self._connection.run("moves_to_tell", {"agent": self._space, "number": self._moved})
        for row in changes.fetchall():
            self._note_change(*row)
        for what, raw, set_name, at in moves.fetchall():
            if what not in _UNLOGGED_EVENTS:
                self.note(SpaceEventKind(what), id=raw, held_in=set_name, at=at)

    def finish(self) -> None:
        """Note how far the log goes, by which others see that something happened."""
        values = {"space": self._space, "happened": self._latest_event}
        self._connection.run("set_happened", values)

    def _note_change(self, num: int, what: str, raw: bytes | None, version: int | None, status: str) -> None:
        if what == "purge":
            memory_id = self._public_id(num)
            # The versions of a memory go together.
            if memory_id is None or memory_id not in self._purged:
                self._purged.add(memory_id)
                self.note(SpaceEventKind.PURGE, num=num, id=memory_id)
        elif raw is None:
            # It came and was purged in this very transaction: nobody ever saw it.
            return
        elif what == "insert":
            former = row_id(id_text(raw), version - 1) if version and version > 1 else None
            what_new = SpaceEventKind.REMEMBER if former is None else SpaceEventKind.REVISE
            self.note(what_new, num=num, id=raw, former=former)
        elif what == "see" and status != "superseded":
            # A change of a former version is part of the revision, which is logged.
            self.note(SpaceEventKind.REPEAT, num=num, id=raw)
        elif what == "status":
            self.note(_EVENT_BY_STATUS[status], num=num, id=raw)

    def _public_id(self, num: int) -> bytes | None:
        values = {"space": self._space, "num": num}
        row = self._connection.run("told_id", values).fetchone()
        return None if row is None else bytes(row[0])


def _event(row: tuple[Any, ...]) -> SpaceEvent:
    number, what, by, raw, former, member, set_name, at = row
    return SpaceEvent(
        number=number,
        what=SpaceEventKind(what),
        by=by,
        memory_id=None if raw is None else id_text(raw),
        former_id=None if former is None else former_ref(raw, former),
        agent=member,
        working_set=set_name,
        at=None if at is None else moment(at),
    )
