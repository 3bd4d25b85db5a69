"""A value that is made quickly is the one that its class makes, and can't be made of anything else."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from germane import Memory
from germane.model.memory import maker
from germane.testing.fakes import make_memory


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    start: int

    def __post_init__(self) -> None:
        raise ValueError(self.start)


def test_it_is_what_the_class_makes_in_whatever_order_the_fields_are_named() -> None:
    memory = make_memory("Redis is the cache", tags=("db",), pinned=True)
    names = [field.name for field in reversed(fields(Memory))]
    made = maker(Memory, *names)([getattr(memory, name) for name in names])
    assert made == memory
    assert made.evolve(version=1) == memory
    assert maker(Span, "end", "start")((5, 2)) == Span(2, 5)


@pytest.mark.parametrize("names", [("start",), ("start", "end", "end"), ("start", "stop")])
def test_other_names_than_the_fields_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="Span can't be made of start"):
        maker(Span, *names)


def test_a_class_that_checks_is_refused() -> None:
    with pytest.raises(TypeError, match="Checked"):
        maker(Checked, "start")


@pytest.mark.parametrize("values", [(1,), (1, 2, 3)])
def test_too_few_or_too_many_values_are_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        maker(Span, "start", "end")(values)
