"""assemble of a working set, and keep a record of it: how it was ordered, and when the set had last moved.

Level: verbs. The ledger keeps no set. A repetition is made of what the set holds by then, and says what has
become of it since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from germane.model.context import Context
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

__all__ = ["WORKING_SET", "assemble_held_again", "assemble_held_recorded", "moved_since"]

WORKING_SET: Final = "working_set"
"""What such an assembly was made for."""

_ORDERED_BY: Final = ("name", "base", "cluster_by", "relevance")
_LAID_OUT_BY: Final = ("overflow", "order", "raw")


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
        "strategy": {**ordered, "decay": asdict(strategy.decay)},
        "layout": {name: layout[name] for name in _LAID_OUT_BY},
    }
    made = _record(side, context, strategy, point, options, settled=settled, seconds=seconds)
    store.record(session.agent, made)
    return context


def assemble_held_again(
    session: Session, assembly: Assembly, scorer: Scorer | None
) -> tuple[Context, Assembly]:
    """The context that the set gives now for what was recorded, by the clock of then, and its record."""
    options = assembly.options
    then = replace(session, clock=lambda: assembly.at)
    side = _side(then, str(options["set"]))
    how = dict(options["strategy"])
    strategy = Strategy(**{**how, "decay": Decay(**how["decay"])}, scorer=scorer)
    plan = working(**options["layout"])
    context = assemble_held(side, assembly.question, strategy=strategy, plan=plan, max_tokens=assembly.budget)
    point = assembly.points[assembly.agent]
    return context, _record(side, context, strategy, point, options)


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


def _record(
    side: Side,
    context: Context,
    strategy: Strategy,
    point: Mapping[str, int],
    options: Mapping[str, Any],
    **more: Any,
) -> Assembly:
    session = side.session
    return assembly_of(
        session,
        context,
        where=Filter(),
        counter=session.counter,
        points={session.agent: point},
        plan=context.trace.plan,
        budget=context.trace.budget,
        pins=side.now.pinned(side.now.read()),
        scorer=strategy.scorer,
        options=options,
        **more,
    )


def _side(session: Session, name: str) -> Side:
    store = session.store
    assert isinstance(store, Holding)  # noqa: S101 - It has recorded what it held.
    return Side(session=session, store=store, name=name, by=session.agent, now=HeldNow(session, store, name))
