"""What a working set holds just now, counted by the caller's counter, and what is known of its memories.

Level: verbs. All of it can be read anew from the store; what is kept here saves time only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from germane.errors import SpaceError, StoreError
from germane.model.held import AgeBasis, Held
from germane.model.holding import Features, HeldSet, Leave, MoveKind
from germane.model.memory import Level, Memory, as_utc
from germane.model.plan import Style
from germane.packing.listing import Paragraphs
from germane.protocols import Holding, Learning
from germane.ranking.eviction import EvictionPolicy, Value, evict
from germane.ranking.figures import Figures
from germane.ranking.importance import LearnedImportance, learn_importance
from germane.verbs.session import Session

__all__ = ["HeldNow"]


class HeldNow:
    """One set of one owner. Threads may share it: at worst something is worked out twice."""

    __slots__ = (
        "_by",
        "_counted",
        "_featured",
        "_features",
        "_figures",
        "_learned",
        "_name",
        "_paragraphs",
        "_pinned",
        "_session",
        "_shortened",
        "_store",
    )

    def __init__(self, session: Session, store: Holding, name: str, *, by: str) -> None:
        self._session = session
        self._store = store
        self._name = name
        self._by = by
        self._counted: tuple[HeldSet, HeldSet] | None = None
        self._features: dict[str, tuple[Memory, Features]] = {}
        self._featured: tuple[HeldSet, Mapping[str, Features]] | None = None
        self._figures: tuple[HeldSet, Figures] | None = None
        self._learned: tuple[int, Mapping[str, LearnedImportance]] | None = None
        self._paragraphs: dict[Style, Paragraphs] = {}
        self._pinned: tuple[HeldSet, frozenset[str]] | None = None
        self._shortened: tuple[HeldSet, frozenset[str]] | None = None

    def read(
        self, *, policy: EvictionPolicy | Value | str = "importance", basis: AgeBasis = AgeBasis.ENTERED
    ) -> HeldSet:
        """The set as it is stored, each entry's tokens by the session's counter, in all at most its maximum.

        A revision can make an entry longer than it was. Where the set then exceeds its maximum, entries
        leave by the policy; a reader that can't write sees the set without them. Only what is pinned
        can exceed the maximum.
        """
        while True:
            stored = self._store.held(self._session.agent, self._name)
            known = self._counted
            # The store gives the same value until something moves.
            if known is not None and known[0] is stored:
                return known[1]
            counted = self._count(stored)
            if known is not None and self._paragraphs and self._has_purged(since=known[0].moved):
                self._paragraphs.clear()  # They hold the text of what is gone.
            leaving = self._too_much(counted, policy=policy, basis=basis)
            if leaving and self._evicted(leaving, seen=stored.moved):
                continue
            ids = {one.memory.id for one in leaving}
            if ids:
                counted = replace(
                    counted, items=tuple(one for one in counted.items if one.memory.id not in ids)
                )
            self._counted = stored, counted
            return counted

    def pinned(self, held: HeldSet) -> frozenset[str]:
        """The ids of those of its memories that stay whatever comes."""
        known = self._pinned
        if known is None or known[0] is not held:
            known = self._pinned = held, frozenset(one.memory.id for one in held.items if one.stays)
        return known[1]

    def figures(self, held: HeldSet) -> Figures:
        """The numbers of its entries, which are made once for as long as nothing moves."""
        known = self._figures
        if known is None or known[0] is not held:
            known = self._figures = held, Figures(held.items)
        return known[1]

    def shortened(self, held: HeldSet) -> frozenset[str]:
        """The ids of those that are longer than the whole set, which holds them by a shorter text."""
        known = self._shortened
        if known is None or known[0] is not held:
            ids = frozenset(one.memory.id for one in held.items if one.tokens < self.tokens_of(one))
            known = self._shortened = held, ids
        return known[1]

    def tokens_of(self, held: Held, level: Level = Level.FULL) -> int:
        """How many tokens the text of an entry takes, by the session's counter."""
        renditions, counter = held.memory.renditions, self._session.counter
        text = renditions.at(level)
        return text.tokens if renditions.counter == counter.name else counter.count(text.text)

    def tokens_within(self, held: Held, most: int) -> int:
        """The tokens of an entry's longest text that the set has room for; of the full one if none has."""
        full = self.tokens_of(held)
        if full <= most:
            return full
        shorter = (self.tokens_of(held, level) for level in (Level.SUMMARY, Level.MICRO))
        return next((tokens for tokens in shorter if tokens <= most), full)

    def paragraphs(self, style: Style) -> Paragraphs:
        """What makes the paragraphs of a text, and keeps them for the next."""
        return self._paragraphs.setdefault(style, Paragraphs(self._session.counter, style=style))

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
            examples = [one for one in store.examples(agent) if one.parts]
            known = self._learned = state.stamp, learn_importance(examples)
        return known[1]

    def features(self, held: HeldSet) -> Mapping[str, Features]:
        """What the index knows of held memories, by their ids."""
        known = self._featured
        # What is written of a memory, its vector too, makes another value of it, and of the set.
        if known is None or known[0] is not held:
            known = self._featured = held, self._looked_up(held.items)
        return known[1]

    def _looked_up(self, items: Sequence[Held]) -> Mapping[str, Features]:
        known = self._features
        kept = {}
        for one in items:
            if (found := known.get(one.memory.id)) is not None and found[0] is one.memory:
                kept[one.memory.id] = found
        wanted = [one.memory for one in items if one.memory.id not in kept]
        if wanted:
            fresh = self._store.features(self._session.agent, [memory.id for memory in wanted])
            for memory, features in zip(wanted, fresh, strict=True):
                if features is not None:
                    kept[memory.id] = memory, features
        self._features = kept
        return {memory_id: features for memory_id, (_, features) in kept.items()}

    def _has_purged(self, *, since: int) -> bool:
        moves = self._store.moves(self._session.agent, since=since)
        return any(move.kind is MoveKind.PURGE for move in moves)

    def _count(self, stored: HeldSet) -> HeldSet:
        """The set with each entry's tokens by the session's counter, of a shorter text where it must be."""
        name, most = self._session.counter.name, stored.max_tokens
        if all(one.memory.renditions.counter == name and one.tokens <= most for one in stored.items):
            return stored
        items = tuple(one.evolve(tokens=self.tokens_within(one, most)) for one in stored.items)
        return replace(stored, items=items)

    def _too_much(
        self, held: HeldSet, *, policy: EvictionPolicy | Value | str, basis: AgeBasis
    ) -> tuple[Held, ...]:
        """The entries that leave so that the set keeps within its maximum, first those that can't fit."""
        over = sum(one.tokens for one in held.items) - held.max_tokens
        if over <= 0:
            return ()
        giants = tuple(one for one in held.items if one.tokens > held.max_tokens and not one.stays)
        over -= sum(one.tokens for one in giants)
        found = evict(
            held.items,
            over,
            now=as_utc(self._session.clock(), name="clock"),
            policy=policy,
            learned=self.learned(),
            basis=basis,
            keep=[one.memory.id for one in giants],
        )
        return (*giants, *(one.held for one in found.evicted))

    def _evicted(self, leaving: Sequence[Held], *, seen: int) -> bool:
        """Whether the set is to be read anew: they have left it, or it has moved meanwhile."""
        at = as_utc(self._session.clock(), name="clock")
        changes = [Leave(memory_id=one.memory.id, at=at, evicted=True) for one in leaving]
        try:
            self._store.hold(self._session.agent, self._name, changes, seen=seen, by=self._by)
        except (SpaceError, StoreError):
            # Who may not write, or can't now, can still read; the next who can lets them leave.
            return False
        return True
