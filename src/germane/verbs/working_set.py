"""working_set: what an agent holds in mind now, bounded in tokens, kept in the store.

Level: verbs. Each operation is one transaction; each read begins by asking the store whether anything
has moved, so that what other threads and processes did is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from germane.errors import InvalidInput
from germane.model.context import Context
from germane.model.held import AgeBasis, Eviction, Held
from germane.model.holding import (
    DEFAULT_SET,
    Added,
    Clear,
    HeldChange,
    Leave,
    Move,
    Pin,
    Resize,
    Touch,
)
from germane.model.memory import as_utc
from germane.model.plan import Overflow
from germane.plans.working import working
from germane.protocols import Holding, Scorer
from germane.ranking.clustering import ClusterBy
from germane.ranking.decay import Decay
from germane.ranking.strategies import DEFAULT_STRATEGY, STRATEGIES, Strategy, StrategyName
from germane.verbs.checks import checked_count, checked_flag, checked_number, checked_text, checking_verbs
from germane.verbs.entering import Policy, Side, add, id_of, make_room
from germane.verbs.feedback import Named
from germane.verbs.following import Following
from germane.verbs.held_context import assemble_held
from germane.verbs.held_now import HeldNow
from germane.verbs.held_recording import assemble_held_recorded
from germane.verbs.session import Session

__all__ = ["WorkingSet", "Wrapping", "set_for", "working_set"]

_EVERY = 0.02
"""Seconds between two looks at the log while it is followed."""


def working_set(session: Session, name: str = DEFAULT_SET, *, by: str) -> WorkingSet:
    """The set of that name, moved by an agent. Raises InvalidInput for a store that keeps none."""
    if not isinstance(session.store, Holding):
        raise InvalidInput(
            f"{type(session.store).__name__} keeps no working sets. Use a SQLite store, or give it the "
            "methods of germane.Holding."
        )
    if not checked_text(name, name="name").strip():
        raise InvalidInput(f"name={name!r} is empty: every working set has a name.")
    now = HeldNow(session, session.store, name, by=by)
    return WorkingSet(Side(session=session, store=session.store, name=name, by=by, now=now))


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
    open the same store. It survives a restart. Iterating gives the entries (`Held`), the one touched
    longest ago first; what is returned is frozen and changes nothing. A memory that is forgotten or
    purged leaves by itself; a revised one gives its place to its next version. Where that is longer and the
    set would exceed its maximum, others leave at the next look, the least important first; one that is
    longer than the whole set is held by its summary. Every change raises StoreError when the store can't
    do it.
    """

    def __init__(self, side: Side) -> None:
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

    def items(self) -> tuple[Held, ...]:
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
    ) -> Added:
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
    ) -> Added:
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
    ) -> Added:
        """Take in what a recall found, best first: as many as fit, and so that the best is the latest.

        `Engine.recall(..., into=...)` calls it. The report's `left_out` names those that found no room.
        """
        return add(
            self._side, memories, pinned=False, recalled=True, policy=policy, basis=basis, fitting=True
        )

    def touch(self, memory: Named) -> None:
        """Say that a held memory was used just now: it is the latest from here on. Raises NotHeld."""
        self._apply(Touch(memory_id=id_of(memory), at=self._at()))

    def remove(self, memory: Named) -> None:
        """Take a memory out; it stays stored. Raises NotHeld."""
        self._apply(Leave(memory_id=id_of(memory), at=self._at()))

    def pin(self, memory: Named) -> None:
        """Keep a held memory from being evicted, and its importance as it was set. Raises NotHeld."""
        self._apply(Pin(memory_id=id_of(memory), pinned=True, at=self._at()))

    def unpin(self, memory: Named) -> None:
        """Undo a pin of this set; a memory that was remembered as pinned stays so. Raises NotHeld."""
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
        return make_room(self._side, checked_count(tokens, name="tokens"), policy=policy, basis=basis)

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
        max_tokens: int | None = None,
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
        """The held memories as one text of at most `max_tokens` (all that the set may hold), best first.

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
            return assemble_held_recorded(
                self._side, query, strategy=how, layout=layout, max_tokens=max_tokens
            )
        plan = working(overflow=overflow, order=order, raw=raw)
        return assemble_held(self._side, query, strategy=how, plan=plan, max_tokens=max_tokens)

    def changes(self, *, since: int = 0, limit: int | None = None) -> tuple[Move, ...]:
        """What became of this set after the move numbered `since`, whoever did it, in order."""
        checked_count(since, name="since")
        # Moves of other sets lie between, so the limit is applied to this one's.
        found = (
            move for move in self._side.store.moves(self.owner, since=since) if move.working_set == self.name
        )
        most = None if limit is None else checked_count(limit, name="limit")
        return tuple(islice(found, most))

    def follow(
        self, callback: Callable[[Move], object], *, since: int | None = None, every: float = _EVERY
    ) -> Following[Move]:
        """Call back with each move of this set from now on, or from after `since`, until it is closed.

        The callback runs on a thread of its own and hears of this process's moves as of others', at most
        `every` seconds late; on a server at once, and at most 5 seconds late where that is more. Close what
        is returned, or use it as a context manager.
        """
        checked_number(every, 0.001, 3600, name="every")
        start = self.moved if since is None else checked_count(since, name="since")
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

    def __iter__(self) -> Iterator[Held]:
        return iter(self.items())

    def __contains__(self, memory: object) -> bool:
        return isinstance(memory, Named) and self.holds(memory)

    def __bool__(self) -> bool:
        # A set is a set even while it is empty.
        return True

    def __repr__(self) -> str:
        return f"<germane.WorkingSet {self.name!r} of agent {self.owner!r}>"

    def _look(self, told: int) -> tuple[int, Sequence[Move]]:
        """The number of the owner's latest move, and this set's moves since the one last told."""
        if self.moved <= told:
            return told, ()
        moves = self._side.store.moves(self.owner, since=told)
        return (moves[-1].number if moves else told), [
            move for move in moves if move.working_set == self.name
        ]

    def _apply(self, change: HeldChange) -> tuple[Move, ...]:
        moves = self._side.store.hold(self.owner, self.name, [change], by=self._side.by)
        return () if moves is None else moves

    def _at(self) -> datetime:
        return as_utc(self._side.session.clock(), name="clock")
