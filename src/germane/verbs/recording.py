"""assemble, and keep a record of it: what was asked, by what it was made, and what came of it.

Level: verbs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from germane.errors import InvalidInput
from germane.model.context import Context
from germane.model.ledger import Assembly, LedgerEntry, text_hash
from germane.model.memory import split_id
from germane.model.query import Filter
from germane.protocols import Recording, TokenCounter
from germane.retrieval.terms import TOKENIZER
from germane.spaces import space_of
from germane.verbs.assemble import named_pins
from germane.verbs.assembling import assemble
from germane.verbs.feedback import shown_of
from germane.verbs.session import Session

__all__ = ["Recorder", "assemble_recorded", "assembly_of", "recording_store"]

_TRIES = 3
"""How often to assemble anew where somebody writes meanwhile, before the record says so instead."""

_DIGITS = 16
_KEPT = ("task", "paths", "changed", "guidance", "gate", "dates", "sources", "ids")
"""Options that can be written down beside the plan, the frame and the budget."""


def assemble_recorded(session: Session, query: str, *, cold: bool = False, **asked: Any) -> Context:
    """What `assemble` gives for the same arguments, and a record of it in the ledger.

    The record names the point to which the store had come. Where somebody writes while it is made, it is
    made again, so that the point is that of the very memories. Raises InvalidInput for a store that keeps
    no ledger, and what `assemble` raises; then nothing is recorded.
    """
    store = recording_store(session)
    sessions = (session, *asked.get("spaces", ()))
    points, settled = _points(sessions), False
    context, seconds, tries = None, 0.0, 0
    while context is None or (not settled and tries < _TRIES):
        start = session.timer()
        context = assemble(session, query, **asked)
        seconds, tries = session.timer() - start, tries + 1
        before, points = points, _points(sessions)
        settled = before == points
    made = assembly_of(
        session, context, **asked, points=points, settled=settled, cold=cold, seconds=round(seconds, 6)
    )
    store.record(session.agent, made)
    return context


class Recorder:
    """Records the latest context that something larger was made of, once it is known that it stands in it.

    The record goes into the ledger of the session, whichever spaces the context was gathered from besides.
    """

    def __init__(self, session: Session) -> None:
        """Raises InvalidInput for a store that keeps no ledger."""
        self._session = session
        self._store = recording_store(session)
        self._latest: tuple[Context, dict[str, Any]] | None = None

    def watched(self, make: Callable[..., Context], *, options: Mapping[str, Any], **asked: Any) -> Context:
        """The context that `make(session, **asked)` gives, of which is noted what a record needs."""
        sessions = (self._session, *asked.get("spaces", ()))
        before, start = _points(sessions), self._session.timer()
        context = make(self._session, **asked)
        seconds = round(self._session.timer() - start, 6)
        settled = before == _points(sessions)
        noted = {"options": options, "points": before, "settled": settled, "seconds": seconds}
        self._latest = context, {**asked, **noted}
        return context

    def record(self, context: Context | None, **more: Any) -> None:
        """Record a context if it is the latest that was watched."""
        if self._latest is not None and self._latest[0] is context:
            made = assembly_of(self._session, context, **{**self._latest[1], **more})
            self._store.record(self._session.agent, made)


def recording_store(session: Session) -> Recording:
    """The session's store as one that keeps a ledger. Raises InvalidInput."""
    if not isinstance(session.store, Recording):
        raise InvalidInput(
            f"{type(session.store).__name__} keeps no ledger of assemblies. Use a SQLite store, or give it "
            "the methods of germane.Recording."
        )
    return session.store


def assembly_of(
    session: Session,
    context: Context,
    *,
    where: Filter,
    counter: TokenCounter,
    points: Mapping[str, Mapping[str, int]],
    plan: object = "layered",
    frame: object = "",
    budget: int | None = None,
    pins: Iterable[str] = (),
    spaces: Sequence[Session] = (),
    settled: bool = True,
    cold: bool = False,
    seconds: float | None = None,
    options: Mapping[str, Any] | None = None,
    **more: object,
) -> Assembly:
    """The record of a context: no text of any memory, and each thing that can't be kept by its name."""
    trace = context.trace
    pinned = frozenset(memory.ref for memory in named_pins((session, *spaces), pins))
    own = {"plan": not isinstance(plan, str), "frame": not isinstance(frame, str)}
    own |= {name: given is not None for name, given in more.items() if name not in _KEPT}
    return Assembly(
        id=session.ids.next(session.clock()),
        agent=session.agent,
        at=trace.now,
        question=trace.question.text,
        plan=trace.plan if own["plan"] else str(plan),
        frame=(trace.frame or "") if own["frame"] else str(frame),
        budget=trace.budget,
        given_budget=budget is not None,
        counter=counter.name,
        where=where,
        options={**(options or {}), **_kept(more)},
        spaces=tuple(space_of(one.agent) for one in spaces),
        key=shown_of(context).key,
        points=points,
        makers=_makers(session, context, plan),
        unkept=tuple(sorted(name for name, given in own.items() if given)),
        tokens=context.tokens,
        sha256=text_hash(context.text),
        candidates=len(trace.entries),
        entries=tuple(_entries(session, context, pinned)),
        notes=tuple(note.code for note in trace.notes),
        emptiness=trace.emptiness,
        settled=settled,
        cold=cold,
        seconds=seconds,
    )


def _kept(more: Mapping[str, object]) -> dict[str, object]:
    return {name: more[name] for name in _KEPT if more.get(name) is not None}


def _points(sessions: Sequence[Session]) -> dict[str, Mapping[str, int]]:
    return {one.agent: recording_store(one).point(one.agent) for one in sessions}


def _entries(session: Session, context: Context, pinned: frozenset[str]) -> Iterable[LedgerEntry]:
    for entry in context.trace.entries:
        yield LedgerEntry(
            memory_id=split_id(entry.memory_id)[0],
            version=entry.version,
            kind=entry.kind,
            agent=entry.agent or session.agent,
            section=entry.section,
            score=entry.score,
            parts=entry.parts,
            level=entry.level,
            reason=entry.reason,
            tokens=entry.tokens,
            short_by=entry.short_by,
            pinned=entry.memory_id in pinned,
        )


def _makers(session: Session, context: Context, plan: object) -> dict[str, str]:
    """What had a part in a context besides the memories, each by what tells it from another of its sort."""
    weights = {name: round(value, 9) for name, value in context.trace.weights.items()}
    used = session.known_weights.taught(session.store, session.agent).usefulness
    return {
        "germane": _version(),
        "tokenizer": f"{TOKENIZER} {session.language}",
        "embedder": session.embedder.name if session.embedder is not None else "",
        "weights": _digest(json.dumps(weights, sort_keys=True)) if weights else "",
        "usage": _digest(json.dumps(dict(sorted(used.items())))) if used else "",
        "plan": "" if isinstance(plan, str) else _digest(repr(plan)),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


@cache
def _version() -> str:
    try:
        return version("germane")
    except PackageNotFoundError:  # Run from a folder that nobody installed.
        return "unknown"
