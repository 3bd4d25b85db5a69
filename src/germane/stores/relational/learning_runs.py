"""Learning runs in tables: written with the memories that they change, and scrubbed with what is purged."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from germane.errors import InvalidInput, StaleRevision
from germane.model.extraction import LearningRun, run_from_text, run_to_text
from germane.stores.relational.tables import (
    Connection,
    Connections,
    checked_limit,
    damaged,
    gated,
    id_bytes,
    number_of,
    try_id_bytes,
)

if TYPE_CHECKING:
    from germane.model.change import RecordRun


@gated
class LearningTables:
    """What was learned from conversations: the runs, and how far each session was read.

    `Store.apply` writes a run, in the transaction of the changes that it decided. A purge of a memory or a
    message removes its texts from the runs in the same transaction, and a purged session takes its runs
    along.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def runs(
        self,
        agent: str,
        *,
        session: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[LearningRun, ...]:
        """The agent's runs, the latest first, of one session or of all.

        `after` is the id of the run that ended the page before. Raises InvalidInput where it is gone.
        """
        most = checked_limit(limit)
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            before = None if after is None else _place_of(connection, number, after)
            values = {"agent": number, "session": session, "before": before, "limit": most}
            return tuple(_run(row, agent) for row in connection.run("runs", values))

    def get(self, agent: str, run_id: str) -> LearningRun | None:
        """The agent's run of that id; None where there is none."""
        raw = try_id_bytes(run_id)
        with self._connections.reading(agent) as connection:
            values = {"agent": number_of(connection, agent), "id": raw}
            row = raw and connection.run("run_by_id", values).fetchone()
            return _run(row, agent) if row else None

    def through(self, agent: str, session: str) -> int:
        """The number of the last message of a session that was read; 0 where none was."""
        with self._connections.reading(agent) as connection:
            return _through(connection, number_of(connection, agent), session)


def record_run(connection: Connection, agent: int, change: RecordRun) -> None:
    """Store a run, or what became of it. Raises StaleRevision where its session was read further since."""
    run = change.run
    raw = id_bytes(run.id)
    known = connection.run("run_by_id", {"agent": agent, "id": raw}).fetchone()
    if change.expected is not None and run.session is not None:
        through = _through(connection, agent, run.session)
        if through != change.expected:
            raise StaleRevision(f"{run.session}@{change.expected}", f"{run.session}@{through}")
    stored = {"agent": agent, "through": run.through, "run": run_to_text(run)}
    if known is not None:
        connection.run("rewrite_run", {**stored, "number": known[0]})
        return
    (number,) = connection.run("next_run", {"agent": agent}).fetchone()
    connection.run("insert_run", {**stored, "number": number, "id": raw, "session": run.session})


def scrub_runs(
    connection: Connection,
    agent: int,
    *,
    memories: Collection[str] = (),
    messages: Collection[str] = (),
) -> None:
    """Remove from an agent's runs the texts of these memories or messages, which are purged."""
    marks = [f'"{one}"' for one in (*memories, *messages)]
    if not marks:
        return
    every = {"agent": agent, "session": None, "before": None, "limit": -1}
    for number, text in connection.run("runs", every).fetchall():
        if not any(mark in text for mark in marks):
            continue
        run = run_from_text(text)
        bare = run.without(memories=memories, messages=messages)
        if bare is not run:
            values = {"agent": agent, "number": number, "through": bare.through, "run": run_to_text(bare)}
            connection.run("rewrite_run", values)


def remove_runs(connection: Connection, agent: int, session: str) -> None:
    """Remove the runs of a session, whose messages are purged."""
    connection.run("remove_runs", {"agent": agent, "session": session})


def _through(connection: Connection, agent: int, session: str) -> int:
    row = connection.run("learned_through", {"agent": agent, "session": session}).fetchone()
    return int(row[0])


def _place_of(connection: Connection, agent: int, run_id: str) -> int:
    raw = try_id_bytes(run_id)
    row = raw and connection.run("run_by_id", {"agent": agent, "id": raw}).fetchone()
    if not row:
        raise InvalidInput(
            f"after={run_id!r} is no learning run of this agent. Begin at the first page again."
        )
    return int(row[0])


def _run(row: Iterable[Any], agent: str) -> LearningRun:
    _, text = row
    try:
        return run_from_text(text)
    except InvalidInput as error:
        raise damaged(f"A learning run of agent {agent!r}", error, "restore a backup") from error
