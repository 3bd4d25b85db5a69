"""An index of its own for the vectors of one agent: made, taken away, and asked about.

Level: stores (imports errors and the SQL).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.stores.postgres.connecting.connection import Raw
from germane.stores.sql import queries

__all__ = ["WORTH_IT", "index_agent", "marked", "unindex_agent"]

WORTH_IT: Final = 20_000
"""From so many memories of one agent on its index is asked: `bench/nearest.py` measures what that saves."""

_MOST_DIMENSIONS: Final = 4000  # Of pgvector's, for vectors of 16 bits in such an index.

_AGENT = b"""
SELECT agents.agent, (SELECT value FROM settings WHERE name = 'embedding_dimension'),
       (SELECT tableoid::regclass::text FROM vectors WHERE vectors.agent = agents.agent LIMIT 1),
       (SELECT count(*) FROM vectors WHERE vectors.agent = agents.agent)
FROM agents WHERE name = %s
"""


def marked(name: str, **marks: object) -> str:
    """The text of a named query with whole numbers or names of tables in place of its marks."""
    text = queries("postgres")[name]
    for mark, value in marks.items():
        text = text.replace(f"{{{mark}}}", str(value))
    return text


def index_agent(raw: Raw, name: str) -> int:
    """Build the index of an agent's vectors, unless it is there, and return how many vectors there are.

    One that an interrupted call has left half built is built anew. Raises NotFound for an unknown agent,
    and InvalidInput for one without vectors, or with vectors too long.
    """
    found = _agent(raw, name)
    if found.table is None or found.dimension is None:
        raise InvalidInput(f"Agent {name!r} has no vectors to index. `germane embed` makes them.")
    if found.dimension > _MOST_DIMENSIONS:
        raise InvalidInput(
            f"The vectors have {found.dimension} dimensions, and an index takes {_MOST_DIMENSIONS} at most. "
            "They are compared without one."
        )
    valid = raw.execute(_text("indexed_vectors"), {"agent": found.agent}).fetchone()
    if valid == (False,):
        unindex_agent(raw, name)
    marks = {"agent": found.agent, "dimension": found.dimension, "table": found.table}
    raw.execute(marked("index_vectors", **marks).encode(), prepare=False)
    return found.vectors


def unindex_agent(raw: Raw, name: str) -> int:
    """Take an agent's index away, if it has one; how many vectors it has. Raises NotFound."""
    found = _agent(raw, name)
    raw.execute(marked("unindex_vectors", agent=found.agent).encode(), prepare=False)
    return found.vectors


class _Agent(NamedTuple):
    agent: int
    dimension: int | None
    table: str | None
    vectors: int


def _agent(raw: Raw, name: str) -> _Agent:
    row = raw.execute(_AGENT, (name,)).fetchone()
    if row is None:
        raise NotFound(name, name)
    agent, dimension, table, vectors = row
    return _Agent(agent, None if dimension is None else int(dimension), table, vectors)


def _text(name: str) -> bytes:
    return queries("postgres")[name].encode()
