"""get, history, expand: look at single memories.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.errors import InvalidInput, NotFound
from germane.model.memory import Level, Memory
from germane.model.query import Filter, Order, Query, Slice
from germane.model.stats import Finding
from germane.model.trace import Note
from germane.packing.render import fence
from germane.verbs.checks import checked_count, checked_filter, checked_id, checked_word, settled
from germane.verbs.session import Session
from germane.verbs.unknown_kinds import unknown_kinds

__all__ = ["count", "expand", "get", "history", "large_findings", "memories", "notes_on"]


def get(session: Session, memory_id: str) -> Memory:
    """The memory of that id, whatever its status. Raises NotFound."""
    memory = session.store.get(session.agent, [checked_id(memory_id)])[0]
    if memory is None:
        raise NotFound(memory_id, session.agent)
    return memory


def history(session: Session, memory_id: str) -> tuple[Memory, ...]:
    """Every version of a memory's chain, the first version first.

    Raises NotFound, or InvalidInput for a chain that goes round in a circle.
    """
    versions = [get(session, memory_id)]
    while (before := versions[0].supersedes) is not None:
        versions.insert(0, _unseen(versions, get(session, before)))
    while (after := versions[-1].superseded_by) is not None:
        versions.append(_unseen(versions, get(session, after)))
    return tuple(versions)


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


def _unseen(versions: Sequence[Memory], memory: Memory) -> Memory:
    if any(one.id == memory.id for one in versions):
        round_ = " -> ".join([*(one.id for one in versions), memory.id])
        raise InvalidInput(
            f"The versions of memory {memory.id!r} go round in a circle ({round_}), so none is the first or "
            "the last. Purge the chain, and import it anew as it was."
        )
    return memory
