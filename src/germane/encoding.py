"""Values as JSON, made from the fields of their classes: what commands print and servers send.

The form is documented in docs/reference/json.md and changes only by addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from germane.errors import GermaneError

_DIGITS = 6
_EXACT = frozenset({"metadata", "options"})
"""Fields with values of the user's own, whose numbers are not rounded."""
_TEXTS = frozenset({"Scope"})
"""Classes whose values are written as text."""


class Form(NamedTuple):
    """How the JSON of a class differs from its fields.

    `without` lists the omitted fields. `made` gives added or replaced fields: the path of an attribute, whose
    value is null if a step of the path is, or a function of the object.
    """

    without: str = ""
    made: Mapping[str, str | Callable[[Any], Any]] = {}


_OF_A_MEMORY = ("version", "kind", "scope", "created_at", "updated_at", "source")
_ID: dict[str, str | Callable[[Any], Any]] = {"id": "memory_id"}

FORMS: Mapping[str, Form] = {
    "MemoryChange": Form("memory_id", _ID),
    "AddResult": Form(
        "new left_out",
        {"items": lambda added: [{**to_json(one), "new": one.memory.id in added.new} for one in added.items]},
    ),
    "Assembly": Form(
        "key points where given_budget options",
        {"made_for": "made_for", "included": lambda made: len(made.included), "purged": "purged"},
    ),
    "Decision": Form("effects"),
    "LearningRun": Form("answers", {"tokens": "tokens", "memories": "memories"}),
    "DatabaseStatus": Form("", {"extensions": lambda status: dict(status.extensions)}),
    "AssemblyDiff": Form(
        "", {"altered": lambda made: [{"before": old, "after": new} for old, new in made.altered]}
    ),
    "Entry": Form("memory_id", {**_ID, "included": "included"}),
    "Evicted": Form("item freed", {"id": "item.memory.id", "tokens": "freed"}),
    "Eviction": Form("", {"in_the_way": lambda made: [one.memory.id for one in made.in_the_way]}),
    "Frame": Form(
        "", {"priorities": lambda frame: dict(frame.priorities), "shares": lambda frame: dict(frame.shares)}
    ),
    "ImportReport": Form("written"),
    "Item": Form("memory", {"id": "memory.ref", **{name: f"memory.{name}" for name in _OF_A_MEMORY}}),
    "LeftOut": Form("score"),
    "LearningReport": Form(
        "",
        {
            "weights": lambda made: {} if made.weights is None else dict(made.weights.values),
            "contexts": lambda made: 0 if made.weights is None else made.weights.contexts,
        },
    ),
    "LedgerEntry": Form("memory_id", _ID),
    "Memory": Form("renditions content_hash", {"version_id": "version_id", "supersedes": "supersedes"}),
    "Message": Form("parts agent session form extra", {name: name for name in ("text", "calls", "results")}),
    "WorkingSetEvent": Form("working_set kind memory_id", {"set": "working_set", "event": "kind", **_ID}),
    "ObserveResult": Form("feedback", {name: f"feedback.{name}" for name in ("counted", "examples")}),
    "Question": Form("order"),
    "Ranked": Form("candidate", {"memory": "memory"}),
    "RecallResult": Form("ranked", {"results": "ranked"}),
    "RememberResult": Form("quality_flag updated", {"what": "what"}),
    "Replay": Form("assembly context", {"id": "assembly.id", "tokens": "context.tokens"}),
    "Request": Form("state memory stable head texts costs origins shortened"),
    "Selection": Form("notes scores"),
    "Revocation": Form("", {"memories": "memories"}),
    "SpaceInfo": Form("joined"),
    "TimeRange": Form("", {"since": "start", "until": "end"}),
    "ToolCall": Form("form extra"),
    "ToolResult": Form("content is_error form extra", {"text": "text"}),
    "Trace": Form("where"),
}
"""The form of each class whose JSON isn't just its fields, by the class's name."""


def to_json(value: Any) -> Any:
    """The value in types of JSON.

    A dataclass becomes an object of its fields with numbers rounded to six digits, unless `FORMS` differs.
    Times become ISO 8601, enumerations their values, and sets sorted lists.
    """
    return _walked(value, rounded=False)


def as_text(kind: Any) -> bool:
    """Whether values of this class are written as text."""
    return getattr(kind, "__name__", "") in _TEXTS


def error_json(error: GermaneError) -> dict[str, Any]:
    """An error's class, message and public attributes."""
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
        several = sorted(value) if isinstance(value, set | frozenset) else value
        return [_inner(each, rounded=rounded) for each in several]
    return value.isoformat() if isinstance(value, date) else str(value)


def _inner(value: Any, *, rounded: bool) -> Any:
    """A member of a list or mapping: only a number directly in it is rounded like the field."""
    return _walked(value, rounded=rounded and isinstance(value, float))


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
