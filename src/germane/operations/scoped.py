"""assemble by scopes, the choice of the plan's way to gather, and the record of each assembly.

It gathers by scope and lets the pipeline make the context, as of every other plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from germane.errors import InvalidInput
from germane.kinds import COMMIT
from germane.ledger import Assembly, LedgerEntry, text_hash
from germane.model.context import ESTIMATED, Context, TraceNote
from germane.model.memory import GLOBAL, Scope, Status, as_utc, split_id
from germane.model.plan import Plan, TaskContext
from germane.model.query import CandidateTable, Filter, Order, SearchResult, Slice
from germane.model.text import space_of
from germane.operations.assemble import assemble as assemble_by_question
from germane.operations.assemble import exclusions_of, lifted, named_pins, with_pinned
from germane.operations.context import AgentContext, failures
from germane.operations.feedback import shown_of
from germane.operations.inputs import checked_count, checked_moment, checked_text, checked_words
from germane.operations.search import ParsedQuery, gather_together, query_of, understand
from germane.packing.lines import RememberedLines
from germane.pipeline import AssembleRequest
from germane.pipeline import assemble as assemble_context
from germane.plans.scoped import ESTIMATE, SCOPED, ScopedPlan, scoped, with_history
from germane.protocols import Scorer, TokenCounter
from germane.retrieval.tokenizer import TOKENIZER
from germane.scopes import checked_path
from germane.stores.substores import LEDGER
from germane.tokens import get_counter

if TYPE_CHECKING:
    from germane.operations.conversation import Conversation

__all__ = [
    "Recorder",
    "TaskInput",
    "assemble",
    "assemble_recorded",
    "assemble_scoped",
    "assembly_of",
    "check_unaimed",
    "scoped_named",
]

_MOST = 1000
"""Memories of a scope that are looked at; of more, the newest and most relevant of each kind are."""
_OF_A_KIND, _RELEVANT = 300, 200
_MOST_PINNED = 1000
_USUAL_BUDGET = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInput:
    """What a caller says of the work at hand: a task by its id or in words, the paths, what changed there."""

    task: str | None = None
    paths: Sequence[str] = ()
    changed: Mapping[str, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.task is not None or bool(self.paths) or bool(self.changed)


def scoped_named(plan: object) -> ScopedPlan | None:
    """The settings that a plan's name stands for, or that are given themselves; None for another plan."""
    if isinstance(plan, ScopedPlan):
        return plan
    return next((how for how in (SCOPED, ESTIMATE) if how.name == plan), None)


def check_unaimed(aim: TaskInput | None, plan: object) -> None:
    """Raise InvalidInput where a task or paths are named to a plan that doesn't go by them."""
    if aim:
        raise InvalidInput(
            f"plan={getattr(plan, 'name', plan)!r} doesn't go by a task, paths or what changed. Pass "
            "plan='scoped', or name scopes and words: assemble(query, scopes=['task:T-42'])."
        )


def assemble_scoped(
    session: AgentContext,
    query: str,
    *,
    how: ScopedPlan,
    aim: TaskInput,
    budget: int | None,
    where: Filter,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[AgentContext] = (),
    conversation: str | Conversation | None = None,
) -> Context:
    """What is known for the work at hand within `budget` tokens, 8,000 unless given.

    The scopes of `where` say where it is, besides task and paths. Raises what `engine.assemble` raises.
    """
    tokens = checked_count(_USUAL_BUDGET if budget is None else budget, name="budget")
    now = as_utc(session.clock(), name="clock")
    places, described = _places(how, aim, where.scopes)
    plan = scoped(how, session.kinds, places, where=where)
    everywhere = tuple(scope for scopes in places.values() for scope in scopes)
    whole = replace(where, scopes=(), applies_to=everywhere)
    parsed = replace(understand(session, query or described, where, now=now), where=whole)
    parsed, found, notes = _gathered(session, parsed, plan, where, spaces)
    remembered = [one.memory for one in found.slices[-1]]
    notes = (
        *notes,
        *lifted(where, plan, found, [memory.id for memory in remembered]),
        *failures(plan, found, session.kinds),
    )
    pinned = (*named_pins((session, *spaces), pins), *remembered)
    found = with_pinned(plan, replace(found, slices=found.slices[:-1]), pinned)
    plan, found = _with_history(plan, found, how)
    own = _counted_by(session, how, counter)
    weighs = scorer is None and how.relevance and found.by_relevance and not spaces
    request = AssembleRequest(
        plan=plan,
        question=parsed.question,
        query=query_of(parsed, ()),
        budget=tokens,
        counter=own,
        kinds=session.kinds,
        now=now,
        pinned=frozenset(memory.ref for memory in pinned),
        scorer=scorer,
        gated=scorer is None and found.by_relevance,
        weights=session.weight_cache.of(session.store, session.agent, found.learning) if weighs else None,
        notes=(*parsed.notes, *notes),
        left_out=exclusions_of(session, found, conversation),
        work=_work(how, aim, (session, *spaces), now),
        lines=session.lines if (own is session.counter or how.estimate) and not spaces else RememberedLines(),
    )
    context = assemble_context(request, found)
    context = replace(context, trace=replace(context.trace, where=where))
    return _estimated(context, session.counter) if how.estimate else context


def _estimated(context: Context, counter: TokenCounter) -> Context:
    """The context with a note of what its whole text counts by the engine's own counter."""
    tokens, trace = counter.count(context.text), context.trace
    over = f", {tokens - trace.budget:,} more than the budget" if tokens > trace.budget else ""
    text = f"Token counts here are estimates by {trace.counter}. The whole text has {tokens:,} tokens by the "
    note = TraceNote(code=ESTIMATED, text=f"{text}engine's counter {counter.name}{over}.")
    return replace(context, trace=replace(trace, notes=(*trace.notes, note)))


def _places(
    how: ScopedPlan, aim: TaskInput, scopes: Sequence[Scope]
) -> tuple[Mapping[str, tuple[Scope, ...]], str]:
    """The scopes of the work by their names, and what the task says in words."""
    places: dict[str, tuple[Scope, ...]] = {"global": (GLOBAL,)} if "global" in how.shares else {}
    task = "" if aim.task is None else checked_text(aim.task, name="task").strip()
    described = task if any(map(str.isspace, task)) else ""
    if task and not described:
        places["task"] = (Scope.parse(task if task.startswith("task:") else f"task:{task}"),)
    paths = dict.fromkeys(map(checked_path, checked_words(aim.paths, name="paths")))
    if paths:
        places["path"] = tuple(Scope(name="path", value=path) for path in paths)
    for scope in scopes:
        if scope.name == "path":
            scope = Scope(name="path", value=checked_path(scope.value))  # noqa: PLW2901 - The same, checked.
        places[scope.name] = tuple(dict.fromkeys((*places.get(scope.name, ()), scope)))
    if not places:
        raise InvalidInput(
            f"Plan {how.name!r} splits its budget over {', '.join(how.shares)}, and none of them is named. "
            "Pass task=..., paths=[...], or scopes=['NAME:VALUE']."
        )
    return places, described


def _gathered(
    session: AgentContext, parsed: ParsedQuery, plan: Plan, where: Filter, spaces: Sequence[AgentContext]
) -> tuple[ParsedQuery, SearchResult, tuple[TraceNote, ...]]:
    """What each section has by its filter, the pinned last; what is too much is looked at by kind."""
    wanted = [section.where for section in plan.sections if section.where is not None]
    # A section's filter has the section's places where the caller's may name others.
    also = replace(where, scopes=()) if where.applies_to else None
    pinned = replace(where.whenever, scopes=(), pinned=True, statuses=(Status.ACTIVE,))
    slices = [Slice(order=Order.NEWEST, where=each, also=also, limit=_MOST) for each in wanted]
    slices.append(Slice(order=Order.IMPORTANT, where=parsed.where.whenever, also=pinned, limit=_MOST_PINNED))
    asked_all, found = gather_together(session, parsed, tuple(slices), spaces)
    cut = [number for number, each in enumerate(found.slices[:-1]) if len(each) >= _MOST]
    if not cut:
        return asked_all, found, ()
    kinds = [kind.name for kind in session.kinds]
    others = tuple(kind for kind in kinds if kind != COMMIT)
    # However many commits there are, as much is looked at of other kinds as without them.
    crowded = {number for number in cut if any(one.memory.kind == COMMIT for one in found.slices[number])}
    more = [
        *(
            Slice(
                kinds=(kind,),
                order=Order.NEWEST,
                where=wanted[number],
                also=also,
                limit=_MOST if number in crowded and kind != COMMIT else _OF_A_KIND,
            )
            for number in cut
            for kind in kinds
        ),
        *(
            Slice(kinds=others if number in crowded else (), where=wanted[number], also=also, limit=_RELEVANT)
            for number in cut
        ),
    ]
    _, further = gather_together(session, parsed, tuple(more), spaces)
    for error in further.failed.values():
        raise error
    parted = list(found.slices)
    for place, number in enumerate(cut):
        own = further.slices[place * len(kinds) : (place + 1) * len(kinds)]
        relevant = further.slices[len(cut) * len(kinds) + place]
        parted[number] = CandidateTable.united((parted[number], *own, relevant))
    named = ", ".join(plan.sections[number].name for number in cut)
    note = TraceNote(
        code="gathered_in_part",
        text=f"There are more than {_MOST:,} memories in scope ({named}): of these the newest {_OF_A_KIND} "
        f"of each kind were looked at, and the {_RELEVANT} that have most to do with the task.",
    )
    return asked_all, replace(found, slices=tuple(parted)), (note,)


def _with_history(plan: Plan, found: SearchResult, how: ScopedPlan) -> tuple[Plan, SearchResult]:
    """The plan and what was found for it, with the commits in a section of their own where there are any."""
    tables = [CandidateTable.of(part) for part in found.slices]
    are_commits = [[memory.kind == COMMIT for memory in table.memories] for table in tables]
    if not any(map(any, are_commits)):
        return plan, found

    def split(*, commits: bool) -> list[CandidateTable]:
        return [
            table.at([place for place, is_commit in enumerate(each) if is_commit is commits])
            for table, each in zip(tables, are_commits, strict=True)
        ]

    history = CandidateTable.united(split(commits=True))
    return with_history(plan, how), replace(found, slices=(*split(commits=False), history))


def _work(how: ScopedPlan, aim: TaskInput, sessions: Sequence[AgentContext], now: datetime) -> TaskContext:
    if how.estimate:
        return TaskContext()
    outcomes: dict[str, float] = {}
    for session in sessions:
        outcomes |= session.outcome_cache.of(session.store, session.agent, now=now)
    changed = {
        checked_path(path): checked_moment(at, name=f"changed[{path!r}]") for path, at in aim.changed.items()
    }
    paths = tuple(dict.fromkeys(map(checked_path, aim.paths)))
    return TaskContext(paths=paths, changed=changed, leanings=outcomes)


def _counted_by(session: AgentContext, how: ScopedPlan, counter: TokenCounter) -> TokenCounter:
    """The counter that was asked for; where nobody asked for one, the estimate is in its own unit."""
    estimated = how.estimate and counter is session.counter
    return get_counter("bytes_div_4_floor") if estimated else counter


# assemble: hand each plan to the verb that gathers for it.


def assemble(
    session: AgentContext,
    query: str,
    *,
    plan: str | Plan | ScopedPlan,
    task: str | None = None,
    paths: Sequence[str] | None = None,
    changed: Mapping[str, datetime] | None = None,
    budget: Any,
    where: Filter,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[AgentContext] = (),
    **framing: Any,
) -> Context:
    """The best context by a plan, within `budget` tokens by `counter`.

    `framing` is what plans take that go by a question; of it a scoped plan has only the `conversation`.
    Raises InvalidInput for a task or paths where the plan doesn't go by them, and what its verb raises.
    """
    aim = TaskInput(task=task, paths=paths or (), changed=changed or {})
    shared: dict[str, Any] = {"where": where, "pins": pins, "scorer": scorer, "spaces": spaces}
    how = scoped_named(plan)
    if how is not None:
        said = framing.get("conversation")
        return assemble_scoped(
            session, query, how=how, aim=aim, budget=budget, counter=counter, conversation=said, **shared
        )
    check_unaimed(aim, plan)
    assert not isinstance(plan, ScopedPlan)  # noqa: S101 - Such a plan names itself; this tells the checker.
    return assemble_by_question(
        session, query, plan=plan, budget=budget, counter=counter, **shared, **framing
    )


# assemble, and keep a record of it: what was asked, by what it was made, and what came of it.

_TRIES = 3
"""How often to assemble anew where somebody writes meanwhile, before the record says so instead."""

_DIGITS = 16
_STORED = ("task", "paths", "changed", "guidance", "gate", "dates", "sources", "ids")
"""Options that can be written down beside the plan, the frame and the budget."""


def assemble_recorded(session: AgentContext, query: str, *, cold: bool = False, **parsed: Any) -> Context:
    """What `assemble` gives for the same arguments, and a record of it in the ledger.

    The record names the point to which the store had come. Where somebody writes while it is made, it is
    made again, so that the point is that of the very memories. Raises InvalidInput for a store that keeps
    no ledger, and what `assemble` raises; then nothing is recorded.
    """
    store = LEDGER.required(session.store)
    sessions = (session, *parsed.get("spaces", ()))
    points, settled = _points(sessions), False
    context, seconds, tries = None, 0.0, 0
    while context is None or (not settled and tries < _TRIES):
        start = session.timer()
        context = assemble(session, query, **parsed)
        seconds, tries = session.timer() - start, tries + 1
        before, points = points, _points(sessions)
        settled = before == points
    made = assembly_of(
        session, context, **parsed, points=points, settled=settled, cold=cold, seconds=round(seconds, 6)
    )
    store.record(session.agent, made)
    return context


class Recorder:
    """Records the latest context that something larger was made of, once it is known that it stands in it.

    The record goes into the ledger of the session, whichever spaces the context was gathered from besides.
    """

    def __init__(self, session: AgentContext) -> None:
        """Raises InvalidInput for a store that keeps no ledger."""
        self._session = session
        self._store = LEDGER.required(session.store)
        self._latest: tuple[Context, dict[str, Any]] | None = None

    def watched(self, make: Callable[..., Context], *, options: Mapping[str, Any], **parsed: Any) -> Context:
        """The context that `make(session, **asked)` gives, of which is noted what a record needs."""
        sessions = (self._session, *parsed.get("spaces", ()))
        before, start = _points(sessions), self._session.timer()
        context = make(self._session, **parsed)
        seconds = round(self._session.timer() - start, 6)
        settled = before == _points(sessions)
        noted = {"options": options, "points": before, "settled": settled, "seconds": seconds}
        self._latest = context, {**parsed, **noted}
        return context

    def record(self, context: Context | None, **more: Any) -> None:
        """Record a context if it is the latest that was watched."""
        if self._latest is not None and self._latest[0] is context:
            made = assembly_of(self._session, context, **{**self._latest[1], **more})
            self._store.record(self._session.agent, made)


def assembly_of(
    session: AgentContext,
    context: Context,
    *,
    where: Filter,
    counter: TokenCounter,
    points: Mapping[str, Mapping[str, int]],
    plan: object = "layered",
    frame: object = "",
    budget: int | None = None,
    pins: Iterable[str] = (),
    spaces: Sequence[AgentContext] = (),
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
    own |= {name: given is not None for name, given in more.items() if name not in _STORED}
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
        options={**(options or {}), **_recorded_inputs(more)},
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
        empty_reason=trace.empty_reason,
        settled=settled,
        cold=cold,
        seconds=seconds,
    )


def _recorded_inputs(more: Mapping[str, object]) -> dict[str, object]:
    return {name: more[name] for name in _STORED if more.get(name) is not None}


def _points(sessions: Sequence[AgentContext]) -> dict[str, Mapping[str, int]]:
    return {one.agent: LEDGER.required(one.store).point(one.agent) for one in sessions}


def _entries(session: AgentContext, context: Context, pinned: frozenset[str]) -> Iterable[LedgerEntry]:
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


def _makers(session: AgentContext, context: Context, plan: object) -> dict[str, str]:
    """What had a part in a context besides the memories, each by what tells it from another of its sort."""
    weights = {name: round(value, 9) for name, value in context.trace.weights.items()}
    used = session.weight_cache.taught(session.store, session.agent).usefulness
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
