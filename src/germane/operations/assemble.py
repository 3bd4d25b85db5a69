"""assemble: gather what a plan asks for, and let the pipeline make the context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from germane.errors import InvalidInput, NotFound
from germane.kinds import Kinds
from germane.lifecycle import DecisionCalibration
from germane.model.context import Context, Reason, TraceNote
from germane.model.memory import Memory, Status, as_utc
from germane.model.plan import Plan, RollOver, Section
from germane.model.query import (
    Candidate,
    CandidateTable,
    Filter,
    Order,
    Query,
    SearchResult,
    Slice,
    TimeRange,
)
from germane.operations.context import AgentContext, LearnedValues, failures, found_apart
from germane.operations.frame import Framed, Framing, associated, framed
from germane.operations.inputs import checked_words, settled
from germane.operations.read import head_of
from germane.operations.search import ParsedQuery, gather_together, of_no_topic, query_of, understand
from germane.packing.lines import RememberedLines
from germane.pipeline import AssembleRequest, text_left_out
from germane.pipeline import assemble as assemble_context
from germane.protocols import Scorer, TokenCounter
from germane.ranking.learning import FEWEST
from germane.ranking.scores import is_of
from germane.ranking.similarity import in_order, nothing_then

if TYPE_CHECKING:
    from germane.operations.conversation import Conversation

__all__ = [
    "advised",
    "assemble",
    "calibration_of",
    "exclusions_of",
    "gathered_limit",
    "lifted",
    "named_pins",
    "sought_for",
    "split_off",
    "with_pinned",
    "within_domain",
]

_ACTIVE = Filter()
_SHORTEST_WHOLE = 12
"""Tokens that a memory takes at least, or that its bullet, day and source add to its text."""
_MOST_PINNED = 1000
"""Far more than any budget holds: too many pins are an error that says so, not a silent choice."""


def assemble(
    session: AgentContext,
    query: str,
    *,
    budget: int | None,
    where: Filter,
    plan: str | Plan,
    frame: Framing,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[AgentContext] = (),
    conversation: str | Conversation | None = None,
    guidance: bool | str = False,
    gate: bool | None = None,
    dates: bool = True,
    sources: bool = True,
    ids: bool = False,
) -> Context:
    """The best context for a query within `budget` tokens, also from spaces. Reading changes nothing.

    What was remembered as pinned is included like `pins`. The filter binds all but `pins`; only its time
    range is lifted for what is always shown, with a note. What `conversation` contains is left out.
    """
    parsed = understand(session, query, where, now=(now := as_utc(session.clock(), name="clock")))
    how: dict[str, Any] = {"plan": plan, "frame": frame, "budget": budget, "guidance": bool(guidance)}
    framing = framed(session, query, dated=parsed.question.when is not None, **how)
    shown = framing.plan.showing(dates=dates, sources=sources, ids=ids)
    framing = replace(framing, plan=_settled(shown, now))
    parsed = of_no_topic(parsed) if framing.looks_back else parsed
    parsed, found, pinned, judgement = _gathered(session, parsed, framing, pins, spaces)
    plain = scorer is None and not spaces
    found = _with_rest(session, parsed, framing, found) if plain and gate is None else found
    taught = _taught(session, found, framing.plan) if plain else LearnedValues()
    plan, unadvised = advised(framing.plan, judgement)
    told = (*lifted(parsed.where, plan, found, pinned), *failures(plan, found, session.kinds), *unadvised)
    request = AssembleRequest(
        plan=plan,
        question=parsed.question,
        query=query_of(parsed, _slices(framing.plan, parsed.where)),
        budget=framing.budget,
        counter=counter,
        kinds=session.kinds,
        now=now,
        pinned=pinned,
        prefer=parsed.prefers,
        scorer=scorer,
        gated=(framing.plan.gate if gate is None else gate) and scorer is None and found.by_relevance,
        gate=gate,
        weights=taught.weights,
        usefulness=taught.usefulness,
        notes=(*parsed.notes, *framing.notes, *told),
        left_out=exclusions_of(session, found, conversation),
        domain=framing.domain,
        frame=framing.choice,
        lines=session.lines if counter is session.counter and not spaces else RememberedLines(),
    )
    when = parsed.question.when or where.when if framing.searches else None
    context = _noted(_assembled(session, request, found, alone=not spaces), framing.plan, found, where, when)
    return context if guidance is True else _without_note(context, text_left_out("frame"))


# Guidance that comes with the name of a frame is shown if there is room, and nobody asked for it.
def _without_note(context: Context, note: TraceNote) -> Context:
    if note not in context.trace.notes:
        return context
    notes = tuple(each for each in context.trace.notes if each != note)
    return replace(context, trace=replace(context.trace, notes=notes))


def _noted(
    context: Context, plan: Plan, found: SearchResult, where: Filter, when: TimeRange | None
) -> Context:
    """The context with the caller's filter in its trace, and a note where nothing is of that time."""
    notes = (*context.trace.notes, *_of_another_time(context, plan, found, when))
    return replace(context, trace=replace(context.trace, where=where, notes=notes))


def _with_rest(
    session: AgentContext, parsed: ParsedQuery, framing: Framed, found: SearchResult
) -> SearchResult:
    """What was found, and where all current memories fit the budget whole, those that it left out as well.

    By meaning everything is found, by words only what has one of them. In so small a store leaving a memory
    out gains nothing; what the question didn't find has no signal, and so comes last.
    """
    gathered = sum(map(len, found.slices))
    if framing.plan.roll_over is not RollOver.BEST or parsed.vector is not None:
        return found
    if not (framing.searches and found.by_relevance):
        return found
    if gathered >= found.admitted or found.admitted * _SHORTEST_WHOLE > framing.budget or found.failed:
        return found
    sections = [section for section in framing.plan.sections if section.gathers]
    slices = tuple(
        replace(part, order=Order.IMPORTANT, limit=found.admitted, where=part.where or parsed.where)
        for part in _slices(framing.plan, parsed.where)
    )
    every = found_apart(session.store, session.agent, Query(filter=parsed.where, slices=slices))
    whole = sum(one.memory.renditions.full.tokens + _SHORTEST_WHOLE for part in every.slices for one in part)
    if every.failed or every.stamp != found.stamp or whole + _SHORTEST_WHOLE * len(sections) > framing.budget:
        return found
    parts = []
    for section, here, rest in zip(sections, found.slices, every.slices, strict=True):
        ids = set(_ids_of(here))
        more = () if section.order is not None else (one for one in rest if one.memory.ref not in ids)
        parts.append((*here, *(Candidate(memory=one.memory) for one in more)))
    return _each_in_one(framing.plan, replace(found, slices=tuple(parts)))


def _of_another_time(
    context: Context, plan: Plan, found: SearchResult, when: TimeRange | None
) -> tuple[TraceNote, ...]:
    """A note where a time was named and nothing is of it that the question brought."""
    ranked = {section.name for section in plan.sections if section.gathers and section.order is None}
    if when is None or not ranked:
        return ()
    gathering = [section for section in plan.sections if section.gathers]
    shown = [item.memory for item in context.items if item.section in ranked]
    ids = {memory.id for memory in shown}
    others = [
        one.memory
        for section, part in zip(gathering, found.slices, strict=False)
        if section.name in ranked
        for one in part
        if one.memory.id not in ids
    ]
    note = nothing_then(when, shown, others)
    return () if note is None else (note,)


def _settled(plan: Plan, now: datetime) -> Plan:
    """The plan with the moments that texts in its sections' own filters name."""
    if not any(section.where and section.where.when for section in plan.sections):
        return plan
    sections = tuple(
        section if section.where is None else replace(section, where=settled(section.where, lambda: now))
        for section in plan.sections
    )
    return replace(plan, sections=sections)


def _assembled(
    session: AgentContext, request: AssembleRequest, found: SearchResult, *, alone: bool
) -> Context:
    context = assemble_context(request, found)
    if not (alone and request.gated):
        return context
    # Where everything fits, the gate drops nothing; which section it would empty, it says where it does.
    shows_all = request.gate is None and not any(use.excluded for use in context.trace.sections)
    judged = assemble_context(replace(request, gate=True), found) if shows_all else context
    more = associated(session, request, found, judged)
    if more is None:
        return context
    with_them, also_near = more
    return assemble_context(with_them, _each_in_one(request.plan, also_near))


def _taught(session: AgentContext, found: SearchResult, plan: Plan) -> LearnedValues:
    """What use has taught, where relevance ranks by it; the note's sum is its own."""
    if not found.by_relevance or plan.fusion == "weighted_sum_v1":
        return LearnedValues()
    return session.weight_cache.taught(session.store, session.agent, found.learning)


def _gathered(
    session: AgentContext,
    parsed: ParsedQuery,
    framing: Framed,
    pins: Iterable[str],
    spaces: Sequence[AgentContext],
) -> tuple[ParsedQuery, SearchResult, frozenset[str], DecisionCalibration | Exception | None]:
    """What each section of the plan may show, the ids of what is pinned, and how well the agent judges.

    Where nothing is asked, only what is shown whatever the question is gathered.
    """
    sections = [section for section in framing.plan.sections if section.gathers]
    slices = _slices(framing.plan, parsed.where)
    always = Slice(
        order=Order.IMPORTANT,
        where=parsed.where.whenever,
        also=Filter(pinned=True),
        limit=_MOST_PINNED,
    )
    sought = [framing.searches or section.order is not None for section in sections]
    judging = sought_for(session, framing.plan, parsed.where)
    wanted = (*(part for part, seeks in zip(slices, sought, strict=True) if seeks), always, *judging)
    if framing.plan.by_meaning:
        parsed = replace(parsed, question=replace(parsed.question, when=None))
    gathered, found = gather_together(session, _meant(parsed, framing.plan), wanted, spaces)
    parsed = replace(parsed, notes=gathered.notes)
    found, judgement = split_off(session, framing.plan, found, judging, where=parsed.where)
    if not all(sought):
        found = _spread(found, sought)
    found = within_domain(framing.plan, found, framing.domain, session.kinds)
    pinned = (*named_pins((session, *spaces), pins), *(one.memory for one in found.slices[-1]))
    found = with_pinned(framing.plan, replace(found, slices=found.slices[:-1]), pinned)
    found = _each_in_one(framing.plan, found)
    return parsed, found, frozenset(memory.ref for memory in pinned), judgement


def _meant(parsed: ParsedQuery, plan: Plan) -> ParsedQuery:
    """The question as its vector alone, where the plan asks by meaning and it has one."""
    if not plan.by_meaning or parsed.vector is None:
        return parsed
    return replace(parsed, question=replace(parsed.question, terms=()), informative=())


def _spread(found: SearchResult, sought: Sequence[bool]) -> SearchResult:
    """What was found, with an empty slice for each section that was not searched."""
    places = [place for place, seeks in enumerate((*sought, True)) if seeks]
    by_place = dict(zip(places, found.slices, strict=True))
    failed = {places[place]: error for place, error in found.failed.items()}
    slices = tuple(by_place.get(place, ()) for place in range(len(sought) + 1))
    return replace(found, slices=slices, failed=failed)


def exclusions_of(
    session: AgentContext, found: SearchResult, conversation: str | Conversation | None
) -> Mapping[str, Reason]:
    """Why memories are left out that a running conversation contains already, by their ids."""
    if conversation is None:
        return {}
    from germane.operations.conversation import in_conversation  # noqa: PLC0415 - Most calls name no conversation.

    candidates = [candidate for part in found.slices for candidate in part]
    return in_conversation(candidates, conversation, language=session.language)


def _slices(plan: Plan, where: Filter) -> tuple[Slice, ...]:
    """What each section that shows memories gathers: by the caller's filter, and by its own.

    One that shows the same whatever the question gathers what is active, of any time.
    """
    return tuple(
        Slice(
            kinds=section.kinds,
            limit=gathered_limit(section),
            order=section.order,
            where=None if section.order is None else where.whenever,
            also=section.where or (None if section.order is None else _ACTIVE),
        )
        for section in plan.sections
        if section.gathers
    )


def lifted(where: Filter, plan: Plan, found: SearchResult, pinned: Collection[str]) -> tuple[TraceNote, ...]:
    """A note of what is always shown and isn't of the time that the filter names, or nothing."""
    if where.when is None:
        return ()
    names: dict[str, None] = {}
    ids = set()
    sections = [section for section in plan.sections if section.gathers]
    for section, part in zip(sections, found.slices, strict=False):
        always = section.order is not None
        for one in part:
            memory = one.memory
            if (always or memory.ref in pinned) and memory.created_at not in where.when:
                names[section.name if always else "pinned"] = None
                ids.add(memory.ref)
    if not ids:
        return ()
    named = f"{len(ids)} that {'is' if len(ids) == 1 else 'are'} always shown ({', '.join(names)})"
    return (
        TraceNote(
            code="time_lifted",
            text=f"The time range, {where.when}, binds what is ranked; of any time {named} may stand here.",
        ),
    )


def _each_in_one(plan: Plan, found: SearchResult) -> SearchResult:
    """What was found, each memory in the first section that has it.

    One that shows so many `items` by its order takes no more of what another would show as well.
    """
    sections = [section for section in plan.sections if section.gathers]
    kinds = [kind for section in sections for kind in section.kinds]
    if len(set(kinds)) == len(kinds) and all(section.kinds for section in sections):
        return found
    gathered = [_ids_of(part) for part in found.slices]
    later = Counter(chain.from_iterable(gathered))
    taken: set[str] = set()
    slices: list[Sequence[Candidate]] = []
    for section, part, ids in zip(sections, found.slices, gathered, strict=True):
        later.subtract(ids)
        leaves = taken.intersection(ids)
        if section.order is not None and section.items is not None:
            here = in_order((one for one in part if one.memory.ref not in leaves), section.order)
            leaves |= {one.memory.ref for one in here[section.items :] if later[one.memory.ref]}
        taken.update(name for name in ids if name not in leaves)
        slices.append(_without(part, ids, leaves) if leaves else part)
    return replace(found, slices=tuple(slices))


def _ids_of(part: Sequence[Candidate]) -> list[str]:
    memories = part.memories if isinstance(part, CandidateTable) else [one.memory for one in part]
    return [memory.ref for memory in memories]


def _without(part: Sequence[Candidate], ids: Sequence[str], leaves: Collection[str]) -> Sequence[Candidate]:
    return CandidateTable.of(part).at([place for place, name in enumerate(ids) if name not in leaves])


def named_pins(sessions: Sequence[AgentContext], pins: Iterable[str]) -> tuple[Memory, ...]:
    """The memories that the caller wants in, whatever the question, each in its current version.

    Raises NotFound or InvalidInput.
    """
    ids = tuple(dict.fromkeys(checked_words(pins, name="pins")))
    found: dict[str, Memory] = {}
    for session in sessions if ids else ():
        stored = zip(ids, session.store.get(session.agent, ids), strict=True)
        found = {name: head_of(session, memory) for name, memory in stored if memory is not None} | found
    for memory_id in ids:
        if memory_id not in found:
            raise NotFound(memory_id, sessions[0].agent)
        if found[memory_id].status is Status.FORGOTTEN:
            raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before you pin it.")
    return tuple({found[memory_id].id: found[memory_id] for memory_id in ids}.values())


def with_pinned(plan: Plan, found: SearchResult, pinned: tuple[Memory, ...]) -> SearchResult:
    """What was found, with each pinned memory in its section once; one without a section goes last."""
    if not pinned:
        return found
    sections = [section for section in plan.sections if section.gathers]
    slices = [list(candidates) for candidates in found.slices]
    stands = set(chain.from_iterable(map(_ids_of, found.slices)))
    for memory in pinned:
        # One with a filter of its own may not admit it.
        homes = [place for place, section in enumerate(sections) if memory.kind in section.kinds]
        whole = [place for place in homes if sections[place].where is None]
        home = next(iter([*whole, *homes]), len(sections) - 1)
        if memory.ref not in stands:
            stands.add(memory.ref)
            slices[home].append(Candidate(memory=memory))
    return replace(found, slices=tuple(tuple(candidates) for candidates in slices))


# Writes into a plan's sections what the agent's own record says: how far its confidence is to be trusted.


def sought_for(session: AgentContext, plan: Plan, where: Filter) -> tuple[Slice, ...]:
    """What a search has to bring besides for a plan whose sections advise: a slice or nothing."""
    sought = session.calibration_cache.sought(session.agent, session.kinds, where) if _advises(plan) else None
    return () if sought is None else (sought,)


def split_off(
    session: AgentContext, plan: Plan, found: SearchResult, sought: tuple[Slice, ...], *, where: Filter
) -> tuple[SearchResult, DecisionCalibration | Exception | None]:
    """What was found without the last slice where that was `sought` for the judgement; and the judgement.

    There is none for a plan without a section that advises.
    """
    if not sought:
        return found, calibration_of(session, where, found=found) if _advises(plan) else None
    place = len(found.slices) - 1
    failed = {number: error for number, error in found.failed.items() if number != place}
    rest = replace(found, slices=found.slices[:place], failed=failed)
    if place in found.failed:
        return rest, found.failed[place]
    return rest, session.calibration_cache.from_search(session.agent, found, place, where)


def calibration_of(
    session: AgentContext, where: Filter, *, found: SearchResult | None = None
) -> DecisionCalibration | Exception:
    """The judgement, or why there is none; by a search of its own unless what was `found` tells enough."""
    try:
        return session.calibration_cache.of(session.store, session.agent, session.kinds, where, found=found)
    except Exception as error:  # noqa: BLE001 - A store of the caller's own may fail in any way; a note tells.
        return error


def advised(
    plan: Plan, calibration: DecisionCalibration | Exception | None
) -> tuple[Plan, tuple[TraceNote, ...]]:
    """The plan with one sentence as the text of each section that `advises`.

    Where fewer than ten decisions have a confidence and an outcome there is nothing to say yet. Where the
    decisions couldn't be read the section stays without, and a note says so.
    """
    if isinstance(calibration, Exception):
        why = f"could not be told how decisions turned out: {type(calibration).__name__}: {calibration}"
        return plan, tuple(
            TraceNote(code="section_failed", text=f"Section {section.name!r} {why}")
            for section in plan.sections
            if section.advises
        )
    if calibration is None or calibration.count < FEWEST:
        return plan, ()
    sections = tuple(
        replace(section, text=calibration.advice) if section.advises else section for section in plan.sections
    )
    return replace(plan, sections=sections), ()


def _advises(plan: Plan) -> bool:
    return any(section.advises for section in plan.sections)


# Keeps what belongs to another domain out of the sections that show only the frame's own.
#
# No store knows domains, which stand in the metadata, so more is gathered than the section's limit says and
# the best are kept.

_OF_ANY_DOMAIN: Final = 200


def gathered_limit(section: Section) -> int:
    """How many to gather, so that enough are left of the frame's domain."""
    return max(section.limit, _OF_ANY_DOMAIN) if section.of_domain else section.limit


def within_domain(plan: Plan, found: SearchResult, domain: Collection[str], kinds: Kinds) -> SearchResult:
    """What was found, and in sections of a domain nothing that names others alone.

    What names none stays, what no budget may drop, and everything where the frame has none. Of what
    relevance found there, and in any section of a plan that asks by meaning, as many stay as the section's
    limit says: the nearest in meaning, or where nothing has a vector, in words. (Turns of dialogue are found
    by the turns around them as well.)
    """
    sections = [section for section in plan.sections if section.gathers]
    if not plan.by_meaning and not any(section.of_domain for section in sections):
        return found
    slices = (
        _of_domain(section, candidates, domain, kinds) if plan.by_meaning or section.of_domain else candidates
        for section, candidates in zip(sections, found.slices, strict=False)
    )
    return replace(found, slices=(*slices, *found.slices[len(sections) :]))


def _of_domain(
    section: Section, candidates: Sequence[Candidate], domain: Collection[str], kinds: Kinds
) -> tuple[Candidate, ...]:
    everywhere = not section.of_domain or not domain
    here = [one for one in candidates if everywhere or _admits(one.memory, domain, kinds)]
    if section.order is not None or len(here) <= section.limit:
        return tuple(here)
    signal = "semantic" if any("semantic" in one.signals for one in here) else "lexical"
    best = sorted(here, key=lambda one: (-one.signals.get(signal, -1.0), one.memory.ref))[: section.limit]
    return tuple(sorted(best, key=lambda one: one.memory.ref))


def _admits(memory: Memory, domain: Collection[str], kinds: Kinds) -> bool:
    named = memory.metadata.get("domain")
    return not named or is_of(memory, domain) or kinds.of(memory).requires(memory)
