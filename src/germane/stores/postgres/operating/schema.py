"""Brings a database to the schema that this version knows, one process at a time.

Level: stores (imports errors and the SQL).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg.sql import Identifier

from germane.errors import InvalidInput, SchemaTooNew, StoreUnavailable
from germane.stores.postgres.connecting.connection import PostgresConnection, Raw
from germane.stores.postgres.connecting.connections import Connections
from germane.stores.postgres.operating.distributing import distribute, is_distributed, require_one_server
from germane.stores.relational.connection import Connection
from germane.stores.sql import Migration, migrations, refuse_older, script

__all__ = ["VERSION", "checked_version", "grant", "migrate", "prepare", "version_of"]

_STEPS: Final = migrations("postgres")

VERSION: Final = _STEPS[-1].number

_MOST_PARTITIONS: Final = 1024
_OLDEST_SERVER: Final = 150_000

# Any number that others are unlikely to lock: the bytes `germane`.
_LOCK: Final = 0x6765726D616E65

_PARTITIONED: Final = "PARTITION BY HASH (agent)"

# A migration after which older versions can still use the store says from which on.
_SERVES: Final = re.compile(r"^-- Serves version (\d+) and later\.$", re.MULTILINE)

_OURS: Final = """
SELECT count(*) FILTER (WHERE attname IN ('number', 'name')), count(*)
FROM pg_attribute WHERE attrelid = to_regclass('migrations') AND attnum > 0 AND NOT attisdropped
"""


def prepare(connections: Connections) -> None:
    """Create the schema in a database without one, or apply the migrations that an older one lacks.

    Many processes may do this at once. A newer schema is used as it is where its migrations say that
    this version can. Raises SchemaTooNew where they don't, and StoreUnavailable where the tables are
    another program's or older than the first migration, the server is too old or lacks the extension
    `vector`, or the user may not do it.
    """
    with connections.reading() as connection:
        found = checked_version(connection)
    if found >= VERSION:
        return
    if connections.read_only and not found:
        raise StoreUnavailable(
            f"There is no store in {connections.location}. `germane remember`, `germane import` and "
            "`germane db migrate` make one, as opening it without read_only=True does."
        )
    if connections.read_only:
        raise StoreUnavailable(
            f"The store {connections.location} has schema version {found}, this germane needs {VERSION}. "
            "Open it once without read_only=True, or run `germane db migrate`."
        )
    migrate(connections)


def migrate(
    connections: Connections, *, partitions: int = 0, steps: Sequence[Migration] = _STEPS
) -> tuple[str, ...]:
    """Do what `prepare` does by these steps, and return the names of those that were applied.

    A new schema's tables have `partitions` hash partitions by agent; with 0 they have none. A schema
    that is there keeps those it has.
    """
    if not 0 <= partitions <= _MOST_PARTITIONS:
        raise InvalidInput(
            f"partitions={partitions} is out of range. Use 0 for none, up to {_MOST_PARTITIONS}."
        )
    applied: list[Migration] = []
    with connections.alone(session=False) as connection:
        while some := _applied(connections, connection, partitions, steps):
            applied += some
        if applied and is_distributed(connection.raw):
            # Tables that are new have to be where the others are.
            text = "\n".join(each.script for each in steps)
            distribute(connection.raw, connections.location, lambda *_: None, text=text)
    return tuple(each.name for each in applied)


def grant(connections: Connections, role: str) -> None:
    """Let a role do what applications do, and nothing else. Raises StoreUnavailable without such a role."""
    with connections.alone(session=False) as connection, connections.transaction(connection) as raw:
        require_one_server(raw, connections.location, "hold such a role to its policies")
        if not raw.execute(b"SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
            raise StoreUnavailable(
                f"The server of {connections.location} has no role {role!r}. Create it first: "
                f"CREATE ROLE {role} LOGIN PASSWORD '…'."
            )
        _run(raw, script("postgres", "grants").replace("{role}", Identifier(role).as_string(raw)))


def version_of(connection: Connection) -> int:
    """The schema version of a database; 0 where there is none."""
    raw = _raw(connection)
    known, columns = raw.execute(_OURS.encode()).fetchall()[0]
    if columns == 0:
        return 0
    if known != 2:  # noqa: PLR2004 - `number` and `name`.
        raise StoreUnavailable(
            f"The database {raw.info.dbname!r} has a table `migrations` of another program. Use another "
            "database, or a schema of the store's own: "
            "CREATE SCHEMA germane, and ?options=-csearch_path%3Dgermane,public in the address."
        )
    return int(raw.execute(b"SELECT coalesce(max(number), 0) FROM migrations").fetchall()[0][0])


def checked_version(connection: Connection, newest: int = VERSION) -> int:
    """The schema version of a database, 0 for none.

    Raises SchemaTooNew or StoreUnavailable where this version can't use it.
    """
    found = version_of(connection)
    if found > newest:
        rows = _raw(connection).execute(b"SELECT value FROM settings WHERE name = 'serves'").fetchall()
        if not rows or int(rows[0][0]) > newest:
            raise SchemaTooNew(found=found, supported=newest)
    refuse_older("postgres", found, str(_raw(connection).info.dbname))
    return found


def _raw(connection: Connection) -> Raw:
    if not isinstance(connection, PostgresConnection):
        raise TypeError(f"{connection!r} is no connection to PostgreSQL.")
    return connection.raw


def _applied(
    connections: Connections, connection: PostgresConnection, partitions: int, steps: Sequence[Migration]
) -> Sequence[Migration]:
    """Make the schema where there is none, else apply the next migration; what was done, if anything."""
    with connections.transaction(connection) as raw:
        # Until the transaction ends, so that a pooler hands it on to nobody.
        raw.execute(b"SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = checked_version(connection, steps[-1].number)
        missing = [each for each in steps if each.number > found]
        if found == 0:
            _install(raw, "\n".join(each.script for each in missing), partitions, connections.location)
        elif missing:
            del missing[1:]
            count = _partitions(raw)
            _run(raw, missing[0].script.replace("{partitioned}", _PARTITIONED if count else ""))
            if count:
                _run(raw, script("postgres", "partitions").replace("{partitions}", str(count)))
        if missing:
            _record(raw, missing)
        return missing


def _install(raw: Raw, text: str, partitions: int, location: str) -> None:
    if raw.info.server_version < _OLDEST_SERVER:
        raise StoreUnavailable(
            f"The server of {location} is PostgreSQL {raw.info.server_version // 10_000}, and the store "
            "needs 15 or later. Upgrade the server."
        )
    (encoding,) = raw.execute(b"SHOW server_encoding").fetchall()[0]
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"The database of {location} is encoded in {encoding}, which can't keep every text. Create it "
            "with ENCODING 'UTF8' TEMPLATE template0."
        )
    _extend(raw, location)
    try:
        _run(raw, text.replace("{partitioned}", _PARTITIONED if partitions else ""))
    except psycopg.errors.DuplicateTable as error:
        raise StoreUnavailable(
            f"The database of {location} has a table of another program whose name the store needs "
            f"({error.diag.message_primary}). Use another database, or a schema of the store's own: "
            "CREATE SCHEMA germane, and ?options=-csearch_path%3Dgermane,public in the address."
        ) from error
    _run(raw, script("postgres", "partitions").replace("{partitions}", str(partitions)))


def _extend(raw: Raw, location: str) -> None:
    try:
        raw.execute(b"CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"The user {raw.info.user!r} may not create the extension `vector` in the database of "
            f"{location}. Let a superuser run CREATE EXTENSION vector there once."
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise StoreUnavailable(
            f"The server of {location} doesn't have the extension `vector`. Install pgvector on it, such as "
            "the package postgresql-18-pgvector, and try again."
        ) from error


def _partitions(raw: Raw) -> int:
    """How many partitions each table has that is distributed by agent; 0 where they have none."""
    ((count,),) = raw.execute(
        b"SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('states')"
    ).fetchall()
    return int(count)


def _record(raw: Raw, applied: Sequence[Migration]) -> None:
    with raw.cursor() as cursor:
        cursor.executemany(
            b"INSERT INTO migrations (number, name) VALUES (%s, %s)",
            [(each.number, each.name) for each in applied],
        )
    last = applied[-1]
    said = _SERVES.search(last.script)
    raw.execute(
        b"INSERT INTO settings (name, value) VALUES ('serves', %s)"
        b" ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (said.group(1) if said else str(last.number),),
    )


def _run(raw: Raw, text: str) -> psycopg.Cursor[tuple[Any, ...]]:
    return raw.execute(text.encode(), prepare=False)
