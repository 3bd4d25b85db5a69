"""What a section of the torture is given, and what comes of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

__all__ = ["Task"]


@dataclass
class Task:
    """One run of a section: its seed and limits, its findings, and its figures by name.

    `rounds` is the number of rounds, None for as many as `seconds` allow. A run stops at the limit that is
    reached first.
    """

    seed: int
    seconds: float
    rounds: int | None = None
    show: Callable[[str], None] = lambda _: None
    findings: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)  # noqa: S311 - A run has to repeat.
        self._began = time.monotonic()

    @property
    def taken(self) -> float:
        """Seconds since the section began."""
        return time.monotonic() - self._began

    def each_round(self) -> Iterator[int]:
        """The numbers of the rounds from 0, of which there is one at least; each shows the figures."""
        number = 0
        while number == 0 or (self.taken < self.seconds and (self.rounds is None or number < self.rounds)):
            yield number
            number += 1
            self.show(self.summary())

    def summary(self) -> str:
        """The figures and the number of findings, in one line."""
        figures = ", ".join(f"{count:,} {name}" for name, count in self.figures.items())
        return f"{figures}; {len(self.findings)} findings, {self.taken:.0f} s"
