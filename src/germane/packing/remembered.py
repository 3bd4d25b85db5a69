"""Lines made before, so that a memory that is asked about often is fenced and counted once.

Level: packing. It changes no result: a line depends on nothing but the memory, the level, the look of its
section, and the counter; a heading on the memory, the section's heading, the kinds and the counter. Whoever
remembers lines does so for one registry of kinds, and for each way of counting apart.
"""

from __future__ import annotations

from collections import defaultdict

from germane.model.memory import Level, Memory
from germane.model.plan import Look
from germane.packing.lines import Ladder, Line

__all__ = ["RememberedLines"]

_MOST = 24_000_000
"""Characters held at most for each way of counting, memories and lines together."""
_LONGEST = 20_000
"""Characters of a memory worth holding; a longer one would push out too many others."""
_OVERHEAD = 400


class RememberedLines:
    """Lines by memory and level. Threads may share it: at worst a line is made twice."""

    __slots__ = ("_headings", "_held", "_ladders", "_others")

    def __init__(self) -> None:
        self._ladders: dict[Look, dict[str, tuple[Memory, Ladder]]] = defaultdict(dict)
        self._headings: dict[tuple[str, str], tuple[Memory, str, int]] = {}
        self._others: dict[str, RememberedLines] = {}
        self._held = 0

    def of(self, way: str) -> RememberedLines:
        """The lines that are counted in this way; `clear` forgets them too."""
        return self._others.get(way) or self._others.setdefault(way, RememberedLines())

    def ladder(self, memory: Memory, *, look: Look) -> Ladder:
        """All that is known of the lines of this very memory. What is added to it is known the next time."""
        known = self._ladders[look].get(memory.ref)
        # An id can be taken anew once its memory was purged, so it alone proves nothing.
        if known is not None and known[0] is memory:
            return known[1]
        ladder = Ladder()
        if self._has_room(memory, memory.content):
            self._ladders[look][memory.ref] = memory, ladder
        return ladder

    def get(self, memory: Memory, level: Level, *, look: Look) -> Line | None:
        """The line that was kept for this very memory, or None."""
        return self.ladder(memory, look=look).lines.get(level)

    def keep(self, memory: Memory, line: Line, *, look: Look) -> None:
        """Keep a line for the next time."""
        self.ladder(memory, look=look).lines[line.level] = line
        self._held += len(line.text)

    def heading(self, memory: Memory, template: str) -> tuple[str, int] | None:
        """The heading made for this very memory from a section's, and its tokens, or None."""
        known = self._headings.get((memory.ref, template))
        return known[1:] if known is not None and known[0] is memory else None

    def keep_heading(self, memory: Memory, template: str, text: str, tokens: int) -> None:
        """Keep a heading for the next time."""
        if self._has_room(memory, text):
            self._headings[memory.ref, template] = memory, text, tokens

    def clear(self) -> None:
        """Forget all of them."""
        for ladders in self._ladders.values():
            ladders.clear()
        self._headings.clear()
        self._others.clear()
        self._held = 0

    def _has_room(self, memory: Memory, text: str) -> bool:
        if len(memory.content) > _LONGEST:
            return False
        self._held += len(memory.content) + len(text) + _OVERHEAD
        if self._held > _MOST:
            # Starting over is cheaper than keeping track of use.
            self.clear()
        return True
