"""The SQL of every store, in files: one text of each query for both databases, and a schema for each.

What the databases write differently is a mark in the text:

- `{sqlite: …}` and `{postgres: …}` are for one of them, as is a query headed `-- name: num (sqlite)`;
- `{join}`, `{key}`, `{states}` and the others below are written in each one's own way;
- `:name` and `?` are placeholders, and `::type` is a cast, which SQLite doesn't need;
- `{columns memories}` names the columns of a table, `{values memories}` is as many placeholders, and
  `{record}` names the columns of a memory and of its texts;
- a query whose name has `{table}` in it is there once for each table, unless one is written out.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from germane.errors import StoreUnavailable

_NAME: Final = re.compile(r"^-- name: ([\w{}]+)(?: \((\w+)\))?$", re.MULTILINE)
_BETWEEN: Final = "\0"
_COMMENT: Final = re.compile(r"^\s*--.*$", re.MULTILINE)
_BASELINE: Final = re.compile(r"^-- Schema version (\d+)\.$", re.MULTILINE)

# The tables in a schema, the columns of one, and a column that a later step adds.
_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN: Final = re.compile(r"^ +([a-z]\w*) ", re.MULTILINE)
_ADDED: Final = re.compile(r"^ALTER TABLE (\w+) ADD COLUMN (\w+)", re.MULTILINE)

_COPIED: Final = {
    "memories": "num",
    "texts": "num",
    "tags": "tag, num",
    "places": "place, num",
    "lex": "num",
    "vectors": "num",
    "unembedded": "num",
    "changes": "seq",
    "shown": "context, num",
    "outcomes": "context, num",
    "held": "place, num",
    "moves": "number",
    "lives": "num",
    "life_events": "number",
    "messages": "num",
    "message_lex": "num",
    "anchors": "conversation, name",
    "spaces": "space",
    "members": "place",
    "space_events": "number",
    "assemblies": "number",
    "assembled": "number, place",
    "learning_runs": "number",
}
"""Every table with rows of one agent, in the order in which a copy fills them, and what sorts its rows."""

_UNREAD: Final = frozenset({"agent", "id", "supersedes", "superseded_by"})
"""Columns that follow from the query, the chain, the version and the successor."""

_Patterns = dict[str, tuple[str | None, str | None]]
"""What a pattern becomes in SQLite and in PostgreSQL, one after another; None leaves it."""

_MARKS: Final[_Patterns] = {
    # A join in this order; a plus keeps SQLite from an index where numbers lead straight to the rows.
    r"\{join\}": ("CROSS JOIN", "JOIN"),
    r"\{\+\}": ("+", ""),
    # PostgreSQL has a table of its own for the counters of agents.
    r"\{states\}": ("agents", "states"),
    r"\{state_of (:\w+)\}": (r"agents.name = \1", r"states.agent = number_of(\1)"),
    r"\{number_of (:\w+)\}": (r"(SELECT agent FROM agents WHERE name = \1)", r"number_of(\1)"),
    r"\{greatest\}": ("max", "greatest"),
    r"\{limit\}": ("LIMIT :limit", "LIMIT nullif(:limit::bigint, -1)"),
    # Lists come as JSON. PostgreSQL makes an array of texts once, and not for every row that it looks at.
    r"\{numbers (:\w+)\}": (r"IN (SELECT value FROM json_each(\1))", r"= ANY (numbers_of(\1))"),
    r"\{texts (:\w+)\}": (
        r"IN (SELECT value FROM json_each(\1))",
        r"= ANY (ARRAY(SELECT unnest(texts_of(\1))))",
    ),
    r"\{each (:\w+)\}": (
        r"json_each(\1) AS asked",
        r"unnest(numbers_of(\1)) WITH ORDINALITY AS asked (value, key)",
    ),
}
"""The marks of queries."""

_PLACEHOLDERS: Final[_Patterns] = {
    r"::(?:double precision|\w+)": ("", None),
    r"(?<!:):([a-z]\w*)": (None, r"%(\1)s"),
    r"\?": (None, "%s"),
}
"""What comes after the marks."""

_IN_TABLES: Final[_Patterns] = {
    r"\{by_agent\}": ("STRICT", "{partitioned}"),
    r"\{by_agent_and_key\}": ("STRICT, WITHOUT ROWID", "{partitioned}"),
    r"\{flag\}": ("INTEGER", "smallint"),
    r"\bINTEGER\b": (None, "bigint"),
    r"\bTEXT\b": (None, 'text COLLATE "C"'),
    r"\bREAL\b": (None, "double precision"),
    r"\bBLOB\b": (None, "bytea"),
    # What a mark leaves where it is for the other database.
    r" +;": (";", ";"),
    r"\n +(?=\n)": ("", ""),
}
"""The marks of tables, and their types."""

_IN_BOTH: Final[_Patterns] = {
    r"\{key\}": ("num", "agent, num"),
    r"\{sqlite: ([^{}]*)\}": (r"\1", ""),
    r"\{postgres: ([^{}]*)\}": ("", r"\1"),
}
"""The marks of both; PostgreSQL's keys begin with the agent."""


class Table(NamedTuple):
    """The columns of a table, those that a copy is sorted by, and the one that names the agent of a row."""

    columns: tuple[str, ...]
    order: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from a schema to the next; `number` is the version that it leads to."""

    number: int
    name: str
    script: str


@cache
def queries(dialect: str) -> dict[str, str]:
    """Every named query as a dialect writes it, without its comments."""
    _, *parts = _NAME.split("\n".join(each.read_text(encoding="utf-8") for each in _files(_ROOT / "queries")))
    found: dict[str, str] = {}
    written = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    # Those for every table come first, and one that is written out takes the place of its own.
    for name, only, text in sorted(written, key=lambda each: "{table}" not in each[0]):
        if only in (None, dialect):
            found.update(_for_tables(name, text))
    # All at once, which takes a third of the time.
    texts = _in_dialect(_BETWEEN.join(found.values()), dialect).split(_BETWEEN)
    return {name: text.strip().removesuffix(";").rstrip() for name, text in zip(found, texts, strict=True)}


@cache
def agent_tables() -> Mapping[str, Table]:
    """Every table with rows of one agent, in the order in which a copy fills them.

    The columns are those of the schema, in its order: a column is written, read and copied once it is there.
    """
    found = {name: tuple(_COLUMN.findall(body)) for name, body in _TABLE.findall(schema("sqlite"))}
    for name, column in _ADDED.findall(schema("sqlite")):
        found[name] += (column,)
    return {
        name: Table(found[name], order, "space" if "space" in found[name] else "agent")
        for name, order in _COPIED.items()
    }


@cache
def memory_columns() -> Mapping[str, str]:
    """The columns that a memory is made of, each by its name; the mark `{record}` selects them."""
    return {
        column: f"{table}.{column}"
        for table in ("memories", "texts")
        for column in agent_tables()[table].columns
        if column not in _UNREAD
    }


@cache
def schema(dialect: str) -> str:
    """The whole schema as a new store gets it: the baseline, and every step after it."""
    return "\n".join(each.script for each in migrations(dialect))


@cache
def script(dialect: str, name: str) -> str:
    """Another script of a dialect's, which the head of the schema describes."""
    return (_ROOT / dialect / f"{name}.sql").read_text(encoding="utf-8")


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """The baseline of a dialect and the steps after it, in the order in which they apply."""
    text = _replaced((_ROOT / "schema.sql").read_text(encoding="utf-8"), dialect, _IN_BOTH | _IN_TABLES)
    if dialect == "postgres":
        text = "\n".join([script(dialect, "preparation"), text, script(dialect, "functions")])
    (number,) = _BASELINE.findall(text)
    first = Migration(number=int(number), name=f"{int(number):04}_baseline.sql", script=text)
    return (first, *migrations_in(_ROOT / dialect / "migrations"))


def migrations_in(folder: Traversable) -> tuple[Migration, ...]:
    """The steps in a folder, one a file such as `0011_colours.sql`; none where there is no folder."""
    return tuple(
        Migration(
            number=int(each.name.split("_")[0]), name=each.name, script=each.read_text(encoding="utf-8")
        )
        for each in (_files(folder) if folder.is_dir() else ())
    )


def refuse_older(dialect: str, found: int, location: str) -> None:
    """Raise StoreUnavailable for a schema from before the baseline, which no step brings up to date."""
    oldest = migrations(dialect)[0].number
    if 0 < found < oldest:
        raise StoreUnavailable(
            f"The store {location} has schema version {found}, and this germane can use version {oldest} "
            "and later. Export its memories with the germane that wrote it (`germane export`), and import "
            "them into a new store (`germane import`)."
        )


def statements(script: str) -> tuple[str, ...]:
    """The statements of a script one by one, so that they can run inside a transaction of the caller's."""
    found: list[str] = []
    rest = ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest) and _COMMENT.sub("", rest).strip():
            found.append(rest)
            rest = ""
    return tuple(found)


def _for_tables(name: str, text: str) -> Iterator[tuple[str, str]]:
    if "{table}" not in name:
        yield name, text
        return
    for table, (_, order, owner) in agent_tables().items():
        own = text.replace("{table}", table).replace("{order}", order).replace("{owner}", owner)
        yield name.replace("{table}", table), own


def _in_dialect(text: str, dialect: str) -> str:
    text = _COMMENT.sub("", text).replace("{record}", ", ".join(memory_columns().values()))
    for name, table in agent_tables().items():
        text = text.replace(f"{{columns {name}}}", ", ".join(table.columns))
        text = text.replace(f"{{values {name}}}", ", ".join("?" * len(table.columns)))
    # Inside a part for one database there may be marks, but none that is such a part.
    return _replaced(text, dialect, _MARKS | _IN_BOTH | _PLACEHOLDERS)


def _replaced(text: str, dialect: str, patterns: _Patterns) -> str:
    for pattern, (sqlite, postgres) in patterns.items():
        new = sqlite if dialect == "sqlite" else postgres
        text = text if new is None else re.sub(pattern, new, text)
    return text


_ROOT: Final = resources.files(__name__)


def _files(folder: Traversable) -> list[Traversable]:
    found = [each for each in folder.iterdir() if each.name.endswith(".sql")]
    return sorted(found, key=lambda each: each.name)
