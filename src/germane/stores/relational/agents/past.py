"""Copies an agent's memories into an empty store as they were at a point, as far as that can be known.

Level: stores (imports the pure rules and model). What is known: which memories were there, which were heads,
at which stage they stood, which had vectors, what was used. What isn't: when something was said again, what
was forgotten before it was restored, and what was purged. So nobody may take a copy for the store as it was
without a proof of his own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.lifecycle import status_at
from germane.model.stage import Stage
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import AGENT_SHIFT
from germane.stores.sqlite.connection import SqliteConnection

__all__ = ["POINT", "copy_past", "last_of"]

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
