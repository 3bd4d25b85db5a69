"""Finds what a question means and doesn't say, by what was found for it.

Level: verbs. A question about a cache names no database, and still the decision for the database is what
one has to know. Where a section that the frame cares for stays empty, what is near in meaning to the
memories that do have to do with the question takes its place: a few, and never beside better ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from germane.errors import EmbeddingFailed
from germane.model.context import Context
from germane.model.memory import Memory
from germane.model.plan import Section
from germane.model.query import Candidate, Found, Query, Slice
from germane.model.trace import Note
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
    for what they have to do with the question, five at most, and the store is asked once for each. A
    procedure may be near to what is being done instead: to the frame and its domain.
    """
    empty = _empty(request, context) if request.plan.fusion in _RANKS else []
    seeds = _seeds(context) if empty and not found.failed else ()
    if not seeds or session.embedder is None or not is_eager(session.embedder):
        return None
    near: dict[str, tuple[float, Memory]] = {}
    try:
        *vectors, doing = embed_texts(session.embedder, [*(seed.content for seed in seeds), _doing(request)])
    except EmbeddingFailed:
        return None
    everything = tuple(Slice(kinds=section.kinds, limit=MOST) for section in empty)
    how_to = tuple(Slice(kinds=section.kinds, limit=MOST) for section in empty if section.name == _HOW_TO)
    for vector, slices in (*((each, everything) for each in vectors), (doing, how_to)):
        if vector is not None and slices:
            query = Query(vector=vector, filter=request.query.filter, slices=slices)
            for part in session.store.search(session.agent, query).slices:
                for one in part:
                    cosine = min(one.signals.get("semantic", 0.0), 1.0)
                    if cosine >= max(LEAST_NEARNESS, near.get(one.memory.ref, (0.0,))[0]):
                        near[one.memory.ref] = cosine, one.memory
    chosen = {section.name: _best(section, near) for section in empty}
    if not any(chosen.values()):
        return None
    named = ", ".join(name for name, several in chosen.items() if several)
    note = Note(
        code="associated",
        text=f"Nothing in {named} has to do with the question itself, so what is near to the rest "
        "stands there.",
    )
    nearness = {memory.ref: near[memory.ref][0] for several in chosen.values() for memory in several}
    with_them = replace(request, associated=nearness, notes=(*request.notes, note))
    return with_them, _with(request, found, chosen)


def _doing(request: Request) -> str:
    """What the frame says is being done: what a way of doing it is near to, whatever the matter."""
    choice = request.frame
    return "" if choice is None else " ".join([choice.frame.name, *choice.frame.domain])


def _empty(request: Request, context: Context) -> list[Section]:
    shown = {use.name: use.included for use in context.trace.sections}
    return [section for section in request.plan.sections if section.associates and not shown[section.name]]


def _seeds(context: Context) -> Sequence[Memory]:
    """The memories that have most to do with the question."""
    meant = {entry.memory_id for entry in context.trace.included if "semantic" in entry.parts}
    items = sorted((item for item in context.items if item.memory.ref in meant), key=lambda item: -item.score)
    return [item.memory for item in items[:_SEEDS]]


def _best(section: Section, near: Mapping[str, tuple[float, Memory]]) -> list[Memory]:
    several = sorted(
        (pair for pair in near.values() if pair[1].kind in section.kinds),
        key=lambda pair: (-pair[0], pair[1].ref),
    )
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
