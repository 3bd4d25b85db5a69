"""What the readers of other products' memories have in common, and reading these from JSON and SQLite."""

from __future__ import annotations

import io
import json
import pickle
import re
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from germane.importers.sources import (
    EXTERNAL,
    FieldError,
    OnSkip,
    Skipped,
    as_stamp,
    plain,
    read_text,
    translated_os_errors,
    unreadable,
)
from germane.model.memory import Draft

USER: Final = "user"
"""The metadata field with the user whom a memory of another product belongs to."""

LeaveOut: TypeAlias = Callable[..., None]
"""Counts parts that aren't taken over: what they are and why, and how many, by default one."""

NO_VECTORS: Final = "vectors, which germane makes anew"


def uncounted(_what: str, _count: int = 1) -> None:
    """Count nothing: for readers whose caller has no use for what isn't taken over."""


@contextmanager
def counted(place: Path | str, on_skip: OnSkip) -> Iterator[LeaveOut]:
    """Count what isn't taken over of a source, and report one sum for each reason at the end."""
    counts: Counter[str] = Counter()

    def leave_out(what: str, count: int = 1) -> None:
        counts[what] += count

    yield leave_out
    for what, count in counts.items():
        if count:
            on_skip(Skipped(source=str(place), reason=f"not taken over: {what} ({count:,})"))


def foreign_draft(
    content: str,
    source: str,
    *,
    created: object = None,
    updated: object = None,
    metadata: Mapping[str, Any] | None = None,
    user: object = None,
    **fields: Any,
) -> Draft:
    """The draft of another product's memory; empty values of metadata are left out.

    `source` is the product and its id of the memory, so that another export of it gives the same source.
    Raises FieldError for a time that can't be read.
    """
    first = as_stamp(created, name="created_at")
    last = as_stamp(updated, name="updated_at")
    named = {"user": str(user) if user else None, **(metadata or {})}
    return Draft(
        **{"kind": "fact", **fields},
        content=content.strip(),
        source=source,
        trust=EXTERNAL,
        created_at=first,
        updated_at=last if first is None or (last is not None and last >= first) else None,
        metadata=plain({name: value for name, value in named.items() if value not in (None, "", [], {})}),
    )


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """The text of a field, without blanks around it; empty for anything else."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def objects_in(value: Any, *names: str) -> list[Mapping[str, Any]]:
    """The objects of the first of these lists in a JSON object, or of the value if it is a list itself."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in names if isinstance(value.get(name), list)), [])
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


@contextmanager
def placed(path: Path | str, what: str) -> Iterator[None]:
    """Name the file and the part of it in errors about a field."""
    try:
        yield
    except FieldError as error:
        raise unreadable(path, f"in {what}, {error}. Correct it, or remove it from the file") from error


def parsed_json(path: Path, text: str | None = None) -> Any:
    """The JSON of a file, or of a text of it. Raises UnreadableSource, naming the line."""
    text = read_text(path) if text is None else text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"it is no JSON ({error.msg}). Export it anew, since the file is damaged or cut off"
        raise unreadable(path, reason, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is no JSON that can be read ({error})") from error


_MOST_PARTS: Final = 1000
"""Parts of a key in TOML, whose parser takes quadratic time in them."""


def parsed_toml(text: str) -> dict[str, Any]:
    """The tables of TOML. Raises ValueError, also for a key of very many parts."""
    if any(each.count(".") > _MOST_PARTS for each in re.split(r"[=\n]", text)):
        raise ValueError(f"a key has more than {_MOST_PARTS:,} parts")
    return tomllib.loads(text)


# SQLite files, which are only read.

_SQLITE: Final = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with translated_os_errors(path), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def tables_of(path: Path) -> dict[str, frozenset[str]]:
    """The names of the columns of each table of an SQLite file. Raises UnreadableSource."""
    query = (
        "SELECT m.name, c.name AS col FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type='table'"
    )
    tables: dict[str, frozenset[str]] = {}
    for row in rows_of(path, query):
        tables[row["name"]] = tables.get(row["name"], frozenset()) | {row["col"]}
    return tables


def rows_of(path: Path, query: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a query in an SQLite file, which stays as it is. Raises UnreadableSource."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for row in connection.execute(query):
                yield dict(row)
    except sqlite3.Error as error:
        reason = f"SQLite can't read it ({error}). Close the program that writes it, or restore the file"
        raise unreadable(path, reason) from error


class _Plain:
    """Stands for any class of the program that pickled a value: its fields alone are read."""

    def __setstate__(self, state: object) -> None:
        self.fields = state.get("__dict__", state) if isinstance(state, dict) else {}


class _FieldsOnly(pickle.Unpickler):
    """Reads the fields of pickled points of Qdrant. No code of the file or of another package can run."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "qdrant_client" and name == "PointStruct":
            return _Plain
        raise pickle.UnpicklingError(f"{module}.{name} isn't a point")


def points_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """The points of a local Qdrant collection, each with `id`, `payload` and `vector`.

    The latest copy of each id counts. Raises UnreadableSource, naming the row.
    """
    seen = set()
    for row in rows_of(path, "SELECT rowid, point FROM points ORDER BY rowid DESC"):
        try:
            point = _FieldsOnly(io.BytesIO(row["point"])).load()
            fields = point.fields
            known = str(fields["id"])
        except Exception as error:
            # A damaged pickle can raise anything.
            reason = f"row {row['rowid']} of `points` is no point of Qdrant ({error}). Restore the folder"
            raise unreadable(path, reason) from error
        if known not in seen:
            seen.add(known)
            yield fields
