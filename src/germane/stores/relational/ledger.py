"""Recorded assemblies in tables, what has happened to the store since, and memories as they were then.

No text of a memory is kept; a purge takes what is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.ledger import Assembly, LedgerEntry, MemoryChange, MemoryChangeKind
from germane.lifecycle import status_at
from germane.model.context import EmptyReason, Reason
from germane.model.memory import Level, Outcome, Scope, Stage, Status
from germane.model.query import Filter, TimeRange
from germane.stores.relational.lifecycle import key_of
from germane.stores.relational.tables import (
    AGENT_SHIFT,
    Connection,
    Connections,
    id_bytes,
    id_text,
    microseconds,
    moment,
    ref_of,
    try_id_bytes,
)
from germane.stores.sql.tables import AgentRow
from germane.stores.sqlite.connections import SqliteConnection

__all__ = ["MOST_ASSEMBLIES", "POINT", "LedgerTables", "copy_past", "fields_of", "last_of", "query_json"]

MOST_ASSEMBLIES: Final = 2000
"""Kept for an agent: weeks of turns, and with 100 candidates each about 40 MB."""

_WHAT: Final = {
    "insert": MemoryChangeKind.ADDED,
    "supersede": MemoryChangeKind.REVISED,
    "vector": MemoryChangeKind.EMBEDDED,
    "see": MemoryChangeKind.SEEN,
    "reindex": MemoryChangeKind.REINDEXED,
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


class LedgerTables:
    """What `germane.stores.relational.capabilities.Recordings` offers, done with a store's connections."""

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

    def altered(self, agent: str, point: Mapping[str, int]) -> tuple[MemoryChange, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            values = {"agent": number, "seq": point["seq"], "last": last_of(number, point)}
            found = [
                MemoryChange(what=_what(what, status), memory_id=raw and ref_of(raw, version, superseded_by))
                for what, raw, version, superseded_by, status in connection.run("altered", values)
                if raw is not None or what == "reindex"
            ]
            (gone,) = connection.run("count_purged", values).fetchone()
            return (*found, *(MemoryChange(what=MemoryChangeKind.PURGED) for _ in range(gone)))


def _insert(connection: Connection, agent: int, assembly: Assembly) -> None:
    row = {
        "agent": agent,
        "id": id_bytes(assembly.id),
        "at": microseconds(assembly.at, name="at"),
        "context": key_of(assembly.key),
        "sha256": None if assembly.sha256 is None else bytes.fromhex(assembly.sha256),
        "tokens": assembly.tokens,
        "candidates": assembly.candidates,
        "asked": query_json(assembly),
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


def _what(what: str, status: str | None) -> MemoryChangeKind:
    if what == "status":
        return MemoryChangeKind.FORGOTTEN if status == "forgotten" else MemoryChangeKind.MOVED
    return _WHAT[what]


def _number(connection: Connection, agent: str) -> int:
    row = connection.run("agent", {"name": agent}).fetchone()
    return AgentRow._make(row).agent if row else 0


# Recorded assemblies as JSON: what a row holds besides its columns, the same in every database.


def query_json(assembly: Assembly) -> str:
    """What was asked and by what it was made, as JSON."""
    return json.dumps(
        {
            "question": assembly.question,
            "plan": assembly.plan,
            "frame": assembly.frame,
            "budget": assembly.budget,
            "counter": assembly.counter,
            "where": _where(assembly.where),
            "spaces": list(assembly.spaces),
            "points": {agent: dict(point) for agent, point in assembly.points.items()},
            "makers": dict(assembly.makers),
            "unkept": list(assembly.unkept),
            "notes": list(assembly.notes),
            "empty_reason": assembly.empty_reason,
            "given_budget": assembly.given_budget,
            "options": _options(assembly.options),
            "settled": assembly.settled,
            "cold": assembly.cold,
            "seconds": assembly.seconds,
        },
        ensure_ascii=True,
        sort_keys=True,
    )


def fields_of(asked: str) -> dict[str, Any]:
    """The fields of an Assembly that `query_json` has written."""
    found: dict[str, Any] = json.loads(asked)
    reason = found["empty_reason"]
    return {
        **found,
        "where": _filter(found["where"]),
        "options": _given(found["options"]),
        "spaces": tuple(found["spaces"]),
        "unkept": tuple(found["unkept"]),
        "notes": tuple(found["notes"]),
        "empty_reason": None if reason is None else EmptyReason(reason),
    }


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    changed = options.get("changed")
    if changed is None:
        return dict(options)
    return {**options, "changed": {path: moment.isoformat() for path, moment in changed.items()}}


def _given(options: dict[str, Any]) -> dict[str, Any]:
    changed = options.get("changed")
    if changed is None:
        return options
    return {**options, "changed": {path: datetime.fromisoformat(text) for path, text in changed.items()}}


def _where(where: Filter) -> dict[str, Any]:
    when = where.when
    return {
        "kinds": list(where.kinds),
        "tags": list(where.tags),
        "scopes": [str(scope) for scope in where.scopes],
        "applies_to": [str(scope) for scope in where.applies_to],
        "subject": where.subject,
        "source": where.source,
        "metadata": dict(where.metadata or ()),
        "since": _text(when.start if when else None),
        "until": _text(when.end if when else None),
        "min_importance": where.min_importance,
        "pinned": where.pinned,
        "embedded": where.embedded,
        "statuses": [status.value for status in where.statuses],
        "without": [outcome.value for outcome in where.without],
    }


def _filter(found: dict[str, Any]) -> Filter:
    since, until = _moment(found["since"]), _moment(found["until"])
    return Filter(
        kinds=tuple(found["kinds"]),
        tags=tuple(found["tags"]),
        scopes=tuple(map(Scope.parse, found["scopes"])),
        applies_to=tuple(map(Scope.parse, found["applies_to"])),
        subject=found["subject"],
        source=found.get("source"),
        metadata=tuple(found.get("metadata", {}).items()),
        when=TimeRange(since=since, until=until) if since or until else None,
        min_importance=found["min_importance"],
        pinned=found["pinned"],
        embedded=found["embedded"],
        statuses=tuple(map(Status, found["statuses"])),
        # Before it was recorded, every assembly left out what was abandoned.
        without=tuple(map(Outcome, found.get("without", [Outcome.ABANDONED]))),
    )


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


# Copies an agent's memories into an empty store as they were at a point, as far as that can be known.
#
# What is known: which memories were there, which were heads, at which stage they stood, which had vectors,
# what was used. What isn't: when something was said again, what was forgotten before it was restored, and
# what was purged. So nobody may take a copy for the store as it was without a proof of his own.

POINT: Final = ("seq", "judged", "attested", "lived", "learning")
"""What a point says: the numbers of an agent's latest change, judgement, outcome and event, and a switch."""

_TABLES: Final = {
    "agents": "past_agents",
    "memories": "past_memories",
    "texts": "past_texts",
    "tags": "past_tags",
    "places": "past_places",
    "lex": "past_lex",
    "vectors": "past_vectors",
    "unembedded": "past_unembedded",
    "shown": "past_shown",
    "outcomes": "past_outcomes",
    "lives": "past_lives",
    "settings": "past_settings",
}
_ROWS_AT_ONCE: Final = 2000


def last_of(agent: int, point: Mapping[str, int]) -> int:
    """The greatest num that a memory could have at a point."""
    return (agent << AGENT_SHIFT) + point["seq"]


def copy_past(source: Connection, target: SqliteConnection, agent: int, point: Mapping[str, int]) -> None:
    """Fill an empty store with one agent's memories as they were."""
    values = {**point, "agent": agent, "last": last_of(agent, point)}
    for table, query in _TABLES.items():
        rows = source.run(query, values)
        names = [each[0] for each in rows.description]
        marks = ", ".join("?" * len(names))
        columns = ", ".join(names)
        statement = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"
        while some := rows.fetchmany(_ROWS_AT_ONCE):
            target.executemany(statement, some)
    _undo(source, target, values)
    target.run("set_point", values)


def _undo(source: Connection, target: SqliteConnection, values: Mapping[str, int]) -> None:
    """Take back what happened to the memories after the point."""
    agent = values["agent"]
    superseded = {num for (num,) in source.run("superseded_since", values)}
    stages = dict(source.run("stages_then", values).fetchall())
    for num in superseded:
        target.run("be_head", {"agent": agent, "num": num})
    for (num,) in source.run("moved_since", values).fetchall():
        # Only the life of a memory tells where it stood; of the others most were active.
        status = status_at(Stage(stages[num])) if num in stages else None
        stood = status.value if status is not None else "active"
        target.run("be_at", {"agent": agent, "num": num, "status": stood, "stage": None})
    for num, stage in stages.items():
        target.run("be_at", {"agent": agent, "num": num, "status": None, "stage": stage})
    for num, uses in source.run("uses_since", values).fetchall():
        target.run("unuse", {"agent": agent, "num": num, "uses": uses})
