"""Finds what a question means and doesn't say, by what was found for it.

Level: verbs. A question about a cache names no database, and still the decision for the database is what
one has to know. Where a section that the frame cares for stays empty, what is near in meaning to the
memories that do have to do with the question takes its place: a few, and never beside better ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from germane.errors import EmbeddingFailed
from germane.model.context import Context
from germane.model.memory import Memory
from germane.model.plan import Section
from germane.model.query import Candidate, Found, Query, Slice
from germane.model.trace import Note, Reason
from germane.model.vector import Vector
from germane.pipeline import Request
from germane.verbs.embed import embed_texts, is_eager
from germane.verbs.session import Session

__all__ = ["LEAST_NEARNESS", "MOST", "associated"]

LEAST_NEARNESS = 0.3
"""The cosine from which on two memories are taken to be of one matter."""

MOST = 3
"""Memories that an empty section takes in."""

_SEEDS = 5
_HOW_TO = "procedures"
_RANKS = ("floored", "rrf")


def associated(
    session: Session, request: Request, found: Found, context: Context
) -> tuple[Request, Found] | None:
    """The request and what was found for it with what is near; None where nothing is missing, or near.

    Only an embedder that answers at once is asked. It embeds again the memories that stand in the context
    for what they have to do with the question, five at most, and the store is asked once for what is near
    to all of them together, by the caller's filter. A procedure may be near to what is being done instead:
    to the frame and its domain.
    """
    empty = _empty(request, found, context) if request.plan.fusion in _RANKS else []
    seeds = _seeds(context) if empty and not found.failed else ()
    if not seeds or session.embedder is None or not is_eager(session.embedder):
        return None
    try:
        *vectors, doing = embed_texts(session.embedder, [*(seed.content for seed in seeds), _doing(request)])
    except EmbeddingFailed:
        return None
    how_to = [section for section in empty if section.name == _HOW_TO]
    near: dict[str, dict[str, tuple[float, Memory]]] = {section.name: {} for section in empty}
    for vector, sections in ((_together(vectors), empty), (doing, how_to)):
        if vector is not None and sections:
            _note_near(session, request, vector, sections, near)
    chosen = {name: _best(several) for name, several in near.items()}
    if not any(chosen.values()):
        return None
    named = ", ".join(name for name, several in chosen.items() if several)
    note = Note(
        code="associated",
        text=f"Nothing in {named} has to do with the question itself, so what is near to the rest "
        "stands there.",
    )
    nearness = {
        memory.ref: near[name][memory.ref][0] for name, several in chosen.items() for memory in several
    }
    with_them = replace(request, associated=nearness, notes=(*request.notes, note))
    return with_them, _with(request, found, chosen)


def _together(vectors: Sequence[Vector | None]) -> Vector | None:
    """The direction that these vectors have in common, of unit length."""
    known = [vector for vector in vectors if vector is not None]
    total = np.sum(known, axis=0) if known else np.zeros(0)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length else None


def _note_near(
    session: Session,
    request: Request,
    vector: Vector,
    sections: Sequence[Section],
    near: Mapping[str, dict[str, tuple[float, Memory]]],
) -> None:
    """Note for each section what is near to the vector, where it wasn't nearer to another."""
    slices = tuple(Slice(kinds=section.kinds, also=section.where, limit=MOST) for section in sections)
    query = Query(vector=vector, filter=request.query.filter, slices=slices)
    for section, part in zip(sections, session.store.search(session.agent, query).slices, strict=True):
        known = near[section.name]
        for one in part:
            cosine = min(one.signals.get("semantic", 0.0), 1.0)
            if cosine >= max(LEAST_NEARNESS, known.get(one.memory.id, (0.0,))[0]):
                known[one.memory.id] = cosine, one.memory


def _doing(request: Request) -> str:
    """What the frame says is being done: what a way of doing it is near to, whatever the matter."""
    choice = request.frame
    return "" if choice is None else " ".join([choice.frame.name, *choice.frame.domain])


def _empty(request: Request, found: Found, context: Context) -> list[Section]:
    """The sections for which nothing is relevant although there is something of their kinds: no other could
    be near.

    One whose memories lacked tokens isn't empty in this sense, so that what is near doesn't depend on the
    budget.
    """
    shown = {use.name: use.included for use in context.trace.sections}
    gathering = [section for section in request.plan.sections if section.gathers]
    empty = [
        section
        for section, part in zip(gathering, found.slices, strict=True)
        if section.associates and part and not shown[section.name]
    ]
    return [section for section in empty if not _has_relevant(section, context)]


def _has_relevant(section: Section, context: Context) -> bool:
    """Whether anything passed the gate for a section: what did comes first among its entries."""
    start = 0
    for use in context.trace.sections:
        count = use.included + use.excluded
        if use.name == section.name:
            return count > 0 and context.trace.entries[start].reason is not Reason.NOT_RELEVANT
        start += count
    return False


def _seeds(context: Context) -> Sequence[Memory]:
    """The memories that have most to do with the question."""
    meant = {entry.memory_id for entry in context.trace.included if "semantic" in entry.parts}
    items = sorted((item for item in context.items if item.memory.ref in meant), key=lambda item: -item.score)
    return [item.memory for item in items[:_SEEDS]]


def _best(near: Mapping[str, tuple[float, Memory]]) -> list[Memory]:
    several = sorted(near.values(), key=lambda pair: (-pair[0], pair[1].ref))
    return [memory for _, memory in several[:MOST]]


def _with(request: Request, found: Found, chosen: Mapping[str, Sequence[Memory]]) -> Found:
    """What was found, and what is near, each in its section once."""
    gathering = [section for section in request.plan.sections if section.gathers]
    slices = []
    for section, part in zip(gathering, found.slices, strict=True):
        there = {one.memory.ref for one in part}
        more = tuple(Candidate(memory=each) for each in chosen.get(section.name, ()) if each.ref not in there)
        slices.append((*part, *more))
    return replace(found, slices=tuple(slices))
