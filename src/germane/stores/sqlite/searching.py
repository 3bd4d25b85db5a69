"""Searches an agent's cache: lexical and semantic candidates united, per slice.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.query import Candidate, Found, Order, Query, Slice
from germane.model.stats import EmbeddingIdentity
from germane.retrieval.postings import UNIT, Scores
from germane.retrieval.terms import term_hash
from germane.stores.sqlite.cache import AgentCache
from germane.stores.vector_rows import Compared, VectorRows

__all__ = ["search"]


def search(
    connection: sqlite3.Connection,
    cache: AgentCache,
    query: Query,
    *,
    embedding: EmbeddingIdentity | None,
) -> Found:
    """What the agent's cache, caught up with the connection's snapshot, has for a query."""
    admitted = cache.admitted(connection, query.filter)
    lexical = _lexical(cache, query)
    semantic = _semantic(connection, cache, query, embedding)
    by_relevance = lexical is not None or semantic is not None
    chosen = [
        _choose(
            cache,
            each,
            admitted if each.where is None else cache.admitted(connection, each.where),
            lexical,
            semantic,
        )
        for each in query.slices
    ]
    candidates = _candidates(connection, cache, chosen, lexical, semantic)
    return Found(
        slices=tuple(tuple(map(candidates.__getitem__, each.tolist())) for each in chosen),
        lexical_bound=lexical.bound if lexical is not None else 0.0,
        stored=cache.columns.used - cache.columns.dead,
        admitted=int(np.count_nonzero(admitted)),
        by_relevance=by_relevance,
    )


def _lexical(cache: AgentCache, query: Query) -> Scores | None:
    """Scores of all the agent's memories: each slice admits its own."""
    if not query.terms:
        return None
    return cache.postings.score([term_hash(term) for term in query.terms])


def _semantic(
    connection: sqlite3.Connection, cache: AgentCache, query: Query, embedding: EmbeddingIdentity | None
) -> Compared | None:
    if query.vector is None:
        return None
    if embedding is None:
        # No vector was ever stored, so there is nothing to compare with.
        return VectorRows(query.vector.size).compare(query.vector)
    if query.vector.shape != (embedding.dimension,):
        raise InvalidInput(
            f"A vector of shape {query.vector.shape} can't be compared with those of {embedding}; "
            f"its shape has to be ({embedding.dimension},)."
        )
    if not np.all(np.isfinite(query.vector)):
        raise InvalidInput("The query's vector holds NaN or infinity. Give finite numbers, or no vector.")
    return cache.vectors(connection, embedding.dimension).compare(query.vector)


def _choose(
    cache: AgentCache,
    part: Slice,
    admitted: NDArray[np.bool_],
    lexical: Scores | None,
    semantic: Compared | None,
) -> NDArray[np.int64]:
    """The ordinals of one slice, ascending by id."""
    columns = cache.columns
    mask = admitted & columns.of_kinds(part.kinds) if part.kinds else admitted
    if part.order is not None or (lexical is None and semantic is None):
        chosen = columns.first(mask, part.order or Order.NEWEST, part.limit)
    else:
        found: list[NDArray[np.int64]] = []
        if lexical is not None:
            kept = mask[lexical.ordinals]
            found.append(columns.best(lexical.ordinals[kept], lexical.scores[kept], part.limit))
        if semantic is not None:
            near = semantic.nearest(mask, part.limit)
            found.append(columns.best(near, semantic.cosines(near), part.limit))
        chosen = _distinct(found)
    return chosen[np.argsort(columns.ids[chosen])]


def _distinct(several: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Every ordinal once, ascending. As `np.unique`, which imports all of numpy's masked arrays."""
    ordered = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *several]))
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered


def _candidates(
    connection: sqlite3.Connection,
    cache: AgentCache,
    chosen: Sequence[NDArray[np.int64]],
    lexical: Scores | None,
    semantic: Compared | None,
) -> dict[int, Candidate]:
    """A candidate for every ordinal chosen, with each signal that the query asks for."""
    together = _distinct(chosen)
    ordinals: list[int] = together.tolist()
    signals: list[dict[str, float]] = [{} for _ in ordinals]
    if lexical is not None:
        for each, score in zip(signals, _scores_of(lexical, together), strict=True):
            each["lexical"] = score
    if semantic is not None:
        for each, cosine in zip(signals, semantic.cosines(together).tolist(), strict=True):
            # NaN, which is not itself, stands for a memory that has no vector.
            if cosine == cosine:  # noqa: PLR0124 - the fastest test for NaN in a loop over hundreds.
                each["semantic"] = cosine
    records = cache.records(connection, ordinals)
    return {
        ordinal: Candidate(memory=records[ordinal], signals=found)
        for ordinal, found in zip(ordinals, signals, strict=True)
    }


def _scores_of(lexical: Scores, ordinals: NDArray[np.int64]) -> list[float]:
    scores = np.zeros(len(ordinals))
    if len(lexical.ordinals):
        places = np.searchsorted(lexical.ordinals, ordinals)
        places[places == len(lexical.ordinals)] = 0
        present = lexical.ordinals[places] == ordinals
        scores[present] = lexical.scores[places[present]] / UNIT
    found: list[float] = scores.tolist()
    return found
