"""Whether what shall be remembered is worth it: it is marked with a reason, or refused with one.

Level: verbs. The patterns stand in `germane.retrieval.worth`; what is nearly known, the store is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from germane.errors import InvalidInput, NotWorthKeeping
from germane.lifecycle import NEARLY_IDENTICAL
from germane.model.draft import Doubt
from germane.model.memory import Memory
from germane.model.query import Filter, Query, Slice, TimeRange
from germane.ranking.alike import could_be_same, normalised
from germane.retrieval.terms import query_terms
from germane.retrieval.worth import doubt_about
from germane.verbs.embed import embed_texts
from germane.verbs.remember import content_hash_of
from germane.verbs.session import Session

__all__ = ["DOUBT", "Quality", "weighed"]

Quality: TypeAlias = Literal["mark", "refuse", "keep"]

DOUBT: Final = "doubt"
"""The metadata that names why a memory may not be worth keeping."""

_RECENT: Final = timedelta(hours=48)
_LOOKED_AT: Final = 20
_JUDGED: Final = frozenset({"fact", "episode", "decision"})


def weighed(
    session: Session, memories: Sequence[Memory], quality: Quality
) -> list[tuple[Memory, Doubt | None]]:
    """Each memory, marked where there is doubt about it, and the doubt.

    Notes, facts, episodes and decisions are looked at; turns of dialogue are not. For near-duplicates an
    episode is looked at that is remembered by itself, or where doubtful ones are refused. Raises
    NotWorthKeeping with `quality="refuse"`, and InvalidInput.
    """
    if quality not in get_args(Quality):
        raise InvalidInput(f"quality={quality!r} is unknown: take one of {', '.join(get_args(Quality))}.")
    if quality == "keep":
        return [(memory, None) for memory in memories]
    found = []
    asks = quality == "refuse" or len(memories) == 1
    for memory in memories:
        doubt = _doubt(session, memory, asks=asks)
        if doubt is not None and quality == "refuse":
            raise NotWorthKeeping(memory.content, doubt.value)
        found.append((memory if doubt is None else _marked(memory, doubt), doubt))
    return found


def _doubt(session: Session, memory: Memory, *, asks: bool) -> Doubt | None:
    lifecycle = session.kinds.of(memory).lifecycle
    if memory.scope.name == "session" or (lifecycle not in _JUDGED and memory.kind != "note"):
        return None
    # Under a subject, a number or a single word says something.
    doubt = doubt_about(memory.content) if memory.subject is None else None
    if doubt is None and asks and lifecycle == "episode" and _is_known(session, memory):
        return Doubt.NEAR_DUPLICATE
    return doubt


def _is_known(session: Session, memory: Memory) -> bool:
    """Whether an episode of the two days before says nearly the same."""
    when = TimeRange(since=memory.created_at - _RECENT, until=memory.created_at + timedelta(microseconds=1))
    vector = embed_texts(session.embedder, [memory.content])[0]
    query = Query(
        text=memory.content,
        terms=query_terms(memory.content, language=session.language),
        vector=vector,
        filter=Filter(kinds=(memory.kind,), scopes=(memory.scope,), when=when),
        slices=(Slice(limit=_LOOKED_AT),),
    )
    others = [each.memory for each in session.store.search(session.agent, query).slices[0]]
    vectors = embed_texts(session.embedder, [other.content for other in others])
    for other, row in zip(others, vectors, strict=True):
        if content_hash_of(other) == memory.content_hash:
            # The very same is recognised and counted, and of another day it is another episode.
            return False
        alike = vector is not None and row is not None and float(vector @ row) > NEARLY_IDENTICAL
        same = alike and could_be_same(memory.content, other.content)
        if same or normalised(other.content) == normalised(memory.content):
            return True
    return False


def _marked(memory: Memory, doubt: Doubt) -> Memory:
    # The reason is a key, since values of metadata are indexed and would be found.
    return memory.evolve(metadata=MappingProxyType({**memory.metadata, DOUBT: {doubt.value: True}}))
