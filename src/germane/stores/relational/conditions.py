"""Conditions as SQL, made of the named queries; only placeholders and words of closed lists are added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from germane.model.conditions import And, Comparison, Condition, Not, microseconds_of
from germane.stores.relational.tables import Dialect, placeholder
from germane.stores.sql import queries


class ConditionCompiler:
    """Writes conditions as SQL for one database, and collects the `values` of their placeholders."""

    def __init__(self, dialect: Dialect) -> None:
        self.values: dict[str, Any] = {}
        self._dialect, self._known = dialect, queries(dialect)

    def sql(self, condition: Condition) -> str:
        """The text of the condition, which is true or false and never NULL."""
        if isinstance(condition, Comparison):
            return f"{'NOT ' * (condition.operator == '!=')}{self._field(condition)}"
        if isinstance(condition, Not):
            return f"NOT ({self.sql(condition.part)})"
        word = " AND " if isinstance(condition, And) else " OR "
        parts: tuple[Condition, ...] = getattr(condition, "parts")  # noqa: B009 - Only And and Or are left.
        return f"({word.join(map(self.sql, parts))})"

    def _field(self, one: Comparison) -> str:
        if one.is_own:
            text = self._known[f"where_own_{_OWN.get(one.field, 'text')}"].replace("{column}", one.field)
        else:
            names = [*(f"held_{number}" for number in range(len(one.path))), "held"]
            steps = (
                self._bound("step", key=_without_nul(part))
                .replace("{before}", names[place])
                .replace("{step}", names[place + 1])
                for place, part in enumerate(one.path)
            )
            text = self._known["where_metadata"].replace("{path}", " ".join(steps))
        return text.replace("{test}", f"({' OR '.join(self._tests(one))})")

    def _tests(self, one: Comparison) -> Iterator[str]:
        if one.operator == "exists":
            yield "1 = 1"
            return
        raw = one.is_own and self._dialect == "sqlite"
        texts = [each if raw else _without_nul(each) for each in one.values if isinstance(each, str)]
        moments = [microseconds_of(each) for each in one.values if isinstance(each, datetime)]
        types = [json.dumps(each) for each in one.values if each is None or isinstance(each, bool)]
        numbers = [
            each for each in one.values if isinstance(each, int | float) and not isinstance(each, bool)
        ]
        equal = one.operator in ("=", "!=", "in")
        operator = "=" if equal else one.operator
        if types:
            yield self._bound("type", types=types)
        if texts and equal and one.field == "tag":
            yield self._bound("tag", tags=texts)
        elif texts and equal:
            yield self._bound("text", texts=texts)
        elif texts:
            # Every text begins with an empty one, of which SQLite's `substr` makes NULL.
            operator = ">=" if operator == "startswith" and not texts[0] else operator
            name = "prefix" if operator == "startswith" else "ordered_text"
            yield self._bound(name, text=texts[0]).replace("{operator}", operator)
        if numbers:
            yield self._bound("number", numbers=json.dumps(numbers)).replace("{operator}", operator)
        if moments:
            text = self._bound("moment", moments=json.dumps(moments)).replace("{operator}", operator)
            yield text.replace("{moment}", self._known["where_date"])

    def _bound(self, name: str, **given: Any) -> str:
        """The named query with placeholders of its own."""
        text = self._known[f"where_{name}"]
        for key, value in given.items():
            marks = [self._placeholder(each) for each in (value if isinstance(value, list) else [value])]
            # A list of tags is a list of rows.
            listed = ", ".join(f"({mark})" for mark in marks) if key == "tags" else ", ".join(marks)
            text = text.replace(placeholder(self._dialect, key), listed)
        return text

    def _placeholder(self, value: Any) -> str:
        name = f"condition_{len(self.values)}"
        self.values[name] = value
        return placeholder(self._dialect, name)


_OWN: Final = {
    "scope": "scope",
    "tag": "tag",
    "pinned": "flag",
    "importance": "number",
    "confidence": "number",
    "created_at": "moment",
    "updated_at": "moment",
}
"""The queries of own fields that are no plain texts."""


def _without_nul(text: str) -> str:
    """The text as queries on metadata have it; a NUL is two characters."""
    escaped = json.dumps(text, ensure_ascii=False).replace(r"\u0001", r"\u0001\u0002")
    found: str = json.loads(escaped.replace(r"\u0000", r"\u0001\u0001"))
    return found
