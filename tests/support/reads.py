"""One question of each sort, and what a working set asks, to be counted and timed again and again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from germane import Engine

__all__ = ["reads"]

_MEMORIES = 100


def reads(engine: Engine) -> dict[str, Callable[[], object]]:
    """By name what asks once, every time something else, of an engine whose store was empty."""
    return _Reader(engine).acts


class _Reader:
    """An agent that is alone in a space, and holds some of what it knows."""

    def __init__(self, engine: Engine) -> None:
        self._numbers = count()
        self._engine = engine
        self._working = engine.working_set()
        self._space = engine.space("team", create=True)
        self._shared = self._space.working_set()
        memories = [engine.remember(f"Apple number {each}.") for each in range(_MEMORIES)]
        shared = [self._space.remember(f"Pear number {each}.") for each in range(_MEMORIES)]
        self._memory, self._shared_memory = memories[0], shared[0]
        self._working.add_many(memories[:10])
        self._shared.add_many(shared[:10])
        self.acts: dict[str, Callable[[], object]] = {
            "recall": lambda: engine.recall(self._question()),
            "recall from a space": lambda: self._space.recall(self._question()),
            "assemble": lambda: engine.assemble(self._question()),
            "look at a working set": self._working.items,
            "look at a shared set": self._shared.items,
            "add to a working set": lambda: self._working.add(self._memory),
            "add to a shared set": lambda: self._shared.add(self._shared_memory),
            "evict from a working set": self._evict,
        }

    def _question(self) -> str:
        return f"Which apple has number {next(self._numbers) % _MEMORIES}?"

    def _evict(self) -> None:
        self._working.evict(1)
