"""Marks memories that quote what has been superseded, so that nothing outdated is told as if it held.

Level: verbs. What counts as a quotation: all words of a fact, at least four, in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from germane.model.memory import Memory, Rendition, Renditions, Status
from germane.model.query import Filter, Query, Slice
from germane.protocols import TokenCounter
from germane.ranking.alike import is_quoted
from germane.retrieval.terms import query_terms
from germane.verbs.session import Session

__all__ = ["OUTDATED", "marks", "quoted_by", "told_outdated", "with_mark"]

OUTDATED: Final = "outdated"
"""The metadata that lists the superseded memories which a memory quotes."""

_LOOKED_AT: Final = 50
_SHORT: Final = 8


def marks(session: Session, superseded: Memory, *, but: Sequence[str]) -> Iterator[tuple[Memory, Memory]]:
    """The active memories that quote a superseded one and don't say so yet, each as it is and marked."""
    for memory in _matching(session, superseded.content, Filter()):
        known = memory.metadata.get(OUTDATED, ())
        if memory.id in but or superseded.id in known or memory.chain == superseded.chain:
            continue
        if is_quoted(superseded.content, memory.content):
            yield memory, with_mark(session, memory, superseded.id)


def quoted_by(session: Session, memory: Memory) -> tuple[str, ...]:
    """The ids of the superseded facts that a memory quotes and whose successors it doesn't tell as well."""
    facts = tuple(kind.name for kind in session.kinds if kind.lifecycle == "fact")
    found = _matching(session, memory.content, Filter(kinds=facts, statuses=(Status.SUPERSEDED,)))
    return tuple(
        one.id for one in found if one.chain != memory.chain and is_quoted(one.content, memory.content)
    )


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
    named = ", ".join(str(each)[-_SHORT:] for each in listed)
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


def _matching(session: Session, text: str, where: Filter) -> tuple[Memory, ...]:
    """The memories that share most words with a text."""
    terms = query_terms(text, language=session.language)
    if not terms:
        return ()
    query = Query(text=text, terms=terms, filter=where, slices=(Slice(limit=_LOOKED_AT),))
    found = session.store.search(session.agent, query)
    return tuple(each.memory for each in found.slices[0])
