"""What PostgreSQL gets: the queries of the SQL files, inserts of many rows, settings through a pooler."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from germane import GLOBAL, Filter, GermaneError, InvalidInput, Scope, StoreError, StoreUnavailable
from germane.stores import sql
from germane.stores.postgres.connection import SIZES, batched, can_be_batched, in_batches, translation
from germane.stores.postgres.pool import Pool, local, refuses_options, settings_of
from germane.stores.relational.signals import filtered
from germane.stores.sql import queries, schema
from support.postgres_schema import DISTRIBUTED, script

# The SQL files as PostgreSQL gets them: the same names and placeholders as in SQLite.

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


# Filled in from closed lists, or with other such texts.
OF_CONDITIONS = {"{test}", "{path}", "{before}", "{step}", "{column}", "{operator}", "{moment}"}


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
    # In PostgreSQL a function does it.
    assert set(queries("sqlite")) - set(queries("postgres")) == {"blank_replies"}


@pytest.mark.parametrize("name", sorted(set(queries("sqlite")) & set(queries("postgres"))))
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
    marks = {mark for text in queries(dialect).values() for mark in re.findall(r"\{[^}\d][^}]*\}", text)}
    assert marks - {"{filter}", "{agent}", "{dimension}", "{table}"} - OF_CONDITIONS == set()


def test_no_statement_formats_a_value_but_whole_numbers_into_its_text() -> None:
    marks = {
        (name, mark)
        for name, text in queries("postgres").items()
        for mark in re.findall(r"\{(\w+)\}", text)
        if not name.startswith("where_")
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
    policies = text[text.index("-- The policies.") :]
    listed = set(re.findall(r"'(\w+)'", policies[: policies.index("CREATE POLICY listed")]))
    listed |= set(re.findall(r"CREATE POLICY \w+ ON (\w+)", policies))
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


# An INSERT of one row, written as one of many: only where it does the same.

_PLAIN = "INSERT INTO t (a, b) VALUES (%s, %s)"
_SKIPPING = f"{_PLAIN} ON CONFLICT DO NOTHING"
_UPDATED = f"{_PLAIN} ON CONFLICT (a) DO UPDATE SET b = excluded.b"


def _rows(count: int, *, same: int = 0) -> list[tuple[int, int]]:
    return [(number if number >= same else 0, number) for number in range(count)]


_FEWEST = min(SIZES)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("query", [_PLAIN, _SKIPPING, _UPDATED])
def test_one_statement_takes_many_rows_and_keeps_its_ending(query: str, size: int) -> None:
    many = batched(query, size)
    assert many is not None
    last = 2 * size
    assert many.count("(") == size + query.count("(") - 1
    assert many.startswith("INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)")
    assert many.endswith(f"(${last - 1}, ${last}){query.removeprefix(_PLAIN)}")


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE t SET a = %s",
        "INSERT INTO t (a, b) SELECT a, b FROM s WHERE c = %s",
        "INSERT INTO t (a, b) VALUES (%(a)s, %(b)s)",
        "INSERT INTO t (a, b) VALUES (%s, now())",
        "INSERT INTO t (a, b) VALUES (%s, %s) ON CONFLICT (a) DO UPDATE SET b = %s",
    ],
)
def test_other_statements_stay_as_they_are(query: str) -> None:
    assert batched(query, _FEWEST) is None
    assert not can_be_batched(query, _rows(_FEWEST))


def test_few_rows_go_one_by_one() -> None:
    assert not can_be_batched(_PLAIN, _rows(_FEWEST - 1))
    assert can_be_batched(_PLAIN, _rows(_FEWEST))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 63, 64, 65, 100, 200])
def test_every_row_goes_once_and_in_order(count: int) -> None:
    together, left = in_batches(_SKIPPING, _rows(count))
    gone = [value for _, repeated in together for values in repeated for value in values]
    assert gone + [value for row in left for value in row] == [value for row in _rows(count) for value in row]
    assert len(left) < _FEWEST
    assert all(text.count("$") == len(values[0]) for text, values in together)


def test_rows_of_one_key_go_together_only_where_none_updates_another() -> None:
    assert can_be_batched(_SKIPPING, _rows(_FEWEST, same=2))
    assert can_be_batched(_UPDATED, _rows(_FEWEST))
    assert not can_be_batched(_UPDATED, _rows(_FEWEST, same=2))


def test_what_a_memory_is_stored_by_goes_together() -> None:
    names = ("memory", "texts", "tag", "place", "lex", "vector", "unembedded", "change")
    assert [name for name in names if batched(queries("postgres")[f"insert_{name}"], _FEWEST) is None] == []


# What the address sets, set again inside each transaction where a pooler keeps nothing of a session.


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("-cstatement_timeout=9s", {"statement_timeout": "9s"}),
        ("-c a=1  --b-c=2", {"a": "1", "b_c": "2"}),
        (r"-c search_path=a\ b,c", {"search_path": "a b,c"}),
        (r"-c application_name=back\\slash", {"application_name": "back\\slash"}),
        ("-c a=1 -c a=2", {"a": "2"}),
        ("-c hnsw.ef_search=40", {"hnsw.ef_search": "40"}),
    ],
)
def test_settings_are_read_as_libpq_writes_them(options: str, settings: dict[str, str]) -> None:
    assert settings_of(options) == settings


@pytest.mark.parametrize("options", ["-e", "-c", "-c a", "a=1", "-fs"])
def test_what_is_no_setting_is_refused(options: str) -> None:
    with pytest.raises(InvalidInput, match="can't go through a pooler"):
        settings_of(options)


def test_they_are_set_until_the_transaction_ends() -> None:
    settings = {"search_path": 'a, "b"', "hnsw.ef_search": "40", "work_mem": "a'b"}
    assert local(settings).decode().split(";") == [
        "SET LOCAL \"search_path\" = 'a', 'b'",
        'SET LOCAL "hnsw"."ef_search" = \'40\'',
        "SET LOCAL \"work_mem\" = 'a''b'",
    ]
    # By then a transaction has begun, which the default doesn't change any more.
    assert local({"default_transaction_read_only": "on"}) == b"SET LOCAL \"transaction_read_only\" = 'on'"


def test_a_pooler_that_refuses_settings_is_known_by_its_words() -> None:
    assert refuses_options(Exception("FATAL: unsupported startup parameter: options"))
    assert not refuses_options(Exception("FATAL: password authentication failed"))


def test_through_a_pooler_each_transaction_on_a_cluster_sets_its_mode() -> None:
    pool = Pool("postgresql://db.example/germane", timeout=1)
    pool.is_pooled = True
    mode = b'SET LOCAL "citus"."multi_shard_modify_mode" = \'sequential\''
    assert mode not in pool.beginning(b"BEGIN").split(b";")
    pool.is_spread = True
    assert mode in pool.beginning(b"BEGIN").split(b";")


# What a server reports, in germane's words.


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("08006", "connection to the remote node me@w1:5432 failed with the following error: timeout"),
        ("08006", "could not establish any connections to the node w1:5432 after 30000 ms"),
        ("57P01", "terminating connection due to administrator command"),
        ("57P02", "terminating connection because of crash of another server process"),
        ("57P03", "the database system is starting up"),
        ("XX000", "connection error: w1:5432"),
        ("XX000", "failure on connection marked as essential: w1:5432"),
        ("XX000", "server closed the connection unexpectedly"),
        ("XX000", "could not receive data from server: Connection reset by peer"),
        ("XX000", "connection not open"),
    ],
)
def test_a_worker_that_a_coordinator_lost_is_a_lost_connection(code: str, message: str) -> None:
    found = translation(psycopg.errors.lookup(code)(message), "postgresql://db")
    assert type(found) is StoreUnavailable
    assert "the connection to the server was lost, and nothing was half written" in str(found)
    assert message in str(found)


@pytest.mark.parametrize(
    ("code", "message", "kind", "expected"),
    [
        ("XX000", "could not find shard interval", StoreError, "failed: could not find shard interval"),
        ("23505", "server closed the connection unexpectedly", InvalidInput, "breaks a rule of the tables"),
        (
            "42883",
            "function enter(text) does not exist",
            StoreUnavailable,
            "A function of the store's is mis",
        ),
        ("42883", "operator does not exist: bigint = boolean", StoreError, "failed: operator does not exist"),
    ],
)
def test_other_errors_are_what_they_are(
    code: str, message: str, kind: type[GermaneError], expected: str
) -> None:
    found = translation(psycopg.errors.lookup(code)(message), "postgresql://db")
    assert type(found) is kind
    assert expected in str(found)
