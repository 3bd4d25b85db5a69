"""Where a memory applies.

Level: model (imports errors only).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from germane.errors import InvalidInput
from germane.model.forms import checked_fields

__all__ = ["GLOBAL", "Scope"]

_KNOWN = frozenset({"global", "task", "path", "session"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
@checked_fields()
class Scope:
    """A named place where a memory applies: `global`, or a name with a value such as `task:T-42`.

    The names that the built-in plans know are global, task, path and session; any other name is
    the user's own. Everywhere a scope is asked for, its text form is accepted too.
    """

    name: str
    value: str = ""

    @classmethod
    def parse(cls, text: str | Self) -> Self:
        """Read a scope from its text form, `name` or `name:value`; a scope is returned as it is.

        The names that the built-in plans know are read in any case, so that `Task:T-42` is `task:T-42`.
        Raises InvalidInput for what is no scope, and for the plural of such a name.
        """
        if isinstance(text, cls):
            return text
        name, _, value = str(text).partition(":")
        folded = name.strip().casefold()
        if folded in _KNOWN:
            name = folded
        elif folded.removesuffix("s") in _KNOWN:
            raise InvalidInput(
                f"scope={text!r} names no scope that a plan knows. Did you mean {folded.removesuffix('s')!r}?"
            )
        if not name or (value == "") != (name == "global"):
            raise InvalidInput(
                f"scope={text!r} is no scope. Write 'global', or a name and a value: "
                "'task:T-42', 'path:src/auth', 'session:2026-11-21'."
            )
        return cls(name=name, value=value)

    def __str__(self) -> str:
        return f"{self.name}:{self.value}" if self.value else self.name


GLOBAL = Scope(name="global")
