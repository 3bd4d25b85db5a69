"""assemble: gather what a plan asks for, and let the pipeline make the context.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from germane.errors import InvalidInput, NotFound
from germane.model.context import Context
from germane.model.frame import Frame
from germane.model.memory import Memory, Status, as_utc
from germane.model.plan import Plan
from germane.model.query import Candidate, Filter, Found, Order, Slice
from germane.packing.remembered import RememberedLines
from germane.pipeline import Request
from germane.pipeline import assemble as assemble_context
from germane.plans.registry import plan_for
from germane.protocols import Scorer, TokenCounter
from germane.verbs.checks import checked_count, checked_words
from germane.verbs.question import covered, query_of, understand
from germane.verbs.session import Session
from germane.verbs.together import gather_together

__all__ = ["assemble"]

_MOST_PINNED = 1000
"""Far more than any budget holds: too many pins are an error that says so, not a silent choice."""


def assemble(
    session: Session,
    query: str,
    *,
    budget: int,
    where: Filter,
    plan: str | Plan,
    frame: str | Frame,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[Session] = (),
) -> Context:
    """The best context for a query within `budget` tokens, also from spaces. Reading changes nothing.

    Memories that were remembered as pinned stand in it like those that `pins` names. The clock is
    read once. What the plan shows whatever the question is gathered past the caller's
    filter: a question about last week must not lose the agent its constraints.
    """
    checked_count(budget, name="budget")
    now = as_utc(session.clock(), name="clock")
    chosen = plan_for(plan, kinds=session.kinds, frame=frame)
    asked = understand(session, query, where, now=now)
    slices = _slices(chosen, where)
    always = Slice(order=Order.IMPORTANT, where=Filter(pinned=True, scopes=where.scopes), limit=_MOST_PINNED)
    asked, found = gather_together(session, asked, (*slices, always), spaces)
    pinned = (*_named((session, *spaces), pins), *(one.memory for one in found.slices[-1]))
    found = _with_pinned(chosen, replace(found, slices=found.slices[:-1]), pinned)
    weighs = scorer is None and found.by_relevance and not spaces
    request = Request(
        plan=chosen,
        question=asked.question,
        query=query_of(asked, slices),
        budget=budget,
        counter=counter,
        kinds=session.kinds,
        now=now,
        pinned=frozenset(memory.id for memory in pinned),
        prefer=asked.prefers,
        scorer=scorer,
        coverage=covered(found) if chosen.gate and scorer is None else None,
        weights=session.known_weights.of(session.store, session.agent) if weighs else None,
        notes=asked.notes,
        lines=session.lines if counter is session.counter and not spaces else RememberedLines(),
    )
    return assemble_context(request, found)


def _slices(plan: Plan, where: Filter) -> tuple[Slice, ...]:
    """What each section that shows memories gathers."""
    return tuple(
        Slice(
            kinds=section.kinds,
            limit=section.limit,
            order=section.order,
            where=None if section.order is None else Filter(scopes=where.scopes),
        )
        for section in plan.sections
        if section.kinds
    )


def _named(sessions: Sequence[Session], pins: Iterable[str]) -> tuple[Memory, ...]:
    """The memories that the caller wants in, whatever the question. Raises NotFound or InvalidInput."""
    ids = tuple(dict.fromkeys(checked_words(pins, name="pins")))
    found: dict[str, Memory] = {}
    for session in sessions if ids else ():
        stored = session.store.get(session.agent, ids)
        found = {memory.id: memory for memory in stored if memory is not None} | found
    for memory_id in ids:
        if memory_id not in found:
            raise NotFound(memory_id, sessions[0].agent)
        if found[memory_id].status is Status.FORGOTTEN:
            raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before you pin it.")
    return tuple(found[memory_id] for memory_id in ids)


def _with_pinned(plan: Plan, found: Found, pinned: tuple[Memory, ...]) -> Found:
    """What was found, with each pinned memory in its section once; one without a section goes last."""
    if not pinned:
        return found
    sections = [section for section in plan.sections if section.kinds]
    slices = [list(candidates) for candidates in found.slices]
    for memory in pinned:
        home = next(
            (i for i, section in enumerate(sections) if memory.kind in section.kinds), len(sections) - 1
        )
        if all(candidate.memory.id != memory.id for candidate in slices[home]):
            slices[home].append(Candidate(memory=memory))
    return replace(found, slices=tuple(tuple(candidates) for candidates in slices))
