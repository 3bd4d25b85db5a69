"""Germane's values as JSON: one form for all of them, made from the fields of their classes.

Level: integrations. The form is documented in docs/reference/json.md and changes only by addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from germane import GermaneError

__all__ = ["FORMS", "Form", "error_json", "to_json"]

_DIGITS = 6
_EXACT = frozenset({"metadata", "options"})
"""Fields that hold values of the user's own, whose numbers are not rounded."""
_TEXTS = frozenset({"Scope"})
"""Classes whose values are written as the text that they are read from."""


class Form(NamedTuple):
    """How the JSON of a class differs from its fields.

    `without` names the fields that are left out. `made` gives what is added or takes the place of a field:
    the path of an attribute, which is null where something on the way is, or a function of the value.
    """

    without: str = ""
    made: Mapping[str, str | Callable[[Any], Any]] = {}


_OF_A_MEMORY = ("version", "kind", "scope", "created_at", "updated_at", "source")
_ID: dict[str, str | Callable[[Any], Any]] = {"id": "memory_id"}

FORMS: Mapping[str, Form] = {
    "Alteration": Form("memory_id", _ID),
    "Added": Form(
        "new left_out",
        {"held": lambda added: [{**to_json(one), "new": one.memory.id in added.new} for one in added.held]},
    ),
    "Assembly": Form(
        "key points where given_budget options",
        {"made_for": "made_for", "included": lambda made: len(made.included), "purged": "purged"},
    ),
    "DatabaseStatus": Form("", {"extensions": lambda status: dict(status.extensions)}),
    "Difference": Form(
        "", {"altered": lambda made: [{"before": old, "after": new} for old, new in made.altered]}
    ),
    "Entry": Form("memory_id", {**_ID, "included": "included"}),
    "Evicted": Form("held freed", {"id": "held.memory.id", "tokens": "freed"}),
    "Eviction": Form("", {"in_the_way": lambda made: [one.memory.id for one in made.in_the_way]}),
    "Frame": Form(
        "", {"priorities": lambda frame: dict(frame.priorities), "shares": lambda frame: dict(frame.shares)}
    ),
    "ImportReport": Form("written"),
    "Item": Form("memory", {"id": "memory.ref", **{name: f"memory.{name}" for name in _OF_A_MEMORY}}),
    "LeftOut": Form("score"),
    "Lessons": Form(
        "",
        {
            "weights": lambda made: {} if made.weights is None else dict(made.weights.values),
            "contexts": lambda made: 0 if made.weights is None else made.weights.contexts,
        },
    ),
    "LedgerEntry": Form("memory_id", _ID),
    "Memory": Form("renditions content_hash", {"version_id": "version_id", "supersedes": "supersedes"}),
    "Message": Form("parts agent session form extra", {name: name for name in ("text", "calls", "results")}),
    "Move": Form("working_set kind memory_id", {"set": "working_set", "event": "kind", **_ID}),
    "Observed": Form("feedback", {name: f"feedback.{name}" for name in ("counted", "examples")}),
    "Question": Form("order"),
    "Ranked": Form("candidate", {"memory": "memory"}),
    "Recalled": Form("ranked", {"results": "ranked"}),
    "Remembered": Form("doubt updated", {"what": "what"}),
    "Replay": Form("assembly context", {"id": "assembly.id", "tokens": "context.tokens"}),
    "Request": Form("state memory calibration stable head texts costs"),
    "Selection": Form("notes scores"),
    "SpaceInfo": Form("joined"),
    "TimeRange": Form("", {"since": "start", "until": "end"}),
    "ToolCall": Form("form extra"),
    "ToolResult": Form("content is_error form extra", {"text": "text"}),
    "Trace": Form("where"),
}
"""The form of each class whose JSON isn't just its fields, by the name of the class."""


def to_json(value: Any) -> Any:
    """The value in types that JSON has.

    A dataclass becomes an object of its fields, in which numbers are rounded to six digits; `FORMS` says
    where it differs. Times are ISO 8601, enumerations their values, and sets are sorted. None stays null.
    """
    return _walked(value, rounded=False)


def error_json(error: GermaneError) -> dict[str, Any]:
    """An error with its class, its message and its public attributes."""
    attributes = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(error).items()
        if not name.startswith("_") and isinstance(value, str | int | float | tuple)
    }
    return {"error": {"type": type(error).__name__.lstrip("_"), "message": str(error), **attributes}}


def _walked(value: Any, *, rounded: bool) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return round(value, _DIGITS) if rounded and isinstance(value, float) else value
    if hasattr(value, "__dataclass_fields__") and type(value).__name__ not in _TEXTS:
        return _object(value)
    if isinstance(value, Mapping):
        return {str(name): _inner(each, rounded=rounded) for name, each in value.items()}
    if isinstance(value, Iterable):
        return [_inner(each, rounded=rounded) for each in _in_order(value)]
    return value.isoformat() if isinstance(value, date) else str(value)


def _inner(value: Any, *, rounded: bool) -> Any:
    """What is deeper than the numbers of a field is rounded by its own class alone."""
    return _walked(value, rounded=rounded and isinstance(value, float))


def _in_order(values: Iterable[Any]) -> Iterable[Any]:
    return sorted(values) if isinstance(values, set | frozenset) else values


def _object(value: Any) -> dict[str, Any]:
    form = FORMS.get(type(value).__name__, _FIELDS_ALONE)
    without = form.without.split()
    fields = [name for name in value.__dataclass_fields__ if name not in without]
    added = [name for name in form.made if name not in fields]
    first = ["id"] if "id" in added else []
    return {
        name: _walked(_part(value, name, form), rounded=name not in _EXACT)
        for name in dict.fromkeys([*first, *fields, *added])
    }


def _part(value: Any, name: str, form: Form) -> Any:
    how = form.made.get(name, name)
    if callable(how):
        return how(value)
    for step in how.split("."):
        value = None if value is None else getattr(value, step)
    return value


_FIELDS_ALONE = Form()
