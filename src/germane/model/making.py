"""Makes many values of one frozen class quickly.

Level: model (imports nothing of the package).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["maker"]

Made = TypeVar("Made")


def maker(cls: type[Made], *names: str) -> Callable[[Iterable[Any]], Made]:
    """A function that makes a value of a frozen dataclass with slots, from the values of its fields.

    They come in the order of `names`, and none is checked: it is for what was checked when it was stored. The
    class's own way looks up each field by its name again, which takes more than twice as long; that is felt
    where one search brings hundreds. Raises TypeError unless the names are the fields of the class, each
    once, and for a class that does more than fill them.
    """
    its_own = sorted(field.name for field in fields(cls))  # type: ignore[arg-type]  # It refuses another class itself.
    if sorted(names) != its_own or hasattr(cls, "__post_init__"):
        raise TypeError(
            f"{cls.__name__} can't be made of {', '.join(names)}. "
            f"It takes {', '.join(its_own)}, each once, and a class that does nothing but keep them."
        )
    setters = tuple(getattr(cls, name).__set__ for name in names)
    new = object.__new__

    def made(values: Iterable[Any]) -> Made:
        value = new(cls)
        for setter, each in zip(setters, values, strict=True):
            setter(value, each)
        return value

    return made
