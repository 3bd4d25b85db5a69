"""The SQL files as PostgreSQL gets them: the same names and placeholders as in SQLite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from germane import GLOBAL, Filter, Scope
from germane.stores import sql
from germane.stores.relational.signals import filtered
from germane.stores.sql import queries, schema
from support.postgres_schema import DISTRIBUTED, script

OWN = {
    "cache_columns",  # These are looked up in a process's cache where the store is a file.
    "note_erasure",  # A file is rewritten whole.
    "packed_vectors",
    "postings_of",
    "similarities",
    "nearest_by_index",
    "index_vectors",
    "unindex_vectors",
    "indexed_vectors",
    "set_search_width",
}


def functions() -> dict[str, str]:
    """The text of each function of the schema."""
    parts = re.split(r"CREATE FUNCTION (\w+)", schema("postgres"))[1:]
    return {
        name: re.split(r"\$\$;|\n\);", text)[0] for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def placeholders(dialect: str, text: str) -> set[str]:
    pattern = r"%\((\w+)\)s" if dialect == "postgres" else r"(?<!:):(\w+)"
    return set(re.findall(pattern, re.sub(r"'[^']*'", "", text)))


def positions(dialect: str, text: str) -> int:
    return len(re.findall(r"%s" if dialect == "postgres" else r"\?", text))


def test_both_dialects_name_the_same_queries() -> None:
    assert set(queries("postgres")) - set(queries("sqlite")) == OWN
    assert set(queries("sqlite")) - set(queries("postgres")) == set()


@pytest.mark.parametrize("name", sorted(queries("sqlite")))
def test_a_query_has_the_same_placeholders_in_both(name: str) -> None:
    ours, theirs = queries("postgres")[name], queries("sqlite")[name]
    assert placeholders("postgres", ours) == placeholders("sqlite", theirs)
    assert positions("postgres", ours) == positions("sqlite", theirs)


@pytest.mark.parametrize("name", sorted(each for each in queries("postgres") if each.startswith("insert_")))
def test_an_insert_takes_its_values_in_the_same_order(name: str) -> None:
    if name not in queries("sqlite") or not positions("sqlite", queries("sqlite")[name]):
        return
    columns = [
        re.sub(r"\s", "", re.search(r"INSERT INTO \w+ \(([^)]*)\)", queries(dialect)[name])[1])  # type: ignore[index]  # Each is an INSERT.
        for dialect in ("sqlite", "postgres")
    ]
    assert columns[0] == columns[1]


def test_what_runs_as_the_owner_asks_who_was_entered() -> None:
    """But for what enters, the names, which everybody may read, and what sweeps by age alone."""
    trusting = [
        name
        for name, text in functions().items()
        if "SECURITY DEFINER" in text and "PERFORM require_entered(asked);" not in text
    ]
    assert trusting == ["enter", "add_agent", "sweep_commits"]


def test_every_query_is_commented_and_used() -> None:
    folder = Path(sql.__path__[0])
    text = "".join(each.read_text(encoding="utf-8") for each in (folder / "queries").glob("*.sql"))
    names = re.findall(r"-- name: (.+)", text)
    assert len(names) == len(set(names))
    apart = {name.split(" (")[0] for name in names if "(" in name}
    assert apart.isdisjoint(names)


def test_one_text_becomes_what_each_database_writes() -> None:
    sqlite, postgres = queries("sqlite"), queries("postgres")
    assert sqlite["set_status"] == (
        "UPDATE memories SET status = :status, updated_at = :updated_at\nWHERE num = :num AND agent = :agent"
    )
    assert postgres["set_status"] == (
        "UPDATE memories SET status = %(status)s, updated_at = %(updated_at)s\n"
        "WHERE num = %(num)s AND agent = %(agent)s"
    )
    assert sqlite["insert_tag"] == (
        "INSERT INTO tags (agent, tag, num) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    )
    assert postgres["insert_tag"] == (
        "INSERT INTO tags (agent, tag, num) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    )
    assert sqlite["lock_agent"] == "SELECT seq FROM agents WHERE agent = :agent"
    assert postgres["lock_agent"] == "SELECT seq FROM states WHERE agent = %(agent)s FOR UPDATE"
    assert sqlite["carried_places"] == (
        "SELECT agent, place, num FROM places WHERE agent = :agent ORDER BY place, num"
    )
    assert "count(*) AS memories, sum(full_tokens)::bigint AS tokens" in postgres["counts"]
    assert "count(*) AS memories, sum(full_tokens) AS tokens" in sqlite["counts"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_mark_is_left_but_those_that_are_filled_in_later(dialect: str) -> None:
    marks = {mark for text in queries(dialect).values() for mark in re.findall(r"\{[^}]+\}", text)}
    assert marks - {"{filter}", "{agent}", "{dimension}", "{table}"} == set()


def test_no_statement_formats_a_value_but_whole_numbers_into_its_text() -> None:
    marks = {
        (name, mark) for name, text in queries("postgres").items() for mark in re.findall(r"\{(\w+)\}", text)
    }
    numbers = {"nearest_by_index": {"agent", "dimension"}, "index_vectors": {"agent", "dimension", "table"}}
    expected = {(name, mark) for name, found in numbers.items() for mark in found} | {
        ("unindex_vectors", "agent")
    }
    filtering = {"find_newest", "find_oldest", "find_important", "admitted", "admitted_among"}
    assert marks == expected | {(name, "filter") for name in filtering}


def test_all_text_compares_by_its_bytes() -> None:
    tables = schema("postgres").split("CREATE TABLE ")[1:]
    columns = [
        line
        for each in tables
        for line in each.split(";")[0].splitlines()
        if re.match(r"\s+\w+\s+text\b", line)
    ]
    assert columns
    assert [line for line in columns if 'COLLATE "C"' not in line] == []


def test_every_table_with_an_agent_has_a_policy() -> None:
    text = schema("postgres")
    owned = set(
        re.findall(
            r"CREATE TABLE (\w+) \((?:(?!CREATE TABLE).)*?\n\s+(?:agent|space)\s+bigint", text, re.DOTALL
        )
    )
    listed = set(re.findall(r"'(\w+)'", text[text.index("-- The policies.") :])) | {"agents"}
    assert owned == listed
    assert set(DISTRIBUTED) < listed


def test_rights_are_for_tables_that_exist() -> None:
    tables = set(re.findall(r"CREATE TABLE (\w+)", schema("postgres")))
    granted = set(
        re.findall(
            r"\b[a-z_]+\b", re.sub(r"--.*|\{role\}|\(token\)|GRANT [A-Z, ]* ON|TO", "", script("grants.sql"))
        )
    )
    assert granted - {"working_set_numbers", "conversation_numbers"} == tables


def test_a_filter_has_the_same_conditions_and_values_in_both() -> None:
    where = Filter(
        kinds=("a", "b"),
        tags=("t",),
        scopes=(GLOBAL, Scope(name="project", value="x")),
        applies_to=(GLOBAL,),
        embedded=False,
    )
    ours, values = filtered("postgres", "find_newest", where, ["p"])
    theirs, same = filtered("sqlite", "find_newest", where, ["p"])
    assert values == same
    given = placeholders("postgres", ours)
    assert given == placeholders("sqlite", theirs)
    assert set(values) <= given
