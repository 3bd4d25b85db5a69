"""A row of an agent's in every table of the PostgreSQL schema."""

from __future__ import annotations

from typing import Any

import psycopg

__all__ = ["ROWS", "fill", "multiply"]

_ID = b"\x01" * 16

ROWS: dict[str, dict[str, Any]] = {
    "memories": {
        "id": _ID,
        "kind": "fact",
        "status": "active",
        "scope": "global",
        "scope_value": "",
        "importance": 5.0,
        "confidence": 1.0,
        "trust": "user",
        "pinned": 0,
        "created_at": 1,
        "updated_at": 1,
        "chain": _ID,
        "version": 1,
        "content_hash": "h",
        "seen_count": 1,
        "access_count": 0,
    },
    "texts": {
        "content": "c",
        "micro": "m",
        "micro_tokens": 1,
        "summary": "s",
        "summary_tokens": 1,
        "full_tokens": 1,
        "counter": "n",
        "tags": "[]",
        "metadata": "{}",
    },
    "tags": {"tag": "t"},
    "places": {"place": "p"},
    "lex": {"length": 1, "hashes": b"\x07\0\0\0", "frequencies": b"\x01"},
    "vectors": {"vector": "[1,0,0,0,0,0,0,0]"},
    "unembedded": {},
    "changes": {"seq": 1, "what": "insert"},
    "shown": {"context": _ID, "given": 1, "used": 1},
    "outcomes": {"context": _ID, "given": 1, "worth": 1.0, "weight": 1.0, "at": 1},
    "working_sets": {"working_set": None, "name": "w", "max_tokens": 9},
    "held": {
        "working_set": None,
        "place": 1,
        "entered_at": 1,
        "touched_at": 1,
        "touches": 0,
        "pinned": 0,
        "recalled": 0,
    },
    "moves": {"number": 1, "working_set": None, "what": "add", "by": None, "at": 1},
    "conversations": {"conversation": None, "session": "s"},
    "messages": {
        "conversation": None,
        "id": _ID,
        "role": "user",
        "provider": "p",
        "form": "f",
        "hidden": 0,
        "parts": "[]",
        "extra": "{}",
    },
    "message_lex": {"rules": 1, "length": 1, "hashes": b"\x07\0\0\0", "frequencies": b"\x01"},
    "anchors": {"conversation": None, "name": "a", "text": "t"},
    "lives": {"confirmations": 0, "successes": 0, "failures": 0, "triggers": 0, "false_alarms": 0},
    "life_events": {
        "number": 1,
        "sign": "s",
        "stage_before": "a",
        "stage_after": "b",
        "cause": "c",
        "by": None,
        "at": 1,
    },
    "assemblies": {
        "number": 1,
        "id": _ID,
        "at": 1,
        "context": _ID,
        "sha256": _ID * 2,
        "tokens": 1,
        "candidates": 1,
        "asked": "{}",
    },
    "assembled": {
        "number": 1,
        "place": 0,
        "section": "s",
        "score": 1.0,
        "parts": "{}",
        "tokens": 1,
        "short_by": 0,
        "pinned": 0,
    },
    "learning_runs": {"number": 1, "id": _ID, "through": 1, "run": "{}"},
    "spaces": {"space": None, "created_at": 1, "joined": 1},
    "members": {"space": None, "rights": "read", "role": "active", "joined_at": 1, "place": 1},
    "space_events": {"space": None, "number": 1, "what": "remember", "by": None},
    "memory_blocks": {"above": 0, "memories": 1, "entries": b"", "words": b""},
    "data_keys": {"wrapped": b""},
    "replies": {"name": _ID, "at": 1, "mark": _ID, "answer": _ID},
}
"""What a row has besides the agent's number, which None stands for, and its memory's."""

_WITHOUT_NUM = {
    "working_sets",
    "conversations",
    "anchors",
    "moves",
    "assemblies",
    "learning_runs",
    "data_keys",
    "replies",
    "spaces",
    "members",
}
_WITHOUT_AGENT = {"spaces", "space_events"}


def fill(connection: psycopg.Connection[Any], name: str) -> int:
    """Make an agent of this name with one row in every table, as the owner; returns its number."""
    (agent,) = connection.execute(b"SELECT add_agent(%s)", (name,)).fetchall()[0]
    for table, values in ROWS.items():
        row = {each: agent if value is None else value for each, value in values.items()}
        row |= {} if table in _WITHOUT_AGENT else {"agent": agent}
        row |= {} if table in _WITHOUT_NUM else {"num": (agent << 40) + 1}
        names = ", ".join(row)
        marks = ", ".join(["%s"] * len(row))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})".encode(), tuple(row.values()))
    return int(agent)


def multiply(connection: psycopg.Connection[Any], name: str) -> int:
    """Make an agent with some thousand memories, tags, places and changes; returns its number."""
    agent = fill(connection, name)
    # Memories without texts and the like are enough for a planner.
    connection.execute(b"SET LOCAL session_replication_role = replica")
    for table, columns in _MANY.items():
        nums = f"generate_series({(agent << 40) + 2}, {(agent << 40) + 3000}) AS num"
        rows = f"SELECT {agent}, {', '.join(columns.values())} FROM {nums}"
        connection.execute(f"INSERT INTO {table} (agent, {', '.join(columns)}) {rows}".encode())
        connection.execute(f"ANALYZE {table}".encode())
    return agent


_UNIQUE = "int8send(num) || int8send(num)"
_MANY = {
    "memories": {
        **{name: f"'{value}'" for name, value in ROWS["memories"].items() if isinstance(value, str)},
        **{name: str(value) for name, value in ROWS["memories"].items() if isinstance(value, int | float)},
        "num": "num",
        "id": _UNIQUE,
        "chain": _UNIQUE,
        "created_at": "num",
        "content_hash": "num::text",
    },
    "tags": {"tag": "'t' || num % 500", "num": "num"},
    "places": {"place": "'p' || num % 500", "num": "num"},
    "changes": {"seq": "num", "num": "num", "what": "'insert'"},
}
