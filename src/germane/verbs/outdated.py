"""Marks memories that quote what has been superseded, so that nothing outdated is told as if it held.

Level: verbs. What counts as a quotation: all words of a fact, at least four, in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from germane.model.explanation import short_id
from germane.model.memory import Memory, Rendition, Renditions, Status
from germane.model.query import Filter, Query, Slice
from germane.protocols import TokenCounter
from germane.ranking.alike import is_quoted
from germane.retrieval.terms import query_terms
from germane.verbs.session import Session

__all__ = ["OUTDATED", "checked_quotations", "marks", "told_outdated", "with_mark"]

OUTDATED: Final = "outdated"
"""The metadata that lists the superseded memories which a memory quotes."""

_LOOKED_AT: Final = 50
"""Best matches that are looked at for a quotation, at first."""


def marks(session: Session, superseded: Memory) -> Iterator[tuple[Memory, Memory]]:
    """The active memories that quote a superseded one and don't say so yet, each as it is and marked."""
    for memory in _quoting(session, superseded.content):
        known = memory.metadata.get(OUTDATED, ())
        if superseded.version_id in known or memory.id == superseded.id:
            continue
        yield memory, with_mark(session, memory, superseded.version_id)


def checked_quotations(session: Session, memories: Sequence[Memory]) -> list[Memory]:
    """The memories, those episodes marked that quote a superseded fact."""
    kinds = tuple(kind.name for kind in session.kinds if kind.lifecycle == "fact")
    where = Filter(kinds=kinds, statuses=(Status.SUPERSEDED,))
    episodes = {one.id for one in memories if session.kinds.of(one).lifecycle == "episode"}
    if not episodes or not session.store.find(session.agent, where, limit=1):
        return list(memories)
    return [_checked(session, one, where) if one.id in episodes else one for one in memories]


def with_mark(session: Session, memory: Memory, *superseded: str) -> Memory:
    """The memory with a mark for each superseded one; it is only made, not stored."""
    listed = [*memory.metadata.get(OUTDATED, ()), *superseded]
    metadata = MappingProxyType({**memory.metadata, OUTDATED: list(dict.fromkeys(listed))})
    bare = memory.renditions if OUTDATED not in memory.metadata else _bare(session, memory)
    return memory.evolve(metadata=metadata, renditions=told_outdated(bare, metadata, session.counter))


def told_outdated(renditions: Renditions, metadata: Mapping[str, Any], counter: TokenCounter) -> Renditions:
    """The renditions with a mark at the end of each, where the metadata lists what is quoted."""
    listed = metadata.get(OUTDATED)
    if not isinstance(listed, list) or not listed:
        return renditions
    named = ", ".join(short_id(str(each)) for each in listed)
    mark = f" [quotes what has been superseded: {named}]"

    def marked(one: Rendition) -> Rendition:
        text = one.text + mark
        return Rendition(text=text, tokens=counter.count(text))

    return Renditions(
        micro=marked(renditions.micro),
        summary=marked(renditions.summary),
        full=marked(renditions.full),
        counter=renditions.counter,
    )


def _quoting(session: Session, text: str) -> list[Memory]:
    """The active memories that quote a text: with all its words, they stand among the best matches."""
    limit = _LOOKED_AT
    while True:
        found = _matching(session, text, Filter(), limit=limit)
        quotes = [is_quoted(text, memory.content) for memory in found]
        # Where quotations come to an end long before the matches do, there are no more of them.
        if len(found) < limit or not any(quotes[limit // 2 :]):
            return [memory for memory, quoted in zip(found, quotes, strict=True) if quoted]
        limit *= 4


def _checked(session: Session, memory: Memory, where: Filter) -> Memory:
    """The memory with a mark for each superseded fact that it quotes, but for what is said again since."""
    found = [
        one.version_id
        for one in _matching(session, memory.content, where)
        if is_quoted(one.content, memory.content)
    ]
    return with_mark(session, memory, *found) if found else memory


def _bare(session: Session, memory: Memory) -> Renditions:
    cut = " [quotes what has been superseded: "

    def without(one: Rendition) -> Rendition:
        text = one.text.rpartition(cut)[0] or one.text
        return Rendition(text=text, tokens=session.counter.count(text))

    renditions = memory.renditions
    return Renditions(
        micro=without(renditions.micro),
        summary=without(renditions.summary),
        full=without(renditions.full),
        counter=renditions.counter,
    )


def _matching(session: Session, text: str, where: Filter, *, limit: int = _LOOKED_AT) -> tuple[Memory, ...]:
    """The memories that share most words with a text."""
    terms = query_terms(text, language=session.language)
    if not terms:
        return ()
    query = Query(text=text, terms=terms, filter=where, slices=(Slice(limit=limit),))
    found = session.store.search(session.agent, query)
    return tuple(each.memory for each in found.slices[0])
