"""The operations of the REST server: each verb of the engine, with its address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from starlette.exceptions import HTTPException

from germane import Engine, Ledger, RecallResult, Space, WorkingSet
from germane.encoding import to_json
from germane.errors import InvalidInput
from germane.ledger import (
    Assembly,
    Replay,
)
from germane.lifecycle import Upkeep
from germane.model.context import Context, Item, Trace
from germane.model.learning import Impressions, LearningReport, ObserveResult
from germane.model.memory import Memory
from germane.model.request import RequestState
from germane.plans.layered import PLANS
from germane.ranking import Decay
from germane.servers.shared import Page, known_conversation, page_of
from germane.spaces import SpaceInfo
from germane.stores import Removal

if TYPE_CHECKING:
    from germane.model.memory import Draft, Outcome
    from germane.model.query import Order
    from germane.operations.drafts import Quality
    from germane.operations.feedback import Named
    from germane.operations.request import Sayable
    from germane.operations.working_set_items import Policy
    from germane.ranking.eviction import Shape
    from germane.servers.identity import Caller
    from germane.spaces import Right
    from germane.working_sets import AgeBasis

Shown: TypeAlias = Any
"""The JSON of a context or a recall, as the server answered it."""


# Memories.


def remember_many(
    engine: Engine, drafts: Iterable[Draft | str | Mapping[str, Any]], *, quality: Quality = "mark"
) -> Any:
    """Store many memories, all or none but for those with a key. Raises InvalidInput."""
    return engine.remember_many(drafts, quality=quality)


def list_memories(
    engine: Engine,
    *,
    where: str | None = None,
    order: Order | str = "newest",
    limit: Page = 50,
    after: str | None = None,
) -> dict[str, Any]:
    """The memories that pass a filter, a page at a time; `after` of the answer is that of the next page."""
    found = engine.memories(where, order=order, limit=limit + 1, after=after)
    return {
        **page_of("memories", found, limit, "ref"),
        "total": engine.count(where),
        "notes": () if where is None else engine.filter_warnings(where),
    }


def history(engine: Engine, memory_id: str, *, limit: Page = 100, after: int = 0) -> dict[str, Any]:
    """The versions of a memory, the first version first, whichever is named. Raises NotFound."""
    return page_of("versions", engine.history(memory_id, limit=limit + 1, after=after), limit, "version")


def show_memory(engine: Engine, memory_id: str) -> dict[str, Any]:
    """A memory with its text at each level, and where its life stands. Raises NotFound."""
    memory = engine.get(memory_id)
    return {
        "memory": memory,
        "renditions": memory.renditions,
        "lifecycle": engine.lifecycle_state(memory.ref),
    }


def page_of_events(
    engine: Engine, memory_id: str | None = None, *, after: int = 0, limit: Page = 100
) -> dict[str, Any]:
    """What moved a memory, or all of them: who, when and why, oldest first."""
    return page_of("events", engine.events(memory_id, after=after, limit=limit + 1), limit, "number")


def expand(engine: Engine, memory_id: str) -> dict[str, str]:
    """The whole text of a memory, fenced. Raises NotFound."""
    return {"text": engine.expand(memory_id)}


def purge(engine: Engine, memory_id: str, *, confirm: bool = False) -> dict[str, Any]:
    """Remove a memory for good, with all its versions. Needs `confirm`."""
    return {"id": memory_id, "purged": engine.purge(memory_id, confirm=confirm)}


def trace_back(engine: Engine, memory_id: str) -> dict[str, Any]:
    """Where a memory comes from, and its sources in turn, as values and in lines. Raises NotFound."""
    derivation = engine.trace_back(memory_id)
    return {"derivation": derivation, "text": str(derivation)}


def quarantined(engine: Engine, *, limit: Page = 50, after: str | None = None) -> dict[str, Any]:
    """The memories in quarantine with the rules that marked them, the latest first, a page at a time."""
    found = engine.quarantine().list(limit=limit + 1, after=after)
    page = page_of("memories", found, limit, "at")
    return {**page, "after": found[limit - 1].memory.id if len(found) > limit else None}


def release(engine: Engine, memory_id: str) -> Memory:
    """Release a memory from quarantine, so that results show it. Raises NotFound or InvalidInput."""
    return engine.quarantine().release(memory_id)


def purge_quarantine(
    engine: Engine, *, memory_id: str | None = None, confirm: bool = False
) -> dict[str, int]:
    """Remove one memory in quarantine, or all, for good. Needs `confirm`."""
    return {"purged": engine.quarantine().purge(memory_id, confirm=confirm)}


def supersede(
    engine: Engine, memory_id: str, draft: Draft | Mapping[str, Any], *, expected: int | None = None
) -> Memory:
    """Store a draft as the next version of a memory, as when its source was edited."""
    return engine.supersede(memory_id, draft, expected=expected)


def review(engine: Engine, memory_id: str, outcome: Outcome | str, *, result: str | None = None) -> Memory:
    """Say how a decision or a procedure turned out, and what came of it."""
    return engine.review(memory_id, outcome, result=result)


def record_trigger(engine: Engine, memory_id: str, *, false_positive: bool = False) -> Memory:
    """Say that a constraint was triggered, and whether that was a false alarm."""
    return engine.record_trigger(memory_id, false_positive=false_positive)


# Contexts.


def recall(
    engine: Engine, query: str, *, limit: Page = 10, into: str | None = None, **given: Any
) -> RecallResult:
    """The memories that have most to do with a question; the best enter the working set `into`."""
    return engine.recall(query, limit=limit, into=None if into is None else engine.working_set(into), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """A context as an answer has it: the trace, which is some hundred times as long, only on request."""

    text: str
    tokens: int
    items: tuple[Item, ...]
    trace: Trace | None
    ref: str | None


def _answered(context: Context, *, trace: bool) -> AssembledContext:
    return AssembledContext(
        text=context.text,
        tokens=context.tokens,
        items=tuple(context.items),
        trace=context.trace if trace else None,
        ref=context.ref,
    )


def assemble(
    engine: Engine, query: str = "", *, session: str | None = None, trace: bool = False, **given: Any
) -> AssembledContext:
    """The best context for a query within a budget; `session` is the conversation under way.

    The answer has its trace on request.
    """
    return _answered(_assembled(engine, query, session=session, **given), trace=trace)


def _assembled(engine: Engine, query: str, *, session: str | None, **given: Any) -> Context:
    if session is not None:
        given["conversation"] = known_conversation(engine, {"session": session})
    return engine.assemble(query, **given)


def explain(engine: Engine, query: str = "", *, session: str | None = None, **given: Any) -> dict[str, Any]:
    """The trace of a context, with the parts of each score, and the same as text."""
    made = _assembled(engine, query, session=session, **given)
    return {"tokens": made.tokens, "trace": made.trace, "text": made.explain()}


def refresh(
    engine: Engine, new_input: str, *, ref: str | None = None, trace: bool = False, **given: Any
) -> dict[str, Any]:
    """Whether a recorded context still fits the current message, and the new one where it doesn't."""
    context = None if ref is None else engine.ledger().replay(ref).context
    made = engine.refresh(context, new_input, **given)
    return {
        "needed": made.needed,
        "reason": made.reason,
        "context": _answered(made.context, trace=trace),
        "similarity": made.similarity,
    }


def request(
    engine: Engine,
    *,
    messages: Sayable | None = None,
    session: str | None = None,
    cache: bool = False,
    usage: Mapping[str, Any] | None = None,
    trace: bool = False,
    **given: Any,
) -> dict[str, Any]:
    """A request that fits a model's window, of a conversation or of messages, as its client takes it.

    `previous` is the `state` of the answer before, and `usage` what the provider reported for that request.
    """
    if (messages is None) == (session is None):
        raise InvalidInput("Give either `messages` or `session`, the name of a conversation.")
    if usage is not None:
        if given.get("previous") is None:
            raise InvalidInput("`usage` is that of the `previous` request. Give both.")
        given["calibration"] = RequestState.from_json(given["previous"]).calibrate(usage)
    given_messages: Any = messages if session is None else known_conversation(engine, {"session": session})
    made = engine.request(given_messages, **given)
    return {
        "session": session,
        **to_json(made),
        "arguments": made.arguments(cache=cache),
        "costs": made.costs,
        "stable": made.stable,
        "state": made.state,
        "memory": None if made.memory is None else _answered(made.memory, trace=trace),
    }


def feedback(
    engine: Engine,
    *,
    used: Iterable[Named],
    ref: str | None = None,
    shown: Shown = None,
    ignored: Iterable[Named] | None = None,
) -> Any:
    """Say which memories of a context were used: of a recorded one by `ref`, or of its JSON in `shown`."""
    return engine.feedback(_what(engine, ref, shown)[0], used, ignored=ignored)


def observe(
    engine: Engine, response: str, *, ref: str | None = None, shown: Shown = None, count: bool = True
) -> ObserveResult:
    """Which memories of a context an answer draws on, by the telling words that it has."""
    what, question = _what(engine, ref, shown)
    return engine.observe(what, response, count=count, question=question)


def outcome(
    engine: Engine,
    outcome: Outcome | str,
    *,
    ref: str | None = None,
    shown: Shown = None,
    memories: Iterable[Named] | None = None,
) -> Any:
    """Say how work turned out with what a context showed."""
    return engine.outcome(_what(engine, ref, shown)[0], outcome, memories=memories)


def _what(engine: Engine, ref: str | None, shown: Any) -> tuple[Assembly | Impressions, str | None]:
    if (ref is None) == (shown is None):
        raise InvalidInput("Give either `ref`, of a recorded context, or `shown`, its JSON.")
    return (engine.ledger().show(ref), None) if ref is not None else Impressions.from_json(shown)


def kinds(engine: Engine) -> list[dict[str, Any]]:
    """The kinds that memories may have, with the section where contexts show them."""
    names = ("name", "section", "priority", "lifecycle")
    return [{name: getattr(kind, name) for name in names} for kind in engine.kinds()]


def plans(_: Engine) -> tuple[str, ...]:
    """The names of the plans."""
    return PLANS


def learning(engine: Engine, *, on: bool | None = None) -> LearningReport:
    """Switch learning from feedback on or off, and say what is learned."""
    return engine.set_learning(on)


# The ledger.


def assemblies(
    engine: Engine, *, since: datetime | str | None = None, limit: Page = 20, after: str | None = None
) -> dict[str, Any]:
    """The recorded assemblies, the latest first, without their entries."""
    made = page_of("assemblies", engine.ledger().list(since=since, limit=limit + 1, after=after), limit, "id")
    return {**made, "assemblies": [{**to_json(each), "entries": None} for each in made["assemblies"]]}


def replay(ledger: Ledger, assembly_id: str) -> Replay:
    """Make an assembly again, with the store as it was then, and say whether the bytes are the same."""
    return ledger.replay(assembly_id)


def compare(ledger: Ledger, first: str, second: str) -> dict[str, Any]:
    """Two assemblies made again, what differs, and how many tokens of the first the second begins with."""
    before, after = ledger.replay(first), ledger.replay(second)
    reused = 0 if after.context is None else after.context.reused_prefix(before.context)
    return {
        "difference": ledger.diff(first, second),
        "reused": reused,
        "texts": [
            {
                "id": each.assembly.id,
                "same": each.same,
                "tokens": None if each.context is None else each.context.tokens,
                "text": None if each.context is None else each.context.text,
            }
            for each in (before, after)
        ],
    }


# Working sets.


def working_set(target: Any, path: Mapping[str, str]) -> WorkingSet:
    """The working set of that name."""
    found: WorkingSet = target.working_set(path["name"])
    return found


def figures(working_set: WorkingSet) -> dict[str, Any]:
    """A working set without its entries."""
    items, most = working_set.items(), working_set.max_tokens
    tokens = sum(item.tokens for item in items)
    return {
        "name": working_set.name,
        "owner": working_set.owner,
        "max_tokens": most,
        "tokens": tokens,
        "utilization": round(tokens / most, 6) if most else 0.0,
        "count": len(items),
    }


def assemble_working_set(
    working_set: WorkingSet, query: str = "", *, trace: bool = False, **given: Any
) -> AssembledContext:
    """The context of a working set's entries alone; its trace on request."""
    return _answered(working_set.assemble(query, **given), trace=trace)


def show_working_set(working_set: WorkingSet) -> dict[str, Any]:
    """A working set and its entries, the one touched longest ago first."""
    return {"set": figures(working_set), "items": working_set.items()}


def add_items(
    working_set: WorkingSet,
    memories: Iterable[Named],
    *,
    pinned: bool = False,
    policy: Policy = "importance",
    basis: AgeBasis | str = "entered_at",
) -> dict[str, Any]:
    """Add memories; as few others as needed are evicted."""
    added = working_set.add_many(memories, pinned=pinned, policy=policy, basis=basis)
    return {**to_json(added), "set": figures(working_set)}


def _moving(method: str) -> Any:
    def move(working_set: WorkingSet, memory_id: str) -> dict[str, Any]:
        getattr(working_set, method)(memory_id)
        item = next((each for each in working_set if each.memory.id == memory_id), None)
        return {"id": memory_id, "item": item, "set": figures(working_set)}

    move.__doc__ = getattr(WorkingSet, method).__doc__
    return move


MOVES: Final = {name: _moving(name) for name in ("touch", "remove", "pin", "unpin")}
"""What is done to one entry of a working set, by its name."""


def resize(working_set: WorkingSet, max_tokens: int) -> dict[str, Any]:
    """Set the maximum; entries that exceed it are evicted, the least important first."""
    working_set.resize(max_tokens)
    return {"set": figures(working_set)}


def clear(working_set: WorkingSet, *, keep_pinned: bool = False) -> dict[str, Any]:
    """Remove all entries, or all but the pinned; the memories stay stored."""
    return {"left": working_set.clear(keep_pinned=keep_pinned), "set": figures(working_set)}


def evict(
    working_set: WorkingSet,
    tokens: int,
    *,
    policy: Policy = "importance",
    basis: AgeBasis | str = "entered_at",
) -> dict[str, Any]:
    """Evict as few entries as free so many tokens."""
    return {
        "eviction": working_set.evict(tokens, policy=policy, basis=basis),
        "set": figures(working_set),
    }


def working_set_events(working_set: WorkingSet, *, after: int = 0, limit: Page = 100) -> dict[str, Any]:
    """The events of a set after the one numbered `after`, oldest first."""
    return page_of("events", working_set.changes(after=after, limit=limit + 1), limit, "number")


# Spaces.


def space(engine: Any, path: Mapping[str, str]) -> Space:
    """The space of that name. Raises UnknownSpace."""
    found: Space = engine.space(path["space"])
    return found


def create_space(engine: Engine, name: str, *, admits: Right | str | None = "write") -> SpaceInfo:
    """Make a space, with the agent as its first member."""
    return engine.space(name, create=True, admits=admits).info()


def spaces(engine: Engine, *, limit: Page = 100, after: str | None = None) -> dict[str, Any]:
    """The spaces that the agent is a member of, by name."""
    return page_of("spaces", engine.spaces(limit=limit + 1, after=after), limit, "name")


def space_events(space: Space, *, after: int = 0, limit: Page = 100) -> dict[str, Any]:
    """What happened in a space after the event numbered `after`, oldest first."""
    return page_of("events", space.events(after=after, limit=limit + 1), limit, "number")


def disband(space: Space, *, confirm: bool = False) -> dict[str, str]:
    """End a space and purge every memory in it. Needs `confirm`."""
    space.disband(confirm=confirm)
    return {"disbanded": space.name}


# The store.


def decay(_: Engine, *, shape: str = "hyperbolic", hours: float = 1.0) -> dict[str, Any]:
    """The weight of a working set's memory by its age, up to eight times the age that halves it."""
    curve = Decay(shape=cast("Shape", shape), hours=hours)
    ages = [hours * number / 8 for number in range(65)]
    return {
        "shape": shape,
        "hours": hours,
        "points": [{"age_hours": age, "weight": curve.weight(age)} for age in ages],
    }


def changes(engine: Engine, *, after: int = 0, limit: Page = 100) -> dict[str, Any]:
    """What happened to the memories after the change numbered `after`, in any process."""
    return page_of("changes", engine.changes(after=after, limit=limit + 1), limit, "number")


def maintain(engine: Engine, *, dry_run: bool = False) -> Upkeep:
    """Do what maintenance is due; with `dry_run` nothing is changed."""
    return engine.maintain(dry_run=dry_run)


def users(caller: Caller, *, limit: Page = 100, after: str | None = None) -> dict[str, Any]:
    """The users of whom the agent knows something; for a user's own key or request, at most that user."""
    most = limit + 1 if caller.user is None else None
    found = caller.handle.users(agent=caller.key.agent, limit=most, after=after)
    return page_of("users", [each for each in found if caller.user in (None, each)], limit)


def purge_user(caller: Caller, user: str, *, confirm: bool = False) -> Removal:
    """Remove all that the agent knows of a user. Needs `confirm`. A user's own key finds no other user."""
    if caller.user not in (None, user):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no user {user!r} that belongs to this key.")
    return caller.handle.purge_user(user, agent=caller.key.agent, confirm=confirm)


def me(caller: Caller) -> dict[str, Any]:
    """Whose memory a key opens, and what it may do."""
    key = caller.key
    return {"agent": key.agent, "user": caller.user, "may": key.may, "expires_at": key.expires_at}
