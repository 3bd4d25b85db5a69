"""Many rows in few statements: an INSERT of one row, written as one of many.

Level: stores (imports nothing of the package). A server spends more on each statement than on each row. COPY
would be as fast, and isn't allowed where policies keep agents apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain, count
from typing import Any, Final

__all__ = ["SIZES", "batched", "can_be_batched", "in_batches"]

SIZES: Final = (64, 8)
"""How many rows a statement takes; more gain nothing, and of what is left over few go one by one."""

Row = tuple[Any, ...]

_INSERT: Final = re.compile(
    r"(?P<head>INSERT INTO \w+ \((?P<columns>[\w\s,]+)\)\s+VALUES )(?P<row>\(%s(?:, %s)*\))(?P<tail>.*)",
    re.DOTALL,
)
_TARGET: Final = re.compile(r"ON CONFLICT \((?P<columns>[\w\s,]+)\) DO UPDATE")


def in_batches(query: str, rows: Sequence[Row]) -> tuple[list[tuple[str, list[Row]]], Sequence[Row]]:
    """Statements for many rows each, with the values of every repetition; and the rows that are left."""
    found: list[tuple[str, list[Row]]] = []
    if can_be_batched(query, rows):
        for size in SIZES:
            whole = len(rows) - len(rows) % size
            values = [tuple(chain.from_iterable(rows[at : at + size])) for at in range(0, whole, size)]
            found += [(batched(query, size) or query, values)] if values else []
            rows = rows[whole:]
    return found, rows


@cache
def batched(query: str, size: int) -> str | None:
    """The same statement for so many rows; None for one that isn't a plain INSERT of one row.

    Its placeholders are the server's own, $1 and so on: the driver would take milliseconds to write those
    into so long a text, each time.
    """
    found = _INSERT.fullmatch(query)
    if found is None or "%" in found["tail"]:
        return None
    numbers = count(1)
    rows = ", ".join([found["row"]] * size)
    return found["head"] + re.sub("%s", lambda _: f"${next(numbers)}", rows) + found["tail"]


def can_be_batched(query: str, rows: Sequence[Row]) -> bool:
    """Whether the rows can go together: one statement can't update a row that it has inserted itself."""
    if len(rows) < SIZES[-1] or batched(query, SIZES[-1]) is None:
        return False
    keys = _keys(query)
    return keys is None or len({tuple(row[at] for at in keys) for row in rows}) == len(rows)


@cache
def _keys(query: str) -> tuple[int, ...] | None:
    """Where in a row the columns are whose conflict leads to an update; None where none does."""
    insert, target = _INSERT.fullmatch(query), _TARGET.search(query)
    if insert is None or target is None:
        return None
    columns = _names(insert["columns"])
    return tuple(columns.index(each) for each in _names(target["columns"]))


def _names(columns: str) -> list[str]:
    return [each.strip() for each in columns.split(",")]
