"""What a section of the torture is given, and what comes of it."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random
from typing import Any, Final

__all__ = ["Task", "in_a_child"]

_CONTEXT: Any = multiprocessing.get_context(
    "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
)
_PATIENCE: Final = 120.0


@dataclass
class Task:
    """One run of a section: its seed and limits, its findings, and its figures by name.

    `rounds` is the number of rounds, None for as many as `seconds` allow. A run stops at the limit that is
    reached first. `show` gets the figures after a round where `pause` seconds have passed since it last did.
    """

    seed: int
    seconds: float
    rounds: int | None = None
    show: Callable[[str], None] = lambda _: None
    pause: float = 0.0
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
        """The numbers of the rounds from 0, of which there is one at least."""
        number, due = 0, self.pause
        while number == 0 or (self.taken < self.seconds and (self.rounds is None or number < self.rounds)):
            yield number
            number += 1
            if self.taken >= due:
                due = self.taken + self.pause
                self.show(self.summary())

    def summary(self) -> str:
        """The figures and the number of findings, in one line."""
        figures = ", ".join(f"{count:,} {name}" for name, count in self.figures.items())
        return f"{figures}; {len(self.findings)} findings, {self.taken:.0f} s"


def in_a_child(work: Callable[..., Any], *arguments: object) -> Any:
    """What a function returns in a process of its own; a text where it hangs or crashes."""
    here, there = multiprocessing.Pipe()
    process = _CONTEXT.Process(target=_send, args=(there, work, *arguments))
    process.start()
    there.close()
    try:
        found = here.recv() if here.poll(_PATIENCE) else "it hangs"
    except EOFError:
        process.join()
        found = f"it ends with {process.exitcode}"
    process.kill()
    process.join()
    return found


def _send(there: Connection, work: Callable[..., Any], *arguments: object) -> None:
    there.send(work(*arguments))
