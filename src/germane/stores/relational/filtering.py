"""Filters as conditions in SQL.

Level: stores (imports the pure rules and model). The conditions come from the named queries; only
placeholders are added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from germane.errors import InvalidInput
from germane.model.query import Filter
from germane.places import covers
from germane.stores.relational.connection import Connection, Dialect
from germane.stores.relational.rows import microseconds
from germane.stores.sql import queries

__all__ = ["MOST_VALUES", "filtered", "places_for"]

MOST_VALUES = 1000
"""How many values a filter may name in one field; SQLite limits the placeholders of a statement."""


def filtered(
    dialect: Dialect, query: str, where: Filter, places: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """The named query with the filter's conditions in place, and the values of their placeholders.

    `places` are those that `places_for` finds for the filter.
    """
    known = queries(dialect)
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for name, given in _lists(where).items():
        if len(given) > MOST_VALUES:
            raise InvalidInput(
                f"The filter names {len(given)} {name}, more than {MOST_VALUES}. Ask in several calls."
            )
        if given:
            rows, bound = _placeholders(dialect, name, given)
            condition = "tags_of_few" if name == "tags" and query == "admitted_among" else name
            conditions.append(known[f"where_{condition}"].replace(_mark(dialect, name), rows))
            values.update(bound)
    for condition, name, value in _scalars(where):
        if value is not None:
            conditions.append(known[f"where_{condition}"])
            values[name] = value
    text = known[query]
    if where.metadata:
        conditions.append(known["where_metadata"])
        fields = ", ".join(
            f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in dict(where.metadata).items()
        )
        values["metadata"] = f"{{{fields}}}"
    if where.applies_to:
        values["places"] = json.dumps(places)
    if where.embedded is not None:
        conditions.append(known["where_embedded" if where.embedded else "where_unembedded"])
    if where.embedded is False and dialect == "sqlite":
        # Few wait as a rule: the plus leads SQLite to those, not by time through all memories.
        text = text.replace("WHERE agent =", "WHERE +agent =")
    return text.replace("{filter}", "\n".join(conditions)), values


def places_for(connection: Connection, agent: int, where: Filter) -> list[str]:
    """The places among those of the agent's memories that a filter's `applies_to` means."""
    if not where.applies_to:
        return []
    rows = connection.run("places", {"agent": agent})
    return [place for (place,) in rows if covers(place, where.applies_to)]


def _lists(where: Filter) -> Mapping[str, Sequence[tuple[str, ...]]]:
    return {
        "statuses": [(each.value,) for each in where.statuses],
        "kinds": [(each,) for each in where.kinds],
        "scopes": [(each.name, each.value) for each in where.scopes],
        "applies_to": [(each.name, each.value) for each in where.applies_to],
        "tags": [(each,) for each in where.tags],
        "without": [(each.value,) for each in where.without],
    }


def _scalars(where: Filter) -> tuple[tuple[str, str, Any], ...]:
    since = where.when and where.when.start
    until = where.when and where.when.end
    return (
        ("subject", "subject", where.subject),
        ("source", "source", where.source),
        ("since", "since", since and microseconds(since, name="when.since")),
        ("until", "until", until and microseconds(until, name="when.until")),
        ("importance", "min_importance", where.min_importance),
        ("pinned", "pinned", where.pinned),
    )


def _placeholders(
    dialect: Dialect, name: str, given: Sequence[tuple[str, ...]]
) -> tuple[str, dict[str, str]]:
    # One column stands in an IN list or in a list of VALUES, which takes rows in parentheses.
    bound: dict[str, str] = {}
    rows: list[str] = []
    for number, row in enumerate(given):
        keys = [f"{name}_{number}_{column}" for column in range(len(row))]
        bound.update(zip(keys, row, strict=True))
        written = ", ".join(_mark(dialect, key) for key in keys)
        rows.append(f"({written})" if name in {"scopes", "tags", "applies_to"} else written)
    return ", ".join(rows), bound


def _mark(dialect: Dialect, name: str) -> str:
    return f":{name}" if dialect == "sqlite" else f"%({name})s"
