"""New memories with all that they are found by: texts, tags, places, words and vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput, NotFound, owner
from germane.ids import id_text
from germane.model.change import Change, Insert, Revise, SetVector
from germane.model.memory import NOWHERE, Memory, Vector, day_of
from germane.model.query import EmbeddingIdentity
from germane.retrieval.vectors import as_stored
from germane.scopes import further_places
from germane.stores.relational.memory_blocks import vector_row
from germane.stores.relational.settings import LexRow, lex_row
from germane.stores.relational.tables import Connection, Rows, memory_values, named
from germane.stores.sql import agent_tables

New = tuple[int, Memory, Vector | None]
"""A memory that isn't stored yet, with its number and its vector, None where that is still to be made."""

_AT_ONCE: Final = 256

# The rows of these tables, of values by the names of their columns.
_memory_row: Final = itemgetter(*agent_tables()["memories"].columns)
_texts_row: Final = itemgetter(*agent_tables()["texts"].columns)


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

    Raises InvalidInput for an id or a key that another memory has, and for a vector that can't be stored.
    """
    terms = 0
    with connection.attempt(partial(explain_taken_id, agent=agent, name=name, new=new)):
        # A server stores some of them while the words of the next are counted here.
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            forward = [
                lex_row(
                    num,
                    agent,
                    language=language,
                    content=memory.content,
                    subject=memory.subject,
                    tags=memory.tags,
                    metadata=memory.metadata,
                )
                for num, memory, _ in some
            ]
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
    values = [memory_values(memory, num, agent) for num, memory, _ in new]
    vectors = zip(new, packed_vectors([each for *_, each in new], embedding), strict=True)
    rows: dict[str, Sequence[tuple[Any, ...]]] = {
        "insert_memory": list(map(_memory_row, values)),
        "insert_texts": list(map(_texts_row, values)),
        "insert_tag": [(agent, tag, num) for num, memory, _ in new for tag in memory.tags],
        "insert_place": [(agent, place, num) for num, memory, _ in new for place in further_places(memory)],
        "insert_lex": forward,
        "insert_vector": [vector_row(num, agent, packed) for (num, *_), packed in vectors if packed],
        "insert_unembedded": [(num, agent) for num, _, vector in new if vector is None],
    }
    for query, some in rows.items():
        if some:
            connection.many(query, some)


# When two memories are the same one, and when one follows another.


def check_continues(memory: Memory, head: Memory) -> None:
    """Raises InvalidInput unless `memory` is the version after `head`."""
    if memory.id != head.id:
        raise InvalidInput(
            f"Memory {memory.version_id!r} doesn't follow {head.version_id!r}. Keep the id, and count one up."
        )


def explain_taken_id(
    connection: Connection,
    error: Exception,
    *,
    agent: int,
    name: str,
    new: Iterable[tuple[int, Memory, Vector | None]],
) -> None:
    """Raises InvalidInput where what the database refused is an id or a key that another memory has."""
    for num, memory, _ in new:
        holder = connection.run("num", {"agent": agent, **named(memory.version_id)}).fetchone()
        if holder and holder[0] != num:
            raise InvalidInput(
                f"The id {memory.version_id!r} is taken by another memory of {owner(name)}. "
                "Give each memory an id of its own."
            ) from error
        taken = memory.key and connection.run("head_by_key", {"agent": agent, "key": memory.key}).fetchone()
        if taken and taken[0] != num and memory.superseded_by is None:
            raise InvalidInput(
                f"The key {memory.key!r} is that of memory {id_text(taken[1])!r} of {owner(name)}, and each "
                "key has one current memory. Revise or purge that one, or use another key."
            ) from error


def is_same(stored: Memory, insert: Insert) -> bool:
    """Whether a memory of the same content is the same one."""
    given = insert.memory
    if stored.id == given.id:
        # Two versions of one memory may have the same content; an import stores both.
        return stored.version == given.version
    return not insert.dated or day_of(stored) == day_of(given)


def recognised(
    insert: Insert, known: dict[str, list[tuple[int, Memory]]]
) -> tuple[Insert, list[tuple[int, Memory]]]:
    """The insert by the hash under which it is stored, or will be, and what is known by that hash."""
    memory, dated = insert.memory, insert.dated
    same = known.setdefault(memory.content_hash, [])
    if not dated or not same or any(one.id == memory.id or is_same(one, insert) for _, one in same):
        return insert, same
    return replace(insert, memory=memory.evolve(content_hash=dated)), known.setdefault(dated, [])


# Stored versions of memories: those of one chain, and those of the same content.
#
# Queries and the reading of their rows are separate functions, so that several queries are sent at once.


class VersionRow(NamedTuple):
    """A version of a memory; `id` is that of its row, and `expires_at` in microseconds."""

    num: int
    id: bytes
    is_head: int
    number: int
    expires_at: int | None
    status: str


def versions(connection: Connection, agent: int, memory_id: str) -> Rows:
    """Query all versions of a memory."""
    return connection.run("versions", {"agent": agent, **named(memory_id)})


def chain_of(rows: Rows, memory_id: str, name: str) -> list[VersionRow]:
    """The versions in the rows of `versions`, in their order. Raises NotFound where there are none."""
    chain = list(map(VersionRow._make, rows))
    if not chain:
        raise NotFound(memory_id, name)
    return chain


def same_texts(connection: Connection, agent: int, hashes: set[str]) -> list[Rows]:
    """Query which versions have these content hashes, superseded ones before heads."""
    wanted = {"agent": agent, "hashes": json.dumps(sorted(hashes))}
    return [connection.run(query, wanted) for query in ("nums_by_past", "nums_by_head")]


def nums_of(results: Iterable[Rows]) -> list[int]:
    """The numbers in the rows of `same_texts`."""
    return [num for rows in results for (num,) in rows]


# Vectors as they are stored.

_UNIT_LENGTH_TOLERANCE = 0.01


def packed_vectors(
    vectors: Sequence[Vector | None], embedding: EmbeddingIdentity | None
) -> list[bytes | None]:
    """Vectors as they are stored, see `as_stored`; nothing for each NOWHERE, None for None.

    Raises InvalidInput for what is no embedding.
    """
    given = [each for each in vectors if each is not None and each.shape != NOWHERE.shape]
    packed = iter(as_stored(_checked(given, embedding)) if given else ())
    return [
        None if each is None else b"" if each.shape == NOWHERE.shape else next(packed).tobytes()
        for each in vectors
    ]


def _checked(vectors: Sequence[Vector], embedding: EmbeddingIdentity | None) -> NDArray[np.float32]:
    if embedding is None:
        raise InvalidInput(
            "A vector can't be stored without knowing which model made it. "
            "Open the store with embedding=EmbeddingIdentity(name=..., dimension=...)."
        )
    for each in vectors:
        if each.shape != (embedding.dimension,):
            raise InvalidInput(
                f"A vector of shape {each.shape} is none of {embedding}; "
                f"its shape has to be ({embedding.dimension},)."
            )
    rows = np.stack(vectors)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    # Written so that NaN fails as well.
    wrong = lengths[~(np.abs(lengths - 1.0) <= _UNIT_LENGTH_TOLERANCE)]
    if wrong.size:
        raise InvalidInput(
            f"A vector of length {wrong[0]:g} can't be stored: vectors have unit length and finite numbers. "
            "Divide it by its length, or give no vector for a text that has none."
        )
    return rows


def has_vector(changes: Sequence[Change]) -> bool:
    """Whether any of the changes brings a vector."""
    return any(
        isinstance(each, SetVector) or (isinstance(each, Insert | Revise) and each.vector is not None)
        for each in changes
    )
