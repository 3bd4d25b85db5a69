"""PostgreSQL's schema in a test's database, as the scripts make it, and what the catalogs say of it."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

import psycopg

from germane.stores import sql
from germane.stores.sql import schema

__all__ = [
    "APPLICATION_ROLE",
    "DISTRIBUTED",
    "PARTITIONS",
    "install",
    "numbered",
    "plan_of",
    "script",
]

APPLICATION_ROLE = "germane_application"
"""A role of this name has the rights of an application after `install`, and no others."""

PARTITIONS = 4
"""How many there are of each table in a database that has any."""


def _distributed(text: str) -> tuple[str, ...]:
    marked = (each for each in text.split("CREATE TABLE ")[1:] if "{partitioned}" in each)
    return tuple(each.split()[0] for each in marked)


DISTRIBUTED = _distributed(schema("postgres"))
"""The tables that are distributed by agent."""


@cache
def script(name: str) -> str:
    """A script beside the schema."""
    return (resources.files(sql) / "postgres" / name).read_text(encoding="utf-8")


def install(address: str, *, partitions: int = 0) -> None:
    """Make the schema in an empty database, with the rights of an application."""
    _run(address, schema("postgres"), partitions)


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
