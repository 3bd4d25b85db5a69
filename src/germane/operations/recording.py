"""The record of an assembly: its request, its inputs and its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from germane.ledger import Assembly, LedgerEntry, text_hash
from germane.model.context import Context
from germane.model.memory import split_id
from germane.model.text import is_space, space_of
from germane.operations.assemble import AssembleRequest, assemble, named_pins
from germane.operations.context import AgentContext
from germane.operations.feedback import shown_of
from germane.retrieval.tokenizer import TOKENIZER
from germane.stores.location import CONVERSATIONS, LEDGER

_TRIES = 3
"""How often to assemble anew where somebody writes meanwhile, before the record says so instead."""

_DIGITS = 16

_ALIKE = ("version", "kind", "section", "score", "parts", "level", "reason", "tokens", "short_by")
"""The fields that an entry of a trace and one of the ledger have in common."""


def assemble_recorded(session: AgentContext, request: AssembleRequest, *, cold: bool = False) -> Context:
    """What `assemble` gives for a request, and a record of it in the ledger.

    The record names the point to which the store had come. Where somebody writes while it is made, it is
    made again, so that the point is that of the very memories. Raises InvalidInput for a store that keeps
    no ledger, and what `assemble` raises; then nothing is recorded.
    """
    recorder = Recorder(session)
    context, tries = recorder.assemble(request), 1
    while not recorder.settled and tries < _TRIES:
        context, tries = recorder.assemble(request), tries + 1
    return replace(context, ref=recorder.record(context, cold=cold))


class Recorder:
    """Records the latest context that it assembled, once it is known that it is used.

    The record goes into the ledger of the session, whichever spaces the context was gathered from besides.
    """

    def __init__(self, session: AgentContext) -> None:
        """Raises InvalidInput for a store that keeps no ledger."""
        self._session = session
        self._store = LEDGER.required(session.store)
        self._latest: tuple[Context, AssembleRequest] | None = None
        self._points: Mapping[str, Mapping[str, int]] = {}
        self._seconds = 0.0
        self.settled = False
        """Whether nobody wrote while the latest context was assembled."""

    def assemble(self, request: AssembleRequest) -> Context:
        """What `assemble` gives for the request, of which is noted what a record needs."""
        session, sessions = self._session, (self._session, *request.spaces)
        self._points, start = points_of(sessions), session.timer()
        context = assemble(session, request)
        self._seconds = round(session.timer() - start, 6)
        self.settled = self._points == points_of(sessions)
        self._latest = context, request
        return context

    def record(
        self, context: Context | None, *, options: Mapping[str, Any] | None = None, cold: bool = False
    ) -> str | None:
        """Record a context if it is the latest one, and return the record's id.

        `options` are the request's own unless given.
        """
        if self._latest is None or self._latest[0] is not context:
            return None
        context, request = self._latest
        made = assembly_of(
            self._session,
            context,
            request,
            points=self._points,
            options=options,
            settled=self.settled,
            cold=cold,
            seconds=self._seconds,
        )
        self._store.record(self._session.agent, made)
        return made.id


def assembly_of(
    session: AgentContext,
    context: Context,
    request: AssembleRequest,
    *,
    points: Mapping[str, Mapping[str, int]],
    options: Mapping[str, Any] | None = None,
    settled: bool = True,
    cold: bool = False,
    seconds: float | None = None,
) -> Assembly:
    """The record of a context: no text of any memory, and the name alone of what can't be stored.

    `options` are those of the request unless given.
    """
    trace, how = context.trace, request.how
    pinned = frozenset(memory.ref for memory in named_pins((session, *request.spaces), request.pins))
    unkept = {
        "plan": not isinstance(how.plan, str),
        "frame": not isinstance(how.frame, str),
        "scorer": request.scorer is not None,
        "conversation": request.conversation is not None,
        "messages": bool(request.messages.texts),
        "without": bool(request.without),
    }
    return Assembly(
        id=session.ids.next(session.clock()),
        agent=session.agent,
        at=trace.now,
        question=trace.question.text,
        plan=how.plan if isinstance(how.plan, str) else trace.plan,
        frame=how.frame if isinstance(how.frame, str) else trace.frame or "",
        budget=trace.budget,
        given_budget=how.budget is not None,
        counter=request.counter.name,
        where=request.where,
        options=_options(context, request)
        if options is None
        else {**options, **_of_messages(context, request)},
        spaces=tuple(space_of(one.agent) for one in request.spaces if is_space(one.agent)),
        key=shown_of(context).key,
        points=points,
        makers=_makers(session, context, how.plan),
        unkept=tuple(sorted(name for name, given in unkept.items() if given)),
        tokens=context.tokens,
        sha256=text_hash(context.text),
        candidates=len(trace.entries),
        entries=tuple(_entries(session, context, pinned)),
        notes=tuple(note.code for note in trace.notes),
        empty_reason=trace.empty_reason,
        settled=settled,
        cold=cold,
        seconds=seconds,
    )


def _messages(context: Context, request: AssembleRequest) -> Mapping[str, Any] | None:
    """Which messages could take part, and how far their conversations had come; None where none did.

    It says nothing of texts that were left out: a record keeps no text.
    """
    if not any(entry.version == 0 for entry in context.trace.entries):
        return None
    points = {
        one.agent: log.point(one.agent) for one in request.messages.of if (log := CONVERSATIONS.of(one.store))
    }
    return {"points": points, "without": sorted(map(list, request.messages.sessions))}


def _of_messages(context: Context, request: AssembleRequest) -> Mapping[str, Any]:
    messages = _messages(context, request)
    return {} if messages is None else {"messages": messages}


def _options(context: Context, request: AssembleRequest) -> dict[str, object]:
    """What can be written down of a request beside the plan, the frame and the budget."""
    work, details = request.work, request.details
    options: dict[str, object] = {
        "task": work.task,
        "paths": work.paths or None,
        "changed": work.changed,
        "guidance": request.how.guidance,
        "gate": request.gate,
        "dates": details.dates,
        "sources": details.sources,
        "ids": details.ids,
        "messages": _messages(context, request),
    }
    return {name: value for name, value in options.items() if value is not None}


def points_of(sessions: Sequence[AgentContext]) -> dict[str, Mapping[str, int]]:
    """The points to which the ledgers of the sessions have come, by agent."""
    return {one.agent: LEDGER.required(one.store).point(one.agent) for one in sessions}


def _entries(session: AgentContext, context: Context, pinned: frozenset[str]) -> Iterable[LedgerEntry]:
    for entry in context.trace.entries:
        yield LedgerEntry(
            memory_id=split_id(entry.memory_id)[0],
            agent=entry.agent or session.agent,
            pinned=entry.memory_id in pinned,
            **{name: getattr(entry, name) for name in _ALIKE},
        )


def _makers(session: AgentContext, context: Context, plan: object) -> dict[str, str]:
    """What had a part in a context besides the memories, each by what tells it from another of its sort."""
    weights = {name: round(value, 9) for name, value in context.trace.weights.items()}
    used = session.weight_cache.taught(session.store, session.agent).usefulness
    return {
        "germane": _version(),
        "tokenizer": f"{TOKENIZER} {session.language}",
        "embedder": session.embedder.name if session.embedder is not None else "",
        **({} if session.reranking is None else {"reranker": session.reranking.name}),
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
