"""The weights that an agent has learned, fitted when its examples have changed.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from germane.model.learning import Example, LearningState, Weights
from germane.protocols import Learning, Store
from germane.ranking.learning import fit_weights, signals_of
from germane.ranking.usefulness import usefulness

__all__ = ["KnownWeights", "Taught"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What use has taught: the weights of the parts of scores, and how useful single memories were.

    Usefulness is counted always, weights are fitted while the agent learns.
    """

    weights: Weights | None = None
    usefulness: Mapping[str, float] = field(default_factory=dict)


_NOTHING = Taught()


class KnownWeights:
    """What the latest examples seen have taught. Threads may share it: at worst weights are fitted twice.

    It is never stored: what a purge removed has no part in it from then on.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[LearningState, Taught] | None = None

    def of(self, store: Store, agent: str, state: LearningState | None = None) -> Weights | None:
        """The weights that apply to an agent's scores; None while learning is off or nothing is learned."""
        return self.taught(store, agent, state).weights

    def taught(self, store: Store, agent: str, state: LearningState | None = None) -> Taught:
        """All that applies to an agent's scores, as of the `state` that a search saw, or as it is now."""
        if not isinstance(store, Learning):
            return _NOTHING
        state = store.settle_learning(agent, None) if state is None else state
        known = self._known
        if known is None or known[0] != state:
            # Read after the stamp: newer examples than it says are fitted again, older ones never kept.
            examples = store.examples(agent) if state.stamp else ()
            fitted = fit_weights(_weighable(examples)) if state.on else None
            weights = fitted if fitted is not None and fitted.contexts else None
            taught = Taught(weights=weights, usefulness=usefulness(examples))
            known = self._known = (state, taught)
        return known[1]

    def known(self, state: LearningState) -> tuple[Weights | None] | None:
        """The weights that apply while learning stands so; None where examples have to be read first."""
        known = self._known
        if known is not None and known[0] == state:
            return (known[1].weights,)
        return None if state.on and state.stamp else (None,)


def _weighable(examples: Iterable[Example]) -> Iterator[Example]:
    """The examples with those of their parts that have weights; a working set's have none."""
    for example in examples:
        parts = signals_of(example.parts)
        if parts:
            yield replace(example, parts=parts)
