"""An item of a LangGraph store as a memory: how its namespace, key and value are stored and worded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

FIELD: Final = "_langgraph"
"""The metadata that holds an item; names that begin with an underscore aren't searched."""
_END: Final = "\x1f"
"""Ends each label of a namespace in metadata, so that a prefix ends with a whole label."""


def item_of(
    namespace: Sequence[str],
    key: str,
    value: Mapping[str, Any],
    *,
    searched: bool,
    ttl: float | None,
    created_at: str | None = None,
) -> dict[str, Any]:
    """The item as metadata; `ttl` are minutes, and `created_at` is None where it is that of the memory."""
    return {
        "namespace": list(namespace),
        "path": path_of(namespace),
        "key": key,
        "value": dict(value),
        "searched": searched,
        "ttl": ttl,
        "created_at": created_at,
    }


def key_of(namespace: Sequence[str], key: str) -> str:
    """The engine's key of an item."""
    return json.dumps([*namespace, key], ensure_ascii=False)


def path_of(namespace: Sequence[str]) -> str:
    """A namespace as text, of which a prefix of labels is a prefix."""
    return "".join(label + _END for label in namespace)


def readable(value: Any) -> str:
    """A value as text: each field on a line, and a single text by itself."""
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only.strip()
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_short(each)}" for name, each in value.items())
    return _short(value)


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether the fields of an item's value have what a filter wants. Raises ValueError for an operator."""
    return all(_compares(value.get(name), each) for name, each in (wanted or {}).items())


def _compares(value: Any, wanted: Any) -> bool:
    """Whether a field has the wanted value, is compared so by operators, or has wanted fields itself."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(name).startswith("$") for name in wanted):
        return all(_operator(name, value, each) for name, each in wanted.items())
    if not isinstance(value, Mapping):
        return False
    return all(_compares(value.get(name), each) for name, each in wanted.items())


def _operator(name: str, value: Any, wanted: Any) -> bool:
    if name == "$eq":
        return bool(value == wanted)
    if name == "$ne":
        return bool(value != wanted)
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {name}. Use $eq, $ne, $gt, $gte, $lt or $lte.")
    try:
        mine, other = float(value), float(wanted)
    except (TypeError, ValueError):
        return False
    return {"$gt": mine > other, "$gte": mine >= other, "$lt": mine < other, "$lte": mine <= other}[name]


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
