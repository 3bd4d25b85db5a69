"""An INSERT of one row, written as one of many: only where it does the same."""

from __future__ import annotations

import pytest

from germane.stores.postgres.connection import SIZES, batched, can_be_batched, in_batches
from germane.stores.sql import queries

_PLAIN = "INSERT INTO t (a, b) VALUES (%s, %s)"
_KEPT = f"{_PLAIN} ON CONFLICT DO NOTHING"
_UPDATED = f"{_PLAIN} ON CONFLICT (a) DO UPDATE SET b = excluded.b"


def _rows(count: int, *, same: int = 0) -> list[tuple[int, int]]:
    return [(number if number >= same else 0, number) for number in range(count)]


_FEWEST = min(SIZES)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("query", [_PLAIN, _KEPT, _UPDATED])
def test_one_statement_takes_many_rows_and_keeps_its_ending(query: str, size: int) -> None:
    many = batched(query, size)
    assert many is not None
    last = 2 * size
    assert many.count("(") == size + query.count("(") - 1
    assert many.startswith("INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)")
    assert many.endswith(f"(${last - 1}, ${last}){query.removeprefix(_PLAIN)}")


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE t SET a = %s",
        "INSERT INTO t (a, b) SELECT a, b FROM s WHERE c = %s",
        "INSERT INTO t (a, b) VALUES (%(a)s, %(b)s)",
        "INSERT INTO t (a, b) VALUES (%s, now())",
        "INSERT INTO t (a, b) VALUES (%s, %s) ON CONFLICT (a) DO UPDATE SET b = %s",
    ],
)
def test_other_statements_stay_as_they_are(query: str) -> None:
    assert batched(query, _FEWEST) is None
    assert not can_be_batched(query, _rows(_FEWEST))


def test_few_rows_go_one_by_one() -> None:
    assert not can_be_batched(_PLAIN, _rows(_FEWEST - 1))
    assert can_be_batched(_PLAIN, _rows(_FEWEST))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 63, 64, 65, 100, 200])
def test_every_row_goes_once_and_in_order(count: int) -> None:
    together, left = in_batches(_KEPT, _rows(count))
    gone = [value for _, repeated in together for values in repeated for value in values]
    assert gone + [value for row in left for value in row] == [value for row in _rows(count) for value in row]
    assert len(left) < _FEWEST
    assert all(text.count("$") == len(values[0]) for text, values in together)


def test_rows_of_one_key_go_together_only_where_none_updates_another() -> None:
    assert can_be_batched(_KEPT, _rows(_FEWEST, same=2))
    assert can_be_batched(_UPDATED, _rows(_FEWEST))
    assert not can_be_batched(_UPDATED, _rows(_FEWEST, same=2))


def test_what_a_memory_is_stored_by_goes_together() -> None:
    names = ("memory", "texts", "tag", "place", "lex", "vector", "unembedded", "change")
    assert [name for name in names if batched(queries("postgres")[f"insert_{name}"], _FEWEST) is None] == []
