"""Spreads the tables over the servers of a Citus cluster, all rows of an agent on one of them.

Level: stores (imports errors and the SQL).
"""

from __future__ import annotations

import re
from typing import Final

from psycopg.sql import Literal

from germane.errors import StoreUnavailable
from germane.model.database import Tell
from germane.stores.postgres.connection import Raw
from germane.stores.sql import schema

__all__ = ["distribute", "steps"]

# Written by transactions beside an agent's rows, and asked for by this server alone.
_STAYS: Final = frozenset({"commits", "erasures"})

# A table, and the mark of one whose rows are parted by agent.
_TABLES: Final = re.compile(r"^CREATE TABLE (\w+) \($.*?^\)( \{partitioned\})?;$", re.MULTILINE | re.DOTALL)

_FIRST: Final = "states"
_BY_SPACE: Final = "space_events"

_STATE = b"""
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
       EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('states') AND relkind = 'p')
"""


def distribute(raw: Raw, location: str, tell: Tell) -> tuple[str, ...]:
    """Spread the tables by agent, and return those that weren't before; all of them, or none.

    The directories go to every server. Raises StoreUnavailable without the extension `citus`, and where the
    tables have partitions, which it can't spread.
    """
    has_citus, is_partitioned = raw.execute(_STATE).fetchall()[0]
    if not has_citus:
        raise StoreUnavailable(
            f"The database of {location} doesn't have the extension `citus`, which spreads tables over "
            "several servers. Install Citus on them and run CREATE EXTENSION citus. Without it, give a new "
            "database partitions (`germane db migrate --partitions N`), or each of several servers a part "
            "of the agents, as docs/how-to/operate-postgresql.md shows."
        )
    if is_partitioned:
        raise StoreUnavailable(
            f"The tables of {location} have hash partitions, which Citus can't spread. Make a database "
            "without (`germane db migrate`), distribute that one, and copy the store to it "
            "(`germane db copy`)."
        )
    done = {name for (name,) in raw.execute(b"SELECT logicalrelid::text FROM pg_dist_partition").fetchall()}
    left = [(table, step) for table, step in steps() if table not in done]
    with raw.transaction():
        # What refers to a table that is everywhere has to go from server to server one after another.
        raw.execute(b"SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        for number, (_, step) in enumerate(left, start=1):
            raw.execute(step.encode(), prepare=False)
            tell(number, len(left))
    return tuple(table for table, _ in left)


def steps() -> tuple[tuple[str, str], ...]:
    """Each table with the statement that spreads it; what others refer to comes before them."""
    found = []
    for table, is_by_agent in _TABLES.findall(schema("postgres")):
        name = Literal(table).as_string()
        if is_by_agent or table == _BY_SPACE:
            column = Literal("space" if table == _BY_SPACE else "agent").as_string()
            beside = "" if table == _FIRST else f", colocate_with => {Literal(_FIRST).as_string()}"
            found.append((table, f"SELECT create_distributed_table({name}, {column}{beside})"))
        elif table not in _STAYS:
            found.append((table, f"SELECT create_reference_table({name})"))
    return tuple(found)
