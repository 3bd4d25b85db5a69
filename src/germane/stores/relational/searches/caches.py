"""The caches of the agents that a process asks about, within a limit of memory.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from germane.stores.relational.searches.cache import AgentCache

__all__ = ["MOST_CACHE_BYTES", "Caches"]

MOST_CACHE_BYTES: Final = 512 << 20
"""What all caches of a store may take together, in bytes."""


class Caches:
    """One cache for each agent; the longest unused is let go first. Threads may share it."""

    def __init__(self, new: Callable[[str], AgentCache], *, most: int = MOST_CACHE_BYTES) -> None:
        self._new = new
        self._most = most
        self._guard = Lock()
        self._caches: OrderedDict[str, AgentCache] = OrderedDict()
        # What each took when it was last used. To ask all of them each time would cost the more, the more
        # agents there are.
        self._sizes: dict[str, int] = {}
        self._total = 0

    def of(self, agent: str) -> AgentCache:
        """The agent's cache, an empty one where there was none."""
        with self._guard:
            cache = self._caches.get(agent)
            if cache is None:
                cache = self._caches[agent] = self._new(agent)
            self._caches.move_to_end(agent)
            return cache

    def replace(self, agent: str, cache: AgentCache) -> None:
        """Put another cache in the place of an agent's."""
        with self._guard:
            self._caches[agent] = cache

    def settle(self, agent: str) -> None:
        """Note what the agent's cache takes by now, and let others go where all take too much."""
        with self._guard:
            cache = self._caches.get(agent)
            if cache is None:
                # Another thread has let it go in the meantime.
                return
            size = cache.nbytes
            self._total += size - self._sizes.get(agent, 0)
            self._sizes[agent] = size
            while self._total > self._most and (oldest := next(iter(self._caches))) != agent:
                del self._caches[oldest]
                self._total -= self._sizes.pop(oldest, 0)

    def clear(self) -> None:
        """Let all of them go."""
        with self._guard:
            self._caches.clear()
            self._sizes.clear()
            self._total = 0
