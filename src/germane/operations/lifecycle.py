"""confirm, contradict, outcome, retire and events; and maintain, which ages, settles and merges what
is due.

The rules stand in `germane.lifecycle`, and the store asks them in its transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, groupby
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from germane.errors import InvalidInput, NotFound, StaleRevision, shown
from germane.lifecycle import (
    NEARLY_IDENTICAL,
    Upkeep,
    UpkeepStep,
    UpkeepTask,
    most_trust,
    next_state,
    stage_of,
)
from germane.model.change import ApplySignal, Merge, Purge, Reword
from germane.model.memory import (
    Cause,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Outcome,
    Stage,
    Status,
    Trust,
    Vector,
)
from germane.model.query import Filter, Order
from germane.model.validation import (
    as_utc,
    checked_flag,
    checked_text,
    checked_word,
    checked_words,
)
from germane.operations.context import AgentContext
from germane.operations.drafts import renew_renditions
from germane.operations.expiry import whole
from germane.operations.inputs import checked_count, embed_texts, vectors_to_store
from germane.operations.read import (
    current,
    get_many,
    head_of,
    marks,
    pages,
    side_of,
    store_version,
    stored_pages,
    whole_id,
    with_mark,
)
from germane.ranking.similarity import could_be_same_among, normalised
from germane.renditions import OUTCOMES
from germane.stores.location import LIFECYCLE, MAINTENANCE

Voucher: TypeAlias = Literal["user", "operator"]
"""Who can vouch for a memory."""
VOUCHERS: Final = get_args(Voucher)

_TRIES: Final = 20
"""Somebody else may revise a constraint while its next version is made; nobody does so twenty times in
a row.
"""


def confirm(
    session: AgentContext, memory_id: str, *, core: bool = False, vouched_by: Voucher | None = None
) -> Memory:
    """Count that a fact was met again, with `core` make it a core one by hand, or let somebody vouch for it.

    Raises NotFound, or InvalidInput for what can't be confirmed.
    """
    memory = _in_use(session, memory_id)
    if vouched_by is not None:
        memory = _vouched(session, memory, vouched_by)
        if session.kinds.of(memory).lifecycle != "fact":
            return memory
    sign = LifecycleSignal.PROMOTE if checked_flag(core, name="core") else LifecycleSignal.CONFIRM
    return move(session, memory, sign)


def _vouched(session: AgentContext, memory: Memory, by: Voucher) -> Memory:
    """The memory with the trust of its owner, or a peer's in a space, in a version that notes who vouches
    for it, when, and since which trust.
    """
    if by not in VOUCHERS:
        raise InvalidInput(f"vouched_by={shown(by)} can't vouch for a memory: take {' or '.join(VOUCHERS)}.")
    now = as_utc(session.clock(), name="clock")
    note = {"by": by, "at": now.isoformat(), "from": memory.trust.value}
    new = memory.evolve(
        trust=most_trust(session.agent),
        metadata=MappingProxyType({**memory.metadata, "vouched": note}),
        version=memory.version + 1,
        updated_at=now,
    )
    vector = vectors_to_store(session.embedder, [new.content])[0]
    return store_version(session, memory, new, vector)


def contradict(session: AgentContext, memory_id: str, *, by: str | None = None) -> Memory:
    """Lower the confidence of a fact by 0.2, since something speaks against it: the memory `by`, if given.

    Raises NotFound, or InvalidInput for what can't be contradicted.
    """
    other = None if by is None else current(session, by)
    memory = _in_use(session, memory_id)
    if other is not None and other.id == memory.id:
        raise InvalidInput(f"Memory {memory_id!r} can't contradict itself. Name another one in by.")
    named = None if other is None else other.version_id
    return move(session, memory, LifecycleSignal.CONTRADICT, other=named)


def outcome_of(
    session: AgentContext, memory_id: str, outcome: Outcome | str, *, result: str | None = None
) -> Memory:
    """Say how a decision turned out, or whether a procedure worked this time.

    A decision gets a next version, with the outcome and `result` in it. A procedure counts a success or
    a failure. Raises NotFound, or InvalidInput for other kinds and for what a procedure can't count.
    """
    word = checked_word(Outcome, outcome, name="outcome")
    memory = _in_use(session, memory_id)
    lifecycle = session.kinds.of(memory).lifecycle
    if lifecycle == "decision":
        return _reviewed(session, memory, word, result)
    if lifecycle != "procedure":
        raise InvalidInput(
            f"Memory {memory_id!r} is of kind {memory.kind!r}, which has no outcomes. "
            "Decisions and procedures have; others can be revised with outcome=...."
        )
    if word not in (Outcome.SUCCESS, Outcome.FAILURE) or result is not None:
        raise InvalidInput(
            f"A procedure counts successes and failures, and can't keep outcome={word.value!r} with "
            f"result={result!r}. Pass 'success' or 'failure' and no result."
        )
    sign = LifecycleSignal.SUCCEED if word is Outcome.SUCCESS else LifecycleSignal.FAIL
    return move(session, memory, sign, cause=Cause.OUTCOME)


def record_trigger(session: AgentContext, memory_id: str, *, false_positive: bool = False) -> Memory:
    """Count that a constraint was triggered, and whether that was a false alarm.

    The third trigger that was none lets a constraint that warns block, as its next version; one whose
    triggers were false alarms for more than a half, of five or more, is retired. Raises NotFound, or
    InvalidInput for what is no constraint in use.
    """
    sign = (
        LifecycleSignal.FALSE_ALARM
        if checked_flag(false_positive, name="false_positive")
        else LifecycleSignal.TRIGGER
    )
    for left in reversed(range(_TRIES)):
        memory = _in_use(session, memory_id)
        try:
            return move(session, memory, sign)
        except StaleRevision:
            if not left:
                raise
    raise AssertionError("The last try returns or raises.")


def retire(session: AgentContext, memory_id: str) -> Memory:
    """Take a fact, a procedure or a constraint out of use, or archive an episode; `restore` undoes it.

    Raises NotFound, or InvalidInput for kinds that can't be retired, such as decisions.
    """
    return move(session, _in_use(session, memory_id), LifecycleSignal.RETIRE)


def restored(session: AgentContext, memory: Memory) -> Memory | None:
    """The memory in use again; None where it was not its life that took it out of use."""
    lifecycle = session.kinds.of(memory).lifecycle
    out = str(stage_of(lifecycle, memory)) in ("inactive", "retired", "archived")
    if not out or LIFECYCLE.of(session.store) is None:
        return None
    return move(session, memory, LifecycleSignal.RESTORE)


def lifecycle_state(session: AgentContext, memory_id: str) -> LifecycleState:
    """The stage of a memory now, whichever version is named, and what is counted. Raises NotFound."""
    name = whole_id(session, memory_id)
    session = side_of(session, name)
    return lifecycle_states(session, [current(session, name).id])[0]


def lifecycle_states(session: AgentContext, ids: Sequence[str]) -> tuple[LifecycleState, ...]:
    """The stages of memories, or of versions `id@n`, and their counters, in the order of `ids`.

    Raises NotFound.
    """
    names = [whole_id(session, name) for name in checked_words(ids, name="ids")]
    if session.base is not None:
        alone = replace(session, base=None)
        sides = (alone if side_of(session, name) is session else session.base for name in names)
        return tuple(lifecycle_states(side, [name])[0] for side, name in zip(sides, names, strict=True))
    memories = session.store.get(session.agent, names)
    counted = LIFECYCLE.required(session.store).states(session.agent, names)
    return tuple(
        _state_of(session, memory_id, memory, stored)
        for memory_id, memory, stored in zip(names, memories, counted, strict=True)
    )


def _state_of(
    session: AgentContext, memory_id: str, memory: Memory | None, stored: LifecycleState | None
) -> LifecycleState:
    if memory is None:
        raise NotFound(memory_id, session.agent)
    stage = stage_of(session.kinds.of(memory).lifecycle, memory)
    return replace(stored or LifecycleState(stage=stage), stage=stage)


def events(
    session: AgentContext, memory_id: str | None = None, *, after: int = 0, limit: int | None = None
) -> tuple[LifecycleEvent, ...]:
    """What happened to a memory in all its versions, or to every memory, oldest first. Raises NotFound."""
    checked_count(after, name="after")
    if limit is not None:
        checked_count(limit, name="limit")
    if memory_id is not None:
        checked_text(memory_id, name="memory_id")
    return LIFECYCLE.required(session.store).events(session.agent, memory_id, since=after, limit=limit)


def move(
    session: AgentContext,
    memory: Memory,
    sign: LifecycleSignal,
    *,
    cause: Cause = Cause.REQUESTED,
    other: str | None = None,
) -> Memory:
    """Let a sign take effect on a memory; it comes back as it is stored then.

    Raises InvalidInput where its lifecycle has no such move, and StaleRevision where it escalates and
    somebody else has revised it.
    """
    LIFECYCLE.required(session.store)
    change = _change(session, memory, sign, cause=cause, other=other)
    after = session.store.apply(session.agent, [change])[0].memory
    if after is None:  # A sign always leaves a memory; a store that breaks this is broken.
        raise AssertionError("The store's answer to a sign has no memory.")
    return after


def _change(
    session: AgentContext,
    memory: Memory,
    sign: LifecycleSignal,
    *,
    cause: Cause,
    other: str | None = None,
) -> ApplySignal:
    """The change of the store that lets a sign take effect on a memory."""
    now = as_utc(session.clock(), name="clock")
    escalated = (
        _blocking(session, memory) if sign in (LifecycleSignal.TRIGGER, LifecycleSignal.SETTLE) else None
    )
    vector = None
    if escalated is not None:
        escalated = escalated.evolve(updated_at=now)
        vector = vectors_to_store(session.embedder, [memory.content])[0]
    return ApplySignal(
        memory_id=memory.id,
        lifecycle=session.kinds.of(memory).lifecycle,
        sign=sign,
        cause=cause,
        at=now,
        other=other,
        escalated=escalated,
        vector=vector,
    )


def _reviewed(session: AgentContext, memory: Memory, outcome: Outcome, result: str | None) -> Memory:
    now = as_utc(session.clock(), name="clock")
    metadata = dict(memory.metadata)
    if result is not None:
        metadata["result"] = checked_text(result, name="result")
    if outcome is memory.outcome and metadata == memory.metadata:
        return memory
    if OUTCOMES in metadata and outcome is not memory.outcome:
        metadata[OUTCOMES] = [*metadata[OUTCOMES], str(outcome)]
    new = renew_renditions(
        session,
        memory.evolve(
            version=memory.version + 1,
            updated_at=now,
            outcome=outcome,
            metadata=MappingProxyType(metadata),
        ),
    )
    return store_version(session, memory, new, vectors_to_store(session.embedder, [new.content])[0])


def _blocking(session: AgentContext, memory: Memory) -> Memory | None:
    """The next version of a constraint that warns, blocking; None for anything else."""
    is_constraint = session.kinds.of(memory).lifecycle == "constraint"
    if not is_constraint or memory.metadata.get("action", "warn") in ("block", "absolute"):
        return None
    return renew_renditions(
        session,
        memory.evolve(
            version=memory.version + 1,
            metadata=MappingProxyType({**memory.metadata, "action": "block"}),
        ),
    )


def _in_use(session: AgentContext, memory_id: str) -> Memory:
    """The current version of a memory that is in use, or of the one that it was merged into."""
    memory = head_of(session, get_many(session, [whole_id(session, memory_id)])[0])
    if memory.status is Status.FORGOTTEN:
        raise InvalidInput(
            f"Memory {memory.id!r} is {memory.stage or memory.status} and out of use. Restore it first."
        )
    return memory


# maintain: purge what has expired, and age, settle, merge and mark what is due, a transaction for each step.
#
# What is due follows from what is stored, so an upkeep that was interrupted anywhere goes on where it
# stopped, by being called again.

UpkeepCallback: TypeAlias = Callable[[int, int, UpkeepStep | None], None]
"""Called after each step with the number done, the total and the step; at the start with 0 and None."""

_BLOCK: Final = 1024
_TOGETHER: Final = 100
"""Memories that are moved in one transaction, which takes some 20 ms."""
_MOVABLE: Final = (Status.ACTIVE, Status.ARCHIVED)
_SIGNS: Final = {
    "episode": LifecycleSignal.AGE,
    "fact": LifecycleSignal.SETTLE,
    "procedure": LifecycleSignal.SETTLE,
    "constraint": LifecycleSignal.SETTLE,
}
_TRUST: Final = {trust: place for place, trust in enumerate(Trust)}


def maintain(
    session: AgentContext, *, dry_run: bool = False, progress: UpkeepCallback | None = None
) -> Upkeep:
    """Do what is due, or with `dry_run` only say what it is.

    Raises InvalidInput for a store that keeps no lives, and EmbeddingFailed before anything is done.
    """
    checked_flag(dry_run, name="dry_run")
    LIFECYCLE.required(session.store)
    now = as_utc(session.clock(), name="clock")
    steps = (*_expired(session, now), *_moves(session, now), *_merges(session), *_marks(session))
    done = 0
    if progress is not None:
        progress(0, len(steps), None)
    for number, step, is_done in () if dry_run else _done(session, steps, now):
        done += is_done
        if progress is not None:
            progress(number, len(steps), step)
    # Only stores in tables have answers to requests, and blocks of memories.
    tidy = getattr(MAINTENANCE.of(session.store), "tidy", None)
    if tidy is not None and not dry_run:
        tidy(session.agent, now)
    return Upkeep(steps=steps, done=done, dry_run=dry_run, flagged=tuple(_flagged(session)))


def _done(
    session: AgentContext, steps: Sequence[UpkeepStep], now: datetime
) -> Iterator[tuple[int, UpkeepStep, bool]]:
    """Do the steps; each comes with its number, from 1, once it is done or is found not to be due."""
    number = 0
    for task, group in groupby(steps, lambda step: step.task):
        rest = list(group)
        while rest:
            # Others write between two transactions.
            some, rest = rest[:_TOGETHER], rest[_TOGETHER:]
            moved = task in (UpkeepTask.AGE, UpkeepTask.SETTLE) and _move_all(session, some)
            for place, step in enumerate(some, 1):
                number += 1
                last = not rest and place == len(some)
                yield number, step, moved or _do(session, step, now, last=last)


def _move_all(session: AgentContext, steps: Sequence[UpkeepStep]) -> bool:
    """Let memories age or settle in one transaction; False, and nothing is done, where one isn't due."""
    memories = session.store.get(session.agent, [step.memory_id for step in steps])
    changes = []
    for memory in memories:
        if memory is None or memory.status not in _MOVABLE:
            return False
        sign = _SIGNS[session.kinds.of(memory).lifecycle]
        changes.append(_change(session, memory, sign, cause=Cause.UPKEEP))
    try:
        session.store.apply(session.agent, changes)
    except (NotFound, StaleRevision, InvalidInput):
        return False
    return True


def _do(session: AgentContext, step: UpkeepStep, now: datetime, *, last: bool) -> bool:
    """Do a step if it is still due, the `last` of its task or another one; whether it was."""
    if step.task is UpkeepTask.EXPIRE:
        return _purge_expired(session, step, now, erases=last)
    memory = session.store.get(session.agent, [step.memory_id])[0]
    if memory is None or memory.status not in _MOVABLE:
        return False
    lifecycle = session.kinds.of(memory).lifecycle
    try:
        if step.task is UpkeepTask.MERGE and step.other is not None:
            into = session.store.get(session.agent, [step.other])[0]
            if into is None or into.status is not Status.ACTIVE:
                return False
            merge = Merge(memory_id=memory.id, into=step.other, lifecycle=lifecycle, at=now)
            session.store.apply(session.agent, [merge])
        elif step.task is UpkeepTask.MARK and step.other is not None:
            session.store.apply(session.agent, [Reword(memory=with_mark(session, memory, step.other))])
        else:
            move(session, memory, _SIGNS[lifecycle], cause=Cause.UPKEEP)
    except (NotFound, StaleRevision, InvalidInput):
        # Somebody else was here first. What is due after that, the next upkeep finds.
        return False
    return True


def _expired(session: AgentContext, now: datetime) -> Iterator[UpkeepStep]:
    """The memories that have expired, one step for all versions of each."""
    find = partial(whole(session.store).find, session.agent, order=Order.OLDEST)
    every = chain.from_iterable(pages(find, Filter(statuses=tuple(Status), expires_by=now)))
    for memory_id in dict.fromkeys(memory.id for memory in every):
        yield UpkeepStep(task=UpkeepTask.EXPIRE, memory_id=memory_id)


def _purge_expired(session: AgentContext, step: UpkeepStep, now: datetime, *, erases: bool) -> bool:
    """Purge a memory unless it was renewed meanwhile, and at the end `erases` what is left of all of them."""
    stored = whole(session.store)
    memory = stored.get(session.agent, [step.memory_id])[0]
    if memory is None or not memory.has_expired(now):
        return False
    try:
        stored.apply(session.agent, [Purge(memory_id=memory.id, at=now, erases=erases)])
    except NotFound:
        return False
    session.clear_texts()
    return True


def _moves(session: AgentContext, now: datetime) -> Iterator[UpkeepStep]:
    """What age or counts would move. What is pinned doesn't age."""
    for lifecycle, sign in _SIGNS.items():
        for memory, state in _states_in(session, lifecycle):
            if sign is LifecycleSignal.AGE and memory.pinned:
                continue
            after = next_state(lifecycle, state, sign, memory=memory, at=now)
            if after is not None and after.stage is not state.stage:
                task = UpkeepTask.AGE if sign is LifecycleSignal.AGE else UpkeepTask.SETTLE
                yield UpkeepStep(task=task, memory_id=memory.id, before=state.stage, after=after.stage)


def _merges(session: AgentContext) -> Iterator[UpkeepStep]:
    """Facts of one kind, subject and scope that say the same, each with the one that stands for it."""
    groups: dict[tuple[str, str, str], list[tuple[Memory, LifecycleState]]] = {}
    for memory, state in _states_in(session, "fact"):
        if memory.key is not None:
            continue  # Only what is stored with that key takes its place.
        about = (memory.kind, (memory.subject or "").casefold(), str(memory.scope))
        groups.setdefault(about, []).append((memory, state))
    for group in groups.values():
        # Whoever comes first stands for the others: pinned, most trusted, most confirmed, oldest.
        group.sort(key=_precedence)
        for first, others in _same(session, [memory for memory, _ in group]):
            for other in others:
                yield UpkeepStep(
                    task=UpkeepTask.MERGE,
                    memory_id=other.id,
                    before=stage_of("fact", other),
                    after=Stage.SUPERSEDED,
                    other=first.id,
                )


def _marks(session: AgentContext) -> Iterator[UpkeepStep]:
    """Memories that quote a superseded fact and don't say so."""
    kinds = _kinds(session, "fact")
    for page in stored_pages(session, Filter(kinds=kinds, statuses=(Status.SUPERSEDED,))) if kinds else ():
        for fact in page:
            after = fact.superseded_by
            successor = after and session.store.get(session.agent, [after])[0]
            if successor and normalised(successor.content) == normalised(fact.content):
                continue  # The text is the same still.
            if successor and successor.id != fact.id:
                continue  # A duplicate, which holds as it ever did.
            for memory, _ in marks(session, fact):
                yield UpkeepStep(task=UpkeepTask.MARK, memory_id=memory.id, other=fact.version_id)


def _same(session: AgentContext, group: Sequence[Memory]) -> Iterator[tuple[Memory, list[Memory]]]:
    """Of memories in order, those that stand, each with the later ones that say the same."""
    later: dict[int, list[int]] = {}
    for place, other in _nearly_identical(session, [memory.content for memory in group]):
        later.setdefault(place, []).append(other)
    taken: set[int] = set()
    for place in sorted(later):
        same = sorted(set(later[place]) - taken)
        if place not in taken and same:
            taken.update(same)
            yield group[place], [group[other] for other in same]


def _nearly_identical(session: AgentContext, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of each two texts that say the same by their words and by their vectors."""
    pairs = list(could_be_same_among(texts))
    places = list(dict.fromkeys(chain.from_iterable(pairs)))
    vectors: dict[int, Vector | None] = {}
    for start in range(0, len(places), _BLOCK):
        some = places[start : start + _BLOCK]
        vectors.update(zip(some, embed_texts(session.embedder, [texts[each] for each in some]), strict=True))
    for place, other in pairs:
        one, another = vectors[place], vectors[other]
        is_near = one is not None and another is not None and float(one @ another) > NEARLY_IDENTICAL
        if is_near or normalised(texts[place]) == normalised(texts[other]):
            yield place, other


def _flagged(session: AgentContext) -> Iterator[str]:
    for memory, state in _states_in(session, "procedure"):
        if state.stage is Stage.INEFFECTIVE:
            yield memory.id


def _states_in(session: AgentContext, lifecycle: str) -> Iterator[tuple[Memory, LifecycleState]]:
    """The active memories of a lifecycle, oldest first, each with how it stands."""
    store = LIFECYCLE.required(session.store)
    kinds = _kinds(session, lifecycle)
    for page in stored_pages(session, Filter(kinds=kinds)) if kinds else ():
        known = store.states(session.agent, [memory.id for memory in page])
        for memory, state in zip(page, known, strict=True):
            stage = stage_of(lifecycle, memory)
            yield memory, replace(state or LifecycleState(stage=stage), stage=stage)


def _kinds(session: AgentContext, lifecycle: str) -> tuple[str, ...]:
    return tuple(kind.name for kind in session.kinds if kind.lifecycle == lifecycle)


def _precedence(one: tuple[Memory, LifecycleState]) -> tuple[bool, int, int, datetime, str]:
    memory, state = one
    return (not memory.pinned, _TRUST[memory.trust], -state.confirmations, memory.created_at, memory.id)
