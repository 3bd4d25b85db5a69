"""refresh: keep a context as long as it serves, and make another when it doesn't.

Level: verbs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from germane.errors import EmbeddingFailed, InvalidInput
from germane.model.context import Context
from germane.model.frame import FrameChoice
from germane.model.plan import Plan
from germane.model.query import Candidate, Filter, Found, Query
from germane.model.refreshed import Refreshed, RefreshReason
from germane.model.trace import Note, Ranked, Reason
from germane.pipeline import Request, pack
from germane.plans.frames import frame_named
from germane.plans.refreshing import (
    Verdict,
    decision_point,
    frame_switch,
    new_topic,
    substance,
    token_pressure,
)
from germane.plans.registry import plan_for
from germane.protocols import TokenCounter
from germane.ranking.gate import Gated
from germane.retrieval.informative import english_idf
from germane.retrieval.terms import query_terms, term_hash
from germane.verbs.advising import advised, judgement_of
from germane.verbs.assembling import assemble
from germane.verbs.checks import checked_count, checked_text
from germane.verbs.embed import embed_texts
from germane.verbs.framing import Framing, choice_of, frames_of, wants
from germane.verbs.recording import assemble_recorded
from germane.verbs.scoped import scoped_named
from germane.verbs.session import Session

__all__ = ["refresh", "similarity_of"]

_DECISION = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a refresh was asked for, beside the context."""

    text: str
    plan: str | Plan
    frame: Framing
    budget: int | None
    room: int | None
    where: Filter
    counter: TokenCounter


def refresh(
    session: Session,
    context: Context | None,
    new_input: str,
    *,
    plan: str | Plan,
    frame: Framing,
    budget: int | None,
    room: int | None,
    acting: bool,
    where: Filter,
    counter: TokenCounter,
) -> Refreshed:
    """Whether a context still serves what is said now, why not, and the one that does.

    The causes are asked for in the order of `RefreshReason`; the last of them makes the context smaller,
    the others make a new one, which keeps within the room as well. It is for what is said; where that names
    nothing to look for, as "go ahead" does, it is for the question that the context was for. Raises
    BudgetTooSmall or InvalidInput.
    """
    checked_text(new_input, name="new_input")
    for name, value in (("budget", budget), ("room", room)):
        if value is not None:
            checked_count(value, name=name)
    asked = _Asked(
        text=new_input, plan=plan, frame=frame, budget=budget, room=room, where=where, counter=counter
    )
    if context is None:
        return Refreshed(
            needed=True, reason=RefreshReason.FIRST, context=_assembled(session, asked, frame=frame)
        )
    similarity = similarity_of(session, context, substance(new_input))
    (_, reason), choice = _verdict(session, context, asked, similarity=similarity, acting=acting)
    if reason is None:
        return Refreshed(needed=False, reason=None, context=context, similarity=similarity)
    if reason is RefreshReason.PRESSURE:
        made = _smaller(session, context, asked)
    else:
        if similarity is None:
            asked = replace(asked, text=context.trace.question.text)
            choice = None if choice is None else replace(choice, by="caller")
        made = _assembled(session, asked, frame=_frame_for(session, context, asked, reason, choice))
    return Refreshed(needed=True, reason=reason, context=made, similarity=similarity)


def similarity_of(session: Session, context: Context, text: str) -> float | None:
    """How much a text has to do with a context, from 0 to 1; None for a text that says nothing.

    It is the greater of two: the share of the text's information, by the frequencies of English, whose
    terms stand in the question that the context was made for or in what relevance brought for it; and the
    cosine of the text with that question, where there is an embedder. What is shown whatever the question
    is doesn't count: it says nothing of the topic.
    """
    terms = query_terms(text, language=session.language)
    if not terms:
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


def _verdict(
    session: Session, context: Context, asked: _Asked, *, similarity: float | None, acting: bool
) -> tuple[Verdict, FrameChoice | None]:
    """The first cause that holds, and the frame that was chosen on the way."""
    current = context.trace.frame
    choice: FrameChoice | None = None
    if current is not None and (acting or wants(session, asked.text).asks):
        choice, _ = choice_of(session, asked.text, asked.frame)
        if (verdict := frame_switch(current, choice, similarity=similarity))[0]:
            return verdict, choice
    for verdict in (
        decision_point(asked.text, current=current or _DECISION, acting=acting),
        new_topic(similarity),
        token_pressure(asked.counter.count(context.text), asked.room),
    ):
        if verdict[0]:
            return verdict, choice
    return (False, None), choice


def _frame_for(
    session: Session, context: Context, asked: _Asked, reason: RefreshReason, choice: FrameChoice | None
) -> Framing:
    frames = frames_of(session)
    if reason is RefreshReason.DECISION_POINT:
        return frame_named(_DECISION, frames)
    if reason is RefreshReason.FRAME and choice is not None:
        # Words choose the same again, and read the rest with it; a model isn't asked twice.
        return asked.frame if choice.by == "words" else choice.frame
    return asked.frame if context.trace.frame is None else frame_named(context.trace.frame, frames)


def _assembled(session: Session, asked: _Asked, *, frame: Framing) -> Context:
    def made(budget: int | None) -> Context:
        make = assemble_recorded if session.records else assemble
        return make(
            session,
            asked.text,
            budget=budget,
            where=asked.where,
            plan=asked.plan,
            frame=frame,
            counter=asked.counter,
        )

    context = made(asked.budget)
    return context if asked.room is None or context.tokens <= asked.room else made(asked.room)


def _smaller(session: Session, context: Context, asked: _Asked) -> Context:
    """The context without what has least to do with its question, within the room; nothing new comes in.

    What relevance brought leaves first, the lowest score before all; identity, constraints and the frame
    stay, as does what is pinned.
    """
    room = asked.room or 0
    plan = _plan_of(session, context, asked)
    if any(section.advises for section in plan.sections):
        told = {item.section for item in context.items}
        plan, _ = advised(plan, judgement_of(session), told=told)
    required = frozenset(
        item.memory.id
        for item in context.items
        if item.memory.pinned or session.kinds.of(item.memory).requires(item.memory)
    )
    flexible = {section.name for section in plan.sections if section.order is None}
    # Parts may count more than the whole, and what is packed anew goes by its parts.
    parts = sum(section.used for section in context.trace.sections)
    excess = max(asked.counter.count(context.text), parts) - room
    evicted: dict[str, Reason] = {}
    for item in sorted(context.items, key=lambda one: (one.score, one.memory.created_at, one.memory.id)):
        if excess <= 0:
            break
        if item.section in flexible and item.memory.id not in required:
            evicted[item.memory.id] = Reason.EVICTED
            excess -= item.tokens
    trace = context.trace
    note = Note(code="evicted", text=f"{len(evicted)} memories left to keep within {room} tokens.")
    request = Request(
        plan=plan,
        question=trace.question,
        query=Query(text=trace.question.cleaned),
        budget=room,
        counter=asked.counter,
        kinds=session.kinds,
        now=trace.now,
        pinned=required,
        notes=(note,),
        left_out=evicted,
        frame=_choice(session, context),
    )
    return _repacked(request, context)


def _repacked(request: Request, context: Context) -> Context:
    """The items of a context in its plan's sections once more, with the scores that they had."""
    memories = {item.memory.id: item.memory for item in context.items}
    sections = [
        Gated(
            kept=tuple(
                Ranked(
                    candidate=Candidate(memory=memories[entry.memory_id]),
                    score=entry.score,
                    parts=entry.parts,
                )
                for entry in context.trace.included
                if entry.section == section.name
            )
        )
        for section in request.plan.sections
    ]
    must = {one.memory.id for each in sections for one in each.kept if one.memory.id in request.pinned}
    kinds = {kind for section in request.plan.sections for kind in section.required_kinds}
    must |= {memory.id for memory in memories.values() if memory.kind in kinds}
    found = Found(slices=(), stored=len(memories), admitted=len(memories))
    return pack(request, found, sections, frozenset(must))


def _plan_of(session: Session, context: Context, asked: _Asked) -> Plan:
    trace = context.trace
    if isinstance(asked.plan, Plan):
        plan = asked.plan
    elif scoped_named(trace.plan) is not None:
        raise InvalidInput(
            f"The context was made by plan {trace.plan!r}, which shares its budget over scopes that it "
            f"doesn't name. Assemble it anew: assemble(..., plan={trace.plan!r}, budget={asked.room})."
        )
    else:
        frame = frame_named(_DECISION if trace.frame is None else trace.frame, frames_of(session))
        plan = plan_for(trace.plan, kinds=session.kinds, frame=frame)
    shown = {item.section for item in context.items}
    if plan.name != trace.plan or not shown <= {section.name for section in plan.sections}:
        raise InvalidInput(
            f"The context was made by plan {trace.plan!r}, and {plan.name!r} can't make it smaller. "
            "Pass plan=, the Plan that it was made by."
        )
    return plan


def _choice(session: Session, context: Context) -> FrameChoice | None:
    trace = context.trace
    if trace.frame is None:
        return None
    return FrameChoice(
        frame=frame_named(trace.frame, frames_of(session)), confidence=trace.frame_confidence or 0.0
    )
