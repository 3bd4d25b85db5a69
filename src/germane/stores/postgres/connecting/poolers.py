"""A pooler, such as PgBouncer, between this process and the server: seen, and what it keeps from working.

Level: stores (imports errors only). A pooler that gives a server's connection to another client after each
transaction keeps nothing of a session: no setting, no lock, no statement that was prepared, no listening.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Final

from psycopg.pq import ExecStatus
from psycopg.sql import Identifier, Literal

from germane.errors import InvalidInput
from germane.stores.postgres.connecting.connection import Raw

__all__ = ["is_between", "keeps_statements", "local", "refuses_options", "settings_of"]

_REFUSED: Final = "unsupported startup parameter"

# What may be written between a setting's value and what comes before it in libpq's `options`.
_OPTION: Final = re.compile(r"(?:-c|--)(?P<name>[\w.-]+)=(?P<value>.*)", re.DOTALL)

# What these name is a list, of which each part is quoted.
_LISTS: Final = frozenset({"search_path", "temp_tablespaces", "datestyle"})

# A transaction has begun by then.
_INSIDE: Final = {"default_transaction_read_only": "transaction_read_only"}


def is_between(raw: Raw) -> bool:
    """Whether another process than the one that this connection was opened to carries out what it asks."""
    return bool(
        raw.execute(b"SELECT pg_backend_pid()", prepare=False).fetchall() != [(raw.info.backend_pid,)]
    )


def keeps_statements(raw: Raw) -> bool:
    """Whether the pooler finds what was prepared again, on whichever connection of the server's.

    One that does gives statements names of its own.
    """
    name = f"germane_{token_hex(8)}"
    found = f"SELECT FROM pg_prepared_statements WHERE name = '{name}'".encode()
    with raw.transaction():
        if raw.pgconn.prepare(name.encode(), b"SELECT 1").status != ExecStatus.COMMAND_OK:
            # It refuses them, and the transaction is rolled back by its end.
            return False
        is_there = bool(raw.execute(found, prepare=False).rowcount)
        if is_there:
            raw.execute(f"DEALLOCATE {name}".encode(), prepare=False)
        return not is_there


def refuses_options(error: BaseException) -> bool:
    """Whether a connection was refused because it would have begun with settings, as PgBouncer does."""
    return _REFUSED in str(error)


def settings_of(options: str) -> dict[str, str]:
    """The settings in libpq's `options`, in which a backslash keeps the next character what it is.

    Raises InvalidInput for anything else than settings, which only the server itself can be given.
    """
    settings = {}
    parts = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r"(?:\\.|\S)+", options)]
    for part in _joined(parts):
        found = _OPTION.fullmatch(part)
        if found is None:
            raise InvalidInput(
                f"options={options!r} in the address of the store can't go through a pooler. Give settings "
                "alone, each as -cNAME=VALUE, or use the server's own address."
            )
        settings[found["name"].replace("-", "_")] = found["value"]
    return settings


def local(settings: Mapping[str, str]) -> bytes:
    """The statements that set these until the transaction ends."""
    return ";".join(_set(name, value) for name, value in settings.items()).encode()


def _set(name: str, value: str) -> str:
    values = [each.strip().strip('"') for each in value.split(",")] if name.lower() in _LISTS else [value]
    # A setting of an extension's has two parts.
    named = Identifier(*_INSIDE.get(name, name).split(".")).as_string()
    return f"SET LOCAL {named} = {', '.join(Literal(each).as_string() for each in values)}"


def _joined(parts: Iterable[str]) -> Iterable[str]:
    """The same with `-c` and what follows it as one."""
    before = ""
    for part in parts:
        if part == "-c":
            before = part
        else:
            yield before + part
            before = ""
    if before:
        yield before
