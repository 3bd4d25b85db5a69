"""Looks for damage of a file and says what mends it.

Level: stores (imports model).
"""

from __future__ import annotations

import sqlite3

from germane.model.stats import Finding
from germane.stores.sqlite.connection import SqliteConnection

__all__ = ["check_file"]

_RESTORE = "Restore the file from a backup, or export what can be read and import it into a new store."
_REINSERT = "Export the agent's memories and import them into a new store."


def check_file(connection: SqliteConnection) -> tuple[Finding, ...]:
    """Damage of the file itself: pages, indexes and rows that don't agree."""
    try:
        messages = [text for (text,) in connection.execute("PRAGMA integrity_check(20)") if text != "ok"]
        strangers = connection.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.DatabaseError as error:
        messages, strangers = [str(error)], []
    found = [Finding(code="damaged-file", text=each, remedy=_RESTORE) for each in messages]
    found += [
        Finding(code="orphan", text=f"Row {row} of {table} has no memory.", remedy=_REINSERT)
        for table, row, *_ in strangers[:20]
    ]
    return tuple(found)
