"""assemble of a working set, and keep a record of it: how it was ordered, and what the set held.

Level: verbs. The ledger keeps no text: of what was held it keeps moments and numbers, in the order of its
entries. A repetition is made of the memories of then. Where a purge took an entry from the record, or it is
from before such things were kept, it is made of what the set holds now, and says what became of it since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final

from germane.errors import NotFound
from germane.model.context import Context
from germane.model.held import Held
from germane.model.holding import DEFAULT_MAX_TOKENS, HeldSet
from germane.model.ledger import MADE_FOR, Assembly
from germane.model.query import Filter
from germane.plans.working import working
from germane.protocols import Holding, Scorer
from germane.ranking.decay import Decay
from germane.ranking.strategies import Strategy
from germane.verbs.entering import Side
from germane.verbs.held_context import assemble_held
from germane.verbs.held_now import HeldNow
from germane.verbs.recording import assembly_of, recording_store
from germane.verbs.session import Session

__all__ = ["WORKING_SET", "assemble_held_again", "assemble_held_recorded", "keeps_held", "moved_since"]

WORKING_SET: Final = "working_set"
"""What such an assembly was made for."""

_HELD: Final = "held"
"""The option that says how each entry was held; the entries themselves name the memories."""

_ORDERED_BY: Final = ("name", "base", "cluster_by", "relevance")
_LAID_OUT_BY: Final = ("overflow", "order", "raw")
_MICROSECOND: Final = timedelta(microseconds=1)


def assemble_held_recorded(
    side: Side, query: str, *, strategy: Strategy, layout: dict[str, Any], max_tokens: int | None
) -> Context:
    """What `assemble_held` gives for a plan of this layout, and a record of it in the ledger.

    Raises InvalidInput for a store that keeps no ledger, and what `assemble_held` raises; then nothing is
    recorded.
    """
    session = side.session
    store = recording_store(session)
    point, start = store.point(session.agent), session.timer()
    held = side.now.read()
    plan = working(**layout)
    context = assemble_held(side, query, strategy=strategy, plan=plan, max_tokens=max_tokens, held=held)
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
        _HELD: _as_columns(held, context),
    }
    pinned = side.now.pinned(held)
    made = _record(session, context, strategy, point, options, pins=pinned, settled=settled, seconds=seconds)
    store.record(session.agent, made)
    return context


def keeps_held(assembly: Assembly) -> bool:
    """Whether a record says of every memory that the set held how it held it."""
    return _HELD in assembly.options and not assembly.purged


def assemble_held_again(
    session: Session, assembly: Assembly, scorer: Scorer | None
) -> tuple[Context, Assembly]:
    """The context for what was recorded, by the clock of then, and its record.

    Where the record keeps what was held, the session's store is that of then. Raises NotFound for a memory
    that isn't in it.
    """
    options = assembly.options
    then = replace(session, clock=lambda: assembly.at)
    side = _side(then, str(options["set"]))
    held = _from_columns(side, assembly) if keeps_held(assembly) else side.now.read()
    how = dict(options["strategy"])
    strategy = Strategy(**{**how, "decay": Decay(**how["decay"])}, scorer=scorer)
    plan = working(**options["layout"])
    context = assemble_held(
        side, assembly.question, strategy=strategy, plan=plan, max_tokens=assembly.budget, held=held
    )
    point = assembly.points[assembly.agent]
    return context, _record(then, context, strategy, point, options, pins=side.now.pinned(held))


def moved_since(session: Session, assembly: Assembly) -> Iterator[str]:
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


def _as_columns(held: HeldSet, context: Context) -> dict[str, list[int]]:
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


def _from_columns(side: Side, assembly: Assembly) -> HeldSet:
    """The set as it was recorded, of the memories that the store has. Raises NotFound."""
    ids = [entry.version_id for entry in assembly.entries]
    columns, most = assembly.options[_HELD], int(assembly.options.get("max_tokens", DEFAULT_MAX_TOKENS))
    items = []
    for place, memory in enumerate(side.session.store.get(assembly.agent, ids)):
        if memory is None:
            raise NotFound(ids[place], assembly.agent)
        entered = assembly.at - columns["entered"][place] * _MICROSECOND
        one = Held(
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
    return HeldSet(name=side.name, max_tokens=most, moved=moved, items=tuple(items))


def _record(
    session: Session,
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


def _side(session: Session, name: str) -> Side:
    store = session.store
    assert isinstance(store, Holding)  # noqa: S101 - It has recorded what it held.
    return Side(
        session=session,
        store=store,
        name=name,
        by=session.agent,
        now=HeldNow(session, store, name, by=session.agent),
    )
