"""Cut a context to a room: what has least to do with its question leaves, and nothing new comes in.

Level: verbs. A record of it names all that stood in the context before, with the scores that it had, and what
left; so it is made again of these alone, and nothing is searched for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from germane.errors import BudgetTooSmall, InvalidInput, NotFound
from germane.model.context import Context
from germane.model.frame import FrameChoice
from germane.model.ledger import MADE_FOR, Assembly
from germane.model.memory import Memory, as_utc
from germane.model.names import is_tenant, space_of
from germane.model.plan import Plan, Section
from germane.model.query import Candidate, Filter, Found, Query
from germane.model.trace import Note, Question, Ranked, Reason
from germane.pipeline import Request, pack
from germane.plans.frames import frame_named
from germane.plans.layered import frame_section
from germane.plans.registry import plan_for
from germane.protocols import TokenCounter
from germane.ranking.gate import Gated
from germane.verbs.advising import advised, judgement_of
from germane.verbs.framing import frames_of
from germane.verbs.question import understand
from germane.verbs.recording import assembly_of, recording_store
from germane.verbs.scoped import scoped_named
from germane.verbs.session import Session
from germane.verbs.together import entered_spaces

__all__ = ["CUT", "cut", "cut_again", "cut_recorded", "is_guided"]

CUT: Final = "cut"
"""What such an assembly was made for."""

_DECISION: Final = "decision"
_ANY: Final = Filter()
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


def cut(
    session: Session,
    context: Context,
    *,
    plan: str | Plan,
    room: int,
    counter: TokenCounter,
    where: Filter = _ANY,
) -> Context:
    """The context without what has least to do with its question, within the room.

    What relevance brought leaves first, the lowest score before all; identity, constraints and the frame
    stay, as does what is pinned. `plan` is that of the context where it has no name; the judgement counts
    what `where` admits. Raises BudgetTooSmall, or InvalidInput for a context of another plan.
    """
    trace = context.trace
    shown = {item.section for item in context.items}
    memories = {item.memory.ref: item.memory for item in context.items}
    whole = _Whole(
        plan=_guided(
            session,
            _plan_of(session, plan, named=trace.plan, frame=trace.frame, shown=shown, room=room),
            trace.frame if is_guided(context) else None,
        ),
        question=trace.question,
        now=trace.now,
        frame=_choice(session, trace.frame, trace.frame_confidence),
        stood=tuple(
            (entry.section, _ranked(memories[entry.memory_id], entry.score, entry.parts))
            for entry in trace.included
        ),
    )
    leaving = _leaving(session, context, whole.plan, room=room, counter=counter)
    made = _packed(session, whole, leaving, room=room, counter=counter, where=where)
    for section in whole.plan.sections:
        if section.text and section.heading in set(context.text.splitlines()) - set(made.text.splitlines()):
            needed = made.tokens + _cost(section, counter)
            raise BudgetTooSmall(budget=room, needed=needed, required=(section.name,))
    # The parts of its scores are as they were weighed before.
    return replace(made, trace=replace(made.trace, weights=trace.weights, where=trace.where))


def cut_recorded(
    session: Session,
    context: Context,
    *,
    plan: str | Plan,
    room: int,
    counter: TokenCounter,
    where: Filter = _ANY,
) -> Context:
    """What `cut` gives, and a record of it in the ledger; raises as that does, and then nothing is recorded.

    Raises InvalidInput for a store that keeps no ledger.
    """
    store = recording_store(session)
    owners = sorted({item.memory.agent for item in context.items} - {session.agent})
    sessions = (session, *entered_spaces(session, [space_of(one) for one in owners if is_tenant(one)]))
    points, start = _points(sessions), session.timer()
    made = cut(session, context, plan=plan, room=room, counter=counter, where=where)
    seconds = round(session.timer() - start, 6)
    settled = points == _points(sessions) and _stands(sessions, context)
    made_by = plan if isinstance(plan, Plan) else context.trace.plan
    asked: dict[str, Any] = {"plan": made_by, "room": room, "counter": counter, "where": where}
    record = _record(sessions, made, points, **asked, settled=settled, seconds=seconds)
    store.record(session.agent, record)
    return made


def cut_again(
    sessions: Sequence[Session], assembly: Assembly, *, plan: str | Plan, counter: TokenCounter
) -> tuple[Context, Assembly]:
    """The context of what was recorded to have stood in it, and its record. Raises NotFound.

    `sessions` are those of the agent and of the spaces that had a part, on the stores of then.
    """
    session, options = sessions[0], assembly.options
    now = datetime.fromisoformat(str(options[_AS_OF]))
    frame = assembly.frame or None
    shown = {entry.section for entry in assembly.entries}
    memories = _memories(sessions, assembly)
    whole = _Whole(
        plan=_guided(
            session,
            _plan_of(session, plan, named=assembly.plan, frame=frame, shown=shown, room=assembly.budget),
            frame if options.get(_GUIDANCE) else None,
        ),
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
    room, where = assembly.budget, assembly.where
    made = _packed(session, whole, leaving, room=room, counter=counter, where=where)
    made = replace(made, trace=replace(made.trace, where=where))
    asked: dict[str, Any] = {"plan": plan, "room": room, "counter": counter, "where": where}
    return made, _record(sessions, made, assembly.points, **asked)


def _record(
    sessions: Sequence[Session],
    context: Context,
    points: Mapping[str, Mapping[str, int]],
    *,
    plan: str | Plan,
    room: int,
    counter: TokenCounter,
    where: Filter,
    **more: Any,
) -> Assembly:
    session, trace = sessions[0], context.trace
    # It is as of the moment of the context before, and was made now.
    options = {
        MADE_FOR: CUT,
        _AS_OF: trace.now.isoformat(),
        _CONFIDENCE: trace.frame_confidence,
        _GUIDANCE: is_guided(context),
    }
    made = assembly_of(
        session,
        context,
        where=where,
        counter=counter,
        points=points,
        plan=plan,
        frame=trace.frame or "",
        budget=room,
        spaces=sessions[1:],
        options=options,
        **more,
    )
    return replace(made, at=as_utc(session.clock(), name="clock"))


def _leaving(
    session: Session, context: Context, plan: Plan, *, room: int, counter: TokenCounter
) -> Mapping[str, Reason]:
    """Whom the room has no place for, the one that has least to do with the question first."""
    flexible = {section.name for section in plan.sections if section.order is None}
    # Parts may count more than the whole, and what is packed anew goes by its parts.
    parts = sum(section.used for section in context.trace.sections)
    excess = max(counter.count(context.text), parts) - room
    leaving: dict[str, Reason] = {}
    for item in sorted(context.items, key=lambda one: (one.score, one.memory.created_at, one.memory.ref)):
        if excess <= 0:
            break
        if item.section in flexible and not _stays(session, item.memory):
            leaving[item.memory.ref] = Reason.EVICTED
            excess -= item.tokens
    return leaving


def _packed(
    session: Session,
    whole: _Whole,
    leaving: Mapping[str, Reason],
    *,
    room: int,
    counter: TokenCounter,
    where: Filter,
) -> Context:
    """What stood in a context in its plan's sections once more, with the scores that it had."""
    plan = whole.plan
    if any(section.advises for section in plan.sections):
        plan, _ = advised(plan, judgement_of(session, where))
    plan = replace(plan, sections=tuple(_with_floor(section, counter) for section in plan.sections))
    memories = [one.memory for _, one in whole.stood]
    kinds = {kind for section in plan.sections for kind in section.required_kinds}
    pinned = frozenset(memory.ref for memory in memories if _stays(session, memory))
    request = Request(
        plan=plan,
        question=whole.question,
        query=Query(text=whole.question.cleaned),
        budget=room,
        counter=counter,
        kinds=session.kinds,
        now=whole.now,
        pinned=pinned,
        notes=(Note(code="evicted", text=f"{len(leaving)} memories left to keep within {room} tokens."),),
        left_out=leaving,
        frame=whole.frame,
    )
    sections = [
        Gated(kept=tuple(one for name, one in whole.stood if name == section.name))
        for section in plan.sections
    ]
    must = pinned | {memory.ref for memory in memories if memory.kind in kinds}
    found = Found(slices=(), stored=len(memories), admitted=len(memories))
    return pack(request, found, sections, must)


def _with_floor(section: Section, counter: TokenCounter) -> Section:
    """The section with as much set aside as its own text needs; what an account says may leave."""
    if not section.text or section.advises:
        return section
    floor = max(section.share.floor, _cost(section, counter))
    return replace(section, share=replace(section.share, floor=floor))


def _cost(section: Section, counter: TokenCounter) -> int:
    """What a section's own text takes under its heading, as a fit counts it."""
    return counter.count(f"\n{section.heading}\n{section.text}\n")


def _stays(session: Session, memory: Memory) -> bool:
    return memory.pinned or session.kinds.of(memory).requires(memory)


def _plan_of(
    session: Session, given: str | Plan, *, named: str, frame: str | None, shown: set[str], room: int
) -> Plan:
    if isinstance(given, Plan):
        plan = given
    elif scoped_named(named) is not None:
        raise InvalidInput(
            f"The context was made by plan {named!r}, which shares its budget over scopes that it "
            f"doesn't name. Assemble it anew: assemble(..., plan={named!r}, budget={room})."
        )
    else:
        plan = plan_for(named, kinds=session.kinds, frame=frame_named(frame or _DECISION, frames_of(session)))
    if plan.name != named or not shown <= {section.name for section in plan.sections}:
        raise InvalidInput(
            f"The context was made by plan {named!r}, and {plan.name!r} can't make it smaller. "
            "Pass plan=, the Plan that it was made by."
        )
    return plan


def is_guided(context: Context) -> bool:
    """Whether the words of its frame stand in a context."""
    return any(use.name == _FRAME and use.used for use in context.trace.sections)


def _guided(session: Session, plan: Plan, frame: str | None) -> Plan:
    """The plan with the words of a frame where it has a place for them and none; None adds none."""
    if frame is None:
        return plan
    own = frame_section(frame_named(frame, frames_of(session)))
    sections = (
        replace(section, text=own.text) if section.name == _FRAME and not section.text else section
        for section in plan.sections
    )
    return replace(plan, sections=tuple(sections))


def _choice(session: Session, frame: str | None, confidence: float | None) -> FrameChoice | None:
    if frame is None:
        return None
    return FrameChoice(frame=frame_named(frame, frames_of(session)), confidence=confidence or 0.0)


def _ranked(memory: Memory, score: float, parts: Mapping[str, float]) -> Ranked:
    return Ranked(candidate=Candidate(memory=memory), score=score, parts=parts)


def _memories(sessions: Sequence[Session], assembly: Assembly) -> Mapping[str, Memory]:
    """The memories of a record as their stores have them, by their versions. Raises NotFound."""
    found: dict[str, Memory] = {}
    for one in sessions:
        ids = [entry.version_id for entry in assembly.entries if entry.agent == one.agent]
        found |= {memory.version_id: memory for memory in one.store.get(one.agent, ids) if memory is not None}
    for entry in assembly.entries:
        if entry.version_id not in found:
            raise NotFound(entry.version_id, entry.agent)
    return found


def _stands(sessions: Sequence[Session], context: Context) -> bool:
    """Whether the memories of a context are still what their stores have."""
    shown = {item.memory.version_id: item.memory for item in context.items}
    found = [memory for one in sessions for memory in one.store.get(one.agent, list(shown))]
    return {memory.version_id: memory for memory in found if memory is not None} == shown


def _points(sessions: Sequence[Session]) -> Mapping[str, Mapping[str, int]]:
    return {one.agent: recording_store(one).point(one.agent) for one in sessions}
