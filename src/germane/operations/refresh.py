"""refresh: keep a context as long as it serves, cut it to fewer tokens, or make another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from germane.errors import BudgetTooSmall, EmbeddingFailed, InvalidInput, NotFound
from germane.ledger import MADE_FOR, Assembly
from germane.model.context import Context, Question, Ranked, Reason, RefreshReason, RefreshResult, TraceNote
from germane.model.memory import Memory
from germane.model.plan import FrameChoice, Plan, Section
from germane.model.query import Candidate, Filter, Query, SearchResult
from germane.model.text import counted, is_space, space_of
from germane.model.validation import as_utc, checked_text
from germane.operations.assemble import AssembleRequest, assemble
from germane.operations.context import AgentContext, advised
from germane.operations.frame import Framing, MessageFilter, PlanInput, choice_of, frames_of, wants
from germane.operations.inputs import checked_count, embed_texts
from germane.operations.recording import assemble_recorded, assembly_of, points_of
from germane.operations.search import entered_spaces, understand
from germane.pipeline import PipelineInput, pack
from germane.plans.frames import frame_named
from germane.plans.intent import (
    LEAST_INFORMATION,
    Verdict,
    beside_thanks,
    decision_point,
    frame_switch,
    new_topic,
    substance,
    token_pressure,
)
from germane.plans.layered import EARLIER, PLANS, frame_section, plan_for, unknown_plan, with_messages
from germane.plans.scoped import scoped_named
from germane.protocols import TokenCounter
from germane.ranking.relevance import Gated
from germane.retrieval.quality import english_idf, information
from germane.retrieval.tokenizer import query_terms, term_hash
from germane.stores.location import LEDGER

if TYPE_CHECKING:
    from germane.operations.conversation import Conversation

_DECISION = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """The arguments of a refresh beside the context, checked when they are built.

    `how` is the plan of a new context, `free_tokens` the most that any may have, None without a limit. With
    `acting` the agent is about to act. `cold` says that a new context is the first of its engine. Raises
    InvalidInput.
    """

    text: str
    where: Filter
    counter: TokenCounter
    how: PlanInput
    free_tokens: int | None = None
    acting: bool = False
    cold: bool = False
    conversation: str | Conversation | None = None

    def __post_init__(self) -> None:
        checked_text(self.text, name="new_input")
        if isinstance(self.how.plan, str) and self.how.plan not in PLANS:
            raise unknown_plan(self.how.plan)
        if self.free_tokens is not None:
            checked_count(self.free_tokens, name="free_tokens")


def refresh(session: AgentContext, context: Context | None, request: RefreshRequest) -> RefreshResult:
    """Whether a context still fits the current message, why not, and the one that does.

    The causes are checked in the order of `RefreshReason`; the last of them makes the context smaller,
    the others make a new one, which keeps within `free_tokens` as well. It is for the message; if that names
    nothing to look for, as "go ahead" does, it is for the question that the context was for. Raises
    BudgetTooSmall or InvalidInput.
    """
    if context is None:
        made = _assembled(session, request, frame=request.how.frame)
        return RefreshResult(needed=True, reason=RefreshReason.FIRST, context=made)
    if is_guided(context) and not request.how.guidance:
        request = replace(request, how=replace(request.how, guidance=True))
    similarity = similarity_of(session, context, substance(request.text))
    (_, reason), choice = _verdict(session, context, request, similarity=similarity)
    if reason is None:
        return RefreshResult(needed=False, reason=None, context=context, similarity=similarity)
    if reason is RefreshReason.PRESSURE:
        made = (cut_recorded if session.records else cut)(session, context, request)
    else:
        if similarity is None:
            request = replace(request, text=context.trace.question.text)
            choice = None if choice is None else replace(choice, by="caller")
        made = _assembled(session, request, frame=_frame_for(session, context, request, reason, choice))
    return RefreshResult(needed=True, reason=reason, context=made, similarity=similarity)


def similarity_of(session: AgentContext, context: Context, text: str) -> float | None:
    """How much a text has to do with a context, from 0 to 1; None for a text that says nothing.

    It is the greater of two: the share of the text's information, by the frequencies of English, whose
    terms stand in the question that the context was made for or in what relevance brought for it; and the
    cosine of the text with that question, where there is an embedder. What is shown whatever the question
    is doesn't count: it says nothing of the topic. A remark that says as little as "it works" has none.
    """
    terms = query_terms(text, language=session.language)
    if not terms or _is_remark(session, text):
        return None
    question = context.trace.question.text
    brought = (item.text for item in context.items if item.score)
    known = frozenset(query_terms("\n".join([question, *brought]), language=session.language))
    weights = np.ones(len(terms))
    if session.language == "english":
        weights = english_idf().of(np.array([term_hash(term) for term in terms], dtype=np.uint32))
    shared = float(sum(weight for term, weight in zip(terms, weights, strict=True) if term in known))
    share = shared / float(weights.sum())
    try:
        one, other = embed_texts(session.embedder, [text, question])
    except EmbeddingFailed:
        return share
    return share if one is None or other is None else max(share, min(1.0, float(one @ other)))


def _is_remark(session: AgentContext, text: str) -> bool:
    """Whether a text says too little, beside thanks and the like, to be about anything by itself."""
    if session.language != "english":
        return False
    terms = query_terms(beside_thanks(text), language=session.language)
    return information(terms) < LEAST_INFORMATION


def _verdict(
    session: AgentContext, context: Context, request: RefreshRequest, *, similarity: float | None
) -> tuple[Verdict, FrameChoice | None]:
    """The first cause that holds, and the frame that was chosen on the way."""
    current = context.trace.frame
    choice: FrameChoice | None = None
    expiring = [item.memory for item in context.items if item.memory.expires_at]
    now = session.clock() if expiring else context.trace.now
    if any(memory.has_expired(now) for memory in expiring):
        return (True, RefreshReason.EXPIRED), None
    if request.where != context.trace.where:
        return (True, RefreshReason.FILTER), None
    if current is not None and (request.acting or wants(session, request.text).asks):
        choice, _ = choice_of(session, request.text, request.how.frame)
        if (verdict := frame_switch(current, choice, similarity=similarity))[0]:
            return verdict, choice
    for verdict in (
        decision_point(request.text, current=current or _DECISION, acting=request.acting),
        new_topic(similarity),
        token_pressure(request.counter.count(context.text), request.free_tokens),
    ):
        if verdict[0]:
            return verdict, choice
    return (False, None), choice


def _frame_for(
    session: AgentContext,
    context: Context,
    request: RefreshRequest,
    reason: RefreshReason,
    choice: FrameChoice | None,
) -> Framing:
    frames = frames_of(session)
    if reason is RefreshReason.DECISION_POINT:
        return frame_named(_DECISION, frames)
    if reason is RefreshReason.FRAME and choice is not None:
        # Words choose the same again, and read the rest with it; a model isn't called twice.
        return request.how.frame if choice.by == "words" else choice.frame
    return request.how.frame if context.trace.frame is None else frame_named(context.trace.frame, frames)


def _assembled(session: AgentContext, request: RefreshRequest, *, frame: Framing) -> Context:
    def made(budget: int | None, *, cold: bool) -> Context:
        how = replace(request.how, frame=frame, budget=budget)
        repeat = AssembleRequest(
            query=request.text,
            where=request.where,
            counter=request.counter,
            how=how,
            spaces=entered_spaces(session, ()),
            conversation=request.conversation,
            messages=MessageFilter.beside(session, request.conversation),
        )
        return assemble_recorded(session, repeat, cold=cold) if session.records else assemble(session, repeat)

    context = made(request.how.budget, cold=request.cold)
    if request.free_tokens is None or context.tokens <= request.free_tokens:
        return context
    return made(request.free_tokens, cold=False)


# Cut a context to its free tokens: what has least to do with its question leaves, and nothing new comes in.
#
# A record of it names all that stood in the context before, with the scores that it had, and what left; so
# it is made again of these alone, and nothing is searched for.

CUT: Final = "cut"
"""What such an assembly was made for."""

_CUT_DECISION: Final = "decision"
_AS_OF, _CONFIDENCE, _GUIDANCE = "as_of", "frame_confidence", "guidance"
_FRAME: Final = "frame"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """The context before: its plan with what that has to say, and what stood in it, in its order."""

    plan: Plan
    question: Question
    now: datetime
    frame: FrameChoice | None
    stood: tuple[tuple[str, Ranked], ...]
    """Each memory with its score, by its section."""


def cut(session: AgentContext, context: Context, request: RefreshRequest) -> Context:
    """The context without what has least to do with its question, within the free tokens.

    What relevance brought leaves first, the lowest score before all; identity, constraints and the frame
    stay, as does what is pinned. The plan of the request is the context's own where that has no name; the
    judgement counts what its filter admits. Raises BudgetTooSmall, or InvalidInput for a context of another
    plan.
    """
    trace, counter = context.trace, request.counter
    shown = {item.section for item in context.items}
    memories = {item.memory.ref: item.memory for item in context.items}
    plan = _plan_of(session, request, named=trace.plan, frame=trace.frame, shown=shown)
    whole = _Whole(
        plan=_guided(session, plan, trace.frame if is_guided(context) else None),
        question=trace.question,
        now=trace.now,
        frame=_choice(session, trace.frame, trace.frame_confidence),
        stood=tuple(
            (entry.section, _ranked(memories[entry.memory_id], entry.score, entry.parts))
            for entry in trace.included
        ),
    )
    made = _packed(session, whole, _leaving(session, context, whole.plan, request), request)
    for section in whole.plan.sections:
        if section.text and section.heading in set(context.text.splitlines()) - set(made.text.splitlines()):
            needed = made.tokens + _cost(section, counter)
            raise BudgetTooSmall(budget=request.free_tokens or 0, needed=needed, required=(section.name,))
    # The parts of its scores are as they were weighed before.
    return replace(made, trace=replace(made.trace, weights=trace.weights))


def cut_recorded(session: AgentContext, context: Context, request: RefreshRequest) -> Context:
    """What `cut` gives, and a record of it in the ledger; raises as that does, and then nothing is recorded.

    Raises InvalidInput for a store that keeps no ledger.
    """
    store = LEDGER.required(session.store)
    owners = sorted({item.memory.agent for item in context.items} - {session.agent})
    sessions = (session, *entered_spaces(session, [space_of(one) for one in owners if is_space(one)]))
    points, start = points_of(sessions), session.timer()
    made = cut(session, context, request)
    seconds = round(session.timer() - start, 6)
    settled = points == points_of(sessions) and _stands(sessions, context)
    if not isinstance(request.how.plan, Plan):
        request = replace(request, how=replace(request.how, plan=context.trace.plan))
    record = _record(sessions, made, points, request, settled=settled, seconds=seconds)
    store.record(session.agent, record)
    return replace(made, ref=record.id)


def cut_again(
    sessions: Sequence[AgentContext], assembly: Assembly, *, plan: str | Plan, counter: TokenCounter
) -> tuple[Context, Assembly]:
    """The context of what was recorded to have stood in it, and its record. Raises NotFound.

    `sessions` are those of the agent and of the spaces that had a part, on the stores of then.
    """
    session, options = sessions[0], assembly.options
    now = datetime.fromisoformat(str(options[_AS_OF]))
    frame = assembly.frame or None
    shown = {entry.section for entry in assembly.entries}
    memories = _memories(sessions, assembly)
    request = RefreshRequest(
        text=assembly.question,
        where=assembly.where,
        counter=counter,
        how=PlanInput(plan=plan),
        free_tokens=assembly.budget,
    )
    given = _plan_of(session, request, named=assembly.plan, frame=frame, shown=shown)
    whole = _Whole(
        plan=_guided(session, given, frame if options.get(_GUIDANCE) else None),
        question=understand(session, assembly.question, assembly.where, now=now).question,
        now=now,
        frame=_choice(session, frame, options[_CONFIDENCE]),
        stood=tuple(
            (entry.section, _ranked(memories[entry.version_id], entry.score, entry.parts))
            for entry in assembly.entries
        ),
    )
    leaving = {
        memories[one.version_id].ref: Reason.EVICTED
        for one in assembly.entries
        if one.reason is Reason.EVICTED
    }
    made = _packed(session, whole, leaving, request)
    return made, _record(sessions, made, assembly.points, request)


def _record(
    sessions: Sequence[AgentContext],
    context: Context,
    points: Mapping[str, Mapping[str, int]],
    request: RefreshRequest,
    *,
    settled: bool = True,
    seconds: float | None = None,
) -> Assembly:
    session, trace = sessions[0], context.trace
    # It is as of the moment of the context before, and was made now.
    options = {
        MADE_FOR: CUT,
        _AS_OF: trace.now.isoformat(),
        _CONFIDENCE: trace.frame_confidence,
        _GUIDANCE: is_guided(context),
    }
    how = PlanInput(plan=request.how.plan, frame=trace.frame or "", budget=request.free_tokens)
    assembly = AssembleRequest(
        query=request.text,
        where=request.where,
        counter=request.counter,
        how=how,
        spaces=tuple(sessions[1:]),
    )
    made = assembly_of(
        session, context, assembly, points=points, options=options, settled=settled, seconds=seconds
    )
    return replace(made, at=as_utc(session.clock(), name="clock"))


def _leaving(
    session: AgentContext, context: Context, plan: Plan, request: RefreshRequest
) -> Mapping[str, Reason]:
    """The memories that don't fit the free tokens, the least similar to the question first."""
    flexible = {section.name for section in plan.sections if section.order is None}
    # Parts may count more than the whole, and what is packed anew goes by its parts.
    parts = sum(section.used for section in context.trace.sections)
    excess = max(request.counter.count(context.text), parts) - (request.free_tokens or 0)
    leaving: dict[str, Reason] = {}
    for item in sorted(context.items, key=lambda one: (one.score, one.memory.created_at, one.memory.ref)):
        if excess <= 0:
            break
        if item.section in flexible and not _stays(session, item.memory):
            leaving[item.memory.ref] = Reason.EVICTED
            excess -= item.tokens
    return leaving


def _packed(
    session: AgentContext, whole: _Whole, leaving: Mapping[str, Reason], request: RefreshRequest
) -> Context:
    """What stood in a context in its plan's sections once more, with the scores that it had."""
    plan = whole.plan
    if any(section.advises for section in plan.sections):
        plan, _ = advised(plan, session.calibration_cache.of(session, request.where))
    counter, tokens = request.counter, request.free_tokens or 0
    plan = replace(plan, sections=tuple(_with_floor(section, counter) for section in plan.sections))
    memories = [one.memory for _, one in whole.stood]
    kinds = {kind for section in plan.sections for kind in section.required_kinds}
    pinned = frozenset(memory.ref for memory in memories if _stays(session, memory))
    given = PipelineInput(
        plan=plan,
        question=whole.question,
        query=Query(text=whole.question.cleaned),
        budget=tokens,
        counter=counter,
        kinds=session.kinds,
        now=whole.now,
        pinned=pinned,
        notes=(
            TraceNote(
                code="evicted",
                text=f"{counted(len(leaving), 'memory')} left to keep within {counted(tokens, 'token')}.",
            ),
        ),
        left_out=leaving,
        frame=whole.frame,
    )
    sections = [
        Gated(passed=tuple(one for name, one in whole.stood if name == section.name))
        for section in plan.sections
    ]
    must = pinned | {memory.ref for memory in memories if memory.kind in kinds}
    found = SearchResult(slices=(), stored=len(memories), admitted=len(memories))
    context = pack(given, found, sections, must)
    return replace(context, trace=replace(context.trace, where=request.where))


def _with_floor(section: Section, counter: TokenCounter) -> Section:
    """The section with as much set aside as its own text needs; what an account says may leave."""
    if not section.text or section.advises:
        return section
    floor = max(section.share.floor, _cost(section, counter))
    return replace(section, share=replace(section.share, floor=floor))


def _cost(section: Section, counter: TokenCounter) -> int:
    """What a section's own text takes under its heading, as a fit counts it."""
    return counter.count(f"\n{section.heading}\n{section.text}\n")


def _stays(session: AgentContext, memory: Memory) -> bool:
    return memory.pinned or session.kinds.of(memory).requires(memory)


def _plan_of(
    session: AgentContext, request: RefreshRequest, *, named: str, frame: str | None, shown: set[str]
) -> Plan:
    if isinstance(request.how.plan, Plan):
        plan = request.how.plan
    elif scoped_named(named) is not None:
        raise InvalidInput(
            f"The context was made by plan {named!r}, which shares its budget over scopes that it "
            f"doesn't name. Assemble it anew: assemble(..., plan={named!r}, budget={request.free_tokens})."
        )
    else:
        plan = plan_for(
            named, kinds=session.kinds, frame=frame_named(frame or _CUT_DECISION, frames_of(session))
        )
    if EARLIER in shown and plan.name == "layered":
        plan = with_messages(plan)
    if plan.name != named or not shown <= {section.name for section in plan.sections}:
        raise InvalidInput(
            f"The context was made by plan {named!r}, and {plan.name!r} can't make it smaller. "
            "Pass plan=, the Plan that it was made by."
        )
    return plan


def is_guided(context: Context) -> bool:
    """Whether the words of its frame stand in a context."""
    return any(use.name == _FRAME and use.used for use in context.trace.sections)


def _guided(session: AgentContext, plan: Plan, frame: str | None) -> Plan:
    """The plan with the words of a frame where it has a place for them and none; None adds none."""
    if frame is None:
        return plan
    own = frame_section(frame_named(frame, frames_of(session)))
    sections = (
        replace(section, text=own.text) if section.name == _FRAME and not section.text else section
        for section in plan.sections
    )
    return replace(plan, sections=tuple(sections))


def _choice(session: AgentContext, frame: str | None, confidence: float | None) -> FrameChoice | None:
    if frame is None:
        return None
    return FrameChoice(frame=frame_named(frame, frames_of(session)), confidence=confidence or 0.0)


def _ranked(memory: Memory, score: float, parts: Mapping[str, float]) -> Ranked:
    return Ranked(candidate=Candidate(memory=memory), score=score, parts=parts)


def _memories(sessions: Sequence[AgentContext], assembly: Assembly) -> Mapping[str, Memory]:
    """The memories of a record as their stores have them, by their versions. Raises NotFound."""
    found: dict[str, Memory] = {}
    for one in sessions:
        ids = [entry.version_id for entry in assembly.entries if entry.agent == one.agent]
        found |= {memory.version_id: memory for memory in one.store.get(one.agent, ids) if memory is not None}
    for entry in assembly.entries:
        if entry.version_id not in found:
            raise NotFound(entry.version_id, entry.agent)
    return found


def _stands(sessions: Sequence[AgentContext], context: Context) -> bool:
    """Whether the memories of a context are still what their stores have."""
    shown = {one.memory.version_id: one.memory for one in context.items if not one.memory.is_message}
    found = [memory for one in sessions for memory in one.store.get(one.agent, list(shown))]
    return {memory.version_id: memory for memory in found if memory is not None} == shown
