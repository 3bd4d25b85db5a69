"""refresh: keep a context as long as it serves, and make another when it doesn't.

Level: verbs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from germane.errors import EmbeddingFailed
from germane.model.context import Context
from germane.model.frame import FrameChoice
from germane.model.plan import Plan
from germane.model.query import Filter
from germane.model.refreshed import Refreshed, RefreshReason
from germane.plans.frames import frame_named
from germane.plans.refreshing import (
    LEAST_INFORMATION,
    Verdict,
    beside_thanks,
    decision_point,
    frame_switch,
    new_topic,
    substance,
    token_pressure,
)
from germane.protocols import TokenCounter
from germane.retrieval.informative import english_idf, information
from germane.retrieval.terms import query_terms, term_hash
from germane.verbs.assembling import assemble
from germane.verbs.checks import checked_count, checked_text
from germane.verbs.cutting import cut, cut_recorded, is_guided
from germane.verbs.embed import embed_texts
from germane.verbs.framing import Framing, choice_of, frames_of, guidance_of, wants
from germane.verbs.recording import assemble_recorded
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
    cold: bool
    guidance: bool | str


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
    cold: bool = False,
) -> Refreshed:
    """Whether a context still serves what is said now, why not, and the one that does.

    The causes are asked for in the order of `RefreshReason`; the last of them makes the context smaller,
    the others make a new one, which keeps within the room as well. It is for what is said; where that names
    nothing to look for, as "go ahead" does, it is for the question that the context was for. `cold` says
    that a new one is the first of its engine. Raises BudgetTooSmall or InvalidInput.
    """
    checked_text(new_input, name="new_input")
    for name, value in (("budget", budget), ("room", room)):
        if value is not None:
            checked_count(value, name=name)
    asked = _Asked(
        text=new_input,
        plan=plan,
        frame=frame,
        budget=budget,
        room=room,
        where=where,
        counter=counter,
        cold=cold,
        guidance=guidance_of(frame) or (context is not None and is_guided(context)),
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
        made = _cut(session, context, asked)
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


def _is_remark(session: Session, text: str) -> bool:
    """Whether a text says too little, beside thanks and the like, to be about anything by itself."""
    if session.language != "english":
        return False
    said = query_terms(beside_thanks(text), language=session.language)
    return information(said) < LEAST_INFORMATION


def _verdict(
    session: Session, context: Context, asked: _Asked, *, similarity: float | None, acting: bool
) -> tuple[Verdict, FrameChoice | None]:
    """The first cause that holds, and the frame that was chosen on the way."""
    current = context.trace.frame
    choice: FrameChoice | None = None
    if asked.where != context.trace.where:
        return (True, RefreshReason.FILTER), None
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
    def made(budget: int | None, *, cold: bool) -> Context:
        asks: dict[str, Any] = {
            "budget": budget,
            "where": asked.where,
            "plan": asked.plan,
            "frame": frame,
            "counter": asked.counter,
            "guidance": asked.guidance,
        }
        if session.records:
            return assemble_recorded(session, asked.text, cold=cold, **asks)
        return assemble(session, asked.text, **asks)

    context = made(asked.budget, cold=asked.cold)
    return context if asked.room is None or context.tokens <= asked.room else made(asked.room, cold=False)


def _cut(session: Session, context: Context, asked: _Asked) -> Context:
    make = cut_recorded if session.records else cut
    return make(
        session, context, plan=asked.plan, room=asked.room or 0, counter=asked.counter, where=asked.where
    )
