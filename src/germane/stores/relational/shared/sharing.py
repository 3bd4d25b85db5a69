"""Keeps spaces: who is in them, by the rules of `germane.spaces`, and the log of what happens there.

Level: stores (imports the pure rules and model). A space's memories and working sets are those of an
agent of its own; `entering` lets members in to them.
"""

from __future__ import annotations

from germane.errors import InvalidInput
from germane.model.change import Purge
from germane.model.space import Disband, Right, SpaceAct, SpaceEvent, SpaceInfo
from germane.spaces import admit, decide, space_of, tenant_of
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.rows import id_text, microseconds
from germane.stores.relational.shared.happening import EventLog, events_of
from germane.stores.relational.shared.membership import KeptSpace, keep_members, kept_space, required_space
from germane.stores.relational.writes.writing import Writing

__all__ = ["SharedIn"]


class SharedIn:
    """The spaces of one store, by these connections, each as `Spaces` says."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def settle_space(self, space: str, act: SpaceAct) -> SpaceInfo | None:
        """Do one act to a space in one transaction, if its rules allow it."""
        with self._connections.writing(tenant_of(space)) as connection:
            known = kept_space(connection, space)
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

    def space(self, name: str) -> SpaceInfo | None:
        """A space as it is now; None where there is none of the name."""
        with self._connections.reading(tenant_of(name)) as connection:
            known = kept_space(connection, name)
        return known.info if known else None

    def spaces(self, agent: str) -> tuple[SpaceInfo, ...]:
        """The spaces that an agent is in, by name."""
        with self._connections.reading(agent) as connection:
            names = connection.run("spaces_of", {"name": agent}).fetchall()
            return tuple(required_space(connection, space_of(tenant)).info for (tenant,) in names)

    def events(
        self, space: str, agent: str, *, since: int = 0, limit: int | None = None
    ) -> tuple[SpaceEvent, ...]:
        """What happened in a space after the event numbered `since`, in order, for a member."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit={limit} is negative. Use 0 or more, or None for all.")
        with self._connections.reading(tenant_of(space)) as connection:
            known = required_space(connection, space)
            admit(known.info, agent, Right.READ)
            return events_of(connection, known, since=since, limit=limit)

    def happened(self, space: str) -> int:
        """The number of a space's latest event; 0 where there never was one."""
        with self._connections.reading(tenant_of(space)) as connection:
            return _latest(connection, space)


def _latest(connection: Connection, space: str) -> int:
    row = connection.run("happened", {"name": tenant_of(space)}).fetchone()
    return int(row[0]) if row else 0


def _end(connection: Connection, space: KeptSpace, act: Disband) -> None:
    """Leave nothing of a space but its name and the number of its latest event."""
    tenant = tenant_of(space.info.name)
    seq, _ = connection.run("written", {"agent": space.number}).fetchone()
    ids = connection.run("one_of_each_chain", {"agent": space.number}).fetchall()
    writing = Writing(connection, space.number, tenant, seq, None)
    writing.apply([Purge(memory_id=id_text(raw), at=act.at) for (raw,) in ids])
    connection.run("remove_working_sets", {"agent": space.number})
    connection.run("remove_events", {"space": space.number})
    connection.run("remove_members", {"space": space.number})
    # Whoever follows it sees that something happened, looks, and finds that it is gone.
    values = {"space": space.number, "happened": space.happened + 1}
    connection.run("set_happened", values)
