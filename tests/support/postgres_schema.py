"""PostgreSQL's schema in a test's database, as the scripts make it, and what the catalogs say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import psycopg

from germane import Filter
from germane.stores import sql
from germane.stores.postgres import connection as driver
from germane.stores.postgres.servers import steps
from germane.stores.relational.signals import filtered
from germane.stores.sql import schema

__all__ = [
    "APPLICATION_ROLE",
    "DISTRIBUTED",
    "MODULES",
    "PARTITIONS",
    "SCHEMA",
    "SPREAD",
    "as_store",
    "connected",
    "explaining",
    "filtered_query",
    "in_one_statement",
    "install",
    "named_queries",
    "numbered",
    "plan_of",
    "script",
    "sent_to_cluster",
]

SCHEMA = schema("postgres")
"""The statements that make the tables, with marks for what differs from database to database."""

MODULES = tuple(sorted((Path(sql.__path__[0]).parent / "postgres").glob("*.py")))
"""The Python files that send statements of their own to a server."""

APPLICATION_ROLE = "germane_application"
"""A role of this name has the rights of an application after `install`, and no others."""

PARTITIONS = 4
"""How many there are of each table in a database that has any."""


def _distributed(text: str) -> tuple[str, ...]:
    marked = (each for each in text.split("CREATE TABLE ")[1:] if "{partitioned}" in each)
    return tuple(each.split()[0] for each in marked)


DISTRIBUTED = _distributed(SCHEMA)
"""The tables that are distributed by agent."""

SPREAD = steps()
"""Each table with the statement that spreads it over a cluster, in the order in which that is done."""


@cache
def script(name: str) -> str:
    """A script beside the schema."""
    return (resources.files(sql) / "postgres" / name).read_text(encoding="utf-8")


def install(address: str, *, partitions: int = 0) -> None:
    """Make the schema in an empty database, with the rights of an application."""
    _run(address, SCHEMA, partitions)


def connected(address: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """A connection that reads and writes values as those of a store do."""
    return psycopg.connect(address, context=driver.ADAPTERS, autocommit=autocommit)


def as_store(connection: psycopg.Connection[Any], *, is_spread: bool = False) -> driver.PostgresConnection:
    """The connection as a store uses it, to run named queries; `is_spread` as on a cluster."""
    return driver.PostgresConnection(connection, is_spread=is_spread)


def named_queries(dialect: Literal["postgres", "sqlite"] = "postgres") -> Mapping[str, str]:
    """The text of each query of a store by its name."""
    return sql.queries(dialect)


def filtered_query(
    name: str, where: Filter, places: Sequence[str] = (), now: datetime | None = None
) -> tuple[str, dict[str, Any]]:
    """A named query with the conditions of a filter and a time, and the values of its placeholders."""
    return filtered("postgres", name, where, places, now=now)


def in_one_statement(text: str, rows: int) -> str | None:
    """The INSERT of a row as one statement for so many rows; None for what is no such INSERT."""
    return driver.batched(text, rows)


def sent_to_cluster(text: str) -> str:
    """The text of a query as it is sent: numbers stand where it looks up names."""
    return driver.numbered(text.encode())[0].decode()


def numbered(text: str) -> str:
    """The text of a query with $1 for its first placeholder and so on, each name having one number."""
    text = (
        text.replace("{filter}", "")
        .replace("{agent}", "1")
        .replace("{dimension}", "4")
        .replace("{table}", "vectors")
    )
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, each in enumerate(names, start=1):
        text = text.replace(f"%({each})s", f"${number}")
    for number in range(1, text.count("%s") + 1):
        text = text.replace("%s", f"${number}", 1)
    return text.replace("%%", "%")


def explaining(connection: psycopg.Connection[Any]) -> list[str]:
    """The plans of all that runs from now on in this transaction, also inside functions, as they come."""
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    connection.execute(b"LOAD 'auto_explain'")
    for name, value in {
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
        "client_min_messages": "log",
    }.items():
        connection.execute(b"SELECT set_config(%s, %s, true)", (name, value))
    return heard


def plan_of(
    connection: psycopg.Connection[Any], text: str, values: dict[str, Any], *, verbose: bool = False
) -> str:
    """How the server carries a statement out."""
    # What a subquery among the columns does is left out of a plan that isn't carried out.
    how = "COSTS OFF" + (", VERBOSE, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF" if verbose else "")
    rows = connection.execute(f"EXPLAIN ({how}) {text}".encode(), values, prepare=False)
    return "\n".join(line for (line,) in rows)


def _run(address: str, text: str, partitions: int) -> None:
    partitioned = "PARTITION BY HASH (agent)" if partitions else ""
    with psycopg.connect(address) as connection:
        connection.execute(text.replace("{partitioned}", partitioned).encode())
        connection.execute(script("partitions.sql").replace("{partitions}", str(partitions)).encode())
        # The role is the server's, and may be there from another test's database.
        role = f"BEGIN CREATE ROLE {APPLICATION_ROLE} LOGIN; EXCEPTION WHEN duplicate_object THEN END"
        connection.execute(f"DO $$ {role} $$".encode())
        connection.execute(script("grants.sql").replace("{role}", APPLICATION_ROLE).encode())
