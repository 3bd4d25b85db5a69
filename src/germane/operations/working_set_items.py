"""The items of a working set: reading, adding and evicting them, and their order in a context.

A change is decided on the set as it was read, and applied only if nothing has moved since; else it is decided
again. So no set ever exceeds its maximum, whoever adds to it at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from germane.errors import BudgetTooSmall, InvalidInput, NotFound, SpaceError, StoreError
from germane.model.context import Context, Item, Ranked, TraceNote
from germane.model.memory import Level, Memory, Status, split_id
from germane.model.plan import Overflow
from germane.model.query import Filter
from germane.model.text import clear_at_purge
from germane.model.validation import as_utc, checked_text
from germane.operations.context import AgentContext
from germane.operations.feedback import Named
from germane.operations.inputs import checked_count
from germane.operations.read import head_of, whole_id
from germane.operations.search import ParsedQuery, query_of, understand
from germane.packing.layout import assemble_list
from germane.plans.layered import working
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
from germane.stores.location import FEEDBACK
from germane.working_sets import (
    AddItem,
    AddResult,
    AgeBasis,
    Eviction,
    Features,
    RemoveItem,
    Resize,
    SetChange,
    StoredWorkingSet,
    WorkingSetEvent,
    WorkingSetEventKind,
    WorkingSetItem,
)

if TYPE_CHECKING:
    from germane.stores.relational.working_sets import WorkingSetTables

T = TypeVar("T")

Policy: TypeAlias = EvictionPolicy | Value | str
"""What is evicted first: the name of a policy, or a function that gives an entry's value at a moment."""


def id_of(named: Named) -> str:
    """The id of a memory that is given in any form and version."""
    if isinstance(named, Item | Ranked | WorkingSetItem):
        return named.memory.id
    return named.id if isinstance(named, Memory) else split_id(checked_text(named, name="memory"))[0]


def add(
    view: WorkingSetView,
    named: Iterable[Named],
    *,
    pinned: bool,
    recalled: bool,
    policy: Policy,
    basis: AgeBasis | str,
    max_tokens: int | None = None,
) -> AddResult:
    """Add memories, or touch those that the set has, in one transaction; as few others as needed are evicted.

    `max_tokens` is the set's maximum from then on, where it is given. Memories that are added together never
    evict each other. Of `recalled` ones, best first, as many as fit are added, and the last of them first, so
    that the best is the latest. Raises NotFound, InvalidInput for a forgotten memory or one that is longer
    than the set, and BudgetTooSmall when what is pinned leaves too few tokens; then nothing has changed.
    """
    at = view.now()
    memories = _current_versions(view.session, [whole_id(view.session, id_of(one)) for one in named])
    basis = _checked_basis(basis)
    resized: list[SetChange] = []
    if max_tokens is not None:
        resized = [Resize(max_tokens=checked_count(max_tokens, name="max_tokens"), at=at)]
    while True:
        state = view.read(policy=policy, basis=basis)
        state = state if max_tokens is None else replace(state, max_tokens=max_tokens)
        here = {one.memory.id: one for one in state.items}
        entries = [here.get(memory.id) or _entry(view, memory, at) for memory in memories]
        taken = _fitting(state, here, entries) if recalled else entries
        eviction = _eviction_for(view, state, taken, here=here, policy=policy, basis=basis, now=at)
        leaving = _leaving([one.item for one in eviction.evicted], at)
        entering = [
            AddItem(memory_id=one.memory.id, at=at, pinned=pinned, recalled=recalled)
            for one in (reversed(taken) if recalled else taken)
        ]
        moves = view.apply([*resized, *leaving, *entering], seen=state.moved)
        if moves is not None:
            ids = {one.memory.id for one in taken}
            orders = {move.memory_id: move.number for move in moves if move.kind in _ENTRANCES}
            return AddResult(
                # The entries as the moves have left them.
                items=tuple(
                    one.evolve(
                        order=orders.get(one.memory.id, one.order),
                        touched_at=max(one.touched_at, at),
                        touches=one.touches + (one.memory.id in here),
                        pinned=one.pinned or pinned,
                        recalled=one.recalled or recalled,
                    )
                    for one in taken
                ),
                new=frozenset(one.memory.id for one in taken if one.memory.id not in here),
                eviction=eviction,
                left_out=tuple(one.memory for one in entries if one.memory.id not in ids),
            )


def evict_for(view: WorkingSetView, tokens: int, *, policy: Policy, basis: AgeBasis | str) -> Eviction:
    """Evict as few entries as free at least so many tokens, and report what lacks; pinned entries stay."""
    at = view.now()
    basis = _checked_basis(basis)
    while True:
        state = view.read(policy=policy, basis=basis)
        learned = view.learned()
        eviction = evict(state.items, tokens, now=at, policy=policy, learned=learned, basis=basis)
        leaving = _leaving([one.item for one in eviction.evicted], at)
        if view.apply(leaving, seen=state.moved) is not None:
            return eviction


_ENTRANCES = frozenset({WorkingSetEventKind.ADD, WorkingSetEventKind.TOUCH})


def _current_versions(session: AgentContext, ids: Sequence[str]) -> list[Memory]:
    """The current versions of these memories, each once; a merged memory is its successor."""
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


def _leaving(items: Iterable[WorkingSetItem], at: datetime) -> list[RemoveItem]:
    return [RemoveItem(memory_id=one.memory.id, at=at, evicted=True) for one in items]


def _entry(view: WorkingSetView, memory: Memory, at: datetime) -> WorkingSetItem:
    entry = WorkingSetItem(memory=memory, entered_at=at, touched_at=at, order=0, tokens=0)
    return entry.evolve(tokens=view.tokens_of(entry))


def _fitting(
    state: StoredWorkingSet, here: Mapping[str, WorkingSetItem], entries: Sequence[WorkingSetItem]
) -> list[WorkingSetItem]:
    """The entries that fit beside what isn't evicted, in their order."""
    wanted = {one.memory.id for one in entries}
    # An item of the set costs nothing more, and can't be evicted by what is added with it.
    free = state.max_tokens - sum(one.tokens for one in state.items if one.stays or one.memory.id in wanted)
    taken = []
    for one in entries:
        known = one.memory.id in here
        if known or one.tokens <= free:
            taken.append(one)
            free -= 0 if known else one.tokens
    return taken


def _eviction_for(
    view: WorkingSetView,
    state: StoredWorkingSet,
    entries: Sequence[WorkingSetItem],
    *,
    here: Mapping[str, WorkingSetItem],
    policy: Policy,
    basis: AgeBasis,
    now: datetime,
) -> Eviction:
    """What is evicted so that the entries fit. Raises InvalidInput or BudgetTooSmall where nothing can be."""
    new = [one for one in entries if one.memory.id not in here]
    # One that is longer than the whole set is refused, whatever could be evicted.
    lacking((), tokens=max((one.tokens for one in new), default=0), max_tokens=state.max_tokens)
    needed = sum(one.tokens for one in (*state.items, *new)) - state.max_tokens if new else 0
    ids = {one.memory.id for one in entries}
    # What use says of importances is read only where something has to be evicted.
    learned = view.learned() if needed > 0 else {}
    eviction = evict(state.items, needed, now=now, policy=policy, learned=learned, basis=basis, keep=ids)
    if eviction.shortfall:
        required = (*(one.memory.id for one in new), *(one.memory.id for one in eviction.in_the_way))
        raise BudgetTooSmall(
            budget=state.max_tokens, needed=state.max_tokens + eviction.shortfall, required=required
        )
    return eviction


# The items of a working set now, counted by the caller's counter, and what is known of their memories.
#
# All of it can be read again from the store; what is cached here saves time only.


class WorkingSetView:
    """One set of one owner, as the agent `by` sees and changes it.

    Threads may share it: at worst something is computed twice.
    """

    def __init__(self, session: AgentContext, sets: WorkingSetTables, name: str, *, by: str) -> None:
        self.session, self.sets, self.name, self.by = session, sets, name, by
        self._counted: tuple[StoredWorkingSet, StoredWorkingSet] | None = None
        self._derived: dict[str, tuple[StoredWorkingSet, Any]] = {}
        self._features: dict[str, tuple[Memory, Features]] = {}
        self._learned: tuple[int, Mapping[str, LearnedImportance]] | None = None
        clear_at_purge(self)

    def clear(self) -> None:
        """Drop what was made of the set; it is made anew from what is stored."""
        self._counted, self._derived, self._features = None, {}, {}

    def now(self) -> datetime:
        """The time by the session's clock, in UTC."""
        return as_utc(self.session.clock(), name="clock")

    def apply(
        self, changes: Sequence[SetChange], *, seen: int | None = None
    ) -> tuple[WorkingSetEvent, ...] | None:
        """What changes do to the set, in one transaction; None where it moved since `seen`, and nothing was
        done.
        """
        if not changes:
            return ()
        return self.sets.apply(self.session.agent, self.name, changes, seen=seen, by=self.by)

    def moves(self, *, since: int) -> Iterator[WorkingSetEvent]:
        """What became of the set after the move of that number."""
        every = self.sets.events(self.session.agent, since=since)
        return (move for move in every if move.working_set == self.name)

    def read(
        self, *, policy: EvictionPolicy | Value | str = "importance", basis: AgeBasis = AgeBasis.ENTERED
    ) -> StoredWorkingSet:
        """The set as it is stored, each entry's tokens by the session's counter, in all at most its maximum.

        A revision can make an entry longer than it was. Where the set then exceeds its maximum, entries
        are evicted by the policy; a reader that can't write sees the set without them. Only pinned entries
        can exceed the maximum.
        """
        while True:
            stored = self._unexpired(self.sets.get(self.session.agent, self.name))
            known = self._counted
            # The store gives the same value until something moves.
            if known is not None and known[0] is stored:
                return known[1]
            counted = self._count(stored)
            if known is not None:
                # Another process may have purged what left the set.
                before = {one.memory.ref for one in known[0].items}
                self.session.lines.forget(before.difference(one.memory.ref for one in stored.items))
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

    def _unexpired(self, stored: StoredWorkingSet) -> StoredWorkingSet:
        """The set without what has expired; the same value until something moves or expires."""
        if not any(one.memory.expires_at for one in stored.items):
            return stored
        now = self.now()
        items = tuple(one for one in stored.items if not one.memory.has_expired(now))
        known = self._derived.get("unexpired")
        if known is None or known[0] is not stored or len(known[1].items) != len(items):
            known = self._derived["unexpired"] = stored, replace(stored, items=items)
        made: StoredWorkingSet = known[1]
        return made

    def pinned(self, state: StoredWorkingSet) -> frozenset[str]:
        """The ids of the memories that nothing evicts."""
        return self._once(
            "pinned", state, lambda: frozenset(one.memory.id for one in state.items if one.stays)
        )

    def figures(self, state: StoredWorkingSet) -> ItemColumns:
        """The numbers of its entries as columns."""
        return self._once("figures", state, lambda: ItemColumns(state.items))

    def shortened(self, state: StoredWorkingSet) -> frozenset[str]:
        """The ids of the memories that are longer than the whole set, which holds them by a shorter text."""
        return self._once(
            "shortened",
            state,
            lambda: frozenset(one.memory.id for one in state.items if one.tokens < self.tokens_of(one)),
        )

    def features(self, state: StoredWorkingSet) -> Mapping[str, Features]:
        """What the index knows of the memories of the set, by their ids."""
        # Whatever is written of a memory, its vector too, makes another value of it, and of the set.
        return self._once("features", state, lambda: self._looked_up(state.items))

    def _once(self, name: str, state: StoredWorkingSet, make: Callable[[], T]) -> T:
        """What is made of a set, once for as long as the store gives the same value of it."""
        known = self._derived.get(name)
        if known is None or known[0] is not state:
            known = self._derived[name] = state, make()
        made: T = known[1]
        return made

    def tokens_of(self, item: WorkingSetItem, level: Level = Level.FULL) -> int:
        """How many tokens the text of an entry takes, by the session's counter."""
        renditions, counter = item.memory.renditions, self.session.counter
        text = renditions.at(level)
        return text.tokens if renditions.counter == counter.name else counter.count(text.text)

    def tokens_within(self, item: WorkingSetItem, most: int) -> int:
        """The tokens of an entry's longest text of at most `most` tokens, or of the full one if none is."""
        full = self.tokens_of(item)
        if full <= most:
            return full
        shorter = (self.tokens_of(item, level) for level in (Level.SUMMARY, Level.MICRO))
        return next((tokens for tokens in shorter if tokens <= most), full)

    def learned(self) -> Mapping[str, LearnedImportance]:
        """What use says of importances, by memory id; nothing while learning is off."""
        feedback, agent = FEEDBACK.of(self.session.store), self.session.agent
        state = feedback.learning(agent, None) if feedback else None
        if feedback is None or state is None or not state.on:
            return {}
        known = self._learned
        if known is None or known[0] != state.stamp:
            # Read after the stamp: newer examples than it says are read again, older ones never cached.
            examples = [one for one in feedback.examples(agent) if one.parts]
            known = self._learned = state.stamp, learn_importance(examples)
        return known[1]

    def _looked_up(self, items: Sequence[WorkingSetItem]) -> Mapping[str, Features]:
        cached = {}
        for one in items:
            known = self._features.get(one.memory.id)
            if known is not None and known[0] is one.memory:
                cached[one.memory.id] = known
        wanted = [one.memory for one in items if one.memory.id not in cached]
        if wanted:
            fresh = self.sets.features(self.session.agent, [memory.id for memory in wanted])
            for memory, features in zip(wanted, fresh, strict=True):
                if features is not None:
                    cached[memory.id] = memory, features
        self._features = cached
        return {memory_id: features for memory_id, (_, features) in cached.items()}

    def _count(self, stored: StoredWorkingSet) -> StoredWorkingSet:
        """The set with each entry's tokens by the session's counter, of a shorter text where it must be."""
        name, most = self.session.counter.name, stored.max_tokens
        if all(one.memory.renditions.counter == name and one.tokens <= most for one in stored.items):
            return stored
        items = tuple(one.evolve(tokens=self.tokens_within(one, most)) for one in stored.items)
        return replace(stored, items=items)

    def _too_much(
        self, state: StoredWorkingSet, *, policy: EvictionPolicy | Value | str, basis: AgeBasis
    ) -> tuple[WorkingSetItem, ...]:
        """The entries to evict so that the set keeps within its maximum, first those that can't fit."""
        over = sum(one.tokens for one in state.items) - state.max_tokens
        if over <= 0:
            return ()
        giants = tuple(one for one in state.items if one.tokens > state.max_tokens and not one.stays)
        over -= sum(one.tokens for one in giants)
        found = evict(
            state.items,
            over,
            now=self.now(),
            policy=policy,
            learned=self.learned(),
            basis=basis,
            keep=[one.memory.id for one in giants],
        )
        return (*giants, *(one.item for one in found.evicted))

    def _evicted(self, leaving: Sequence[WorkingSetItem], *, seen: int) -> bool:
        """Whether the set has to be read again: the entries were evicted, or it has moved meanwhile."""
        try:
            self.apply(_leaving(leaving, self.now()), seen=seen)
        except (SpaceError, StoreError):
            # A reader that may not write, or can't now, can still read; the next writer evicts them.
            return False
        return True


# assemble of a working set: put its items in order, and make one list of them.
#
# It changes nothing that it reads.

EMPTY_QUERY = TraceNote(
    code="nothing_asked", text="No token was allowed, so the text is empty, and what is pinned isn't in it."
)
"""The note of a trace where a text of 0 tokens was requested of a set with pinned memories."""


def assemble_working_set(
    view: WorkingSetView,
    query: str,
    *,
    strategy: Strategy,
    layout: Mapping[str, Any],
    budget: int | None,
    state: StoredWorkingSet | None = None,
) -> Context:
    """The context of the items of a set, by a plan of one list; the clock and the set are read once.

    `layout` is what the plan takes: overflow, order and raw. `state` is the set where it is read already.
    """
    plan = working(**layout)
    state = state or view.read()
    budget = state.max_tokens if budget is None else checked_count(budget, name="budget")
    now = view.now()
    parsed = understand(view.session, query, Filter(), now=now)
    arranged = _arranged(view, state, parsed, strategy=strategy, now=now)
    required = view.pinned(state)
    notes = [*parsed.notes, *arranged.notes]
    if budget == 0 and required:
        # Asking for no text is no way to ask for what is pinned.
        required = frozenset()
        notes.append(EMPTY_QUERY)
    if shortened := len(view.shortened(state)):
        (section,) = plan.sections
        overflow = Overflow.DEGRADE_STOP if section.overflow.stops else Overflow.DEGRADE
        levels = (Level.FULL, Level.SUMMARY, Level.MICRO)
        plan = replace(plan, sections=(replace(section, levels=levels, overflow=overflow),))
        some = "1 memory is" if shortened == 1 else f"{shortened:,} memories are"
        text = f"{some} longer than the whole set of {state.max_tokens:,} tokens, which holds a shorter text "
        text += "of it; what doesn't fit whole is shown shorter."
        notes.append(TraceNote(code="shortened", text=text))
    return assemble_list(
        plan,
        arranged.ranked,
        memories=arranged.memories,
        counter=view.session.counter,
        kinds=view.session.kinds,
        lines=view.session.lines,
        budget=budget,
        now=now,
        question=parsed.question,
        required=required,
        notes=notes,
    )


def _arranged(
    view: WorkingSetView, state: StoredWorkingSet, parsed: ParsedQuery, *, strategy: Strategy, now: datetime
) -> Arranged:
    """The items in the order of a strategy, with what is known of them."""
    uses_query = bool(parsed.informative) and strategy.relevance > 0
    clusters = strategy.name == "clustered"
    features = view.features(state) if uses_query or clusters else {}
    known = ItemFeatures(
        learned=view.learned(),
        relevance=_relevance(parsed, features) if uses_query else None,
        vectors={name: each.vector for name, each in features.items() if each.vector is not None},
        terms={name: each.hashes for name, each in features.items()} if clusters else {},
    )
    return arrange(
        state.items,
        strategy,
        now=now,
        query=query_of(parsed, ()),
        known=known,
        figures=view.figures(state),
    )


def _relevance(parsed: ParsedQuery, features: Mapping[str, Features]) -> Mapping[str, float]:
    """How relevant each memory is to the question, from 0 to 1.

    It is the share of the question's information that the memory's words have; where both have a vector, the
    mean of that share and of their cosine on the scale that a recall uses.
    """
    names = list(features)
    shares = coverages(parsed.informative, [features[name].hashes for name in names]).tolist()
    found = dict(zip(names, shares, strict=True))
    if parsed.vector is None:
        return found
    near = {
        name: float(parsed.vector @ each.vector)
        for name, each in features.items()
        if each.vector is not None and each.vector.shape == parsed.vector.shape
    }
    top = max(near.values(), default=0.0)
    for name, cosine in near.items():
        found[name] = (found[name] + floored_semantic(cosine, top=top)) / 2
    return {name: min(max(share, 0.0), 1.0) for name, share in found.items()}
