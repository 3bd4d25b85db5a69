"""Remembers which terms stand in a memory, so that a question can ask it again for nothing.

Level: verbs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from germane.model.memory import Memory
from germane.retrieval.terms import index_terms
from germane.stores.indexed import indexed_text

__all__ = ["KnownTerms"]

_MOST = 24_000_000
"""Characters of memories held at most."""
_LONGEST = 20_000
"""Characters of a memory worth holding; a longer one would push out too many others."""
_OVERHEAD = 400


class KnownTerms:
    """The hashes of the terms of memories, as the index has them. Threads may share it."""

    __slots__ = ("_held", "_known")

    def __init__(self) -> None:
        self._known: dict[str, tuple[Memory, NDArray[np.uint32]]] = {}
        self._held = 0

    def of(self, memory: Memory, *, language: str) -> NDArray[np.uint32]:
        """The distinct terms of a memory, hashed, ascending."""
        known = self._known.get(memory.id)
        # An id can be taken anew once its memory was purged, so it alone proves nothing.
        if known is not None and known[0] is memory:
            return known[1]
        text = indexed_text(
            memory.content, subject=memory.subject, tags=memory.tags, metadata=memory.metadata
        )
        hashes = index_terms(text, language=language).hashes
        if len(text) <= _LONGEST:
            self._held += len(text) + _OVERHEAD
            if self._held > _MOST:
                # Starting over is cheaper than keeping track of use.
                self.clear()
            self._known[memory.id] = memory, hashes
        return hashes

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
        self._held = 0
