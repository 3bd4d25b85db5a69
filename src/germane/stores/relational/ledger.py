"""Recorded assemblies in tables, what has happened to the store since, and memories as they were then.

No text of a memory is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.ids import id_text
from germane.ledger import SESSION, Assembly, LedgerEntry, LoggedChange, MemoryChange, MemoryChangeKind
from germane.model.context import EmptyReason, Reason
from germane.model.memory import Level, Outcome
from germane.model.query import Filter, TimeRange
from germane.model.text import is_removed
from germane.stores.relational.lifecycle import key_of
from germane.stores.relational.tables import (
    AGENT_SHIFT,
    UNREADABLE,
    Connection,
    Connections,
    checked_limit,
    damaged,
    gated,
    id_bytes,
    microseconds,
    moment,
    number_of,
    ref_of,
    try_id_bytes,
)

if TYPE_CHECKING:
    from germane.model.conversation import ConversationChange, Message
    from germane.protocols import Store

MOST_ASSEMBLIES: Final = 2000
"""Stored for an agent: weeks of turns, and with 100 candidates each about 40 MB."""

_LONG: Final = 20
"""Characters of a text from which on a question that has it somewhere is taken to quote it."""

_MESSAGES: Final = '"messages": [['
"""What the recorded query of a context with messages has."""

_MORE_THAN_ANY: Final = 1 << 40
"""More candidates than an assembly has."""

POINT: Final = ("seq", "judged", "attested", "lived", "learning")
"""What a point says: the numbers of an agent's latest change, judgement, outcome and event, and a switch."""

_WHAT: Final = {
    "insert": MemoryChangeKind.ADDED,
    "supersede": MemoryChangeKind.REVISED,
    "vector": MemoryChangeKind.EMBEDDED,
    "see": MemoryChangeKind.SEEN,
    "reindex": MemoryChangeKind.REINDEXED,
    "purge": MemoryChangeKind.PURGED,
    "expire": MemoryChangeKind.MOVED,
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
    query: str


_OWNER, _REASON = 3, 8
"""Where a row of the query `assembled` has the name of a memory's agent, and why it was left out."""


@gated
class LedgerTables:
    """The recorded assemblies, and what happened to the memories since.

    At most 2,000 assemblies are stored for an agent, and the oldest are removed. No text of a memory is
    stored; a purge of a memory removes its entries in the same transaction, and the hash of every text that
    it was part of. `past` makes the copy that `as_of` returns.
    """

    def __init__(self, connections: Connections, past: Callable[[str, Mapping[str, int]], Store]) -> None:
        self._connections = connections
        self._past = past

    def record(self, agent: str, assembly: Assembly) -> None:
        """Store an assembly. Raises InvalidInput where the agent has one of that id."""
        with self._connections.writing(agent) as connection:
            connection.run("add_agent", {"name": agent})
            _insert(connection, number_of(connection, agent), assembly)

    def get(self, agent: str, assembly_id: str) -> Assembly | None:
        """The agent's assembly of that id, with the entries of memories that are still stored.

        None where there is none. Its entries have what feedback reported since.
        """
        raw = try_id_bytes(assembly_id)
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            values = {"agent": number, "id": raw}
            row = raw and connection.run("assembly", values).fetchone()
            return _assembly(connection, number, agent, row) if row else None

    def find(
        self, agent: str, *, since: datetime | None = None, limit: int | None = None, after: str | None = None
    ) -> tuple[Assembly, ...]:
        """The agent's assemblies made at `since` or later, the latest first.

        `after` is the last id of the page before. Raises NotFound where that is gone.
        """
        most = checked_limit(limit)
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
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
                "limit": most,
            }
            rows = connection.run("assemblies", values).fetchall()
            return tuple(_assembly(connection, number, agent, row) for row in rows)

    def purge(self, agent: str, *, assembly_id: str | None = None, before: datetime | None = None) -> int:
        """Remove one assembly, those made before a time, or all; returns how many went.

        Raises what the purge of a memory raises for a file that can't be rewritten.
        """
        with self._connections.writing(agent) as connection:
            number = number_of(connection, agent)
            rows = [_AssemblyRow._make(row) for row in _all(connection, number)]
            end = None if before is None else microseconds(before, name="before")
            raw = None if assembly_id is None else try_id_bytes(assembly_id)
            gone = [
                row.number
                for row in rows
                if (assembly_id is None or row.id == raw) and (end is None or row.at < end)
            ]
            _remove(connection, number, gone)
            self._connections.note_purge(connection, "ledger")
        self._connections.erase()
        return len(gone)

    def point(self, agent: str) -> Mapping[str, int]:
        """How far the agent's memories have come: equal points, equal memories."""
        with self._connections.reading(agent) as connection:
            row = connection.run("point", {"agent": agent}).fetchone()
            return dict(zip(POINT, row or (0,) * len(POINT), strict=True))

    def point_at(self, agent: str, at: datetime) -> Mapping[str, int]:
        """How far the agent's memories had come at a moment, by the times of what changed them.

        What feedback counted has no time, so it is as it is now.
        """
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            values = {"agent": number, "at": microseconds(at, name="at")}
            row = connection.run("point_at", values).fetchone()
            return dict(zip(POINT, row or (0,) * len(POINT), strict=True))

    def changes_since(self, agent: str, point: Mapping[str, int]) -> tuple[MemoryChange, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            values = {"agent": number, "seq": point["seq"], "last": last_of(number, point)}
            found = [
                MemoryChange(what=_what(what, status), memory_id=raw and ref_of(raw, version, superseded_by))
                for what, raw, version, superseded_by, status in connection.run("altered", values)
                if raw is not None or what == "reindex"
            ]
            (gone,) = connection.run("count_purged", values).fetchone()
            return (*found, *(MemoryChange(what=MemoryChangeKind.PURGED) for _ in range(gone)))

    def log(self, agent: str, *, since: int, limit: int | None) -> tuple[LoggedChange, ...]:
        """What happened to the agent's memories after the change numbered `since`, oldest first.

        Vectors are left out.
        """
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            values = {"agent": number, "seq": since, "limit": -1 if limit is None else limit}
            return tuple(
                LoggedChange(
                    number=seq,
                    what=MemoryChangeKind.REVISED
                    if what == "insert" and version and version > 1
                    else _what(what, status),
                    memory_id=None if raw is None else id_text(raw),
                    version=version,
                )
                for seq, what, raw, version, status in connection.run("logged_changes", values)
            )

    def as_of(self, agent: str, point: Mapping[str, int]) -> Store:
        """A copy of the agent's memories as they were at a point, as far as the store knows.

        It doesn't know all, so a copy proves nothing by itself. It is for reading, and has to be closed.
        """
        return self._past(agent, point)


def remove_quotations(
    connections: Connections,
    connection: Connection,
    agent: int,
    session: str,
    *,
    changes: Iterable[ConversationChange],
    gone: Sequence[Message],
) -> None:
    """Remove what learning runs, and after a purge the ledger, quote of messages that are gone.

    A whole session takes its runs along.
    """
    from germane.model.conversation import PurgeMessages  # noqa: PLC0415 - Few messages are removed.
    from germane.stores.relational import learning_runs  # noqa: PLC0415 - As above.

    purges = [each for each in changes if isinstance(each, PurgeMessages)]
    if purges:
        _purge_messages(connection, agent, session, (each.own_text.strip() for each in gone))
        connections.note_purge(connection, "conversations")
    if any(each.group is None for each in purges):
        learning_runs.remove_runs(connection, agent, session)
    learning_runs.scrub_runs(connection, agent, messages=[each.id for each in gone])


def _purge_messages(connection: Connection, agent: int, session: str, texts: Iterable[str]) -> None:
    """Remove the assemblies whose questions hold words of messages that are being purged.

    Those are the ones made for a request about the conversation, since its question takes terms from earlier
    messages, and those whose question quotes one of the texts: as a part, or a short one as a whole line.
    What they have in common with a text that is still there goes as well, since nobody can tell them apart.
    """
    rows = [_AssemblyRow._make(row) for row in _all(connection, agent)]
    words = {row.number: _words(row.query, session) for row in rows}
    everything = "\n".join(filter(None, words.values()))
    quoted = [text for text in texts if text and text in everything]
    long = [text for text in quoted if len(text) >= _LONG]
    short = {text for text in quoted if len(text) < _LONG}
    gone = [
        number
        for number, question in words.items()
        if question is None
        or not short.isdisjoint(question.splitlines())
        or any(text in question for text in long)
    ]
    _remove(connection, agent, gone)
    for row in rows:
        if row.sha256 is not None and _MESSAGES in row.query:
            # The hash of a few words can be guessed.
            values = {"agent": agent, "number": row.number, "included": _MORE_THAN_ANY}
            connection.run("withhold_hash", values)


def last_of(agent: int, point: Mapping[str, int]) -> int:
    """The greatest num that a memory could have at a point."""
    return (agent << AGENT_SHIFT) + point["seq"]


def _words(query: str, session: str) -> str | None:
    """The caller's words in a recorded query; None if made for this conversation, or unreadable."""
    try:
        made = json.loads(query)
        words, options = f"{made['question']}\n{made['options'].get('task') or ''}", made["options"]
    except UNREADABLE:
        return None
    return None if options.get(SESSION) == session else words


def _all(connection: Connection, agent: int) -> Sequence[tuple[Any, ...]]:
    values = {"agent": agent, "since": None, "before": None, "limit": -1}
    return connection.run("assemblies", values).fetchall()


def _remove(connection: Connection, agent: int, numbers: Iterable[int]) -> None:
    for number in numbers:
        connection.run("remove_assembly", {"agent": agent, "number": number})


def _insert(connection: Connection, agent: int, assembly: Assembly) -> None:
    # Writes of one agent come one after another, so nobody else takes the number.
    (latest,) = connection.run("latest_assembly", {"agent": agent}).fetchone()
    number = latest + 1
    row = {
        "agent": agent,
        "number": number,
        "id": id_bytes(assembly.id),
        "at": microseconds(assembly.at, name="at"),
        "context": key_of(assembly.key),
        "sha256": None if assembly.sha256 is None else bytes.fromhex(assembly.sha256),
        "tokens": assembly.tokens,
        "candidates": assembly.candidates,
        "asked": query_json(assembly),
    }

    def explain(_: Connection, error: Exception) -> None:
        raise InvalidInput(
            f"The assembly {assembly.id!r} is recorded already, or its figures can't be stored ({error})."
        ) from error

    with connection.attempt(explain):
        connection.run("insert_assembly", row)
    of_it = {"agent": agent, "number": number}
    memories = [(place, entry) for place, entry in enumerate(assembly.entries) if not entry.is_message]
    for place, entry in memories:
        connection.run("insert_assembled", {**of_it, "place": place, **_entry_row(entry)})
    # One may have been purged between the search and now: what a purge does for those that go later.
    included = sum(entry.included for _, entry in memories)
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
    rows = connection.run("assembled", values).fetchall()
    # Of memories that are being removed nothing is there, as after a purge.
    gone = [row for row in rows if is_removed(row[_OWNER])]
    sha256 = None if any(row[_REASON] is None for row in gone) else stored.sha256
    try:
        read, made = [_entry(row) for row in rows if row not in gone], fields_of(stored.query)
        for place, entry in made.pop("messages"):
            read.insert(place, entry)
    except UNREADABLE as error:
        raise damaged(f"Assembly {id_text(stored.id)}", error) from error
    return Assembly(
        id=id_text(stored.id),
        agent=agent,
        at=moment(stored.at),
        key=stored.context.hex(),
        sha256=None if sha256 is None else sha256.hex(),
        tokens=stored.tokens,
        candidates=stored.candidates,
        entries=tuple(read),
        **made,
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


# The fields of an assembly that have no column of their own, as JSON.

_COLUMNS: Final = frozenset({"id", "agent", "at", "key", "sha256", "tokens", "candidates", "entries"})


def query_json(assembly: Assembly) -> str:
    """The fields of an assembly that have no column: the query and what made the context."""
    values = {
        each.name: getattr(assembly, each.name) for each in fields(assembly) if each.name not in _COLUMNS
    }
    messages = [
        [place, _message_row(entry)] for place, entry in enumerate(assembly.entries) if entry.is_message
    ]
    if messages:
        # A row of `assembled` refers to a memory, which a message isn't.
        values["messages"] = messages
    return json.dumps(values, default=_json_form, sort_keys=True)


def _message_row(entry: LedgerEntry) -> dict[str, Any]:
    row = {each.name: getattr(entry, each.name) for each in fields(entry)}
    return {name: value for name, value in row.items() if value is not None}


def _message_entry(row: dict[str, Any]) -> LedgerEntry:
    level, reason = row.pop("level", None), row.pop("reason", None)
    return LedgerEntry(level=level and Level(level), reason=reason and Reason(reason), **row)


def fields_of(text: str) -> dict[str, Any]:
    """The fields of an Assembly that `query_json` has written."""
    found: dict[str, Any] = json.loads(text)
    reason, options, where = found["empty_reason"], found["options"], found["where"]
    if "changed" in options:
        options["changed"] = {path: _moment(text) for path, text in options["changed"].items()}
    since, until = _moment(where.pop("since")), _moment(where.pop("until"))
    where["metadata"] = tuple(where.get("metadata", {}).items())
    when = TimeRange(since=since, until=until) if since or until else None
    return {
        **found,
        "messages": [(place, _message_entry(row)) for place, row in found.get("messages", ())],
        **{name: tuple(found[name]) for name in ("spaces", "unkept", "notes")},
        # Assemblies from before the field was recorded left out what was abandoned.
        "where": Filter(**{"without": (Outcome.ABANDONED,), **where}, when=when),
        "empty_reason": None if reason is None else EmptyReason(reason),
    }


def _json_form(value: Any) -> Any:
    """A value in types that JSON has."""
    if isinstance(value, Filter):
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "when"}
        range_ = value.when
        times = {"since": range_ and range_.start, "until": range_ and range_.end}
        return {**named, **times, "metadata": dict(value.metadata or ())}
    if isinstance(value, Mapping):
        return dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
