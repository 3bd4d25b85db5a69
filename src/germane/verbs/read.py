"""get, history, expand: look at single memories.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.errors import NotFound
from germane.model.memory import Level, Memory, split_id
from germane.model.query import Filter, Order, Query, Slice
from germane.model.stats import Finding
from germane.model.trace import Note
from germane.packing.render import fence
from germane.verbs.checks import checked_count, checked_filter, checked_id, checked_word, settled
from germane.verbs.session import Session
from germane.verbs.unknown_kinds import unknown_kinds

__all__ = [
    "count",
    "current",
    "expand",
    "get",
    "head_of",
    "history",
    "large_findings",
    "memories",
    "notes_on",
]


def get(session: Session, memory_id: str) -> Memory:
    """The memory of that id in its current version, or the version `id@n`, whatever its status.

    Raises NotFound.
    """
    return get_many(session, [checked_id(memory_id)])[0]


def get_many(session: Session, memory_ids: Sequence[str]) -> list[Memory]:
    """The same of several, in the order asked."""
    found = session.store.get(session.agent, memory_ids)
    for memory_id, memory in zip(memory_ids, found, strict=True):
        if memory is None:
            raise NotFound(memory_id, session.agent)
    return [memory for memory in found if memory is not None]


def current(session: Session, memory_id: str) -> Memory:
    """The current version of a memory, whichever version is named. Raises NotFound."""
    memory = get(session, memory_id)
    return memory if memory.superseded_by is None else get(session, memory.id)


def head_of(session: Session, memory: Memory) -> Memory:
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


def history(session: Session, memory_id: str) -> tuple[Memory, ...]:
    """Every version of a memory, the first one first, whichever version is named. Raises NotFound."""
    last = current(session, memory_id)
    names = [f"{last.id}@{number}" for number in range(1, last.version)]
    stored = session.store.get(session.agent, names) if names else ()
    # An import may have brought the later versions alone.
    return (*(memory for memory in stored if memory is not None), last)


def expand(session: Session, memory_id: str) -> str:
    """The whole text of a memory, fenced like everything that goes to a model. Raises NotFound.

    It is meant as the result of a tool call, beside the context and not inside it.
    """
    return "\n".join(fence(get(session, memory_id).renditions.at(Level.FULL).text))


def memories(
    session: Session,
    where: Filter,
    *,
    order: Order | str = Order.NEWEST,
    limit: int | None = None,
    after: str | None = None,
) -> tuple[Memory, ...]:
    """The memories that pass a filter, in order, a page at a time.

    Raises InvalidInput, and NotFound for an `after` that is gone.
    """
    return session.store.find(
        session.agent,
        settled(checked_filter(where), session.clock),
        order=checked_word(Order, order, name="order"),
        limit=None if limit is None else checked_count(limit, name="limit"),
        after=None if after is None else checked_id(after, name="after"),
    )


def count(session: Session, where: Filter) -> int:
    """How many memories pass a filter."""
    admits = settled(checked_filter(where), session.clock)
    one = Query(filter=admits, slices=(Slice(limit=1, order=Order.NEWEST),))
    return session.store.search(session.agent, one).admitted


def notes_on(session: Session, where: Filter) -> tuple[Note, ...]:
    """What is worth knowing of a filter beside what passes it."""
    return unknown_kinds((session,), checked_filter(where))


def large_findings(session: Session) -> tuple[Finding, ...]:
    """Advice on the memories that are so long that little else has room beside them."""
    return tuple(
        Finding(
            code="large-memory",
            text=f"Memory {one.id} ({one.kind}, {one.scope}) has {one.tokens:,} tokens: {one.label}",
            remedy="Say it shorter with `germane revise`, or split it; where it doesn't fit, a context has "
            "its summary.",
            advice=True,
        )
        for one in session.store.stats(session.agent).large
    )
