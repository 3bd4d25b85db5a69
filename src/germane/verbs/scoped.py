"""assemble by scopes: what a project knows, what is known of a task, and of the paths it touches.

Level: verbs. It gathers by scope and lets the pipeline make the context, as of every other plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from germane.errors import InvalidInput
from germane.kinds import COMMIT
from germane.model.context import Context
from germane.model.explanation import ESTIMATED
from germane.model.memory import Memory, Status, as_utc
from germane.model.plan import Plan
from germane.model.query import Candidate, Filter, Found, Order, Slice
from germane.model.scope import GLOBAL, Scope
from germane.model.slate import Slate
from germane.model.trace import Note
from germane.model.work import Work
from germane.packing.remembered import RememberedLines
from germane.pipeline import Request
from germane.pipeline import assemble as assemble_context
from germane.places import checked_path
from germane.plans.scoped import ESTIMATE, SCOPED, Scoped, scoped, with_history
from germane.protocols import Scorer, TokenCounter
from germane.tokens import get_counter
from germane.verbs.assemble import lifted, named_pins, said_in
from germane.verbs.checks import checked_count, checked_moment, checked_text, checked_words
from germane.verbs.isolating import failures
from germane.verbs.question import Asked, query_of, understand
from germane.verbs.session import Session
from germane.verbs.together import gather_together

if TYPE_CHECKING:
    from germane.verbs.conversation import Conversation

__all__ = ["Aim", "assemble_scoped", "check_unaimed", "scoped_named"]

_MOST = 1000
"""Memories of a scope that are looked at; of more, the newest and most relevant of each kind are."""
_OF_A_KIND, _RELEVANT = 300, 200
_MOST_PINNED = 1000
_USUAL_BUDGET = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a caller says of the work at hand: a task by its id or in words, the paths, what changed there."""

    task: str | None = None
    paths: Sequence[str] = ()
    changed: Mapping[str, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.task is not None or bool(self.paths) or bool(self.changed)


def scoped_named(plan: object) -> Scoped | None:
    """The settings that a plan's name stands for, or that are given themselves; None for another plan."""
    if isinstance(plan, Scoped):
        return plan
    return next((how for how in (SCOPED, ESTIMATE) if how.name == plan), None)


def check_unaimed(aim: Aim | None, plan: object) -> None:
    """Raise InvalidInput where a task or paths are named to a plan that doesn't go by them."""
    if aim:
        raise InvalidInput(
            f"plan={getattr(plan, 'name', plan)!r} doesn't go by a task, paths or what changed. Pass "
            "plan='scoped', or name scopes and words: assemble(query, scopes=['task:T-42'])."
        )


def assemble_scoped(
    session: Session,
    query: str,
    *,
    how: Scoped,
    aim: Aim,
    budget: int | None,
    where: Filter,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[Session] = (),
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
    asked = replace(understand(session, query or described, where, now=now), where=whole)
    asked, found, notes = _gathered(session, asked, plan, where, spaces)
    remembered = [one.memory for one in found.slices[-1]]
    notes = (
        *notes,
        *lifted(where, plan, found, [memory.id for memory in remembered]),
        *failures(plan, found, session.kinds),
    )
    pinned = (*named_pins((session, *spaces), pins), *remembered)
    found = _with_pinned(replace(found, slices=found.slices[:-1]), pinned)
    plan, found = _with_history(plan, found, how)
    own = _counted_by(session, how, counter)
    weighs = scorer is None and how.relevance and found.by_relevance and not spaces
    request = Request(
        plan=plan,
        question=asked.question,
        query=query_of(asked, ()),
        budget=tokens,
        counter=own,
        kinds=session.kinds,
        now=now,
        pinned=frozenset(memory.ref for memory in pinned),
        scorer=scorer,
        gated=scorer is None and found.by_relevance,
        weights=session.known_weights.of(session.store, session.agent, found.learning) if weighs else None,
        notes=(*asked.notes, *notes),
        left_out=said_in(session, found, conversation),
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
    note = Note(code=ESTIMATED, text=f"{text}engine's counter {counter.name}{over}.")
    return replace(context, trace=replace(trace, notes=(*trace.notes, note)))


def _places(how: Scoped, aim: Aim, scopes: Sequence[Scope]) -> tuple[Mapping[str, tuple[Scope, ...]], str]:
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
    session: Session, asked: Asked, plan: Plan, where: Filter, spaces: Sequence[Session]
) -> tuple[Asked, Found, tuple[Note, ...]]:
    """What each section has by its filter, the pinned last; what is too much is looked at by kind."""
    wanted = [section.where for section in plan.sections if section.where is not None]
    # A section's filter has the section's places where the caller's may name others.
    also = replace(where, scopes=()) if where.applies_to else None
    pinned = replace(where.whenever, scopes=(), pinned=True, statuses=(Status.ACTIVE,))
    slices = [Slice(order=Order.NEWEST, where=each, also=also, limit=_MOST) for each in wanted]
    slices.append(Slice(order=Order.IMPORTANT, where=asked.where.whenever, also=pinned, limit=_MOST_PINNED))
    asked_all, found = gather_together(session, asked, tuple(slices), spaces)
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
    _, further = gather_together(session, asked, tuple(more), spaces)
    for error in further.failed.values():
        raise error
    parted = list(found.slices)
    for place, number in enumerate(cut):
        own = further.slices[place * len(kinds) : (place + 1) * len(kinds)]
        relevant = further.slices[len(cut) * len(kinds) + place]
        parted[number] = _united(parted[number], *own, relevant)
    named = ", ".join(plan.sections[number].name for number in cut)
    note = Note(
        code="gathered_in_part",
        text=f"There are more than {_MOST:,} memories in scope ({named}): of these the newest {_OF_A_KIND} "
        f"of each kind were looked at, and the {_RELEVANT} that have most to do with the task.",
    )
    return asked_all, replace(found, slices=tuple(parted)), (note,)


def _united(*parts: Sequence[Candidate]) -> tuple[Candidate, ...]:
    by_id = {candidate.memory.ref: candidate for part in parts for candidate in part}
    return tuple(by_id[memory_id] for memory_id in sorted(by_id))


def _with_pinned(found: Found, pinned: Sequence[Memory]) -> Found:
    """What was found, and in the last section what is pinned and stands in none."""
    known = {one.memory.ref for part in found.slices for one in part} if pinned else set()
    guests = {memory.ref: Candidate(memory=memory) for memory in pinned if memory.ref not in known}
    if not guests:
        return found
    return replace(found, slices=(*found.slices[:-1], (*found.slices[-1], *guests.values())))


def _with_history(plan: Plan, found: Found, how: Scoped) -> tuple[Plan, Found]:
    """The plan and what was found for it, with the commits in a section of their own where there are any."""
    parts = [Slate.of(part) for part in found.slices]
    commits: dict[str, Candidate] = {}
    others: list[Sequence[Candidate]] = []
    for part in parts:
        places = [place for place, memory in enumerate(part.memories) if memory.kind == COMMIT]
        commits |= {part.memories[place].id: part[place] for place in places}
        out = frozenset(places)
        others.append(part.at([n for n in range(len(part)) if n not in out]) if out else part)
    if not commits:
        return plan, found
    history = tuple(commits[memory_id] for memory_id in sorted(commits))
    return with_history(plan, how), replace(found, slices=(*others, history))


def _work(how: Scoped, aim: Aim, sessions: Sequence[Session], now: datetime) -> Work:
    if how.estimate:
        return Work()
    outcomes: dict[str, float] = {}
    for session in sessions:
        outcomes |= session.known_outcomes.of(session.store, session.agent, now=now)
    changed = {
        checked_path(path): checked_moment(at, name=f"changed[{path!r}]") for path, at in aim.changed.items()
    }
    paths = tuple(dict.fromkeys(map(checked_path, aim.paths)))
    return Work(paths=paths, changed=changed, leanings=outcomes)


def _counted_by(session: Session, how: Scoped, counter: TokenCounter) -> TokenCounter:
    """The counter that was asked for; where nobody asked for one, the estimate is in its own unit."""
    estimated = how.estimate and counter is session.counter
    return get_counter("bytes_div_4_floor") if estimated else counter
