"""Spreads the tables over the servers of a Citus cluster, all rows of an agent on one of them.

Level: stores (imports errors and the SQL). What a cluster takes and what it refuses was read in the sources
of Citus, and stands in docs/decisions beside what follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from psycopg.sql import Identifier, Literal

from germane.errors import StoreUnavailable
from germane.model.database import Tell
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.sql import schema, script

__all__ = ["bytes_spread", "counted", "distribute", "is_distributed", "require_one_server", "steps"]

# Asked for by this server alone. That of tokens is told to Citus all the same: what writes to it and to
# another server is then committed in two phases, so that a token stands if and only if the rest does.
_STAYS: Final = frozenset({"commits", "erasures"})
_LOCAL: Final = ("commits", "SELECT citus_add_local_table_to_metadata('commits')")

# A table, and the mark of one whose rows are parted by agent.
_TABLES: Final = re.compile(r"^CREATE TABLE (\w+) \($.*?^\)( \{partitioned\})?;$", re.MULTILINE | re.DOTALL)

_FIRST: Final = "states"
_BY_SPACE: Final = "space_events"

# From then on there are identity columns, and outer joins from what is everywhere to what is spread.
_OLDEST: Final = (11, 2)

_STATE: Final = b"""
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'citus'),
       EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('states') AND relkind = 'p'),
       to_regclass('pg_dist_partition') IS NOT NULL
"""

_DONE: Final = b"SELECT logicalrelid::text FROM pg_dist_partition"

_KEYS: Final = b"""
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), confdeltype = 'n'
FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY (%s::text[]::regclass[]) ORDER BY oid
"""


def distribute(raw: Raw, location: str, tell: Tell, *, text: str | None = None) -> tuple[str, ...]:
    """Spread the tables by agent, and return those that weren't before; all of them, or none.

    They are those of the schema `text`, which is this version's if it isn't given. The directories go to
    every server. Raises StoreUnavailable without the extension `citus`, with one before version 11.2, where
    the cluster doesn't know its coordinator, and where the tables have partitions, which it can't spread.
    """
    version, is_partitioned, _ = raw.execute(_STATE).fetchall()[0]
    _check(raw, location, version, is_partitioned=is_partitioned)
    done = {name for (name,) in raw.execute(_DONE).fetchall()}
    left = [(table, step) for table, step in (_LOCAL, *steps(text)) if table not in done]
    if left:
        with raw.transaction():
            # What refers to a table that is everywhere has to go from server to server one after another.
            raw.execute(b"SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
            raw.execute(script("postgres", "spread").encode(), prepare=False)
            _spread(raw, left, tell)
    return tuple(table for table, _ in left)


def steps(text: str | None = None) -> tuple[tuple[str, str], ...]:
    """Each table with the statement that spreads it; what others refer to comes before them."""
    found = []
    for table, is_by_agent in _TABLES.findall(text or schema("postgres")):
        name = Literal(table).as_string()
        if is_by_agent or table == _BY_SPACE:
            column = Literal("space" if table == _BY_SPACE else "agent").as_string()
            beside = "" if table == _FIRST else f", colocate_with => {Literal(_FIRST).as_string()}"
            found.append((table, f"SELECT create_distributed_table({name}, {column}{beside})"))
        elif table not in _STAYS:
            found.append((table, f"SELECT create_reference_table({name})"))
    return tuple(found)


def is_distributed(raw: Raw) -> bool:
    """Whether the tables of the store are spread over a cluster."""
    _, _, has_citus = raw.execute(_STATE).fetchall()[0]
    asked = b"SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('states')"
    return bool(has_citus) and bool(raw.execute(asked).fetchall())


def require_one_server(raw: Raw, location: str, what: str) -> None:
    """Raise StoreUnavailable where the tables are spread, for `what` a cluster can't do."""
    if is_distributed(raw):
        raise StoreUnavailable(
            f"The tables of {location} are spread over a cluster, which can't {what}. "
            "docs/how-to/operate-postgresql.md says what a cluster can't do, and why."
        )


def bytes_spread(raw: Raw) -> int:
    """How many bytes the tables that are spread take on all servers, with their indexes."""
    asked = b"SELECT coalesce(sum(citus_total_relation_size(logicalrelid)), 0)::bigint FROM pg_dist_partition"
    return int(raw.execute(asked).fetchall()[0][0])


def counted(raw: Raw, removed: str) -> tuple[int, int, int]:
    """How many agents there are, how many more are being removed, and how many memories, asked one by one."""
    asked = b"SELECT count(*) FILTER (WHERE NOT starts_with(name, %s)), count(*) FROM agents"
    ((agents, names),) = raw.execute(asked, (removed,)).fetchall()
    ((memories,),) = raw.execute(b"SELECT coalesce(sum(memories), 0)::bigint FROM states").fetchall()
    return agents, names - agents, memories


def _check(raw: Raw, location: str, version: str | None, *, is_partitioned: bool) -> None:
    if version is None:
        raise StoreUnavailable(
            f"The database of {location} doesn't have the extension `citus`, which spreads tables over "
            "several servers. Install Citus on them and run CREATE EXTENSION citus. Without it, give a new "
            "database partitions (`germane db migrate --partitions N`), or each of several servers a part "
            "of the agents, as docs/how-to/operate-postgresql.md shows."
        )
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
        raise StoreUnavailable(
            f"The extension `citus` of {location} is version {version}, and the tables need 11.2 or later. "
            "Upgrade it on every server, and run ALTER EXTENSION citus UPDATE."
        )
    if is_partitioned:
        raise StoreUnavailable(
            f"The tables of {location} have hash partitions, which Citus can't spread. Make a database "
            "without (`germane db migrate`), distribute that one, and copy the store to it "
            "(`germane db copy`)."
        )
    if not raw.execute(b"SELECT FROM pg_dist_node WHERE groupid = 0").fetchall():
        raise StoreUnavailable(
            f"The cluster of {location} doesn't know its coordinator, and couldn't commit what is written "
            "there together with the rest. Run SELECT citus_set_coordinator_host('NAME'), with the name by "
            "which the other servers reach it."
        )


def _spread(raw: Raw, left: Sequence[tuple[str, str]], tell: Tell) -> None:
    """Spread tables that refer to nothing meanwhile, so that the order of those keys doesn't matter."""
    keys = raw.execute(_KEYS, ([table for table, _ in left],)).fetchall()
    for table, name, _, _ in keys:
        _do(raw, f"ALTER TABLE {table} DROP CONSTRAINT {Identifier(name).as_string()}")
    for number, (_, step) in enumerate(left, start=1):
        _do(raw, step)
        tell(number, len(left))
    for table, name, words, sets_null in keys:
        # A cluster refuses a key that sets a part of itself to NULL where it names the agent. What refers to
        # a memory that is gone is left as it is then, and is read as referring to none.
        if not sets_null:
            _do(raw, f"ALTER TABLE {table} ADD CONSTRAINT {Identifier(name).as_string()} {words}")


def _do(raw: Raw, statement: str) -> None:
    raw.execute(statement.encode(), prepare=False)
