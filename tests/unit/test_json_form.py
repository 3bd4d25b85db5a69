"""The one JSON form: what dataclasses become, and that its table speaks of fields that there are."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from germane import Scope
from germane.encoding import FORMS, to_json
from germane.exports import SUBMODULES


class Colour(StrEnum):
    RED = "red"


@dataclass
class Inner:
    share: float
    note: str | None = None


@dataclass
class Outer:
    colour: Colour
    scope: Scope
    at: datetime
    day: date
    place: Path
    names: frozenset[str]
    inner: tuple[Inner, ...]
    scores: dict[str, float]
    metadata: dict[str, Any] = field(default_factory=dict)


def test_a_dataclass_becomes_an_object_of_its_fields() -> None:
    value = Outer(
        colour=Colour.RED,
        scope=Scope.parse("task:T-42"),
        at=datetime(2020, 1, 2, 3, 4, tzinfo=UTC),
        day=date(2020, 1, 2),
        place=Path("a") / "b.md",
        names=frozenset({"b", "a"}),
        inner=(Inner(share=1 / 3),),
        scores={"meaning": 2 / 3},
        metadata={"ratio": 0.123456789, "deep": {"ratio": 0.123456789}},
    )

    assert to_json({"value": value}) == {
        "value": {
            "colour": "red",
            "scope": "task:T-42",
            "at": "2020-01-02T03:04:00+00:00",
            "day": "2020-01-02",
            "place": str(Path("a/b.md")),
            "names": ["a", "b"],
            "inner": [{"share": 0.333333, "note": None}],
            "scores": {"meaning": 0.666667},
            "metadata": {"ratio": 0.123456789, "deep": {"ratio": 0.123456789}},
        }
    }
    assert json.dumps(to_json(value)).startswith('{"colour": "red"')


def test_values_beside_dataclasses_stay_as_they_are() -> None:
    assert to_json({"exact": 0.123456789, "none": None, "many": (1, True)}) == {
        "exact": 0.123456789,
        "none": None,
        "many": [1, True],
    }


@pytest.mark.parametrize("name", FORMS)
def test_the_table_names_classes_and_fields_that_there_are(name: str) -> None:
    modules = map(import_module, ("germane", *SUBMODULES))
    known = next(getattr(module, name) for module in modules if name in module.__all__)
    fields = {each.name for each in dataclasses.fields(known)}
    form = FORMS[name]
    assert set(form.without.split()) <= fields
    firsts = {how.partition(".")[0] for how in form.made.values() if isinstance(how, str)}
    assert {first for first in firsts if first not in fields and not hasattr(known, first)} == set()
