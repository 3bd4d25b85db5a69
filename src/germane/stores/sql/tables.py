"""The columns of each table, by name and in the order in which rows are written, read and copied.

A new column stands here once: what is inserted, read and copied is made from it by the marks of the
queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["RECORD", "TABLES", "AgentRow", "LexRow", "MemoryRow", "MessageRow", "Table", "TextsRow"]


class AgentRow(NamedTuple):
    """What the query `agent` finds: an agent's numbers, and the settings that a process has to agree with."""

    agent: int
    seq: int
    language: str
    judged: int
    attested: int
    lived: int
    learning: int
    tokenizer: str
    embedding_name: str | None
    embedding_dimension: str | None


class MemoryRow(NamedTuple):
    """A row of `memories`: what filters, orders and counters need of one version of a memory."""

    num: int
    agent: int
    id: bytes
    kind: str
    status: str
    scope: str
    scope_value: str
    subject: str | None
    importance: float
    confidence: float
    outcome: str | None
    trust: str
    source: str | None
    pinned: int
    created_at: int
    updated_at: int
    chain: bytes
    version: int
    content_hash: str
    seen_count: int
    access_count: int
    accessed_at: int | None
    supersedes: bytes | None
    superseded_by: bytes | None
    stage: str | None


class TextsRow(NamedTuple):
    """A row of `texts`: the wordings of one version of a memory, and its tags and metadata as JSON."""

    num: int
    agent: int
    content: str
    micro: str
    micro_tokens: int
    summary: str
    summary_tokens: int
    full_text: str | None
    full_tokens: int
    counter: str
    tags: str
    metadata: str


class LexRow(NamedTuple):
    """A row of `lex`: how many terms a memory has, the distinct ones' hashes, and how often each occurs."""

    num: int
    agent: int
    length: int
    hashes: bytes
    frequencies: bytes


class MessageRow(NamedTuple):
    """A row of `messages`."""

    num: int
    agent: int
    conversation: int
    id: bytes
    group_name: str | None
    role: str
    provider: str
    form: str
    created_at: int | None
    hidden: int
    parts: str
    extra: str


class Table(NamedTuple):
    """The columns of a table, those that a copy is sorted by, and the one that says whose a row is."""

    columns: tuple[str, ...]
    order: str
    owner: str = "agent"


def _table(columns: str, order: str, owner: str = "agent") -> Table:
    return Table(tuple(columns.split()), order, owner)


TABLES: Final[Mapping[str, Table]] = {
    "memories": Table(MemoryRow._fields, "num"),
    "texts": Table(TextsRow._fields, "num"),
    "tags": _table("agent tag num", "tag, num"),
    "places": _table("agent place num", "place, num"),
    "lex": Table(LexRow._fields, "num"),
    "vectors": _table("num agent vector", "num"),
    "unembedded": _table("num agent", "num"),
    "changes": _table("agent seq num what", "seq"),
    "shown": _table("agent context num given used parts", "context, num"),
    "outcomes": _table("agent context num given worth weight at", "context, num"),
    "held": _table("working_set num agent place entered_at touched_at touches pinned recalled", "place, num"),
    "moves": _table("agent number working_set what id former by at", "number"),
    "lives": _table("num agent confirmations successes failures triggers false_alarms renewed_at", "num"),
    "life_events": _table("agent number num sign stage_before stage_after cause by other at", "number"),
    "messages": Table(MessageRow._fields, "num"),
    "message_lex": _table("num agent rules length hashes frequencies", "num"),
    "anchors": _table("conversation agent name text", "conversation, name"),
    "spaces": _table("space admits created_at joined happened", "space", "space"),
    "members": _table("space agent rights role joined_at place", "place", "space"),
    "space_events": _table("space number what by num id former member held_in at", "number", "space"),
    "assemblies": _table("agent number id at context sha256 tokens candidates asked", "number"),
    "assembled": _table(
        "agent number place num section score parts level reason tokens short_by pinned", "number, place"
    ),
}
"""Every table with rows of one agent, in the order in which a copy fills them."""

_UNREAD: Final = frozenset({"agent", "id", "supersedes", "superseded_by"})
"""Columns that say no more than what was asked for, the chain, the version and the successor do."""

RECORD: Final[Mapping[str, str]] = {
    column: f"{table}.{column}"
    for table in ("memories", "texts")
    for column in TABLES[table].columns
    if column not in _UNREAD
}
"""The columns of both tables that a memory is made of, each by its name; the mark `{record}` selects them."""
