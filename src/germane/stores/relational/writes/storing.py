"""Stores new memories with all that is found by: texts, tags, places, words and vectors.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from germane.model.memory import Memory
from germane.model.stats import EmbeddingIdentity
from germane.model.vector import Vector
from germane.places import further_places
from germane.retrieval.terms import index_terms
from germane.stores.indexed import indexed_text
from germane.stores.relational.connection import Connection
from germane.stores.relational.embedded import packed_vector
from germane.stores.relational.rows import memory_row, texts_row
from germane.stores.relational.writes.sameness import explain_taken_id
from germane.stores.sql.tables import LexRow

__all__ = ["New", "store_new"]

New = tuple[int, Memory, Vector | None]
"""A memory that isn't stored yet, with its number and its vector, None where that is still to be made."""

_AT_ONCE: Final = 256


def store_new(
    connection: Connection,
    agent: int,
    name: str,
    new: Sequence[New],
    *,
    embedding: EmbeddingIdentity | None,
    language: str,
) -> int:
    """Store memories of an agent; returns how many terms they have.

    Raises InvalidInput for an id that another memory has, and for a vector that can't be stored.
    """
    terms = 0
    with connection.attempt(partial(explain_taken_id, agent=agent, name=name, new=new)):
        # A server stores some of them while the words of the next are counted here.
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            forward = [_forward_row(num, memory, agent, language) for num, memory, _ in some]
            _store(connection, agent, some, forward, embedding)
            terms += sum(row.length for row in forward)
    return terms


def _store(
    connection: Connection,
    agent: int,
    new: Sequence[New],
    forward: Sequence[LexRow],
    embedding: EmbeddingIdentity | None,
) -> None:
    packed = [(num, packed_vector(each, embedding)) for num, _, each in new if each is not None]
    rows: dict[str, Sequence[tuple[Any, ...]]] = {
        "insert_memory": [memory_row(memory, num, agent) for num, memory, _ in new],
        "insert_texts": [texts_row(memory, num, agent) for num, memory, _ in new],
        "insert_tag": [(agent, tag, num) for num, memory, _ in new for tag in memory.tags],
        "insert_place": [(agent, place, num) for num, memory, _ in new for place in further_places(memory)],
        "insert_lex": forward,
        "insert_vector": [(num, agent, vector) for num, vector in packed if vector],
        "insert_unembedded": [(num, agent) for num, _, vector in new if vector is None],
    }
    for query, some in rows.items():
        if some:
            connection.many(query, some)


def _forward_row(num: int, memory: Memory, agent: int, language: str) -> LexRow:
    text = indexed_text(memory.content, subject=memory.subject, tags=memory.tags, metadata=memory.metadata)
    forward = index_terms(text, language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return LexRow(num, agent, forward.length, hashes, forward.frequencies.tobytes())
