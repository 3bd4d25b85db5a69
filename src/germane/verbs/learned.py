"""The weights that an agent has learned, fitted when its examples have changed.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from germane.model.learning import Example, Weights
from germane.protocols import Learning, Store
from germane.ranking.learning import fit_weights, signals_of

__all__ = ["KnownWeights"]


class KnownWeights:
    """The weights of the latest examples seen. Threads may share it: at worst weights are fitted twice.

    They are never stored: what a purge removed has no part in them from then on.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[int, Weights | None] | None = None

    def of(self, store: Store, agent: str) -> Weights | None:
        """The weights that apply to an agent's scores; None while learning is off or nothing is learned."""
        if not isinstance(store, Learning):
            return None
        state = store.settle_learning(agent, None)
        if not state.on:
            return None
        known = self._known
        if known is None or known[0] != state.stamp:
            # Read after the stamp: newer examples than it says are fitted again, older ones never kept.
            fitted = fit_weights(_weighable(store.examples(agent)))
            known = self._known = (state.stamp, fitted if fitted.contexts else None)
        return known[1]


def _weighable(examples: Iterable[Example]) -> Iterator[Example]:
    """The examples with those of their parts that have weights; a working set's have none."""
    for example in examples:
        parts = signals_of(example.parts)
        if parts:
            yield replace(example, parts=parts)
