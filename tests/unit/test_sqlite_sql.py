"""The SQL files: isolation is in every statement, and schema and migrations agree."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from germane.model.query import Filter, TimeRange
from germane.model.scope import GLOBAL
from germane.stores import sql
from germane.stores.relational.filtering import filtered
from germane.stores.sql import migrations, queries, schema, statements
from germane.stores.sqlite.schema import VERSION
from germane.testing.builders import START

OF_THE_WHOLE_STORE = {
    "agent",  # By the agent's name, which gives its number.
    "agents",
    "add_agent",
    "add_setting",
    "change_setting",
    "record_migration",
    "remove_setting",
    "settings",
}
OWNED = (
    r"(?:memories|texts|tags|lex|vectors|unembedded|changes|shown|working_sets|held|moves|conversations"
    r"|messages|message_lex|anchors|lives|life_events|assemblies|assembled)\b"
)

BY_NAME = r"\(SELECT agent FROM agents WHERE name = :agent\)"


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in statements(schema("sqlite")):
        connection.execute(statement)
    return connection


def test_every_statement_names_its_agent() -> None:
    wanting = []
    for name, text in queries("sqlite").items():
        if name in OF_THE_WHOLE_STORE or name.startswith("where_"):
            assert name.startswith("where_") or not re.search(OWNED, text), name
            continue
        for part in text.split("UNION ALL"):
            # What is joined to an agent's row by its num belongs to that agent.
            read = len(re.findall(rf"\b(?:FROM|UPDATE|INTO)\s+{OWNED}", part))
            joined = len(re.findall(rf"\bJOIN\s+{OWNED}", part))
            named = len(re.findall(rf"\+?(?:\w+\.)?\bagent = (?::agent|\w+\.agent|{BY_NAME})", part))
            named += len(re.findall(r"INSERT INTO \w+ \([^)]*\bagent\b", part))
            if named < max(read, min(joined, 1)):
                wanting.append(name)
    assert wanting == []


def test_every_statement_about_a_space_names_it() -> None:
    shared = r"\b(?:FROM|UPDATE|INTO)\s+(?:spaces|members|space_events)\b"
    naming = r"\bspace = :space\b|\(\s*:space\b|SELECT :space\b"
    wanting = [
        name
        for name, text in queries("sqlite").items()
        if re.search(shared, text) and not re.search(naming, text)
    ]
    # By its name, which gives its number; row by row; or those of an agent.
    assert wanting == [
        *("carry_spaces", "carry_members", "carry_space_events"),
        "remove_memberships",
        "set_space",
    ]


def test_every_query_is_commented_and_used() -> None:
    folder = Path(sql.__path__[0])
    files = (folder / "sqlite").glob("queries*.sql")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert re.findall(r"-- name: (\w+)\n(?!-- \w)", text) == []
    modules = [each for room in ("relational", "sqlite") for each in (folder.parent / room).rglob("*.py")]
    sources = "".join(path.read_text(encoding="utf-8") for path in modules)
    unused = [
        name
        for name in queries("sqlite")
        if f'"{name}"' not in sources and not name.startswith(("where_", "find_", "carried_"))
    ]
    assert unused == []


def test_schema_is_the_sum_of_the_migrations() -> None:
    migrated = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations("sqlite"):
        for statement in statements(migration.script):
            migrated.execute(statement)
    listing = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    fresh = connect()

    def shapes(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
        # A column that a migration adds stands in the stored text with other spaces around it.
        rows = connection.execute(listing)
        return [(*rest, re.sub(r"\s*([(),]|\s)\s*", r"\1", text or "")) for *rest, text in rows]

    assert shapes(fresh) == shapes(migrated)
    migrated.close()
    fresh.close()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [each.number for each in migrations("sqlite")] == list(range(1, VERSION + 1))


@pytest.mark.parametrize("name", [each for each in queries("sqlite") if not each.startswith("where_")])
def test_every_query_runs(name: str) -> None:
    connection = connect()
    everything = Filter(
        kinds=("a", "b"),
        tags=("a", "b"),
        scopes=(GLOBAL, GLOBAL),
        subject="s",
        when=TimeRange(since=START, until=START.replace(year=2030)),
        min_importance=1.0,
        embedded=True,
    )
    text, values = filtered("sqlite", name, everything)
    connection.execute(
        f"EXPLAIN {text}",
        (1,) * text.count("?") if "?" in text else dict.fromkeys(re.findall(r":(\w+)", text), 1) | values,
    )
    connection.close()


@pytest.mark.parametrize(
    "name",
    [
        "admitted",
        "admitted_among",
        "cache_rows",
        "cache_vectors",
        "changes",
        "find_newest",
        "message_lex",
        "num",
        "record_by_id",
        "record_by_version",
        "records",
        "versions",
    ],
)
def test_no_frequent_query_reads_more_than_it_must(name: str) -> None:
    connection = connect()
    text, values = filtered("sqlite", name, Filter())
    values = dict.fromkeys(re.findall(r":(\w+)", text), 1) | values
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    connection.close()
    searched = [step for step in plan if re.search(r"memories|texts|lex|vectors|changes", step)]
    assert searched
    assert all(
        re.search(r"rowid|seq>|\(agent=\? AND (?:id|chain)|by_time \(agent=\?\)", step) for step in searched
    )
    assert name in {"num", "record_by_version", "versions"} or not any("TEMP B-TREE" in step for step in plan)
