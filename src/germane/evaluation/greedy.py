"""Packs a ranking greedily, one dated line a memory, as every system that only ranks is packed.

Level: evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.evaluation.corpus import Corpus, Order
from germane.packing.render import fence

__all__ = ["Packed", "Ranking"]


class Packed:
    """A corpus as lines with their costs. Lines are fenced as germane's are, so both are read alike."""

    def __init__(self, corpus: Corpus) -> None:
        self._lines = ["\n".join(fence(text)) for text in corpus.texts]
        self._costs = [corpus.counter.count(line) + 1 for line in self._lines]

    def text(self, order: Sequence[int], budget: int) -> str:
        """The lines that fit, in this order of places; one that doesn't fit is left out."""
        room, taken = budget, []
        for place in order:
            if self._costs[place] <= room:
                room -= self._costs[place]
                taken.append(self._lines[place])
        return "\n".join(taken)


class Ranking:
    """A reader that knows an order."""

    def __init__(self, corpus: Corpus, order: Order) -> None:
        self._ids = corpus.ids
        self._packed = Packed(corpus)
        self._order = order

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The first ids of the order."""
        return [self._ids[place] for place in self._order(question)[:limit]]

    def assemble(self, question: str, budget: int) -> str:
        """The lines of the order that fit."""
        return self._packed.text(self._order(question), budget)

    def close(self) -> None:
        """Nothing is held."""
