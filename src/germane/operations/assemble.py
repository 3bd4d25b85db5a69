"""assemble: gather what a plan asks for, and let the pipeline make the context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from germane.errors import InvalidInput, NotFound
from germane.kinds import COMMIT
from germane.lifecycle import DecisionCalibration
from germane.model.context import ESTIMATED, Context, Reason, TraceNote
from germane.model.memory import Memory, Status
from germane.model.plan import Plan, RollOver, TaskContext, TaskInput
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
from germane.model.text import DEFAULT_BUDGET, DEFAULT_RANKER
from germane.model.validation import as_utc, checked_moment, checked_words
from germane.operations.context import (
    AgentContext,
    LearnedValues,
    advised,
    failures,
    found_apart,
    judged,
)
from germane.operations.frame import (
    Framed,
    MessageFilter,
    PlanInput,
    associated,
    excluding,
    framed,
    in_conversation,
    reranked,
    within_domain,
)
from germane.operations.inputs import check_ranker, settled
from germane.operations.read import head_of, whole_id
from germane.operations.search import (
    ParsedQuery,
    gather_together,
    of_no_topic,
    passage_search,
    query_of,
    understand,
)
from germane.operations.trust import stored_pins, uncrowded, with_quotations
from germane.packing.lines import RememberedLines
from germane.pipeline import PipelineInput, text_left_out
from germane.pipeline import assemble as assemble_context
from germane.plans.layered import EARLIER
from germane.plans.scoped import ScopedPlan, places_of, scoped, scoped_named, with_history
from germane.protocols import Scorer, TokenCounter
from germane.ranking.similarity import in_order, nothing_then
from germane.scopes import checked_path
from germane.tokens import get_counter

if TYPE_CHECKING:
    from germane.operations.conversation import Conversation

_ACTIVE = Filter()
_SHORTEST_WHOLE = 12
"""Tokens that a memory takes at least, or that its bullet, day and source add to its text."""
_MOST_PINNED = 1000
"""Far more than any budget holds: too many pins are an error that says so, not a silent choice."""
_OF_A_SCOPE = 1000
"""Memories of a scope that are looked at; of more, the newest and most relevant of each kind are."""
_OF_A_KIND, _RELEVANT = 300, 200
_OF_ANY_DOMAIN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDetails:
    """What ends each item: its day and a short source, where the plan shows them, and an id to `expand`."""

    dates: bool = True
    sources: bool = True
    ids: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleRequest:
    """The arguments of one assembly with any plan, checked when they are built.

    `where` is all of the caller's filter; `spaces` are the agent's sides of spaces that take part, and `pins`
    ids of what must stand in the context; ids of `without` take no part. `gate` None is the plan's own way.
    What `conversation` contains is left out, and `messages` of other conversations take part. `work` is for a
    scoped plan. Raises InvalidInput for work beside any other plan.
    """

    query: str
    where: Filter
    counter: TokenCounter
    how: PlanInput = field(default_factory=PlanInput)
    spaces: tuple[AgentContext, ...] = ()
    pins: Sequence[str] = ()
    without: Sequence[str] = ()
    scorer: Scorer | None = None
    conversation: str | Conversation | None = None
    gate: bool | None = None
    messages: MessageFilter = field(default_factory=MessageFilter)
    work: TaskInput = field(default_factory=TaskInput)
    details: ItemDetails = field(default_factory=ItemDetails)

    def __post_init__(self) -> None:
        if self.without and (
            both := sorted(set(self.pins).intersection(checked_words(self.without, name="without")))
        ):
            raise InvalidInput(f"pins and without both name {', '.join(both)}. Take it out of one of them.")
        if self.work and scoped_named(self.how.plan) is None:
            plan = self.how.plan
            raise InvalidInput(
                f"plan={getattr(plan, 'name', plan)!r} doesn't go by a task, paths or what changed. Pass "
                "plan='scoped', or name scopes and words: assemble(query, scopes=['task:T-42'])."
            )


def assemble(session: AgentContext, request: AssembleRequest) -> Context:
    """The best context for a request, also from spaces. Reading changes nothing.

    What was remembered as pinned is included like the request's pins. The filter binds all but these; only
    its time range is lifted for what is always shown, with a note. Raises BudgetTooSmall, InvalidInput,
    InvalidPlan, NotFound for pins, and NotAllowed for spaces.
    """
    now = as_utc(session.clock(), name="clock")
    how = scoped_named(request.how.plan)
    parsed, framing = _planned(session, request, how, now)
    parsed, query, found, pinned, judgement = _gathered(session, request, parsed, framing)
    if how is not None:
        plan, found = with_history(framing.plan, found, how)
        framing = replace(framing, plan=plan)
    plain = request.scorer is None and not request.spaces
    if plain and request.gate is None and parsed.vector is None:
        found = _with_rest(session, parsed, framing, found)
    taught = _taught(session, found, framing.plan) if plain else LearnedValues()
    framing, found = _with_messages(session, request, parsed, framing, found)
    plan, found, quoting = with_quotations(framing.plan, framing.budget, found)
    if request.without:
        found, pinned = excluding(found, pinned, [whole_id(session, one) for one in request.without])
    plan, unadvised = advised(plan, judgement)
    passages = passage_search(session, query, found)
    warnings = (
        *(lifted(plan, found, pinned, time) if (time := parsed.where.when) else ()),
        *(failures(plan, found, session.kinds) if found.failed else ()),
    )
    counter, gate, conversation = request.counter, request.gate, request.conversation
    if how is not None and how.estimate and counter is session.counter:
        # Where nobody asks for a counter, an estimate is in its own unit.
        counter = get_counter("bytes_div_4_floor")
    given = PipelineInput(
        plan=plan,
        question=parsed.question,
        query=query,
        budget=framing.budget,
        counter=counter,
        kinds=session.kinds,
        now=now,
        pinned=pinned,
        prefer=parsed.prefers,
        scorer=request.scorer,
        gated=(plan.gate if gate is None else gate) and request.scorer is None and found.by_relevance,
        gate=gate,
        weights=taught.weights,
        usefulness=taught.usefulness,
        notes=(*parsed.notes, *framing.notes, *quoting, *warnings, *unadvised),
        left_out={} if conversation is None else in_conversation(session, chain(*found.slices), conversation),
        domain=framing.domain,
        frame=framing.choice,
        work=TaskContext() if how is None or how.estimate else _work(session, request, now),
        lines=_lines(session, request, counts_alike=counter is session.counter or plan.counts_content),
        passages=None if passages is None else passages.scores,
    )
    context = _made(session, request, given, found)
    more: Sequence[TraceNote] = [_estimate(context, session.counter)] if how and how.estimate else ()
    if framing.searches and how is None and (when := parsed.question.when or request.where.when):
        more = _of_another_time(context, plan, found, when)
    return _noted(context, request, more)


def _made(
    session: AgentContext, request: AssembleRequest, given: PipelineInput, found: SearchResult
) -> Context:
    """The context of what was found, without messages that a memory in it contains."""
    alone = not request.spaces
    context = _assembled(session, given, found, alone=alone)
    if not any(section.name == EARLIER for section in given.plan.sections):
        return context
    from germane.operations.message_search import without_doubled  # noqa: PLC0415 - Most agents have none.

    def without(out: Mapping[str, Reason]) -> Context:
        fewer = replace(given, left_out={**given.left_out, **out})
        return _assembled(session, fewer, found, alone=alone)

    return without_doubled(session, context, without)


def _with_messages(
    session: AgentContext, request: AssembleRequest, parsed: ParsedQuery, framing: Framed, found: SearchResult
) -> tuple[Framed, SearchResult]:
    """The plan and what was found, with messages of earlier conversations, if there are any."""
    if not request.messages.read_beside(session, converses=found.converses):
        return framing, found
    from germane.operations.message_search import gathered_messages  # noqa: PLC0415 - Most agents have none.

    latest = framing.looks_back or parsed.where.when is not None
    gated = request.gate is not False
    plan, found = gathered_messages(
        session, parsed, framing.plan, found, request.messages, latest=latest, gated=gated
    )
    return replace(framing, plan=plan), found


def _lines(session: AgentContext, request: AssembleRequest, *, counts_alike: bool) -> RememberedLines:
    """The lines that are cached for all who take part, or none where they differ or are counted otherwise."""
    is_shared = counts_alike and all(one.lines is session.lines for one in request.spaces)
    return session.lines if is_shared else RememberedLines()


def _noted(context: Context, request: AssembleRequest, more: Sequence[TraceNote]) -> Context:
    """The context with the caller's filter and more notes in its trace.

    Guidance that comes with the name of a frame is shown if tokens are free, and nobody requested it: no note
    says where there isn't.
    """
    left_out = None if request.how.guidance is True else text_left_out("frame")
    notes = tuple(note for note in (*context.trace.notes, *more) if note != left_out)
    return replace(context, trace=replace(context.trace, where=request.where, notes=notes))


def _planned(
    session: AgentContext, request: AssembleRequest, how: ScopedPlan | None, now: datetime
) -> tuple[ParsedQuery, Framed]:
    """What is looked for, and the plan for it: by the scopes of the work at hand, or by the question."""
    if request.scorer is not None:
        check_ranker(DEFAULT_RANKER, request.scorer, session.reranking)
    where, details = request.where, request.details
    shown = {"dates": details.dates, "sources": details.sources, "ids": details.ids}
    if how is None:
        parsed = understand(session, request.query, where, now=now)
        framing = framed(session, request.query, request.how, dated=parsed.question.when is not None)
        plan = framing.plan.showing(**shown)
        if isinstance(request.how.plan, Plan):
            plan = _settled(plan, now)
        framing = replace(framing, plan=plan)
        return of_no_topic(parsed) if framing.looks_back else parsed, framing
    places, described = places_of(how, request.work, where.scopes)
    plan = scoped(how, session.kinds, places, where=where).showing(**shown)
    parsed = understand(session, request.query or described, where, now=now)
    everywhere = replace(where, scopes=(), applies_to=tuple(chain.from_iterable(places.values())))
    budget = DEFAULT_BUDGET if request.how.budget is None else request.how.budget
    return replace(parsed, where=everywhere), Framed(plan=plan, budget=budget)


def _estimate(context: Context, counter: TokenCounter) -> TraceNote:
    """A note of what the whole text of an estimated context counts by the engine's own counter."""
    tokens, trace = counter.count(context.text), context.trace
    over = f", {tokens - trace.budget:,} more than the budget" if tokens > trace.budget else ""
    text = f"Token counts here are estimates by {trace.counter}. The whole text has {tokens:,} tokens by the "
    return TraceNote(code=ESTIMATED, text=f"{text}engine's counter {counter.name}{over}.")


def _work(session: AgentContext, request: AssembleRequest, now: datetime) -> TaskContext:
    """What ranks by the work at hand: its paths, what changed there, and how work turned out before."""
    outcomes: dict[str, float] = {}
    for one in (session, *request.spaces):
        outcomes |= one.outcome_cache.of(one.store, one.agent, now=now)
    changed = {
        checked_path(path): checked_moment(at, name=f"changed[{path!r}]")
        for path, at in (request.work.changed or {}).items()
    }
    paths = tuple(dict.fromkeys(map(checked_path, request.work.paths)))
    return TaskContext(paths=paths, changed=changed, leanings=outcomes)


def _with_rest(
    session: AgentContext, parsed: ParsedQuery, framing: Framed, found: SearchResult
) -> SearchResult:
    """What was found, and where all current memories fit the budget whole, those that it left out as well.

    By meaning everything is found, by words only what has one of them. In so small a store leaving a memory
    out gains nothing; what the question didn't find has no signal, and so comes last.
    """
    gathered = sum(map(len, found.slices))
    if framing.plan.roll_over is not RollOver.BEST:
        return found
    if not (framing.searches and found.by_relevance):
        return found
    if gathered >= found.admitted or found.admitted * _SHORTEST_WHOLE > framing.budget or found.failed:
        return found
    sections = [section for section in framing.plan.sections if section.gathers]
    slices = tuple(
        replace(part, order=Order.IMPORTANT, limit=found.admitted, where=part.where or parsed.where)
        for part in _slices(framing.plan, parsed.where, parsed.where)
    )
    every = found_apart(
        session.store, session.agent, Query(filter=parsed.where, slices=slices, now=parsed.now)
    )
    whole = sum(one.memory.renditions.full.tokens + _SHORTEST_WHOLE for part in every.slices for one in part)
    if every.failed or every.stamp != found.stamp or whole + _SHORTEST_WHOLE * len(sections) > framing.budget:
        return found
    parts = []
    for section, here, rest in zip(sections, found.slices, every.slices, strict=True):
        ids = {memory.ref for memory in CandidateTable.of(here).memories}
        more = () if section.order is not None else (one for one in rest if one.memory.ref not in ids)
        parts.append((*here, *(Candidate(memory=one.memory) for one in more)))
    return replace(found, slices=_each_in_one(framing.plan, parts))


def _of_another_time(
    context: Context, plan: Plan, found: SearchResult, when: TimeRange
) -> tuple[TraceNote, ...]:
    """A note where a time was named and nothing is of it that the question brought."""
    ranked = {section.name for section in plan.sections if section.gathers and section.order is None}
    if not ranked:
        return ()
    gathering = [section for section in plan.sections if section.gathers]
    shown = [item.memory for item in context.items if item.section in ranked]
    ids = {memory.id for memory in shown}
    others = [
        memory
        for section, part in zip(gathering, found.slices, strict=False)
        if section.name in ranked
        for memory in CandidateTable.of(part).memories
        if memory.id not in ids
    ]
    note = nothing_then(when, shown, others)
    return () if note is None else (note,)


def _settled(plan: Plan, now: datetime) -> Plan:
    """The plan with the moments that texts in its sections' own filters name."""
    if not any(section.where and (section.where.when or section.where.valid_at) for section in plan.sections):
        return plan
    sections = tuple(
        section if section.where is None else replace(section, where=settled(section.where, lambda: now))
        for section in plan.sections
    )
    return replace(plan, sections=sections)


def _assembled(session: AgentContext, request: PipelineInput, found: SearchResult, *, alone: bool) -> Context:
    if session.reranking is not None:
        request = reranked(session.reranking, request, found)
    context = assemble_context(request, found)
    if not (alone and request.gated and any(section.associates for section in request.plan.sections)):
        return context
    # Where everything fits, the gate drops nothing; which section it would empty, it says where it does.
    shows_all = request.gate is None and not any(use.excluded for use in context.trace.sections)
    judged = assemble_context(replace(request, gate=True), found) if shows_all else context
    more = associated(session, request, found, judged)
    if more is None:
        return context
    with_them, also_near = more
    slices = _each_in_one(request.plan, also_near.slices)
    return assemble_context(with_them, replace(also_near, slices=slices))


def _taught(session: AgentContext, found: SearchResult, plan: Plan) -> LearnedValues:
    """What use has taught, where relevance ranks by it; the note's sum is its own."""
    ranks = plan.kinds_first is None or plan.kinds_first.relevance
    if not (ranks and found.by_relevance) or plan.fusion == "weighted_sum_v1":
        return LearnedValues()
    return session.weight_cache.taught(session.store, session.agent, found.learning)


def _gathered(
    session: AgentContext, request: AssembleRequest, parsed: ParsedQuery, framing: Framed
) -> tuple[ParsedQuery, Query, SearchResult, frozenset[str], DecisionCalibration | Exception | None]:
    """What each section of the plan may show, the ids of what is pinned, and how well the agent judges.

    Without a question, only what is shown for every question is gathered.
    """
    plan, where = framing.plan, parsed.where
    whenever = where.whenever
    sections = [section for section in plan.sections if section.gathers]
    parts = _slices(plan, where, request.where)
    refused = next((section.admits for section in sections if section.quoted), None)
    pins = stored_pins(refused, request.where.applies_to)
    always = Slice(order=Order.IMPORTANT, where=whenever, also=pins, limit=_MOST_PINNED)
    sought = [framing.searches or section.order is not None for section in sections]
    advises = any(section.advises for section in plan.sections)
    judging = session.calibration_cache.sought(session.agent, session.kinds, where) if advises else ()
    wanted = (*(part for part, seeks in zip(parts, sought, strict=True) if seeks), always, *judging)
    searched = parsed
    if plan.by_meaning:
        parsed = replace(parsed, question=replace(parsed.question, when=None))
        searched = _meant(parsed)
    gathered, query, found = gather_together(session, searched, wanted, request.spaces)
    parsed = replace(parsed, notes=gathered.notes)
    if plan.by_meaning:
        query = query_of(parsed, ())
    found, judgement = judged(session, found, judging, where=where) if advises else (found, None)
    if not all(sought):
        found = _spread(found, sought)
    if plan.kinds_first is not None:
        parsed, found = _widened(session, request, parsed, plan, found)
    elif found.by_relevance:
        spaces = request.spaces
        found = uncrowded(
            plan, found, lambda more: gather_together(session, searched, more, spaces)[2].slices
        )
    slices = within_domain(plan, found.slices[:-1], framing.domain, session.kinds)
    named = named_pins((session, *request.spaces), request.pins) if request.pins else ()
    pinned = (*named, *(one.memory for one in found.slices[-1]))
    if pinned:
        slices = with_pinned(plan, slices, pinned)
    if plan.kinds_first is None:
        slices = _each_in_one(plan, slices)
    found = replace(found, slices=tuple(slices))
    return parsed, query, found, frozenset(memory.ref for memory in pinned), judgement


def _widened(
    session: AgentContext, request: AssembleRequest, parsed: ParsedQuery, plan: Plan, found: SearchResult
) -> tuple[ParsedQuery, SearchResult]:
    """What was found by scope, and where that is cut off the newest of each kind and what is most relevant.

    A note names the sections that were cut off.
    """
    cut = [number for number, each in enumerate(found.slices[:-1]) if len(each) >= _OF_A_SCOPE]
    if not cut:
        return parsed, found
    slices = _slices(plan, parsed.where, request.where)
    kinds = [kind.name for kind in session.kinds]
    others = tuple(kind for kind in kinds if kind != COMMIT)
    # However many commits there are, as much is looked at of other kinds as without them.
    crowded = {number for number in cut if any(one.memory.kind == COMMIT for one in found.slices[number])}
    of_a_kind = [
        replace(
            slices[number],
            kinds=(kind,),
            limit=_OF_A_SCOPE if number in crowded and kind != COMMIT else _OF_A_KIND,
        )
        for number in cut
        for kind in kinds
    ]
    relevant = [
        replace(slices[number], kinds=others if number in crowded else (), order=None, limit=_RELEVANT)
        for number in cut
    ]
    _, _, further = gather_together(session, parsed, (*of_a_kind, *relevant), request.spaces)
    for error in further.failed.values():
        raise error
    united = list(found.slices)
    for place, number in enumerate(cut):
        own = further.slices[place * len(kinds) : (place + 1) * len(kinds)]
        best = further.slices[len(cut) * len(kinds) + place]
        united[number] = CandidateTable.united((united[number], *own, best))
    sections = [section for section in plan.sections if section.gathers]
    named = ", ".join(sections[number].name for number in cut)
    note = TraceNote(
        code="gathered_in_part",
        text=f"There are more than {_OF_A_SCOPE:,} memories in scope ({named}): of these the newest "
        f"{_OF_A_KIND} of each kind were looked at, and the {_RELEVANT} that have most to do with the task.",
    )
    return replace(parsed, notes=(*parsed.notes, note)), replace(found, slices=tuple(united))


def _meant(parsed: ParsedQuery) -> ParsedQuery:
    """The question as its vector alone, where it has one."""
    if parsed.vector is None:
        return parsed
    return replace(parsed, question=replace(parsed.question, terms=()), informative=())


def _spread(found: SearchResult, sought: Sequence[bool]) -> SearchResult:
    """What was found, with an empty slice for each section that was not searched."""
    places = [place for place, seeks in enumerate((*sought, True)) if seeks]
    by_place = dict(zip(places, found.slices, strict=True))
    failed = {places[place]: error for place, error in found.failed.items()}
    slices = tuple(by_place.get(place, ()) for place in range(len(sought) + 1))
    return replace(found, slices=slices, failed=failed)


def _slices(plan: Plan, where: Filter, given: Filter) -> tuple[Slice, ...]:
    """What each section that shows memories gathers: by the filter of the search, and by its own.

    One that shows the same whatever the question gathers what is active, of any time. A section of a plan by
    kinds gathers the newest by its filter alone, which has its places where the `given` one may name others.
    """
    sections = [section for section in plan.sections if section.gathers]
    if plan.kinds_first is not None:
        also = replace(given, scopes=()) if given.applies_to else None
        return tuple(
            Slice(order=Order.NEWEST, where=section.admits, also=also, limit=_OF_A_SCOPE)
            for section in sections
        )
    return tuple(
        Slice(
            kinds=section.kinds,
            # More than the limit, so that enough are left of the frame's domain.
            limit=max(section.limit, _OF_ANY_DOMAIN) if section.of_domain else section.limit,
            order=section.order,
            where=None if section.order is None else where.whenever,
            also=section.admits or (None if section.order is None else _ACTIVE),
        )
        for section in sections
    )


def lifted(
    plan: Plan, found: SearchResult, pinned: Collection[str], when: TimeRange
) -> tuple[TraceNote, ...]:
    """A note of what is always shown and isn't of the time that the filter names, or nothing."""
    names: dict[str, None] = {}
    ids = set()
    sections = [section for section in plan.sections if section.gathers]
    for section, part in zip(sections, found.slices, strict=False):
        always = section.order is not None
        for one in part:
            memory = one.memory
            if (always or memory.ref in pinned) and memory.created_at not in when:
                names[section.name if always else "pinned"] = None
                ids.add(memory.ref)
    if not ids:
        return ()
    named = f"{len(ids)} that {'is' if len(ids) == 1 else 'are'} always shown ({', '.join(names)})"
    return (
        TraceNote(
            code="time_lifted",
            text=f"The time range, {when}, binds what is ranked; of any time {named} may stand here.",
        ),
    )


def _each_in_one(plan: Plan, found: Sequence[Sequence[Candidate]]) -> tuple[Sequence[Candidate], ...]:
    """What was found for each section, each memory in the first of them that has it.

    One that shows so many `items` by its order takes no more of what another would show as well.
    """
    sections = [section for section in plan.sections if section.gathers]
    kinds = [kind for section in sections for kind in section.kinds]
    if len(set(kinds)) == len(kinds) and all(section.kinds for section in sections):
        return tuple(found)
    gathered = [[memory.ref for memory in CandidateTable.of(part).memories] for part in found]
    later = Counter(chain.from_iterable(gathered))
    taken: set[str] = set()
    slices: list[Sequence[Candidate]] = []
    for section, part, ids in zip(sections, found, gathered, strict=True):
        later.subtract(ids)
        leaves = taken.intersection(ids)
        if section.order is not None and section.items is not None:
            here = in_order((one for one in part if one.memory.ref not in leaves), section.order)
            leaves |= {one.memory.ref for one in here[section.items :] if later[one.memory.ref]}
        taken.update(name for name in ids if name not in leaves)
        stay = [place for place, name in enumerate(ids) if name not in leaves]
        slices.append(CandidateTable.of(part).at(stay) if leaves else part)
    return tuple(slices)


def named_pins(sessions: Sequence[AgentContext], pins: Iterable[str]) -> tuple[Memory, ...]:
    """The memories that the caller wants in, whatever the question, each in its current version.

    Raises NotFound or InvalidInput.
    """
    names = checked_words(pins, name="pins")
    ids = tuple(dict.fromkeys(whole_id(sessions[0], name) for name in names))
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


def with_pinned(
    plan: Plan, found: Sequence[Sequence[Candidate]], pinned: tuple[Memory, ...]
) -> Sequence[Sequence[Candidate]]:
    """What was found for each section, with each pinned memory in its own once; one without goes last."""
    sections = [section for section in plan.sections if section.gathers]
    slices = [list(candidates) for candidates in found]
    stands = {one.ref for part in found for one in CandidateTable.of(part).memories}
    for memory in pinned:
        # One with a filter of its own may not admit it.
        taking = [place for place, section in enumerate(sections) if section.takes(memory)]
        homes = [place for place in taking if memory.kind in sections[place].kinds]
        whole = [place for place in homes if sections[place].where is None]
        home = next(iter([*whole, *homes]), taking[-1] if taking else len(sections) - 1)
        if memory.ref not in stands:
            stands.add(memory.ref)
            slices[home].append(Candidate(memory=memory))
    return slices
