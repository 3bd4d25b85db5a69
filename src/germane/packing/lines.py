"""The texts by which a memory can stand in a context, and what is known of them.

Level: packing (imports model). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from germane.model.memory import Level

__all__ = ["Ladder", "Line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A memory's text at one level and what it adds to the context, line end included.

    `body` is the text without the day, the source and the id that may end it: two lines of one body say the
    same.
    """

    level: Level
    text: str
    tokens: int
    body: str = ""

    def __post_init__(self) -> None:
        if not self.body:
            object.__setattr__(self, "body", self.text)


@dataclass(slots=True)
class Ladder:
    """What is known of one memory's lines: those that were made, and what each is sure not to stay below.

    `over` says what came of trying levels of which only the last was made: in no more room than so many
    tokens, less one, that line is all that is looked at, and is too long.
    """

    lines: dict[Level, Line] = field(default_factory=dict)
    least: dict[Level, int] = field(default_factory=dict)
    over: tuple[Sequence[Level], int, Line] | None = None
