"""Every statement says whose rows it means, so that one server of many can answer it.

The server itself says what it understood of each. Each condition that names an agent is left out once:
without it the statement has to be found to ask all servers. So none can be lost unseen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from germane import GLOBAL, Filter, Outcome, Scope, Status, TimeRange
from support.postgres_rows import fill
from support.postgres_schema import (
    DISTRIBUTED,
    MODULES,
    SCHEMA,
    as_store,
    connected,
    filtered_query,
    in_one_statement,
    named_queries,
    numbered,
    sent_to_cluster,
)
from support.routes import Catalog, conditions, refused, unrouted
from support.trees import Node, Understood, nodes

EVERYWHERE = {"agents"}  # For maintenance alone, which is about all agents.
COMMANDS = {"index_vectors", "unindex_vectors"}  # They have no rows.

PLACES = {"space_events": "space"} | dict.fromkeys(DISTRIBUTED, "agent")
"""The column that parts each table."""

QUERIES = {
    name: text
    for name, text in named_queries().items()
    if name not in COMMANDS and not name.startswith("where_")
}

FILTERS = [
    Filter(),
    Filter(kinds=("a", "b"), tags=("t", "u"), scopes=(GLOBAL, Scope(name="project", value="x"))),
    Filter(applies_to=(GLOBAL,), embedded=False, subject="s", min_importance=1, pinned=True),
    Filter(embedded=True, without=(Outcome.FAILURE,), source="cli", metadata={"a": "b"}),
    Filter(where="a.b in (1, 'x', null, 2026-03-01) and a > 'x' and a startswith 'x' and pinned = true"),
    Filter(where="tag = 'a' or scope = 'b' or subject = 'c' or importance > 1 and created_at > 2026-03-01"),
]

_MOMENT, _LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

# Functions, and the tables in them that are looked for by something else than the agent.
BY_KEY = {
    ("postings_of", "lex"),  # By agent where the table is spread, which another test looks at.
    ("purge_memory", "assembled"),  # Any member of a space may have assembled its memory.
    ("candidates_of", "rows of several"),  # Those of a space, which are fetched first and joined then.
}


@pytest.fixture(scope="module")
def understood(postgres_schema: str) -> Iterator[Understood]:
    with psycopg.connect(postgres_schema, autocommit=True) as connection:
        _fill(connection)
        yield Understood(connection)


def _fill(connection: psycopg.Connection[Any]) -> None:
    if not connection.execute(b"SELECT FROM agents WHERE name = 'two'").fetchall():
        for agent in ("one", "two"):
            fill(connection, agent)


@pytest.fixture(scope="module")
def catalog(postgres_schema: str) -> Catalog:
    with psycopg.connect(postgres_schema) as connection:
        partitioned = connection.execute(
            b"SELECT attrelid::bigint, relname, attnum, attname"
            b" FROM pg_attribute JOIN pg_class ON oid = attrelid"
            b" WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0"
        ).fetchall()
        equalities = connection.execute(
            b"SELECT oid::bigint FROM pg_operator WHERE oprname = '=' AND oprleft = 'int8'::regtype"
            b" AND oprright IN ('int8'::regtype, 'int4'::regtype)"
        ).fetchall()
    return Catalog(
        {table: (name, column) for table, name, column, called in partitioned if PLACES.get(name) == called},
        frozenset(each for (each,) in equalities),
    )


def _sent(text: str) -> str:
    """The text as it is sent to a cluster; a space's number is that of the agent that it is."""
    return sent_to_cluster(text).replace("%(space)s", "%(agent)s")


def _tree(understood: Understood, text: str) -> Node:
    return understood.prepared(numbered(_sent(text)))


def _lost(tree: Node, catalog: Catalog) -> list[str]:
    """The conditions that could be left out and nothing would be found to miss."""
    whole = unrouted(tree, catalog)
    return [
        f"{each.kind} at {each.fields.get('location')}"
        for each in conditions(tree, catalog)
        if unrouted(tree, catalog, without=each) == whole
    ]


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize("name", sorted(set(QUERIES) - EVERYWHERE))
def test_every_query_is_for_one_server(understood: Understood, catalog: Catalog, name: str) -> None:
    tree = _tree(understood, QUERIES[name])
    assert unrouted(tree, catalog) == []
    assert refused(tree, catalog) == []
    assert _lost(tree, catalog) == []


LOOKING_UP = sorted(name for name, text in QUERIES.items() if sent_to_cluster(text) != text)
_VALUES: dict[str, Any] = {"id": b"x" * 16, "version": 0, "until": 0}


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize("name", LOOKING_UP)
def test_an_unknown_name_is_no_missing_number(postgres_schema: str, name: str) -> None:
    """A cluster would look for the rows of NULL on every server."""
    names = set(re.findall(r"%\((\w+)\)s", QUERIES[name]))
    values = {each: _VALUES.get(each, "nobody") for each in names}
    details: list[str] = []
    with connected(postgres_schema) as connection:
        connection.add_notice_handler(lambda notice: details.append(notice.message_detail or ""))
        connection.execute(b"SET LOCAL client_min_messages = log; SET LOCAL log_statement = 'all'")
        store = as_store(connection, is_spread=True)
        rows = store.run(name, values)
        assert rows.description is None or rows.fetchall() == []
        connection.rollback()
    sent = [each for each in details if "$" in each]
    assert any("= '0'" in each for each in sent)
    assert [each for each in sent if "NULL" in each] == []


ABOUT_ALL = {
    "_AGENTS",  # Of one server; `counted` is what counts on a cluster.
    "_INDEXES",  # A cluster has none.
    "SELECT coalesce(sum(memories), 0)::bigint FROM states",
}
"""Statements outside the named queries that are about the rows of all agents."""


def _written_in_modules() -> Iterator[tuple[str, str]]:
    """Each statement in the modules, by the name of its constant or by its text."""
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            id(each.value): target.id
            for each in ast.walk(tree)
            if isinstance(each, ast.Assign | ast.AnnAssign)
            for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
            if isinstance(target, ast.Name)
        }
        parts = {
            id(one)
            for each in ast.walk(tree)
            if isinstance(each, ast.JoinedStr | ast.BinOp)
            for one in (each.values if isinstance(each, ast.JoinedStr) else (each.left, each.right))
        }
        for each in ast.walk(tree):
            if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes):
                text = each.value.decode() if isinstance(each.value, bytes) else each.value
                is_part = id(each) in parts
                if re.match(r"\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b", text) or is_part:
                    yield "" if is_part else names.get(id(each), " ".join(text.split())), text


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
def test_every_statement_outside_the_queries_is_for_one_server(
    understood: Understood, catalog: Catalog
) -> None:
    wanting, count = set(), 0
    for name, text in _written_in_modules():
        if not name:
            # Parts of texts that are put together name no table with rows of agents.
            assert not re.search(rf"\b(?:FROM|INTO|UPDATE|JOIN) (?:{'|'.join(PLACES)})\b", text), text
        elif not re.search(r"pg_dist_|citus_", text):
            tree = understood.prepared(numbered(text))
            count += 1
            if unrouted(tree, catalog) or refused(tree, catalog):
                wanting.add(name)
    assert count > 20
    assert wanting == ABOUT_ALL


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
def test_what_is_about_all_agents_is_known_for_it(understood: Understood, catalog: Catalog) -> None:
    for name in EVERYWHERE:
        assert unrouted(_tree(understood, QUERIES[name]), catalog) != []


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize("name", [name for name, text in QUERIES.items() if "{filter}" in text])
@pytest.mark.parametrize("where", FILTERS)
def test_every_filter_is_for_one_server(
    understood: Understood, catalog: Catalog, name: str, where: Filter
) -> None:
    text, _ = filtered_query(name, where, ["p"])
    tree = _tree(understood, text)
    assert unrouted(tree, catalog) == []
    assert refused(tree, catalog) == []
    assert _lost(tree, catalog) == []


def test_every_condition_of_a_filter_was_there() -> None:
    conditions_of_filters = {name for name in named_queries() if name.startswith("where_")}
    conditions_of_filters -= {"where_readable_late"}  # Of no filter: it says which records a search reads.
    conditions_of_filters -= {"where_any_inactive"}  # It takes the place of an agent's condition in a file.
    texts = [
        filtered_query(name, where, ["p"], _MOMENT)[0]
        for where in [
            *FILTERS,
            Filter(session="s", key="k", short_id="0" * 8, expires_by=_MOMENT, valid_at=_MOMENT),
            Filter(statuses=(Status.ACTIVE,)),
            Filter(when=TimeRange(since=_MOMENT, until=_LATER)),
        ]
        for name in QUERIES
        if "{filter}" in QUERIES[name]
    ]

    def is_there(name: str) -> bool:
        beginning = re.split(r"%|\(VALUES|\{", named_queries()[name])[0].strip()
        return any(beginning in text for text in texts)

    assert {name for name in conditions_of_filters if not is_there(name)} == set()


def test_many_rows_in_one_statement_name_their_agent() -> None:
    """A cluster parts such rows by itself."""
    several = [text for each in QUERIES.values() if (text := in_one_statement(each, 4))]
    assert len(several) > 10
    for text in several:
        found = re.match(r"INSERT INTO (\w+) \(([^)]*)\)", text)
        assert found is not None
        assert PLACES.get(found[1], "space") in [each.strip() for each in found[2].split(",")]


_ID = "\\x" + "01" * 16

CALLS = {
    "enter": ["SELECT enter('one', NULL, true)", "SELECT enter('two', 'one')"],
    "add_agent": [
        "SELECT enter('three', NULL, true)",
        "SELECT add_agent('three')",
        "SELECT add_agent('four')",
    ],
    "postings_of": ["SELECT enter('one')", "SELECT * FROM postings_of(entered(), ARRAY[1])"],
    "purge_memory": ["SELECT enter('two')", "SELECT purge_memory(entered(), (entered() << 40) + 1)"],
    "keep_candidate": [
        "SELECT enter('one')",
        f"SELECT keep_candidate(entered(), 1, 9, 'two', '{_ID}', 1, 's', 1, '{{}}', NULL, NULL, 1, 0, 0)",
    ],
    "candidates_of": ["SELECT enter('one')", "SELECT * FROM candidates_of(entered(), 1, '')"],
    "sweep_commits": ["SELECT sweep_commits()"],
    "note_erasure": ["SELECT enter('one')", "SELECT note_erasure(entered(), 'memories')"],
}
"""What runs each function that looks at rows."""

HARMLESS = {"lex_keys", "numbers_of", "texts_of", "entered", "number_of", "require_entered"}


def test_every_function_is_called_here() -> None:
    assert set(re.findall(r"CREATE FUNCTION (\w+)", SCHEMA)) == set(CALLS) | HARMLESS


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_statement_of_a_function_is_for_one_server(
    postgres_schema: str, catalog: Catalog, name: str
) -> None:
    """A function's statements are read like those of a client, its variables as values from outside."""
    wanting: set[str] = set()
    touched: set[str] = set()
    with psycopg.connect(postgres_schema, autocommit=True) as connection:
        _fill(connection)
        understood = Understood(connection)
        connection.execute(b"BEGIN")
        for call in CALLS[name]:
            for tree in understood.trees(call):
                wanting |= {*unrouted(tree, catalog), *refused(tree, catalog)}
                touched |= {
                    catalog.partitioned[each][0] for each in _relations(tree) if each in catalog.partitioned
                }
        connection.execute(b"ROLLBACK")
    assert touched or name in ("note_erasure", "sweep_commits")
    assert {(name, each) for each in wanting} == {each for each in BY_KEY if each[0] == name}


def _relations(tree: Node) -> Iterator[int]:
    for each in [*nodes(list(tree.fields.values()))]:
        if each.kind == "QUERY":
            yield from _relations(each)
        elif each.kind == "RANGETBLENTRY" and each.fields["rtekind"] == "0":
            yield each.number("relid")


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "wanting"),
    [
        ("SELECT num FROM memories WHERE id = $1", ["memories"]),
        ("SELECT num FROM memories WHERE agent = $1 OR num = $2", ["memories"]),
        ("SELECT num FROM memories WHERE NOT agent = $1", ["memories"]),
        ("SELECT num FROM memories WHERE +agent = $1", ["memories"]),
        ("SELECT num FROM memories WHERE agent > $1", ["memories"]),
        ("SELECT num FROM memories WHERE agent = num", ["memories"]),
        ("SELECT num FROM memories WHERE agent = number_of($1)", ["memories"]),
        ("SELECT num FROM memories WHERE '%(agent)s' = kind -- agent = $1", ["memories"]),
        ("SELECT 'memories.agent = $1' FROM memories", ["memories"]),
        ("SELECT num FROM lex WHERE keys && $1 AND (lex.agent = $2 OR $3)", ["lex"]),
        ("UPDATE states SET seq = 1", ["states"]),
        ("UPDATE held SET agent = $1 WHERE agent = $1", ["a row that goes to another server"]),
        ("DELETE FROM held WHERE num = $1", ["held"]),
        ("SELECT id FROM memories JOIN lex USING (num) WHERE memories.agent = $1", ["lex"]),
        ("SELECT id FROM memories JOIN lex USING (agent, num) WHERE length > 1", ["memories", "lex"]),
        ("SELECT 1 FROM lex LEFT JOIN texts ON texts.num = lex.num WHERE lex.agent = $1", ["texts"]),
        ("SELECT 1 FROM memories LEFT JOIN lex ON memories.agent = $1 AND lex.agent = $1", ["memories"]),
        ("SELECT 1 FROM held FULL JOIN lex ON held.agent = lex.agent WHERE lex.agent = $1", ["held"]),
        ("SELECT num FROM changes WHERE agent = $1 AND num IN (SELECT num FROM memories)", ["memories"]),
        ("SELECT num FROM lex WHERE agent = $1 UNION ALL SELECT num FROM vectors", ["vectors"]),
        ("WITH all_of AS (SELECT * FROM vectors) SELECT num FROM all_of WHERE agent = $1", ["vectors"]),
        ("SELECT * FROM (SELECT * FROM vectors) AS part WHERE agent = $1", ["vectors"]),
        ("SELECT 1 FROM agents JOIN held ON held.agent = agents.agent WHERE agents.name = $1", ["held"]),
        ("SELECT 1 FROM texts, lex WHERE texts.agent = $1 AND lex.agent = $2", ["rows of several"]),
        ("INSERT INTO tags (tag, num) VALUES ($1, $2)", ["tags"]),
        ("INSERT INTO tags (agent, tag, num) SELECT num, $1, num FROM lex WHERE agent = $2", ["tags"]),
        ("INSERT INTO unembedded (agent, num) VALUES ($1, (SELECT seq FROM states WHERE agent = $1))",
         ["a query among the values of an INSERT"]),
        ("SELECT 1 FROM texts WHERE EXISTS (SELECT FROM memories AS m WHERE m.num = texts.num)",
         ["texts", "memories"]),
        ("SELECT 1 FROM held h WHERE agent = $1 AND (num = 3 OR num IN (SELECT num FROM lex))",
         ["lex"]),
        ("SELECT (SELECT max(num) FROM lex WHERE agent = texts.agent) FROM texts WHERE agent = $1", ["lex"]),
    ],
)  # fmt: skip  # A statement a line.
def test_a_statement_for_all_servers_is_found(
    understood: Understood, catalog: Catalog, statement: str, wanting: list[str]
) -> None:
    assert sorted(unrouted(understood.prepared(statement), catalog)) == sorted(wanting)


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("INSERT INTO unembedded (agent, num) SELECT agent, 1 FROM lex WHERE agent = $1 AND EXISTS (SELECT)",
         "a subquery without columns"),
        ("UPDATE moves SET by = CASE by WHEN $2 THEN agent ELSE by END WHERE agent = $1",
         "a CASE of a column and a value from outside"),
        ("INSERT INTO unembedded (agent, num) SELECT $1, max(num) FROM lex WHERE agent = $1",
         "an INSERT with a SELECT that goes by way of the coordinator"),
        ("UPDATE moves SET by = CASE WHEN by = $2 THEN agent ELSE by END WHERE agent = $1", None),
        ("INSERT INTO unembedded (agent, num) SELECT agent, num FROM lex WHERE agent = $1", None),
    ],
)  # fmt: skip  # A statement each.
def test_what_a_cluster_does_wrongly_is_found(
    understood: Understood, catalog: Catalog, statement: str, found: str | None
) -> None:
    tree = understood.prepared(statement)
    assert unrouted(tree, catalog) == []
    assert refused(tree, catalog) == ([found] if found else [])


@pytest.mark.parametrize("postgres_schema", ["whole"], indirect=True)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM texts WHERE agent = $1 AND EXISTS (SELECT FROM lex WHERE lex.agent = texts.agent)",
        "SELECT 1 FROM texts WHERE agent = $1 AND NOT EXISTS (SELECT FROM lex WHERE lex.agent = texts.agent)",
        "SELECT 1 FROM texts LEFT JOIN lex USING (agent, num) WHERE agent = $1",
        "SELECT 1 FROM (SELECT agent FROM vectors WHERE agent = $1) AS part JOIN lex USING (agent)",
        "INSERT INTO unembedded (agent, num) SELECT agent, num FROM lex WHERE agent = $1",
    ],
)
def test_what_names_its_agent_by_a_join_is_for_one_server(
    understood: Understood, catalog: Catalog, statement: str
) -> None:
    tree = understood.prepared(statement)
    assert unrouted(tree, catalog) == []
    assert _lost(tree, catalog) == []
