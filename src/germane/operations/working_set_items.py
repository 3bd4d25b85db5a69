"""The items of a working set: what it holds now, what comes in and makes room, and their order in a
context.

A decision is taken on the set as it was read, and done only if nothing has moved since; else it is taken
anew. So no set ever holds more than it may, whoever adds to it at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from germane.errors import BudgetTooSmall, InvalidInput, NotFound, SpaceError, StoreError
from germane.model.context import Context, Item, Ranked, TraceNote
from germane.model.memory import Level, Memory, Status, as_utc, split_id
from germane.model.plan import Overflow, Plan, Style
from germane.model.query import Filter
from germane.operations.context import AgentContext
from germane.operations.feedback import Named
from germane.operations.inputs import checked_count, checked_text
from germane.operations.read import head_of
from germane.operations.search import ParsedQuery, query_of, understand
from germane.packing.layout import Paragraphs, assemble_list
from germane.protocols import FeedbackStore, WorkingSetStore
from germane.ranking.eviction import (
    EvictionPolicy,
    LearnedImportance,
    Value,
    evict,
    lacking,
    learn_importance,
)
from germane.ranking.signals import floored_semantic
from germane.ranking.strategies import Arranged, ItemColumns, ItemFeatures, Strategy, arrange
from germane.retrieval.quality import coverages
from germane.working_sets import (
    AddItem,
    AddResult,
    AgeBasis,
    Eviction,
    Features,
    HeldChange,
    RemoveItem,
    StoredWorkingSet,
    WorkingSetEvent,
    WorkingSetEventKind,
    WorkingSetItem,
)

__all__ = [
    "EMPTY_QUERY",
    "Policy",
    "WorkingSetHandle",
    "WorkingSetView",
    "add",
    "assemble_working_set",
    "evict_for",
    "id_of",
]

Policy: TypeAlias = EvictionPolicy | Value | str
"""Who leaves first: the name of a policy, or a function of an entry and a moment that says its worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetHandle:
    """An agent's side of a working set: the owner's session, the set, and whose deeds these are."""

    session: AgentContext
    store: WorkingSetStore
    name: str
    by: str
    now: WorkingSetView


def id_of(named: Named) -> str:
    """The id of a memory that is named in any of the forms, whichever version of it is."""
    if isinstance(named, Item | Ranked | WorkingSetItem):
        return named.memory.id
    return named.id if isinstance(named, Memory) else split_id(checked_text(named, name="memory"))[0]


def add(
    side: WorkingSetHandle,
    named: Iterable[Named],
    *,
    pinned: bool,
    recalled: bool,
    policy: Policy,
    basis: AgeBasis | str,
    fitting: bool = False,
) -> AddResult:
    """Take memories in, or touch those that are held, in one transaction; others make room if they must.

    What is added together never evicts each other. With `fitting`, as many of the first as fit are
    taken in, and the last of them first, so that the first is the latest. Raises NotFound, InvalidInput for
    a forgotten memory or one that is longer than the set, and BudgetTooSmall when what is pinned leaves
    too little room; then nothing has changed.
    """
    at = as_utc(side.session.clock(), name="clock")
    memories = _current_versions(side.session, [id_of(one) for one in named])
    basis = _checked_basis(basis)
    while True:
        held = side.now.read(policy=policy, basis=basis)
        here = {one.memory.id: one for one in held.items}
        entries = [here.get(memory.id) or _entry(side, memory, at) for memory in memories]
        taken = _fitting(held, here, entries) if fitting else entries
        eviction = _eviction_for(side, held, taken, here=here, policy=policy, basis=basis, now=at)
        leaving = [RemoveItem(memory_id=one.item.memory.id, at=at, evicted=True) for one in eviction.evicted]
        entering = [
            AddItem(memory_id=one.memory.id, at=at, pinned=pinned, recalled=recalled)
            for one in (reversed(taken) if fitting else taken)
        ]
        moves = _apply(side, [*leaving, *entering], seen=held.moved)
        if moves is not None:
            ids = {one.memory.id for one in taken}
            orders = {move.memory_id: move.number for move in moves if move.kind in _ENTRANCES}
            return AddResult(
                items=tuple(
                    _as_added(
                        one, orders, known=one.memory.id in here, at=at, pinned=pinned, recalled=recalled
                    )
                    for one in taken
                ),
                new=frozenset(one.memory.id for one in taken if one.memory.id not in here),
                eviction=eviction,
                left_out=tuple(one.memory for one in entries if one.memory.id not in ids),
            )


def evict_for(side: WorkingSetHandle, tokens: int, *, policy: Policy, basis: AgeBasis | str) -> Eviction:
    """Evict as few as free at least so many tokens; what is pinned stays, and the report says what lacks."""
    at = as_utc(side.session.clock(), name="clock")
    basis = _checked_basis(basis)
    while True:
        held = side.now.read(policy=policy, basis=basis)
        learned = side.now.learned()
        eviction = evict(held.items, tokens, now=at, policy=policy, learned=learned, basis=basis)
        leaving = [RemoveItem(memory_id=one.item.memory.id, at=at, evicted=True) for one in eviction.evicted]
        if _apply(side, leaving, seen=held.moved) is not None:
            return eviction


_ENTRANCES = frozenset({WorkingSetEventKind.ADD, WorkingSetEventKind.TOUCH})


def _current_versions(session: AgentContext, ids: Sequence[str]) -> list[Memory]:
    """The current versions of these memories, each once; one that was merged stands for the other."""
    found: dict[str, Memory] = {}
    distinct = tuple(dict.fromkeys(ids))
    for memory_id, memory in zip(distinct, session.store.get(session.agent, distinct), strict=True):
        if memory is None:
            raise NotFound(memory_id, session.agent)
        head = head_of(session, memory)
        if head.status is Status.FORGOTTEN:
            raise InvalidInput(f"Memory {head.id!r} is forgotten; restore it before you hold it.")
        found[head.id] = head
    return list(found.values())


def _checked_basis(basis: AgeBasis | str) -> AgeBasis:
    try:
        return AgeBasis(basis)
    except ValueError:
        raise InvalidInput(
            f"Unknown basis {basis!r} of an entry's age. Known: {', '.join(AgeBasis)}."
        ) from None


def _entry(side: WorkingSetHandle, memory: Memory, at: datetime) -> WorkingSetItem:
    entry = WorkingSetItem(memory=memory, entered_at=at, touched_at=at, order=0, tokens=0)
    return entry.evolve(tokens=side.now.tokens_of(entry))


def _fitting(
    held: StoredWorkingSet, here: Mapping[str, WorkingSetItem], entries: Sequence[WorkingSetItem]
) -> list[WorkingSetItem]:
    """Those that fit beside what stays, the first before the others."""
    wanted = {one.memory.id for one in entries}
    # What is held already costs nothing more, and can't be evicted by what comes with it.
    room = held.max_tokens - sum(one.tokens for one in held.items if one.stays or one.memory.id in wanted)
    taken = []
    for one in entries:
        known = one.memory.id in here
        if known or one.tokens <= room:
            taken.append(one)
            room -= 0 if known else one.tokens
    return taken


def _eviction_for(
    side: WorkingSetHandle,
    held: StoredWorkingSet,
    entries: Sequence[WorkingSetItem],
    *,
    here: Mapping[str, WorkingSetItem],
    policy: Policy,
    basis: AgeBasis,
    now: datetime,
) -> Eviction:
    """Who leaves so that the entries fit. Raises InvalidInput or BudgetTooSmall where nobody could."""
    new = [one for one in entries if one.memory.id not in here]
    # One that is longer than the whole set is refused, and not asked to make room for itself.
    lacking((), tokens=max((one.tokens for one in new), default=0), max_tokens=held.max_tokens)
    needed = sum(one.tokens for one in (*held.items, *new)) - held.max_tokens if new else 0
    ids = {one.memory.id for one in entries}
    # What use says of importances is read where somebody has to leave.
    learned = side.now.learned() if needed > 0 else {}
    eviction = evict(held.items, needed, now=now, policy=policy, learned=learned, basis=basis, keep=ids)
    if eviction.shortfall:
        required = (*(one.memory.id for one in new), *(one.memory.id for one in eviction.in_the_way))
        raise BudgetTooSmall(
            budget=held.max_tokens, needed=held.max_tokens + eviction.shortfall, required=required
        )
    return eviction


def _apply(
    side: WorkingSetHandle, changes: Sequence[HeldChange], *, seen: int
) -> tuple[WorkingSetEvent, ...] | None:
    if not changes:
        return ()
    return side.store.hold(side.session.agent, side.name, changes, seen=seen, by=side.by)


def _as_added(
    one: WorkingSetItem,
    orders: Mapping[str | None, int],
    *,
    known: bool,
    at: datetime,
    pinned: bool,
    recalled: bool,
) -> WorkingSetItem:
    """The entry as the moves have left it."""
    return one.evolve(
        order=orders.get(one.memory.id, one.order),
        touched_at=max(one.touched_at, at),
        touches=one.touches + known,
        pinned=one.pinned or pinned,
        recalled=one.recalled or recalled,
    )


# What a working set holds just now, counted by the caller's counter, and what is known of its memories.
#
# All of it can be read anew from the store; what is kept here saves time only.


class WorkingSetView:
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

    def __init__(self, session: AgentContext, store: WorkingSetStore, name: str, *, by: str) -> None:
        self._session = session
        self._store = store
        self._name = name
        self._by = by
        self._counted: tuple[StoredWorkingSet, StoredWorkingSet] | None = None
        self._features: dict[str, tuple[Memory, Features]] = {}
        self._featured: tuple[StoredWorkingSet, Mapping[str, Features]] | None = None
        self._figures: tuple[StoredWorkingSet, ItemColumns] | None = None
        self._learned: tuple[int, Mapping[str, LearnedImportance]] | None = None
        self._paragraphs: dict[Style, Paragraphs] = {}
        self._pinned: tuple[StoredWorkingSet, frozenset[str]] | None = None
        self._shortened: tuple[StoredWorkingSet, frozenset[str]] | None = None

    def read(
        self, *, policy: EvictionPolicy | Value | str = "importance", basis: AgeBasis = AgeBasis.ENTERED
    ) -> StoredWorkingSet:
        """The set as it is stored, each entry's tokens by the session's counter, in all at most its maximum.

        A revision can make an entry longer than it was. Where the set then exceeds its maximum, entries
        leave by the policy; a reader that can't write sees the set without them. Only what is pinned
        can exceed the maximum.
        """
        while True:
            stored = self._store.stored_working_set(self._session.agent, self._name)
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

    def pinned(self, held: StoredWorkingSet) -> frozenset[str]:
        """The ids of those of its memories that stay whatever comes."""
        known = self._pinned
        if known is None or known[0] is not held:
            known = self._pinned = held, frozenset(one.memory.id for one in held.items if one.stays)
        return known[1]

    def figures(self, held: StoredWorkingSet) -> ItemColumns:
        """The numbers of its entries, which are made once for as long as nothing moves."""
        known = self._figures
        if known is None or known[0] is not held:
            known = self._figures = held, ItemColumns(held.items)
        return known[1]

    def shortened(self, held: StoredWorkingSet) -> frozenset[str]:
        """The ids of those that are longer than the whole set, which holds them by a shorter text."""
        known = self._shortened
        if known is None or known[0] is not held:
            ids = frozenset(one.memory.id for one in held.items if one.tokens < self.tokens_of(one))
            known = self._shortened = held, ids
        return known[1]

    def tokens_of(self, held: WorkingSetItem, level: Level = Level.FULL) -> int:
        """How many tokens the text of an entry takes, by the session's counter."""
        renditions, counter = held.memory.renditions, self._session.counter
        text = renditions.at(level)
        return text.tokens if renditions.counter == counter.name else counter.count(text.text)

    def tokens_within(self, held: WorkingSetItem, most: int) -> int:
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
        if not isinstance(store, FeedbackStore):
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

    def features(self, held: StoredWorkingSet) -> Mapping[str, Features]:
        """What the index knows of held memories, by their ids."""
        known = self._featured
        # What is written of a memory, its vector too, makes another value of it, and of the set.
        if known is None or known[0] is not held:
            known = self._featured = held, self._looked_up(held.items)
        return known[1]

    def _looked_up(self, items: Sequence[WorkingSetItem]) -> Mapping[str, Features]:
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
        return any(move.kind is WorkingSetEventKind.PURGE for move in moves)

    def _count(self, stored: StoredWorkingSet) -> StoredWorkingSet:
        """The set with each entry's tokens by the session's counter, of a shorter text where it must be."""
        name, most = self._session.counter.name, stored.max_tokens
        if all(one.memory.renditions.counter == name and one.tokens <= most for one in stored.items):
            return stored
        items = tuple(one.evolve(tokens=self.tokens_within(one, most)) for one in stored.items)
        return replace(stored, items=items)

    def _too_much(
        self, held: StoredWorkingSet, *, policy: EvictionPolicy | Value | str, basis: AgeBasis
    ) -> tuple[WorkingSetItem, ...]:
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
        return (*giants, *(one.item for one in found.evicted))

    def _evicted(self, leaving: Sequence[WorkingSetItem], *, seen: int) -> bool:
        """Whether the set is to be read anew: they have left it, or it has moved meanwhile."""
        at = as_utc(self._session.clock(), name="clock")
        changes = [RemoveItem(memory_id=one.memory.id, at=at, evicted=True) for one in leaving]
        try:
            self._store.hold(self._session.agent, self._name, changes, seen=seen, by=self._by)
        except (SpaceError, StoreError):
            # Who may not write, or can't now, can still read; the next who can lets them leave.
            return False
        return True


# assemble of a working set: put what is held in order, and make one list of it.
#
# It changes nothing that it reads.

EMPTY_QUERY = TraceNote(
    code="nothing_asked", text="No token was allowed, so the text is empty, and what is pinned isn't in it."
)
"""What a trace says where a text of 0 tokens was asked of a set with pinned memories."""


def assemble_working_set(
    side: WorkingSetHandle,
    query: str,
    *,
    strategy: Strategy,
    plan: Plan,
    budget: int | None,
    held: StoredWorkingSet | None = None,
) -> Context:
    """The context of what is held, by a plan of one list. The clock is read once, and so is the set.

    `held` is the set where it is read already.
    """
    held = held or side.now.read()
    budget = held.max_tokens if budget is None else checked_count(budget, name="budget")
    now = as_utc(side.session.clock(), name="clock")
    asked = understand(side.session, query, Filter(), now=now)
    found = _arranged(side, held, asked, strategy=strategy, now=now)
    required = side.now.pinned(held)
    notes = [*asked.notes, *found.notes]
    if budget == 0 and required:
        # Asking for no text is no way to ask for what is pinned.
        required = frozenset()
        notes.append(EMPTY_QUERY)
    if shortened := side.now.shortened(held):
        plan = _degrading(plan)
        notes.append(_shortened_note(len(shortened), held.max_tokens))
    return assemble_list(
        plan,
        found.ranked,
        memories=found.memories,
        paragraphs=side.now.paragraphs(plan.sections[0].style),
        budget=budget,
        now=now,
        question=asked.question,
        required=required,
        notes=notes,
    )


def _degrading(plan: Plan) -> Plan:
    """The plan, with shorter texts for what doesn't fit whole."""
    (section,) = plan.sections
    overflow = Overflow.DEGRADE_STOP if section.overflow.stops else Overflow.DEGRADE
    shorter = (Level.FULL, Level.SUMMARY, Level.MICRO)
    return replace(plan, sections=(replace(section, levels=shorter, overflow=overflow),))


def _shortened_note(count: int, max_tokens: int) -> TraceNote:
    some = "1 memory is" if count == 1 else f"{count:,} memories are"
    return TraceNote(
        code="shortened",
        text=f"{some} longer than the whole set of {max_tokens:,} tokens, which holds a shorter text of it; "
        "what doesn't fit whole is shown shorter.",
    )


def _arranged(
    side: WorkingSetHandle, held: StoredWorkingSet, asked: ParsedQuery, *, strategy: Strategy, now: datetime
) -> Arranged:
    """What is held, in the order of a strategy, with what is known of it."""
    asks = bool(asked.informative) and strategy.relevance > 0
    clusters = strategy.name == "clustered"
    features = side.now.features(held) if asks or clusters else {}
    known = ItemFeatures(
        learned=side.now.learned(),
        relevance=_relevance(asked, features) if asks else None,
        vectors={name: each.vector for name, each in features.items() if each.vector is not None},
        terms={name: each.hashes for name, each in features.items()} if clusters else {},
    )
    return arrange(
        held.items,
        strategy,
        now=now,
        query=query_of(asked, ()),
        known=known,
        figures=side.now.figures(held),
    )


def _relevance(asked: ParsedQuery, features: Mapping[str, Features]) -> Mapping[str, float]:
    """How much each memory has to do with the question, from 0 to 1.

    The share of the question's information that stands in its words, and where both have a vector the
    mean of that and of their cosine on the scale that a recall uses.
    """
    names = list(features)
    shares = coverages(asked.informative, [features[name].hashes for name in names]).tolist()
    found = dict(zip(names, shares, strict=True))
    if asked.vector is None:
        return found
    near = {
        name: float(asked.vector @ each.vector)
        for name, each in features.items()
        if each.vector is not None and each.vector.shape == asked.vector.shape
    }
    top = max(near.values(), default=0.0)
    for name, cosine in near.items():
        found[name] = (found[name] + floored_semantic(cosine, top=top)) / 2
    return {name: min(max(share, 0.0), 1.0) for name, share in found.items()}
