"""Recorded assemblies as JSON: what a row holds besides its columns, the same in every database.

Level: stores (imports model).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from germane.model.ledger import Assembly
from germane.model.memory import Outcome, Status
from germane.model.query import Filter, TimeRange
from germane.model.scope import Scope
from germane.model.trace import Emptiness

__all__ = ["asked_json", "fields_of"]


def asked_json(assembly: Assembly) -> str:
    """What was asked and by what it was made, as JSON."""
    return json.dumps(
        {
            "question": assembly.question,
            "plan": assembly.plan,
            "frame": assembly.frame,
            "budget": assembly.budget,
            "counter": assembly.counter,
            "where": _where(assembly.where),
            "spaces": list(assembly.spaces),
            "points": {agent: dict(point) for agent, point in assembly.points.items()},
            "makers": dict(assembly.makers),
            "unkept": list(assembly.unkept),
            "notes": list(assembly.notes),
            "emptiness": assembly.emptiness,
            "given_budget": assembly.given_budget,
            "options": _options(assembly.options),
            "settled": assembly.settled,
            "cold": assembly.cold,
            "seconds": assembly.seconds,
        },
        ensure_ascii=True,
        sort_keys=True,
    )


def fields_of(asked: str) -> dict[str, Any]:
    """The fields of an Assembly that `asked_json` has written."""
    found: dict[str, Any] = json.loads(asked)
    emptiness = found["emptiness"]
    return {
        **found,
        "where": _filter(found["where"]),
        "options": _given(found["options"]),
        "spaces": tuple(found["spaces"]),
        "unkept": tuple(found["unkept"]),
        "notes": tuple(found["notes"]),
        "emptiness": None if emptiness is None else Emptiness(emptiness),
    }


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    changed = options.get("changed")
    if changed is None:
        return dict(options)
    return {**options, "changed": {path: moment.isoformat() for path, moment in changed.items()}}


def _given(options: dict[str, Any]) -> dict[str, Any]:
    changed = options.get("changed")
    if changed is None:
        return options
    return {**options, "changed": {path: datetime.fromisoformat(text) for path, text in changed.items()}}


def _where(where: Filter) -> dict[str, Any]:
    when = where.when
    return {
        "kinds": list(where.kinds),
        "tags": list(where.tags),
        "scopes": [str(scope) for scope in where.scopes],
        "applies_to": [str(scope) for scope in where.applies_to],
        "subject": where.subject,
        "source": where.source,
        "metadata": dict(where.metadata or ()),
        "since": _text(when.start if when else None),
        "until": _text(when.end if when else None),
        "min_importance": where.min_importance,
        "pinned": where.pinned,
        "embedded": where.embedded,
        "statuses": [status.value for status in where.statuses],
        "without": [outcome.value for outcome in where.without],
    }


def _filter(found: dict[str, Any]) -> Filter:
    since, until = _moment(found["since"]), _moment(found["until"])
    return Filter(
        kinds=tuple(found["kinds"]),
        tags=tuple(found["tags"]),
        scopes=tuple(map(Scope.parse, found["scopes"])),
        applies_to=tuple(map(Scope.parse, found["applies_to"])),
        subject=found["subject"],
        source=found.get("source"),
        metadata=tuple(found.get("metadata", {}).items()),
        when=TimeRange(since=since, until=until) if since or until else None,
        min_importance=found["min_importance"],
        pinned=found["pinned"],
        embedded=found["embedded"],
        statuses=tuple(map(Status, found["statuses"])),
        # Before it was recorded, every assembly left out what was abandoned.
        without=tuple(map(Outcome, found.get("without", [Outcome.ABANDONED]))),
    )


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
