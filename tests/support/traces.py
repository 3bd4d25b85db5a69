"""An agent with something in every table of a store of either kind, and where it can be found in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg

import germane

__all__ = ["filled", "number_of", "tables", "texts", "traces"]

_NUMBERED_BY_CONVERSATION = {"messages", "message_lex"}


def filled(store: str) -> None:
    """Something of ada's in every table, and things that others have with it."""
    with germane.open(store, agent="bob", record=True) as bob:
        bob.remember("Bob likes xenon tea", kind="preference")
        with germane.open(store, agent="ada", record=True) as ada:
            first = ada.remember("Argon opens the door", kind="decision", tags=["a:b"])
            ada.remember("Krypton opens the window", metadata={"paths": ["src/*.py"]})
            ada.revise(first.id, "Neon opens the door")
            radon = ada.remember("Radon is a door", kind="fact")
            ada.confirm(radon.id)
            ada.contradict(radon.id)
            ada.working_set("desk").add(ada.memories()[0])
            context = ada.assemble("What opens the door?", budget=2000)
            ada.feedback(context, used=[context.trace.entries[0].memory_id])
            ada.outcome(context, "success")
            talk = ada.conversation("standup")
            talk.append("user", "What does helium do?")
            talk.anchor("state", "deciding")
            team = ada.space("team", create=True)
            team.join("bob", rights="write")
            shared = team.remember("The team likes oolong", kind="fact")
            team.confirm(shared.id)
            team.working_set("board").add(shared)
            alone = ada.space("attic", create=True)
            alone.join("bob", rights="write")
            own = alone.remember("The attic holds fluorine")
            bob.assemble("What does the attic hold?", budget=2000, spaces=["attic"])
            assert own.id in {each.memory_id for each in bob.ledger().list()[0].entries}
            bob.space("attic").leave()


def traces(store: str, number: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows in which a number of an agent's stands, by itself or in that of a memory, in any table."""
    found = {}
    for table, columns, rows in tables(store):
        if table == "erasures":
            # The note of what is to be erased is the one thing that has to stay.
            continue
        places = []
        for row in rows:
            named = dict(zip(columns, row, strict=True))
            numbers = {named.get(each) for each in ("agent", "space", "by", "member")}
            if table not in _NUMBERED_BY_CONVERSATION:
                nums = (named.get(each) for each in ("num", "other"))
                numbers |= {num >> 40 for num in nums if isinstance(num, int)}
            if number in numbers:
                places.append(row)
        if places:
            found[table] = places
    return found


def tables(store: str) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Every table of a store, with the names of its columns and its rows."""
    if store.startswith("postgresql:"):
        with psycopg.connect(store) as raw:
            names = raw.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            ).fetchall()
            for (name,) in names:
                cursor = raw.execute(f'SELECT * FROM "{name}"'.encode())
                yield name, [each.name for each in cursor.description or ()], cursor.fetchall()
    else:
        with closing(sqlite3.connect(store)) as raw:
            names = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in names:
                rows = raw.execute(f'SELECT * FROM "{name}"')
                yield name, [each[0] for each in rows.description], rows.fetchall()


def texts(store: str) -> str:
    """All texts of all tables."""
    return "\n".join(repr(row) for _, _, rows in tables(store) for row in rows)


def number_of(store: str, agent: str) -> int:
    names = {
        row[columns.index("name")]: row[0]
        for table, columns, rows in tables(store)
        if table == "agents"
        for row in rows
    }
    return int(names[agent])
