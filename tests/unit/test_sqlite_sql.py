"""The SQL files as SQLite gets them: isolation is in every statement, and steps come after the baseline."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from germane import GLOBAL, Filter, Status, TimeRange
from germane.stores import sql
from germane.stores.relational.agents import BATCHES
from germane.stores.relational.signals import filtered
from germane.stores.sql import Table, agent_tables, migrations, migrations_in, queries, schema, statements
from germane.testing.fakes import START

OF_THE_WHOLE_STORE = {
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
    r"|messages|message_lex|anchors|lives|life_events|assemblies|assembled|replies)\b"
)

BY_NAME = r"\(SELECT agent FROM agents WHERE name = :agent\)"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connected:
        for statement in statements(schema("sqlite")):
            connected.execute(statement)
        yield connected


def test_every_statement_names_its_agent() -> None:
    wanting = []
    for name, text in queries("sqlite").items():
        if name == "blank_replies":
            continue  # What is purged may stand in the answers of all who could read it.
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
    number = r"\(SELECT agent FROM agents WHERE name = :name\)"
    naming = rf"\bspace = (?::space\b|{number})|\(\s*:space\b|SELECT :space\b"
    wanting = [
        name
        for name, text in queries("sqlite").items()
        if re.search(shared, text) and not re.search(naming, text)
    ]
    # By its name, which gives its number; row by row; or those of an agent.
    assert sorted(wanting) == [
        *("carry_members", "carry_space_events", "carry_spaces"),
        "remove_memberships",
        "set_space",
    ]


def test_every_query_is_commented_and_used() -> None:
    folder = Path(sql.__path__[0])
    text = "".join(path.read_text(encoding="utf-8") for path in (folder / "queries").glob("*.sql"))
    assert re.findall(r"-- name: (.+)\n(?!-- \w)", text) == []
    modules = [
        each for package in ("relational", "sqlite") for each in (folder.parent / package).rglob("*.py")
    ]
    sources = "".join(path.read_text(encoding="utf-8") for path in modules)
    unused = [
        name
        for name in queries("sqlite")
        if f'"{name}"' not in sources
        and not name.startswith(("where_", "find_", "carried_", "carry_", "remove_some_"))
    ]
    assert unused == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_steps_are_numbered_without_gaps_after_the_baseline(dialect: str) -> None:
    first, *steps = migrations(dialect)
    assert first.name == f"{first.number:04}_baseline.sql"
    assert "CREATE TABLE memories" in first.script
    assert [each.number for each in steps] == list(range(first.number + 1, first.number + 1 + len(steps)))


def test_a_step_is_a_file_whose_name_begins_with_its_number(tmp_path: Path) -> None:
    assert migrations_in(tmp_path / "none") == ()
    (tmp_path / "0012_shapes.sql").write_text("DROP TABLE shapes;")
    (tmp_path / "0011_colours.sql").write_text("CREATE TABLE colours (name TEXT) STRICT;")
    (tmp_path / "README").write_text("Steps")
    assert [(each.number, each.name) for each in migrations_in(tmp_path)] == [
        (11, "0011_colours.sql"),
        (12, "0012_shapes.sql"),
    ]
    assert migrations_in(tmp_path)[1].script == "DROP TABLE shapes;"


@pytest.mark.parametrize(("table", "written"), list(agent_tables().items()))
def test_the_columns_of_a_table_are_those_of_the_schema(
    table: str, written: Table, connection: sqlite3.Connection
) -> None:
    found = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    assert list(written.columns) == found


@pytest.mark.parametrize("name", [each for each in queries("sqlite") if not each.startswith("where_")])
def test_every_query_runs(name: str, connection: sqlite3.Connection) -> None:
    everything = Filter(
        kinds=("a", "b"),
        tags=("a", "b"),
        scopes=(GLOBAL, GLOBAL),
        subject="s",
        when=TimeRange(since=START, until=START.replace(year=2030)),
        min_importance=1.0,
        embedded=True,
        where="a.b in (1, 'x', null, 2026-03-01) and not (tag = 'a' or scope startswith 'x' or pinned = true)"
        " and subject < 'x' and importance > 1 and created_at exists",
    )
    text, values = filtered("sqlite", name, everything)
    connection.execute(
        f"EXPLAIN {text}",
        (1,) * text.count("?") if "?" in text else dict.fromkeys(re.findall(r":(\w+)", text), 1) | values,
    )


@pytest.mark.parametrize(
    "name",
    [
        "admitted",
        "admitted_among",
        "block_rows",
        "cache_vectors",
        "changes",
        "find_newest",
        "memory_block_vectors",
        "memory_blocks",
        "message_lex",
        "num",
        "record_by_id",
        "record_by_version",
        "records",
        "unusual_memories",
        "versions",
    ],
)
def test_no_frequent_query_reads_more_than_it_must(name: str, connection: sqlite3.Connection) -> None:
    text, values = filtered("sqlite", name, Filter())
    values = dict.fromkeys(re.findall(r":(\w+)", text), 1) | values
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    searched = [step for step in plan if re.search(r"memories|texts|lex|vectors|changes|memory_blocks", step)]
    assert searched
    assert all(
        re.search(r"rowid|num>|seq>|\(agent=\? AND (?:id|chain)|by_time \(agent=\?\)", step)
        for step in searched
    )
    assert name in {"num", "record_by_version", "versions"} or not any("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize("name", ["admitted", "admitted_among", "find_newest", "find_important"])
def test_a_filter_by_a_short_id_reads_the_memories_that_have_it(
    name: str, connection: sqlite3.Connection
) -> None:
    text, values = filtered("sqlite", name, Filter(short_id="0" * 8))
    values = dict.fromkeys(re.findall(r":(\w+)", text), 1) | values
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    searched = [step for step in plan if re.search(r"memories|few", step)]
    assert len(searched) == 2
    assert all(re.search(r"rowid=|by_short_id \(agent=\? AND <expr>=\?", step) for step in searched)


def test_a_filter_that_admits_no_active_memories_reads_none_of_them(connection: sqlite3.Connection) -> None:
    text, values = filtered("sqlite", "find_newest", Filter(statuses=(Status.SUPERSEDED,)))
    values = dict.fromkeys(re.findall(r":(\w+)", text), 1) | values
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    # The memories come by time, from the number of the agent that the index finds, if it finds any.
    assert [step for step in plan if "memories_unusual (agent=?)" in step]


# A copy or a check of a store reads tables that have no index by agent, each as a whole.
READ_WHOLE = {
    *("carried_texts", "carried_lex", "carried_vectors", "carried_unembedded", "carried_held"),
    *(
        "carried_lives",
        "carried_message_lex",
        "carried_anchors",
        "check_counters",
        "blank_replies",
        "check_orphans",
    ),
}


def test_every_other_query_finds_the_rows_of_its_agent_by_an_index(connection: sqlite3.Connection) -> None:
    scanning = set()
    # Rows of the other tables go with those of these by their foreign keys.
    removing = {f"remove_some_{table}" for table in BATCHES}
    for name in queries("sqlite"):
        if name.startswith("where_") or (name.startswith("remove_some_") and name not in removing):
            continue
        text, values = filtered("sqlite", name, Filter())
        named = dict.fromkeys(re.findall(r":(\w+)", text), 1) | values
        given = (1,) * text.count("?") if "?" in text else named
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", given)]
        if any(re.match(rf"SCAN {OWNED}(?! VIRTUAL)", step) for step in plan):
            scanning.add(name)
    assert scanning == READ_WHOLE


def test_a_column_of_a_memory_is_named_in_few_files() -> None:
    """The schema, and the query that counts one more."""
    folder = Path(sql.__path__[0]).parent
    files = [each for each in folder.rglob("*") if each.suffix in (".py", ".sql")]
    naming = {each.name for each in files if "seen_count" in each.read_text(encoding="utf-8")}
    assert naming == {"schema.sql", "memories.sql"}
