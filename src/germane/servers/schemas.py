"""JSON schemas of what servers answer, from the classes' fields and their form in `germane.encoding`."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from germane.encoding import FORMS, Form, as_text

_PLAIN: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Path: {"type": "string"},
}
_NUMBERS: Final = {"type": "object", "additionalProperties": {"type": "number"}}
_IDS: Final = {"type": "array", "items": {"type": "string"}}
_MADE: Final[Mapping[str, dict[str, Any]]] = {
    "Assembly.included": {"type": "integer"},
    "Eviction.in_the_way": _IDS,
    "Frame.priorities": _NUMBERS,
    "Frame.shares": _NUMBERS,
    "LearningReport.weights": _NUMBERS,
    "LearningReport.contexts": {"type": "integer"},
    "AddResult.items": {"type": "array", "items": {"type": "object"}},
    "AssemblyDiff.altered": {"type": "array", "items": {"type": "object"}},
}
"""The schemas of fields that are made by a function."""


class Schemas:
    """The schemas of classes by name, as the components of an OpenAPI document."""

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type; a dataclass is a reference to its component.

        A mapping from names to types is an object of these fields.
        """
        if isinstance(kind, Mapping):
            fields = {name: self.of(each) for name, each in kind.items()}
            return {"type": "object", "properties": fields, "required": list(fields)}
        if kind in _PLAIN:
            return _PLAIN[kind]
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(each) for each in inner]}
        if origin is Literal:
            return {"enum": list(inner)}
        return self._of_class(kind) if origin is None else self._of_several(origin, inner)

    def _of_several(self, origin: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
        if issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if origin is tuple and inner[-1:] != (Ellipsis,):
            return {"type": "array", "prefixItems": [self.of(each) for each in inner]}
        if issubclass(origin, Iterable):
            return {"type": "array", "items": self.of(inner[0])}
        return {}

    def _of_class(self, kind: Any) -> dict[str, Any]:
        if as_text(kind):
            return {"type": "string"}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [each.value for each in kind]}
        if not dataclasses.is_dataclass(kind):
            return {}
        name = getattr(kind, "__name__", "")
        if name not in self.components:
            self.components[name] = {}  # It may contain itself.
            self.components[name] = self._component(kind)
        return {"$ref": f"#/components/schemas/{name}"}

    def _component(self, kind: Any) -> dict[str, Any]:
        form = FORMS.get(kind.__name__, Form())
        hints = _hints(kind)
        own = [each.name for each in dataclasses.fields(kind) if each.name not in form.without.split()]
        fields = {}
        for name in dict.fromkeys([*own, *form.made]):
            how = form.made.get(name, name)
            made = _MADE.get(f"{kind.__name__}.{name}", {})
            fields[name] = made if callable(how) else self.of(_type_at(kind, hints, how))
        return {"type": "object", "properties": fields, "required": list(fields)}


def _type_at(kind: Any, hints: Mapping[str, Any], path: str) -> Any:
    """The type of an attribute of an attribute; Any where it isn't declared."""
    first, _, rest = path.partition(".")
    found = hints.get(first)
    if found is None:
        prop = getattr(kind, first, None)
        found = _evaluated(prop.fget).get("return", Any) if isinstance(prop, property) else Any
    if not rest:
        return found
    optional = type(None) in get_args(found)
    inner = next((each for each in get_args(found) if each is not type(None)), found) if optional else found
    at = _type_at(inner, _hints(inner), rest) if isinstance(inner, type) else Any
    return at | None if optional and at is not Any else at


def _hints(kind: Any) -> dict[str, Any]:
    return _evaluated(kind)


def _evaluated(thing: Any) -> dict[str, Any]:
    """The types that a class or function names, those that only a type checker imports included."""
    known: dict[str, Any] = {}
    for name, module in list(sys.modules.copy().items()):
        if name.startswith("germane.") and module is not None:
            known |= {
                each: value
                for each, value in vars(module).copy().items()
                if isinstance(value, type) and value.__module__.startswith("germane.")
            }
    try:
        return get_type_hints(thing, localns=known)
    except NameError:
        return {}
