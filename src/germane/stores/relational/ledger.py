"""Keeps recorded assemblies, and says what has happened to the store since.

Level: stores (imports retrieval and what is above it). No text of a memory is kept; a purge takes what is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.model.ledger import Alteration, Altered, Assembly, LedgerEntry
from germane.model.memory import Level
from germane.model.trace import Reason
from germane.stores.recorded import asked_json, fields_of
from germane.stores.relational.agents.past import POINT, last_of
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.experience.learning import key_of
from germane.stores.relational.rows import id_bytes, id_text, microseconds, moment, ref_of, try_id_bytes
from germane.stores.sql.tables import AgentRow

__all__ = ["MOST_ASSEMBLIES", "LedgerIn"]

MOST_ASSEMBLIES: Final = 2000
"""Kept for an agent: weeks of turns, and with 100 candidates each about 40 MB."""

_WHAT: Final = {
    "insert": Altered.ADDED,
    "supersede": Altered.REVISED,
    "vector": Altered.EMBEDDED,
    "see": Altered.SEEN,
    "reindex": Altered.REINDEXED,
}


class _AssemblyRow(NamedTuple):
    """A row of the queries `assembly` and `assemblies`."""

    number: int
    id: bytes
    at: int
    context: bytes
    sha256: bytes | None
    tokens: int
    candidates: int
    asked: str


class LedgerIn:
    """What `germane.stores.relational.recording.Recordings` offers, done with a store's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def record(self, agent: str, assembly: Assembly) -> None:
        """Keep an assembly. The oldest leave where there are more than 2,000."""
        with self._connections.writing(agent) as connection:
            connection.run("add_agent", {"name": agent})
            _insert(connection, _number(connection, agent), assembly)

    def recorded(self, agent: str, assembly_id: str) -> Assembly | None:
        """The agent's assembly of that id, with the entries of memories that are still stored."""
        raw = try_id_bytes(assembly_id)
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            values = {"agent": number, "id": raw}
            row = raw and connection.run("assembly", values).fetchone()
            return _assembly(connection, number, agent, row) if row else None

    def recordings(
        self, agent: str, *, since: datetime | None = None, limit: int | None = None, after: str | None = None
    ) -> tuple[Assembly, ...]:
        """The agent's assemblies made at `since` or later, the latest first, after the one of that id."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit={limit} is negative. Use 0 or more, or None for all.")
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            before = None
            if after is not None:
                values = {"agent": number, "id": try_id_bytes(after)}
                row = connection.run("assembly", values).fetchone()
                if row is None:
                    raise NotFound(after, agent)
                before = _AssemblyRow._make(row).number
            values = {
                "agent": number,
                "since": None if since is None else microseconds(since, name="since"),
                "before": before,
                "limit": -1 if limit is None else limit,
            }
            rows = connection.run("assemblies", values).fetchall()
            return tuple(_assembly(connection, number, agent, row) for row in rows)

    def point(self, agent: str) -> Mapping[str, int]:
        """How far the agent's memories have come: equal points, equal memories."""
        with self._connections.reading(agent) as connection:
            row = connection.run("point", {"agent": agent}).fetchone()
            return dict(zip(POINT, row or (0,) * len(POINT), strict=True))

    def altered(self, agent: str, point: Mapping[str, int]) -> tuple[Alteration, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            values = {"agent": number, "seq": point["seq"], "last": last_of(number, point)}
            found = [
                Alteration(what=_what(what, status), memory_id=raw and ref_of(raw, version, superseded_by))
                for what, raw, version, superseded_by, status in connection.run("altered", values)
                if raw is not None or what == "reindex"
            ]
            (gone,) = connection.run("count_purged", values).fetchone()
            return (*found, *(Alteration(what=Altered.PURGED) for _ in range(gone)))


def _insert(connection: Connection, agent: int, assembly: Assembly) -> None:
    row = {
        "agent": agent,
        "id": id_bytes(assembly.id),
        "at": microseconds(assembly.at, name="at"),
        "context": key_of(assembly.key),
        "sha256": None if assembly.sha256 is None else bytes.fromhex(assembly.sha256),
        "tokens": assembly.tokens,
        "candidates": assembly.candidates,
        "asked": asked_json(assembly),
    }
    try:
        connection.run("insert_assembly", row)
        (number,) = connection.run("latest_assembly", {"agent": agent}).fetchone()
    except connection.refusal as error:
        raise InvalidInput(
            f"The assembly {assembly.id!r} is recorded already, or its figures can't be kept ({error})."
        ) from error
    of_it = {"agent": agent, "number": number}
    for place, entry in enumerate(assembly.entries):
        connection.run("insert_assembled", {**of_it, "place": place, **_entry_row(entry)})
    # One may have been purged between the search and now: what a purge does for those that go later.
    included = sum(entry.included for entry in assembly.entries)
    connection.run("withhold_hash", {**of_it, "included": included})
    connection.run("remove_old_assemblies", {"agent": agent, "most": MOST_ASSEMBLIES})


def _entry_row(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "id": id_bytes(entry.memory_id),
        "version": entry.version,
        "owner": entry.agent,
        "section": entry.section,
        "score": float(entry.score),
        "parts": json.dumps({name: float(part) for name, part in sorted(entry.parts.items())}),
        "level": None if entry.level is None else entry.level.value,
        "reason": None if entry.reason is None else entry.reason.value,
        "tokens": entry.tokens,
        "short_by": entry.short_by,
        "pinned": int(entry.pinned),
    }


def _assembly(connection: Connection, number: int, agent: str, row: tuple[Any, ...]) -> Assembly:
    stored = _AssemblyRow._make(row)
    values = {"agent": number, "number": stored.number, "context": stored.context}
    entries = connection.run("assembled", values)
    return Assembly(
        id=id_text(stored.id),
        agent=agent,
        at=moment(stored.at),
        key=stored.context.hex(),
        sha256=None if stored.sha256 is None else stored.sha256.hex(),
        tokens=stored.tokens,
        candidates=stored.candidates,
        entries=tuple(map(_entry, entries)),
        **fields_of(stored.asked),
    )


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    raw, version, kind, owner, section, score, parts, level, reason, tokens, short_by, pinned, used = row
    return LedgerEntry(
        memory_id=id_text(raw),
        version=version,
        kind=kind,
        agent=owner,
        section=section,
        score=score,
        parts=json.loads(parts),
        level=None if level is None else Level(level),
        reason=None if reason is None else Reason(reason),
        tokens=tokens,
        short_by=short_by,
        pinned=bool(pinned),
        used=None if used is None else bool(used),
    )


def _what(what: str, status: str | None) -> Altered:
    if what == "status":
        return Altered.FORGOTTEN if status == "forgotten" else Altered.MOVED
    return _WHAT[what]


def _number(connection: Connection, agent: str) -> int:
    row = connection.run("agent", {"name": agent}).fetchone()
    return AgentRow._make(row).agent if row else 0
