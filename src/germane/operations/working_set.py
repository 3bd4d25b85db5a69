"""working_set: the memories that an agent works with now, bounded in tokens; assemble and record them.

Each operation is one transaction. Each read first checks in the store whether anything has moved, so that
changes of other threads and processes are seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from germane.errors import InvalidInput, NotFound
from germane.ledger import MADE_FOR, Assembly
from germane.model.context import Context
from germane.model.plan import Overflow
from germane.model.query import Filter
from germane.model.text import DEFAULT_SET
from germane.model.validation import checked_flag, checked_number, checked_text
from germane.operations.assemble import AssembleRequest
from germane.operations.context import AgentContext
from germane.operations.feedback import Named
from germane.operations.frame import PlanInput
from germane.operations.inputs import checked_count, checking_verbs
from germane.operations.read import whole_id
from germane.operations.recording import assembly_of
from germane.operations.working_set_items import (
    Policy,
    WorkingSetView,
    add,
    assemble_working_set,
    evict_for,
    id_of,
)
from germane.protocols import Scorer
from germane.ranking.eviction import Decay
from germane.ranking.similarity import ClusterBy
from germane.ranking.strategies import DEFAULT_STRATEGY, STRATEGIES, Strategy, StrategyName
from germane.stores.location import LEDGER, NOTIFICATIONS, WORKING_SETS, Following
from germane.working_sets import (
    DEFAULT_MAX_TOKENS,
    AddResult,
    AgeBasis,
    Clear,
    Eviction,
    Pin,
    RemoveItem,
    Resize,
    StoredWorkingSet,
    Touch,
    WorkingSetEvent,
    WorkingSetItem,
)

_EVERY = 0.02
"""Seconds between two looks at the log while it is followed."""


def working_set(session: AgentContext, name: str = DEFAULT_SET, *, by: str) -> WorkingSet:
    """The set of that name, moved by an agent. Raises InvalidInput for a store that keeps none."""
    if not checked_text(name, name="name").strip():
        raise InvalidInput(f"name={name!r} is empty: every working set has a name.")
    return WorkingSet(WorkingSetView(session, WORKING_SETS.required(session.store), name, by=by))


class Wrapping:
    """What has a working set behind it, as the awaited one of `germane.aio` does."""

    working_set: WorkingSet


def set_for(into: WorkingSet | Wrapping, agent: str, spaces: Sequence[str]) -> WorkingSet:
    """The set to which what this agent recalls is added. Raises InvalidInput for one that can't have it.

    Memories of spaces are others', so none can enter a set of an agent's own memories.
    """
    target = into if isinstance(into, WorkingSet) else getattr(into, "working_set", None)
    if not isinstance(target, WorkingSet):
        raise InvalidInput(f"into={into!r} is no working set. Pass what `working_set()` returned.")
    if target.owner != agent:
        raise InvalidInput(
            f"Working set {target.name!r} belongs to {target.owner!r} and holds that one's memories, not "
            f"those of {agent!r}. Recall into a set of the same owner."
        )
    if spaces:
        raise InvalidInput(
            f"into={target!r} holds one owner's memories, and spaces={tuple(spaces)!r} bring others'. Recall "
            "from the space itself into a set of the space: space.recall(..., into=space.working_set())."
        )
    return target


@checking_verbs
class WorkingSet:
    """The memories that an agent works with now, in all at most `max_tokens` long, whoever adds to them.

    Made by `Engine.working_set`; safe to share between threads, and the same in all processes that open the
    same store. It survives a restart. Iterating gives the entries (`WorkingSetItem`), the one touched longest
    ago first; what is returned is frozen and changes nothing. A memory that is forgotten or purged leaves the
    set; a revised one gives its place to its next version. Where that is longer and the set would exceed its
    maximum, other entries are evicted at the next read, the least important first; a memory that is longer
    than the whole set counts by its summary. Every change raises StoreError when the store can't do it.
    """

    def __init__(self, view: WorkingSetView) -> None:
        self._view = view

    @property
    def name(self) -> str:
        """The name of the set."""
        return self._view.name

    @property
    def owner(self) -> str:
        """Whose set it is."""
        return self._view.session.agent

    @property
    def max_tokens(self) -> int:
        """The most tokens that its entries may have together."""
        return self._view.read().max_tokens

    @property
    def tokens(self) -> int:
        """The tokens of its entries, by the engine's counter."""
        return sum(one.tokens for one in self.items())

    @property
    def utilization(self) -> float:
        """The share of `max_tokens` that is used; above 1 only where pinned entries exceed it."""
        most = self.max_tokens
        return self.tokens / most if most else 0.0

    @property
    def moved(self) -> int:
        """The number of the owner's latest move, from which `changes` and `follow` can go on."""
        return self._view.sets.latest_event(self.owner)

    def items(self) -> tuple[WorkingSetItem, ...]:
        """The entries, the one touched longest ago first."""
        return self._view.read().items

    def holds(self, memory: Named) -> bool:
        """Whether a memory is in the set."""
        wanted = self._id(memory)
        return any(one.memory.id == wanted for one in self.items())

    def has_space(self, tokens: int) -> bool:
        """Whether so many tokens could be added without an eviction."""
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
        """Add a memory as the latest; as few others as needed are evicted, by the policy.

        A memory of the set is touched, never doubled. Evicted memories stay stored, and can be
        recalled. `basis` says from when on an entry ages: since it entered the set, or "created_at",
        "updated_at" or "accessed_at". Raises NotFound; InvalidInput for a forgotten memory, one that is
        longer than the whole set, or an unknown policy or basis; and BudgetTooSmall when pinned entries
        leave too few tokens. Then nothing has changed.
        """
        return self.add_many([memory], pinned=pinned, policy=policy, basis=basis)

    def add_many(
        self,
        memories: Iterable[Named],
        *,
        pinned: bool = False,
        policy: Policy = "importance",
        basis: AgeBasis | str = AgeBasis.ENTERED,
        max_tokens: int | None = None,
    ) -> AddResult:
        """Add several memories, in their order, in one transaction; they never evict each other.

        `max_tokens` is the set's maximum from then on, where it is given. Raises what `add` raises, for the
        first that can't be added, and BudgetTooSmall when they are too long together; then nothing has
        changed.
        """
        checked_flag(pinned, name="pinned")
        if isinstance(memories, str):
            raise InvalidInput(f"memories={memories!r} is one id; pass a sequence, such as [{memories!r}].")
        return add(
            self._view,
            memories,
            pinned=pinned,
            recalled=False,
            policy=policy,
            basis=basis,
            max_tokens=max_tokens,
        )

    def add_recalled(
        self,
        memories: Iterable[Named],
        *,
        policy: Policy = "importance",
        basis: AgeBasis | str = AgeBasis.ENTERED,
    ) -> AddResult:
        """Add what a recall returned, best first: as many as fit, and so that the best is the latest.

        `Engine.recall(..., into=...)` calls it. The result's `left_out` names those that didn't fit.
        """
        return add(self._view, memories, pinned=False, recalled=True, policy=policy, basis=basis)

    def touch(self, memory: Named) -> None:
        """Record that a memory of the set was used now, which makes it the latest. Raises NotInWorkingSet."""
        self._view.apply([Touch(memory_id=self._id(memory), at=self._view.now())])

    def remove(self, memory: Named) -> None:
        """Remove a memory from the set; it stays stored. Raises NotInWorkingSet."""
        self._view.apply([RemoveItem(memory_id=self._id(memory), at=self._view.now())])

    def pin(self, memory: Named) -> None:
        """Protect an entry from eviction, and its importance from learning. Raises NotInWorkingSet."""
        self._view.apply([Pin(memory_id=self._id(memory), pinned=True, at=self._view.now())])

    def unpin(self, memory: Named) -> None:
        """Undo a pin of this set; a memory that was remembered as pinned stays so. Raises NotInWorkingSet."""
        self._view.apply([Pin(memory_id=self._id(memory), pinned=False, at=self._view.now())])

    def _id(self, memory: Named) -> str:
        return whole_id(self._view.session, id_of(memory))

    def clear(self, *, keep_pinned: bool = False) -> int:
        """Remove all entries, or all but those pinned in this set; returns how many. They stay stored."""
        checked_flag(keep_pinned, name="keep_pinned")
        return len(self._view.apply([Clear(at=self._view.now(), keep_pinned=keep_pinned)]) or ())

    def evict(
        self, tokens: int, *, policy: Policy = "importance", basis: AgeBasis | str = AgeBasis.ENTERED
    ) -> Eviction:
        """Evict as few entries as free at least so many tokens, and report them; pinned entries stay.

        `shortfall` is what can't be freed, and `in_the_way` the pinned entries. Raises InvalidInput for an
        unknown policy or basis, or a policy that raises or returns no number; then nothing is evicted.
        """
        return evict_for(self._view, checked_count(tokens, name="tokens"), policy=policy, basis=basis)

    def resize(self, max_tokens: int) -> None:
        """Set the maximum; entries that exceed it are evicted, the least important first."""
        if checked_count(max_tokens, name="max_tokens") != self.max_tokens:
            self._view.apply([Resize(max_tokens=max_tokens, at=self._view.now())])
            self._view.read()

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
        """The memories of the set as one text of at most `budget` tokens (the set's maximum), best first.

        A `query` that names something counts with the weight `relevance`; `strategy="smart"` chooses the
        strategy by it. Pinned memories must be in the text. `raw` leaves memories unfenced, so that they can
        pose as anything. Assembling changes nothing: `touch` records what was used. `record` adds it to the
        ledger. Raises BudgetTooSmall; InvalidInput for an unknown strategy, overflow or order, a strategy in
        the place of the query, a negative limit, or a scorer that raises or returns no number.
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
        records = self._view.session.records if record is None else record
        assembles = assemble_working_set_recorded if records else assemble_working_set
        return assembles(self._view, query, strategy=how, layout=layout, budget=budget)

    def changes(self, *, after: int = 0, limit: int | None = None) -> tuple[WorkingSetEvent, ...]:
        """The events of this set after the event numbered `after`, by any agent, oldest first.

        `limit` is the most to return. Raises InvalidInput for a negative number.
        """
        checked_count(after, name="after")
        # Moves of other sets lie between, so the limit is applied to this one's.
        most = None if limit is None else checked_count(limit, name="limit")
        return tuple(islice(self._view.moves(since=after), most))

    def follow(
        self,
        callback: Callable[[WorkingSetEvent], object],
        *,
        after: int | None = None,
        every: float = _EVERY,
    ) -> Following[WorkingSetEvent]:
        """Call back with each event of this set from now on, or after the one numbered `after`, until closed.

        The callback runs on a thread of its own and gets this process's events as well as others', at most
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
            notifications=NOTIFICATIONS.of(self._view.session.store),
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

    def _look(self, since: int) -> tuple[int, Sequence[WorkingSetEvent]]:
        """The number of the owner's latest event, and this set's events after the one numbered `since`."""
        if self.moved <= since:
            return since, ()
        moves = self._view.sets.events(self.owner, since=since)
        return (moves[-1].number if moves else since), [
            move for move in moves if move.working_set == self.name
        ]


# Record an assembly of a working set: how it was ordered, and the set's entries.
#
# The ledger stores no text: of the entries it stores times and numbers, in their order. A replay is made of
# the memories as they were then. Where a purge removed an entry from the record, or the record is older than
# these columns, the replay is made of the set as it is now, and reports the set's events since.

WORKING_SET: Final = "working_set"
"""The purpose that the record of such an assembly names."""

_ITEM: Final = "held"
"""The option with the columns of the entries; the record's entries name the memories."""

_ORDERED_BY: Final = ("name", "base", "cluster_by", "relevance")
_COLUMNS: Final = {"order": int, "touches": int, "pinned": bool, "recalled": bool}
_MICROSECOND: Final = timedelta(microseconds=1)


def assemble_working_set_recorded(
    view: WorkingSetView, query: str, *, strategy: Strategy, layout: dict[str, Any], budget: int | None
) -> Context:
    """The context that `assemble_working_set` returns, recorded in the ledger.

    Raises InvalidInput for a store without a ledger, and what `assemble_working_set` raises; then nothing
    is recorded.
    """
    session = view.session
    store = LEDGER.required(session.store)
    point, start = store.point(session.agent), session.timer()
    state = view.read()
    context = assemble_working_set(view, query, strategy=strategy, layout=layout, budget=budget, state=state)
    seconds = round(session.timer() - start, 6)
    settled = point == store.point(session.agent) and view.read().moved == state.moved
    ordered = {name: getattr(strategy, name) for name in _ORDERED_BY}
    options = {
        MADE_FOR: WORKING_SET,
        "set": view.name,
        "moved": state.moved,
        "max_tokens": state.max_tokens,
        "strategy": {**ordered, "decay": asdict(strategy.decay)},
        "layout": dict(layout),
        _ITEM: _as_columns(state, context),
    }
    pinned = view.pinned(state)
    made = _record(session, context, strategy, point, options, pins=pinned, settled=settled, seconds=seconds)
    store.record(session.agent, made)
    return context


def records_working_set(assembly: Assembly) -> bool:
    """Whether a record has the columns of every entry of the set."""
    return _ITEM in assembly.options and not assembly.purged


def reassemble_working_set(
    session: AgentContext, assembly: Assembly, scorer: Scorer | None
) -> tuple[Context, Assembly]:
    """The context for what was recorded, by the clock of then, and its record.

    Where the record has the set's entries, the session's store must be that of then. Raises NotFound for a
    memory that isn't in it.
    """
    options = assembly.options
    then = replace(session, clock=lambda: assembly.at)
    view = _view(then, str(options["set"]))
    state = _from_columns(view, assembly) if records_working_set(assembly) else view.read()
    how = dict(options["strategy"])
    strategy = Strategy(**{**how, "decay": Decay(**how["decay"])}, scorer=scorer)
    context = assemble_working_set(
        view,
        assembly.question,
        strategy=strategy,
        layout=options["layout"],
        budget=assembly.budget,
        state=state,
    )
    point = assembly.points[assembly.agent]
    return context, _record(then, context, strategy, point, options, pins=view.pinned(state))


def moved_since(session: AgentContext, assembly: Assembly) -> Iterator[str]:
    """A sentence that counts the set's events since the record, or nothing."""
    view = _view(session, str(assembly.options["set"]))
    kinds = Counter(str(move.kind) for move in view.moves(since=int(assembly.options["moved"])))
    if kinds:
        named = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        yield f"The working set {view.name!r} has moved since, and is taken as it is now: {named}."


def _as_columns(state: StoredWorkingSet, context: Context) -> dict[str, list[int]]:
    """The set's entries as columns in the order of the context's entries, times in microseconds."""
    by_id = {one.memory.ref: one for one in state.items}
    ones = [by_id[entry.memory_id] for entry in context.trace.entries]
    now = context.trace.now
    return {
        "entered": [(now - one.entered_at) // _MICROSECOND for one in ones],
        "touched": [(one.touched_at - one.entered_at) // _MICROSECOND for one in ones],
        **{name: [int(getattr(one, name)) for one in ones] for name in _COLUMNS},
    }


def _from_columns(view: WorkingSetView, assembly: Assembly) -> StoredWorkingSet:
    """The set as it was recorded, of the memories that the store has. Raises NotFound."""
    ids = [entry.version_id for entry in assembly.entries]
    columns, most = assembly.options[_ITEM], int(assembly.options.get("max_tokens", DEFAULT_MAX_TOKENS))
    items = []
    for place, memory in enumerate(view.session.store.get(assembly.agent, ids)):
        if memory is None:
            raise NotFound(ids[place], assembly.agent)
        entered = assembly.at - columns["entered"][place] * _MICROSECOND
        one = WorkingSetItem(
            memory=memory,
            entered_at=entered,
            touched_at=entered + columns["touched"][place] * _MICROSECOND,
            tokens=0,
            **{name: kind(columns[name][place]) for name, kind in _COLUMNS.items()},
        )
        items.append(one.evolve(tokens=view.tokens_within(one, most)))
    items.sort(key=lambda one: one.order)
    moved = int(assembly.options["moved"])
    return StoredWorkingSet(name=view.name, max_tokens=most, moved=moved, items=tuple(items))


def _record(
    session: AgentContext,
    context: Context,
    strategy: Strategy,
    point: Mapping[str, int],
    options: Mapping[str, Any],
    *,
    pins: Iterable[str],
    settled: bool = True,
    seconds: float | None = None,
) -> Assembly:
    request = AssembleRequest(
        query=context.trace.question.text,
        where=Filter(),
        counter=session.counter,
        how=PlanInput(plan=context.trace.plan, frame="", budget=context.trace.budget),
        pins=tuple(pins),
        scorer=strategy.scorer,
    )
    return assembly_of(
        session,
        context,
        request,
        points={session.agent: point},
        options=options,
        settled=settled,
        seconds=seconds,
    )


def _view(session: AgentContext, name: str) -> WorkingSetView:
    return WorkingSetView(session, WORKING_SETS.required(session.store), name, by=session.agent)
