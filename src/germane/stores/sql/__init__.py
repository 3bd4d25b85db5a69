"""The SQL of every store, in files: one folder per dialect, with the same query names in each.

Level: stores (imports errors only).
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["Migration", "migrations", "queries", "schema", "script", "statements"]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from a schema to the next; `number` is the version that it leads to."""

    number: int
    name: str
    script: str


@cache
def queries(dialect: str) -> dict[str, str]:
    """Every named query of a dialect, without its comments, from all files named `queries….sql`."""
    files = sorted(each.name for each in _folder(dialect).iterdir() if each.name.startswith("queries"))
    _, *parts = _NAME.split("\n".join(_text(dialect, name) for name in files))
    return {
        name: _COMMENT.sub("", text).strip().removesuffix(";")
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def schema(dialect: str) -> str:
    """The whole schema as a new store gets it."""
    return _text(dialect, "schema.sql")


@cache
def script(dialect: str, name: str) -> str:
    """Another script of a dialect's, which the schema's head tells of."""
    return _text(dialect, f"{name}.sql")


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """All migrations of a dialect, in the order in which they apply."""
    folder = _folder(dialect) / "migrations"
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(
        Migration(
            number=int(each.name.split("_")[0]), name=each.name, script=each.read_text(encoding="utf-8")
        )
        for each in files
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


def _folder(dialect: str) -> Traversable:
    return resources.files(__name__) / dialect


def _text(dialect: str, name: str) -> str:
    return (_folder(dialect) / name).read_text(encoding="utf-8")
