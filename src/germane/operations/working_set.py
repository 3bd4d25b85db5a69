"""working_set: what an agent holds in mind now, bounded in tokens; assemble and record it.

Each operation is one transaction; each read begins by asking the store whether anything has moved, so
that what other threads and processes did is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from germane.errors import InvalidInput, NotFound
from germane.ledger import MADE_FOR, Assembly
from germane.model.context import Context
from germane.model.memory import as_utc
from germane.model.plan import Overflow
from germane.model.query import Filter
from germane.model.text import DEFAULT_SET
from germane.operations.context import AgentContext
from germane.operations.feedback import Named
from germane.operations.inputs import (
    checked_count,
    checked_flag,
    checked_number,
    checked_text,
    checking_verbs,
)
from germane.operations.scoped import assembly_of, recording_store
from germane.operations.working_set_items import (
    Policy,
    WorkingSetHandle,
    WorkingSetView,
    add,
    assemble_working_set,
    evict_for,
    id_of,
)
from germane.plans.layered import working
from germane.protocols import Scorer, WorkingSetStore
from germane.ranking.eviction import Decay
from germane.ranking.similarity import ClusterBy
from germane.ranking.strategies import DEFAULT_STRATEGY, STRATEGIES, Strategy, StrategyName
from germane.stores.location import Following
from germane.working_sets import (
    DEFAULT_MAX_TOKENS,
    AddResult,
    AgeBasis,
    Clear,
    Eviction,
    HeldChange,
    Pin,
    RemoveItem,
    Resize,
    StoredWorkingSet,
    Touch,
    WorkingSetEvent,
    WorkingSetItem,
)

__all__ = [
    "WORKING_SET",
    "WorkingSet",
    "Wrapping",
    "assemble_working_set_recorded",
    "moved_since",
    "reassemble_working_set",
    "records_working_set",
    "set_for",
    "working_set",
]

_EVERY = 0.02
"""Seconds between two looks at the log while it is followed."""


def working_set(session: AgentContext, name: str = DEFAULT_SET, *, by: str) -> WorkingSet:
    """The set of that name, moved by an agent. Raises InvalidInput for a store that keeps none."""
    if not isinstance(session.store, WorkingSetStore):
        raise InvalidInput(
            f"{type(session.store).__name__} keeps no working sets. Use a SQLite store, or give it the "
            "methods of germane.protocols.WorkingSetStore."
        )
    if not checked_text(name, name="name").strip():
        raise InvalidInput(f"name={name!r} is empty: every working set has a name.")
    now = WorkingSetView(session, session.store, name, by=by)
    return WorkingSet(WorkingSetHandle(session=session, store=session.store, name=name, by=by, now=now))


class Wrapping:
    """What has a working set behind it, as the awaited one of `germane.aio` does."""

    working_set: WorkingSet


def set_for(into: WorkingSet | Wrapping, agent: str, spaces: Sequence[str]) -> WorkingSet:
    """The set that takes in what this agent recalls. Raises InvalidInput for what can't hold it.

    What spaces give is others', so none of it can enter a set that holds an agent's own memories.
    """
    held = into if isinstance(into, WorkingSet) else getattr(into, "working_set", None)
    if not isinstance(held, WorkingSet):
        raise InvalidInput(f"into={into!r} is no working set. Pass what `working_set()` returned.")
    if held.owner != agent:
        raise InvalidInput(
            f"Working set {held.name!r} belongs to {held.owner!r} and holds that one's memories, not "
            f"those of {agent!r}. Recall into a set of the same owner."
        )
    if spaces:
        raise InvalidInput(
            f"into={held!r} holds one owner's memories, and spaces={tuple(spaces)!r} bring others'. Recall "
            "from the space itself into a set of the space: space.recall(..., into=space.working_set())."
        )
    return held


@checking_verbs
class WorkingSet:
    """What an agent holds in mind now: memories, in all at most `max_tokens` long, whoever adds to them.

    Made by `Engine.working_set`; safe to share between threads, and seen alike by all processes that
    open the same store. It survives a restart. Iterating gives the entries (`WorkingSetItem`), the one
    touched longest ago first; what is returned is frozen and changes nothing. A memory that is forgotten or
    purged leaves by itself; a revised one gives its place to its next version. Where that is longer and the
    set would exceed its maximum, others leave at the next look, the least important first; one that is longer
    than the whole set is held by its summary. Every change raises StoreError when the store can't do it.
    """

    def __init__(self, side: WorkingSetHandle) -> None:
        self._side = side

    @property
    def name(self) -> str:
        """The name of the set."""
        return self._side.name

    @property
    def owner(self) -> str:
        """Whose set it is."""
        return self._side.session.agent

    @property
    def max_tokens(self) -> int:
        """How many tokens it may hold."""
        return self._side.now.read().max_tokens

    @property
    def tokens(self) -> int:
        """How many tokens it holds, by the engine's counter."""
        return sum(one.tokens for one in self.items())

    @property
    def utilization(self) -> float:
        """The share of `max_tokens` that is held; above 1 only where what is pinned is too much."""
        most = self.max_tokens
        return self.tokens / most if most else 0.0

    @property
    def moved(self) -> int:
        """The number of the owner's latest move, from which `changes` and `follow` can go on."""
        return self._side.store.moved(self.owner)

    def items(self) -> tuple[WorkingSetItem, ...]:
        """The entries, the one touched longest ago first."""
        return self._side.now.read().items

    def holds(self, memory: Named) -> bool:
        """Whether it holds a memory."""
        wanted = id_of(memory)
        return any(one.memory.id == wanted for one in self.items())

    def has_space(self, tokens: int) -> bool:
        """Whether so many tokens could be added without anything leaving."""
        checked_count(tokens, name="tokens")
        return self.tokens + tokens <= self.max_tokens

    def add(
        self,
        memory: Named,
        *,
        pinned: bool = False,
        policy: Policy = "importance",
        basis: AgeBasis | str = AgeBasis.ENTERED,
    ) -> AddResult:
        """Take a memory in as the latest; others make room if they must, by the policy, and no more.

        What is held already is touched, never doubled. Memories that make room stay stored, and can be
        recalled. `basis` says from when on an entry is old: since it entered the set, or "created_at",
        "updated_at" or "accessed_at". Raises NotFound; InvalidInput for a forgotten memory, one that is
        longer than the whole set, or an unknown policy or basis; and BudgetTooSmall when what is pinned
        leaves too little room. Then nothing has changed.
        """
        return self.add_many([memory], pinned=pinned, policy=policy, basis=basis)

    def add_many(
        self,
        memories: Iterable[Named],
        *,
        pinned: bool = False,
        policy: Policy = "importance",
        basis: AgeBasis | str = AgeBasis.ENTERED,
    ) -> AddResult:
        """Take several memories in, in their order, in one transaction; they never evict each other.

        Raises what `add` raises, for the first that can't be taken in, and BudgetTooSmall when they are
        too long together.
        """
        checked_flag(pinned, name="pinned")
        if isinstance(memories, str):
            raise InvalidInput(f"memories={memories!r} is one id; pass a sequence, such as [{memories!r}].")
        return add(self._side, memories, pinned=pinned, recalled=False, policy=policy, basis=basis)

    def add_recalled(
        self,
        memories: Iterable[Named],
        *,
        policy: Policy = "importance",
        basis: AgeBasis | str = AgeBasis.ENTERED,
    ) -> AddResult:
        """Take in what a recall found, best first: as many as fit, and so that the best is the latest.

        `Engine.recall(..., into=...)` calls it. The report's `left_out` names those that found no room.
        """
        return add(
            self._side, memories, pinned=False, recalled=True, policy=policy, basis=basis, fitting=True
        )

    def touch(self, memory: Named) -> None:
        """Say that a held memory was used just now: it is the latest from here on. Raises NotInWorkingSet."""
        self._apply(Touch(memory_id=id_of(memory), at=self._at()))

    def remove(self, memory: Named) -> None:
        """Take a memory out; it stays stored. Raises NotInWorkingSet."""
        self._apply(RemoveItem(memory_id=id_of(memory), at=self._at()))

    def pin(self, memory: Named) -> None:
        """Keep a held memory from being evicted, and its importance as it was set. Raises NotInWorkingSet."""
        self._apply(Pin(memory_id=id_of(memory), pinned=True, at=self._at()))

    def unpin(self, memory: Named) -> None:
        """Undo a pin of this set; a memory that was remembered as pinned stays so. Raises NotInWorkingSet."""
        self._apply(Pin(memory_id=id_of(memory), pinned=False, at=self._at()))

    def clear(self, *, keep_pinned: bool = False) -> int:
        """Take everything out, or all but what was pinned in this set; how many left. They stay stored."""
        checked_flag(keep_pinned, name="keep_pinned")
        return len(self._apply(Clear(at=self._at(), keep_pinned=keep_pinned)))

    def evict(
        self, tokens: int, *, policy: Policy = "importance", basis: AgeBasis | str = AgeBasis.ENTERED
    ) -> Eviction:
        """Evict as few as free at least so many tokens, and say who left; pinned entries stay.

        What can't be freed stands in `shortfall`, and what is in the way in `in_the_way`. Raises
        InvalidInput for an unknown policy or basis, or a policy that raises or returns no number; then
        nothing left.
        """
        return evict_for(self._side, checked_count(tokens, name="tokens"), policy=policy, basis=basis)

    def resize(self, max_tokens: int) -> None:
        """Let it hold more or less; what is too much then leaves, the least important first."""
        if checked_count(max_tokens, name="max_tokens") != self.max_tokens:
            self._apply(Resize(max_tokens=max_tokens, at=self._at()))
            self._side.now.read()

    def assemble(
        self,
        query: str = "",
        *,
        strategy: StrategyName | str = DEFAULT_STRATEGY,
        budget: int | None = None,
        overflow: Overflow | str = "skip",
        order: str = "best_first",
        decay: Decay | None = None,
        scorer: Scorer | None = None,
        base: StrategyName | str = DEFAULT_STRATEGY,
        cluster_by: ClusterBy = "auto",
        relevance: float = 0.5,
        raw: bool = False,
        record: bool | None = None,
    ) -> Context:
        """The held memories as one text of at most `budget` tokens (all that the set may hold), best first.

        A `query` that names something joins in with the weight `relevance`; `strategy="smart"` reads from it
        which strategy serves. What is pinned must stand in the text. `raw` leaves memories as they are, so
        that they can pose as anything. Assembling changes nothing: `touch` says what was used. `record` puts
        it into the ledger. Raises BudgetTooSmall; InvalidInput for an unknown strategy, overflow or order, a
        strategy in the place of the query, a negative limit, or a scorer that raises or returns no number.
        """
        if strategy == DEFAULT_STRATEGY and query in STRATEGIES:
            raise InvalidInput(
                f"query={query!r} is the name of a strategy: pass strategy={query!r}. To ask about the "
                "word, write the question in several words."
            )
        how = Strategy(
            name=strategy,
            decay=decay or Decay(),
            scorer=scorer,
            base=base,
            cluster_by=cluster_by,
            relevance=checked_number(relevance, 0, 1, name="relevance"),
        )
        layout = {"overflow": overflow, "order": order, "raw": checked_flag(raw, name="raw")}
        if self._side.session.records if record is None else record:
            return assemble_working_set_recorded(
                self._side, query, strategy=how, layout=layout, budget=budget
            )
        plan = working(overflow=overflow, order=order, raw=raw)
        return assemble_working_set(self._side, query, strategy=how, plan=plan, budget=budget)

    def changes(self, *, after: int = 0, limit: int | None = None) -> tuple[WorkingSetEvent, ...]:
        """The events of this set after the event numbered `after`, by any agent, oldest first.

        `limit` is the most to return. Raises InvalidInput for a negative number.
        """
        checked_count(after, name="after")
        # Moves of other sets lie between, so the limit is applied to this one's.
        found = (
            move for move in self._side.store.moves(self.owner, since=after) if move.working_set == self.name
        )
        most = None if limit is None else checked_count(limit, name="limit")
        return tuple(islice(found, most))

    def follow(
        self,
        callback: Callable[[WorkingSetEvent], object],
        *,
        after: int | None = None,
        every: float = _EVERY,
    ) -> Following[WorkingSetEvent]:
        """Call back with each event of this set from now on, or after the one numbered `after`, until closed.

        The callback runs on a thread of its own and hears of this process's moves as of others', at most
        `every` seconds late; on a server at once, and at most 5 seconds late where that is more. Close what
        is returned, or use it as a context manager.
        """
        checked_number(every, 0.001, 3600, name="every")
        start = self.moved if after is None else checked_count(after, name="after")
        return Following(
            self._look,
            callback,
            name=self.name,
            since=start,
            every=every,
            store=self._side.store,
            tenant=self.owner,
        )

    def __len__(self) -> int:
        return len(self.items())

    def __iter__(self) -> Iterator[WorkingSetItem]:
        return iter(self.items())

    def __contains__(self, memory: object) -> bool:
        return isinstance(memory, Named) and self.holds(memory)

    def __bool__(self) -> bool:
        # A set is a set even while it is empty.
        return True

    def __repr__(self) -> str:
        return f"<germane.WorkingSet {self.name!r} of agent {self.owner!r}>"

    def _look(self, told: int) -> tuple[int, Sequence[WorkingSetEvent]]:
        """The number of the owner's latest move, and this set's moves since the one last told."""
        if self.moved <= told:
            return told, ()
        moves = self._side.store.moves(self.owner, since=told)
        return (moves[-1].number if moves else told), [
            move for move in moves if move.working_set == self.name
        ]

    def _apply(self, change: HeldChange) -> tuple[WorkingSetEvent, ...]:
        moves = self._side.store.hold(self.owner, self.name, [change], by=self._side.by)
        return () if moves is None else moves

    def _at(self) -> datetime:
        return as_utc(self._side.session.clock(), name="clock")


# assemble of a working set, and keep a record of it: how it was ordered, and what the set held.
#
# The ledger keeps no text: of what was held it keeps moments and numbers, in the order of its entries. A
# repetition is made of the memories of then. Where a purge took an entry from the record, or it is from
# before such things were kept, it is made of what the set holds now, and says what became of it since.

WORKING_SET: Final = "working_set"
"""What such an assembly was made for."""

_ITEM: Final = "held"
"""The option that says how each entry was held; the entries themselves name the memories."""

_ORDERED_BY: Final = ("name", "base", "cluster_by", "relevance")
_LAID_OUT_BY: Final = ("overflow", "order", "raw")
_MICROSECOND: Final = timedelta(microseconds=1)


def assemble_working_set_recorded(
    side: WorkingSetHandle, query: str, *, strategy: Strategy, layout: dict[str, Any], budget: int | None
) -> Context:
    """What `assemble_working_set` gives for a plan of this layout, and a record of it in the ledger.

    Raises InvalidInput for a store that keeps no ledger, and what `assemble_working_set` raises; then nothing
    is recorded.
    """
    session = side.session
    store = recording_store(session)
    point, start = store.point(session.agent), session.timer()
    held = side.now.read()
    plan = working(**layout)
    context = assemble_working_set(side, query, strategy=strategy, plan=plan, budget=budget, held=held)
    seconds = round(session.timer() - start, 6)
    settled = point == store.point(session.agent) and side.now.read().moved == held.moved
    ordered = {name: getattr(strategy, name) for name in _ORDERED_BY}
    options = {
        MADE_FOR: WORKING_SET,
        "set": side.name,
        "moved": held.moved,
        "max_tokens": held.max_tokens,
        "strategy": {**ordered, "decay": asdict(strategy.decay)},
        "layout": {name: layout[name] for name in _LAID_OUT_BY},
        _ITEM: _as_columns(held, context),
    }
    pinned = side.now.pinned(held)
    made = _record(session, context, strategy, point, options, pins=pinned, settled=settled, seconds=seconds)
    store.record(session.agent, made)
    return context


def records_working_set(assembly: Assembly) -> bool:
    """Whether a record says of every memory that the set held how it held it."""
    return _ITEM in assembly.options and not assembly.purged


def reassemble_working_set(
    session: AgentContext, assembly: Assembly, scorer: Scorer | None
) -> tuple[Context, Assembly]:
    """The context for what was recorded, by the clock of then, and its record.

    Where the record keeps what was held, the session's store is that of then. Raises NotFound for a memory
    that isn't in it.
    """
    options = assembly.options
    then = replace(session, clock=lambda: assembly.at)
    side = _side(then, str(options["set"]))
    held = _from_columns(side, assembly) if records_working_set(assembly) else side.now.read()
    how = dict(options["strategy"])
    strategy = Strategy(**{**how, "decay": Decay(**how["decay"])}, scorer=scorer)
    plan = working(**options["layout"])
    context = assemble_working_set(
        side, assembly.question, strategy=strategy, plan=plan, budget=assembly.budget, held=held
    )
    point = assembly.points[assembly.agent]
    return context, _record(then, context, strategy, point, options, pins=side.now.pinned(held))


def moved_since(session: AgentContext, assembly: Assembly) -> Iterator[str]:
    """What has become of the set since, in a sentence, or nothing."""
    side = _side(session, str(assembly.options["set"]))
    found = [
        move
        for move in side.store.moves(session.agent, since=int(assembly.options["moved"]))
        if move.working_set == side.name
    ]
    if found:
        kinds = Counter(str(move.kind) for move in found)
        named = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        yield f"The working set {side.name!r} has moved since, and is taken as it is now: {named}."


def _as_columns(held: StoredWorkingSet, context: Context) -> dict[str, list[int]]:
    """How each entry of a context was held, as columns in the order of the entries, times in microseconds."""
    by_id = {one.memory.ref: one for one in held.items}
    ones = [by_id[entry.memory_id] for entry in context.trace.entries]
    now = context.trace.now
    return {
        "entered": [(now - one.entered_at) // _MICROSECOND for one in ones],
        "touched": [(one.touched_at - one.entered_at) // _MICROSECOND for one in ones],
        "order": [one.order for one in ones],
        "touches": [one.touches for one in ones],
        "pinned": [int(one.pinned) for one in ones],
        "recalled": [int(one.recalled) for one in ones],
    }


def _from_columns(side: WorkingSetHandle, assembly: Assembly) -> StoredWorkingSet:
    """The set as it was recorded, of the memories that the store has. Raises NotFound."""
    ids = [entry.version_id for entry in assembly.entries]
    columns, most = assembly.options[_ITEM], int(assembly.options.get("max_tokens", DEFAULT_MAX_TOKENS))
    items = []
    for place, memory in enumerate(side.session.store.get(assembly.agent, ids)):
        if memory is None:
            raise NotFound(ids[place], assembly.agent)
        entered = assembly.at - columns["entered"][place] * _MICROSECOND
        one = WorkingSetItem(
            memory=memory,
            entered_at=entered,
            touched_at=entered + columns["touched"][place] * _MICROSECOND,
            order=columns["order"][place],
            tokens=0,
            touches=columns["touches"][place],
            pinned=bool(columns["pinned"][place]),
            recalled=bool(columns["recalled"][place]),
        )
        items.append(one.evolve(tokens=side.now.tokens_within(one, most)))
    items.sort(key=lambda one: one.order)
    moved = int(assembly.options["moved"])
    return StoredWorkingSet(name=side.name, max_tokens=most, moved=moved, items=tuple(items))


def _record(
    session: AgentContext,
    context: Context,
    strategy: Strategy,
    point: Mapping[str, int],
    options: Mapping[str, Any],
    **more: Any,
) -> Assembly:
    return assembly_of(
        session,
        context,
        where=Filter(),
        counter=session.counter,
        points={session.agent: point},
        plan=context.trace.plan,
        budget=context.trace.budget,
        scorer=strategy.scorer,
        options=options,
        **more,
    )


def _side(session: AgentContext, name: str) -> WorkingSetHandle:
    store = session.store
    assert isinstance(store, WorkingSetStore)  # noqa: S101 - It has recorded what it held.
    return WorkingSetHandle(
        session=session,
        store=store,
        name=name,
        by=session.agent,
        now=WorkingSetView(session, store, name, by=session.agent),
    )
