"""What a working set holds just now, counted by the caller's counter, and what is known of its memories.

Level: verbs. All of it can be read anew from the store; what is kept here saves time only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from germane.model.held import Held
from germane.model.holding import Features, HeldSet
from germane.protocols import Holding, Learning
from germane.ranking.importance import LearnedImportance, learn_importance
from germane.verbs.session import Session

__all__ = ["HeldNow"]


class HeldNow:
    """One set of one owner. Threads may share it: at worst something is worked out twice."""

    __slots__ = ("_counted", "_features", "_learned", "_name", "_session", "_store")

    def __init__(self, session: Session, store: Holding, name: str) -> None:
        self._session = session
        self._store = store
        self._name = name
        self._counted: tuple[HeldSet, HeldSet] | None = None
        self._features: dict[str, Features] = {}
        self._learned: tuple[int, Mapping[str, LearnedImportance]] | None = None

    def read(self) -> HeldSet:
        """The set as it is stored, each entry's tokens by the session's counter."""
        stored = self._store.held(self._session.agent, self._name)
        known = self._counted
        # The store gives the same value until something moves.
        if known is not None and known[0] is stored:
            return known[1]
        name = self._session.counter.name
        counted = stored
        if any(one.memory.renditions.counter != name for one in stored.items):
            counted = replace(stored, items=tuple(self._count(one) for one in stored.items))
        self._counted = stored, counted
        return counted

    def tokens_of(self, held: Held) -> int:
        """How many tokens an entry takes, by the session's counter."""
        full = held.memory.renditions.full
        counter = self._session.counter
        return full.tokens if held.memory.renditions.counter == counter.name else counter.count(full.text)

    def learned(self) -> Mapping[str, LearnedImportance]:
        """What use says of importances, by memory id; nothing while learning is off."""
        store, agent = self._session.store, self._session.agent
        if not isinstance(store, Learning):
            return {}
        state = store.settle_learning(agent, None)
        if not state.on:
            return {}
        known = self._learned
        if known is None or known[0] != state.stamp:
            # Read after the stamp: newer examples than it says are read again, older ones never kept.
            known = self._learned = state.stamp, learn_importance(store.examples(agent))
        return known[1]

    def features(self, items: Sequence[Held]) -> Mapping[str, Features]:
        """What the index knows of held memories, by id; for those without a vector it is asked each time."""
        known = self._features
        wanted = [
            one.memory.id
            for one in items
            if one.memory.id not in known or known[one.memory.id].vector is None
        ]
        found = self._store.features(self._session.agent, wanted) if wanted else ()
        fresh = {each: features for each, features in zip(wanted, found, strict=True) if features is not None}
        kept = {one.memory.id: known[one.memory.id] for one in items if one.memory.id in known}
        self._features = kept | fresh
        return self._features

    def _count(self, held: Held) -> Held:
        return held.evolve(tokens=self.tokens_of(held))
