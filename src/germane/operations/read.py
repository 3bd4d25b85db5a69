"""get, history, expand and calibration: single memories, their versions, outdated quotations."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, dropwhile, islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from germane.errors import InvalidInput, NotFound, StoreUnavailable
from germane.ids import by_short_id, is_short
from germane.ledger import Finding
from germane.lifecycle import (
    DecisionCalibration,
    carries,
    first_stage,
    least_trust,
    most_trust,
    next_state,
    stage_of,
    status_at,
)
from germane.model.change import ApplySignal, Change, Revise, Reword
from germane.model.context import TraceNote, short_id
from germane.model.memory import (
    LEARNED_TAGS,
    Cause,
    Level,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Outcome,
    Rendition,
    Renditions,
    Status,
    Trust,
    Vector,
    split_id,
)
from germane.model.query import Filter, Order, Query, Slice
from germane.model.text import tenant_of, user_and_agent
from germane.model.validation import checked_id, checked_text, checked_word
from germane.operations.context import AgentContext, unknown_kinds
from germane.operations.inputs import checked_count, settled
from germane.packing.render import fence
from germane.protocols import TokenCounter
from germane.ranking.learning import calibrated
from germane.ranking.similarity import is_quoted
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import LIFECYCLE, SPACES

_PAGE = 1000
EVERY: Final = Filter(statuses=tuple(Status))
"""What every memory passes, whatever its status."""


def get(session: AgentContext, memory_id: str) -> Memory:
    """The memory of that id in its current version, or the version `id@n`, whatever its status.

    For one user that may be the agent's own. Raises NotFound, or InvalidInput as `whole_id` does.
    """
    if is_short(checked_id(memory_id)):
        # The search by a short id has read the memory already: one transaction instead of two.
        versions = memories(session, replace(EVERY, short_id=split_id(memory_id)[0]))
        name, number = split_id(by_short_id(memory_id, (each.id for each in versions), "memories"))
        named = [each for each in versions if each.id == name and number in (0, each.version)]
        if named:
            return max(named, key=attrgetter("version"))
    return get_many(side_of(session, memory_id), [memory_id])[0]


def get_named(session: AgentContext, memory_id: str | None, key: str | None) -> Memory:
    """The memory of an id, as `get` has it, or the current memory of a key, whatever its status.

    For one user that may be the agent's own. Raises NotFound, and InvalidInput unless one of both is given.
    """
    if (memory_id is None) == (key is None):
        raise InvalidInput(
            f"get(memory_id={memory_id!r}, key={key!r}) names {'nothing' if key is None else 'two things'}. "
            "Give the id of a memory, or its key."
        )
    if key is None:
        return get(session, str(memory_id))
    found = (by_key(side, checked_text(key, name="key")) for side in session.sides)
    memory = next(filter(None, found), None)
    if memory is None:
        raise NotFound(key, session.agent)
    return memory


def by_key(session: AgentContext, key: str) -> Memory | None:
    """The session's own current memory of a key; None where it has none."""
    return next(iter(session.store.find(session.agent, replace(EVERY, key=key), limit=1)), None)


def side_of(session: AgentContext, memory_id: str) -> AgentContext:
    """The side that has the memory; the session itself where none has it."""
    if session.base is None or session.store.get(session.agent, [memory_id])[0] is not None:
        return session
    return session.base if session.store.get(session.base.agent, [memory_id])[0] is not None else session


def get_many(session: AgentContext, memory_ids: Sequence[str]) -> list[Memory]:
    """The memories of these ids that are to be changed, in the order given.

    Raises NotFound, and InvalidInput for one that a user reads and that is the agent's own.
    """
    found = session.store.get(session.agent, memory_ids)
    for memory_id, memory in zip(memory_ids, found, strict=True):
        if memory is None:
            base = side_of(session, memory_id)
            if base is not session:
                user, agent = user_and_agent(session.agent)
                raise InvalidInput(
                    f"Memory {memory_id!r} is agent {agent!r}'s own, which user {user!r} reads and doesn't "
                    "change. Use the engine of the agent itself."
                )
            raise NotFound(memory_id, session.agent)
    return [memory for memory in found if memory is not None]


def as_trusted_as_its_sources(session: AgentContext, memory: Memory) -> Memory:
    """The memory with no more trust than the least trusted of the sources that its metadata names.

    They may be the agent's own or in one of its spaces. A memory of a space is a peer's at most.
    """
    from germane.provenance import sources_of  # noqa: PLC0415 - Contexts don't need it.

    least = least_trust((memory.trust, most_trust(session.agent)))
    if names := sources_of(memory):
        least = least_trust((least, *(each.trust for each in readable(session, names))))
    return memory if least is memory.trust else memory.evolve(trust=least)


def owned_by(session: AgentContext, memory: Memory) -> Memory:
    """The memory as the agent's own, with no more trust than a memory of it can have."""
    trust = least_trust((memory.trust, most_trust(session.agent)))
    return memory.evolve(agent=session.agent, trust=trust)


def readable(session: AgentContext, memory_ids: Sequence[str]) -> Iterator[Memory]:
    """Those of these memories that the agent can read: its own ones, and what isn't there, in its spaces.

    In a space, `session.member` is the agent. A memory of a space has a peer's trust at most.
    """
    left = list(memory_ids)
    for side in (*session.sides, *(session.member.sides if session.member else ())):
        own = {each.id: each for each in side.store.get(side.agent, left) if each is not None}
        yield from own.values()
        left = [name for name in left if name not in own]
    reader = session.member or session
    if not left or (spaces := SPACES.of(reader.store)) is None:
        return
    for info in spaces.find(reader.agent):
        entered = spaces.enter(info.name, reader.agent)
        for each in filter(None, entered.get(tenant_of(info.name), left)):
            # It may have been put there before `Trust.PEER` existed.
            yield each.evolve(trust=least_trust((each.trust, Trust.PEER)))


def current(session: AgentContext, memory_id: str) -> Memory:
    """The current version of a memory to change, whichever version is named.

    Raises as `get_many` and `whole_id` do.
    """
    memory = get_many(session, [whole_id(session, memory_id)])[0]
    return memory if memory.superseded_by is None else get_many(session, [memory.id])[0]


def head_of(session: AgentContext, memory: Memory) -> Memory:
    """The current version of a memory, or of the one that it was merged into. Raises NotFound."""
    seen: set[str] = set()
    while memory.superseded_by is not None:
        seen.add(memory.version_id)
        # The id names the current version, wherever the chain of versions ends by now.
        after = session.store.get(session.agent, [split_id(memory.superseded_by)[0]])[0]
        if after is None or after.version_id in seen:
            raise NotFound(memory.superseded_by, session.agent)
        memory = after
    return memory


def history(
    session: AgentContext, memory_id: str, *, limit: int | None = None, after: int = 0
) -> tuple[Memory, ...]:
    """The versions of a memory, the first one first, whichever is named. Raises NotFound or InvalidInput."""
    checked_count(after, name="after")
    most = None if limit is None else checked_count(limit, name="limit")
    name = whole_id(session, memory_id)
    session = side_of(session, name)
    last = current(session, name)
    names = [f"{last.id}@{number}" for number in range(after + 1, last.version)]
    stored = session.store.get(session.agent, names) if names else ()
    # An import may have brought the later versions alone.
    found = [memory for memory in stored if memory is not None]
    return tuple([*found, last][:most]) if after < last.version else ()


def expand(session: AgentContext, memory_id: str) -> str:
    """The whole text of a memory, fenced like everything that goes to a model.

    It is meant as the result of a tool call, beside the context and not inside it. Raises NotFound, or
    InvalidInput for a short id that several memories have, and for a memory in quarantine.
    """
    from germane.provenance import quarantine_of  # noqa: PLC0415 - Contexts don't need it.

    memory = get(session, memory_id)
    if rules := quarantine_of(memory):
        raise InvalidInput(f"Memory {memory_id!r} is in quarantine ({', '.join(rules)}), so it isn't shown.")
    return "\n".join(fence(memory.renditions.at(Level.FULL).text))


def whole_id(session: AgentContext, name: str) -> str:
    """The id of a memory named by it or by its short id, the last eight digits; `@n` stays.

    A short id of no memory is returned as it is. Raises InvalidInput where several memories have it.
    """
    if not is_short(checked_id(name)):
        return name
    versions = memories(session, replace(EVERY, short_id=split_id(name)[0]))
    return by_short_id(name, (memory.id for memory in versions), "memories")


def memories(
    session: AgentContext,
    where: Filter,
    *,
    order: Order | str = Order.NEWEST,
    limit: int | None = None,
    after: str | None = None,
) -> tuple[Memory, ...]:
    """The memories that pass a filter, in order, a page at a time.

    Raises InvalidInput, and NotFound for an `after` that is gone.
    """
    admits, by = settled(where, session.clock), checked_word(Order, order, name="order")
    most = None if limit is None else checked_count(limit, name="limit")
    last = None if after is None else checked_id(after, name="after")
    if session.base is None:
        return session.store.find(session.agent, admits, order=by, limit=most, after=last)
    found = _of_sides(session, admits, by)
    if last is not None:
        after_ref = get(session, last).ref
        found = islice(dropwhile(lambda memory: memory.ref != after_ref, found), 1, None)
    return tuple(islice(found, most))


def _of_sides(session: AgentContext, where: Filter, order: Order) -> Iterator[Memory]:
    """A user's memories and the agent's own, in one order."""
    sides = (partial(side.store.find, side.agent, order=order) for side in session.sides)
    parts = (chain.from_iterable(pages(find, where)) for find in sides)

    def place(memory: Memory) -> tuple[Any, ...]:
        importance = memory.importance if order is Order.IMPORTANT else 0.0
        return importance, memory.created_at, memory.version_id

    return heapq.merge(*parts, key=place, reverse=order is not Order.OLDEST)


def pages(find: Callable[..., tuple[Memory, ...]], where: Filter) -> Iterator[tuple[Memory, ...]]:
    """All that `find(where, limit=..., after=...)` has, page after page.

    Raises StoreUnavailable where a damaged store gives a page again, which would never end.
    """
    after: str | None = None
    ends: set[str] = set()
    while page := find(where, limit=_PAGE, after=after):
        after = page[-1].ref
        if after in ends:
            raise StoreUnavailable(
                f"The store lists memory {after!r} again and again: it is damaged. Rebuild its indexes with "
                "`germane db reindex`, or restore it from a backup."
            )
        ends.add(after)
        yield page


def stored_pages(session: AgentContext, where: Filter) -> Iterator[tuple[Memory, ...]]:
    """The memories that pass a filter as the store has them, oldest first, page after page."""
    return pages(partial(session.store.find, session.agent, order=Order.OLDEST), where)


def count(session: AgentContext, where: Filter) -> int:
    """How many memories pass a filter."""
    admits = settled(where, session.clock)
    one = Query(filter=admits, slices=(Slice(limit=1, order=Order.NEWEST),))
    return sum(side.store.search(side.agent, one).admitted for side in session.sides)


def filter_warnings(session: AgentContext, where: Filter) -> tuple[TraceNote, ...]:
    """What is worth knowing of a filter beside what passes it."""
    return unknown_kinds(session.sides, where)


def large_findings(session: AgentContext) -> tuple[Finding, ...]:
    """Advice on the memories that are so long that few tokens are left for others."""
    return tuple(
        Finding(
            code="large-memory",
            text=f"Memory {one.id} ({one.kind}, {one.scope}) has {one.tokens:,} tokens: {one.label}",
            remedy="Shorten or split it (`germane memory revise`); contexts may show only its summary.",
            advice=True,
        )
        for one in session.store.stats(session.agent).large
    )


# What is written when one version of a memory follows another: the version, and what it means to both lives.


def store_version(
    session: AgentContext,
    old: Memory,
    new: Memory,
    vector: Vector | None,
    *,
    cause: Cause = Cause.REVISED,
    at: datetime | None = None,
) -> Memory:
    """Store `new` as the version after `old`, and return it as it is stored; all in one transaction.

    `at` is the moment of storing, where the times of `new` are those of its source.
    A version that says the same, and any of a procedure, a constraint or a decision, goes on with the life of
    the one before; a fact that says something else begins anew, and what quotes the former one is marked.
    Raises StaleRevision or InvalidInput.
    """
    applied = session.store.apply(
        session.agent, version_changes(session, old, new, vector, cause=cause, at=at)
    )
    stored = [each.memory for each in applied if each.memory and each.memory.version_id == new.version_id]
    return stored[-1]


def version_changes(
    session: AgentContext,
    old: Memory,
    new: Memory,
    vector: Vector | None,
    *,
    cause: Cause = Cause.REVISED,
    at: datetime | None = None,
) -> list[Change]:
    """What stores `new` as the version after `old`, as `store_version` does."""
    if LEARNED_TAGS in old.metadata:
        noted = {LEARNED_TAGS: old.metadata[LEARNED_TAGS]}
        new = new.evolve(metadata=MappingProxyType({**new.metadata, **noted}))
    lifecycle = session.kinds.of(new).lifecycle
    goes_on = carries(lifecycle, old, new)
    stage = stage_of(lifecycle, old) if goes_on else None
    if stage is None or status_at(stage) is not Status.ACTIVE:
        stage = first_stage(lifecycle, old.outcome if goes_on else new.outcome)
    changes: list[Change] = [Revise(memory=new.evolve(stage=stage), vector=vector, carries=goes_on, at=at)]
    if LIFECYCLE.of(session.store) is not None:
        changes += _version_signals(session, old, new, goes_on=goes_on, cause=cause, at=at or new.updated_at)
        if session.kinds.of(old).lifecycle == "fact" and old.content != new.content:
            changes += [Reword(memory=marked) for _, marked in marks(session, old)]
    return changes


_SIGNALS: Final = {
    None: LifecycleSignal.AWAIT,
    Outcome.ONGOING: LifecycleSignal.RESUME,
    Outcome.PENDING: LifecycleSignal.AWAIT,
}
"""What becomes of a decision with such an outcome; with any other it is reviewed."""


def _version_signals(
    session: AgentContext, old: Memory, new: Memory, *, goes_on: bool, cause: Cause, at: datetime
) -> list[ApplySignal]:
    found: list[ApplySignal] = []
    before = session.kinds.of(old).lifecycle
    state = LifecycleState(stage=stage_of(before, old))
    if next_state(before, state, LifecycleSignal.SUPERSEDE, memory=old, at=at) is not None:
        found.append(
            ApplySignal(
                memory_id=old.version_id,
                lifecycle=before,
                sign=LifecycleSignal.SUPERSEDE,
                cause=cause,
                at=at,
                other=new.version_id,
            )
        )
    if goes_on and before == "decision" and new.outcome is not old.outcome:
        sign = _SIGNALS.get(new.outcome, LifecycleSignal.REVIEW)
        found.append(
            ApplySignal(
                memory_id=new.id,
                lifecycle=before,
                sign=sign,
                cause=Cause.OUTCOME,
                at=at,
                other=old.version_id,
            )
        )
    return found


# Marks memories that quote what has been superseded, so that no context presents it as current.
#
# What counts as a quotation: all words of a fact, at least four, in one piece.

OUTDATED: Final = "outdated"
"""The metadata that lists the superseded memories which a memory quotes."""

_LOOKED_AT: Final = 50
"""Best matches that are looked at for a quotation, at first."""


def marks(session: AgentContext, superseded: Memory) -> Iterator[tuple[Memory, Memory]]:
    """The active memories that quote a superseded one and don't say so yet, each as it is and marked."""
    for memory in _quoting(session, superseded.content):
        known = memory.metadata.get(OUTDATED, ())
        if superseded.version_id in known or memory.id == superseded.id:
            continue
        yield memory, with_mark(session, memory, superseded.version_id)


def checked_quotations(session: AgentContext, memories: Sequence[Memory]) -> list[Memory]:
    """The memories, those episodes marked that quote a superseded fact."""
    kinds = tuple(kind.name for kind in session.kinds if kind.lifecycle == "fact")
    where = Filter(kinds=kinds, statuses=(Status.SUPERSEDED,))
    episodes = {one.id for one in memories if session.kinds.of(one).lifecycle == "episode"}
    if not episodes or not session.store.find(session.agent, where, limit=1):
        return list(memories)
    return [_checked(session, one, where) if one.id in episodes else one for one in memories]


def with_mark(session: AgentContext, memory: Memory, *superseded: str) -> Memory:
    """The memory with a mark for each superseded one; it is only made, not stored."""
    listed = [*memory.metadata.get(OUTDATED, ()), *superseded]
    metadata = MappingProxyType({**memory.metadata, OUTDATED: list(dict.fromkeys(listed))})
    bare = memory.renditions if OUTDATED not in memory.metadata else _bare(session, memory)
    return memory.evolve(metadata=metadata, renditions=mark_outdated(bare, metadata, session.counter))


def without_mark(session: AgentContext, superseded: Memory) -> Iterator[Memory]:
    """The active memories that are marked as quoting a version, without that mark."""
    for memory in _quoting(session, superseded.content):
        listed = memory.metadata.get(OUTDATED, ())
        if superseded.version_id not in listed:
            continue
        left = [each for each in listed if each != superseded.version_id]
        plain = {name: value for name, value in memory.metadata.items() if name != OUTDATED}
        metadata = MappingProxyType({**plain, OUTDATED: left} if left else plain)
        bare = _bare(session, memory)
        yield memory.evolve(metadata=metadata, renditions=mark_outdated(bare, metadata, session.counter))


def mark_outdated(renditions: Renditions, metadata: Mapping[str, Any], counter: TokenCounter) -> Renditions:
    """The renditions with a mark at the end of each, where the metadata lists what is quoted."""
    listed = metadata.get(OUTDATED)
    if not isinstance(listed, list) or not listed:
        return renditions
    named = ", ".join(short_id(str(each)) for each in listed)
    mark = f" [quotes what has been superseded: {named}]"

    return _reworded(renditions, counter, lambda text: text + mark)


def _reworded(renditions: Renditions, counter: TokenCounter, change: Callable[[str], str]) -> Renditions:
    """The renditions with each text changed, and counted."""
    texts = {name: change(getattr(renditions, name).text) for name in ("micro", "summary", "full")}
    made: Any = {name: Rendition(text=text, tokens=counter.count(text)) for name, text in texts.items()}
    return replace(renditions, **made)


def _quoting(session: AgentContext, text: str) -> list[Memory]:
    """The active memories that quote a text: with all its words, they stand among the best matches."""
    limit = _LOOKED_AT
    while True:
        found = _matching(session, text, Filter(), limit=limit)
        quotes = [is_quoted(text, memory.content) for memory in found]
        # Where quotations come to an end long before the matches do, there are no more of them.
        if len(found) < limit or not any(quotes[limit // 2 :]):
            return [memory for memory, quoted in zip(found, quotes, strict=True) if quoted]
        limit *= 4


def _checked(session: AgentContext, memory: Memory, where: Filter) -> Memory:
    """The memory with a mark for each superseded fact that it quotes, but for what was stored again since."""
    found = [
        one.version_id
        for one in _matching(session, memory.content, where)
        if is_quoted(one.content, memory.content)
    ]
    return with_mark(session, memory, *found) if found else memory


def _bare(session: AgentContext, memory: Memory) -> Renditions:
    cut = " [quotes what has been superseded: "
    return _reworded(memory.renditions, session.counter, lambda text: text.rpartition(cut)[0] or text)


def _matching(
    session: AgentContext, text: str, where: Filter, *, limit: int = _LOOKED_AT
) -> tuple[Memory, ...]:
    """The memories that share most words with a text."""
    terms = query_terms(text, language=session.language)
    if not terms:
        return ()
    query = Query(text=text, terms=terms, filter=where, slices=(Slice(limit=limit),))
    found = session.store.search(session.agent, query)
    return tuple(each.memory for each in found.slices[0])


# calibration: what the agent's confidence was worth.
#
# `DecisionCalibration.advice` is the sentence that a section for the agent's calibration can show: the
# layered plan may take it as the text of an item, beside memories of the kind `calibration`.


def calibration(session: AgentContext) -> DecisionCalibration:
    """Brier score, bias and advice, from all decisions that stand, archived ones included."""
    return calibrated(_decisions(session))


def _decisions(session: AgentContext) -> Iterator[Memory]:
    kinds = tuple(kind.name for kind in session.kinds if kind.lifecycle == "decision")
    if not kinds:
        return
    where = Filter(kinds=kinds, statuses=(Status.ACTIVE, Status.ARCHIVED))
    yield from chain.from_iterable(stored_pages(session, where))
