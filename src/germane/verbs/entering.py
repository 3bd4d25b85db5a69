"""add and evict: what comes into a working set, and who makes room for it.

Level: verbs. A decision is taken on the set as it was read, and done only if nothing has moved since;
else it is taken anew. So no set ever holds more than it may, whoever adds to it at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from germane.errors import BudgetTooSmall, InvalidInput, NotFound
from germane.model.context import Item
from germane.model.held import AgeBasis, Eviction, Held
from germane.model.holding import Added, Enter, HeldChange, HeldSet, Leave, Move, MoveKind
from germane.model.memory import Memory, Status, as_utc, split_id
from germane.model.trace import Ranked
from germane.protocols import Holding
from germane.ranking.eviction import EvictionPolicy, Value, evict, lacking
from germane.verbs.checks import checked_text
from germane.verbs.feedback import Named
from germane.verbs.held_now import HeldNow
from germane.verbs.read import head_of
from germane.verbs.session import Session

__all__ = ["Policy", "Side", "add", "id_of", "make_room"]

Policy: TypeAlias = EvictionPolicy | Value | str
"""Who leaves first: the name of a policy, or a function of an entry and a moment that says its worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """An agent's side of a working set: the owner's session, the set, and whose deeds these are."""

    session: Session
    store: Holding
    name: str
    by: str
    now: HeldNow


def id_of(named: Named) -> str:
    """The id of a memory that is named in any of the forms, whichever version of it is."""
    if isinstance(named, Item | Ranked | Held):
        return named.memory.id
    return named.id if isinstance(named, Memory) else split_id(checked_text(named, name="memory"))[0]


def add(
    side: Side,
    named: Iterable[Named],
    *,
    pinned: bool,
    recalled: bool,
    policy: Policy,
    basis: AgeBasis | str,
    fitting: bool = False,
) -> Added:
    """Take memories in, or touch those that are held, in one transaction; others make room if they must.

    What is added together never evicts each other. With `fitting`, as many of the first as fit are
    taken in, and the last of them first, so that the first is the latest. Raises NotFound, InvalidInput for
    a forgotten memory or one that is longer than the set, and BudgetTooSmall when what is pinned leaves
    too little room; then nothing has changed.
    """
    at = as_utc(side.session.clock(), name="clock")
    memories = _standing(side.session, [id_of(one) for one in named])
    basis = _checked_basis(basis)
    while True:
        held = side.now.read(policy=policy, basis=basis)
        here = {one.memory.id: one for one in held.items}
        entries = [here.get(memory.id) or _entry(side, memory, at) for memory in memories]
        taken = _fitting(held, here, entries) if fitting else entries
        eviction = _room_for(side, held, taken, here=here, policy=policy, basis=basis, now=at)
        leaving = [Leave(memory_id=one.held.memory.id, at=at, evicted=True) for one in eviction.evicted]
        entering = [
            Enter(memory_id=one.memory.id, at=at, pinned=pinned, recalled=recalled)
            for one in (reversed(taken) if fitting else taken)
        ]
        moves = _apply(side, [*leaving, *entering], seen=held.moved)
        if moves is not None:
            ids = {one.memory.id for one in taken}
            orders = {move.memory_id: move.number for move in moves if move.kind in _ENTRANCES}
            return Added(
                held=tuple(
                    _as_added(
                        one, orders, known=one.memory.id in here, at=at, pinned=pinned, recalled=recalled
                    )
                    for one in taken
                ),
                new=frozenset(one.memory.id for one in taken if one.memory.id not in here),
                eviction=eviction,
                left_out=tuple(one.memory for one in entries if one.memory.id not in ids),
            )


def make_room(side: Side, tokens: int, *, policy: Policy, basis: AgeBasis | str) -> Eviction:
    """Evict as few as free at least so many tokens; what is pinned stays, and the report says what lacks."""
    at = as_utc(side.session.clock(), name="clock")
    basis = _checked_basis(basis)
    while True:
        held = side.now.read(policy=policy, basis=basis)
        learned = side.now.learned()
        eviction = evict(held.items, tokens, now=at, policy=policy, learned=learned, basis=basis)
        leaving = [Leave(memory_id=one.held.memory.id, at=at, evicted=True) for one in eviction.evicted]
        if _apply(side, leaving, seen=held.moved) is not None:
            return eviction


_ENTRANCES = frozenset({MoveKind.ADD, MoveKind.TOUCH})


def _standing(session: Session, ids: Sequence[str]) -> list[Memory]:
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


def _entry(side: Side, memory: Memory, at: datetime) -> Held:
    entry = Held(memory=memory, entered_at=at, touched_at=at, order=0, tokens=0)
    return entry.evolve(tokens=side.now.tokens_of(entry))


def _fitting(held: HeldSet, here: Mapping[str, Held], entries: Sequence[Held]) -> list[Held]:
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


def _room_for(
    side: Side,
    held: HeldSet,
    entries: Sequence[Held],
    *,
    here: Mapping[str, Held],
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


def _apply(side: Side, changes: Sequence[HeldChange], *, seen: int) -> tuple[Move, ...] | None:
    if not changes:
        return ()
    return side.store.hold(side.session.agent, side.name, changes, seen=seen, by=side.by)


def _as_added(
    one: Held, orders: Mapping[str | None, int], *, known: bool, at: datetime, pinned: bool, recalled: bool
) -> Held:
    """The entry as the moves have left it."""
    return one.evolve(
        order=orders.get(one.memory.id, one.order),
        touched_at=max(one.touched_at, at),
        touches=one.touches + known,
        pinned=one.pinned or pinned,
        recalled=one.recalled or recalled,
    )
