"""Searches an agent's cache: the candidates of every signal united, per slice.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.learning import LearningState
from germane.model.picking import Seen
from germane.model.query import Candidate, Filter, Found, Query, Slice
from germane.model.slate import Slate
from germane.model.stats import EmbeddingIdentity
from germane.retrieval.informative import shares_of
from germane.retrieval.terms import term_hash
from germane.retrieval.vectors import VectorRows
from germane.stores.relational.connection import Connection
from germane.stores.relational.searches.cache import AgentCache
from germane.stores.signals import Cosines, Coverage, Lexical, Semantic, Signal, WindowSemantic

__all__ = ["search"]


def search(
    connection: Connection,
    cache: AgentCache,
    query: Query,
    *,
    embedding: EmbeddingIdentity | None,
    learning: LearningState,
) -> Found:
    """What the agent's cache, caught up with the connection's snapshot, has for a query."""
    asked = (query, None if query.vector is None else query.vector.tobytes(), embedding)
    # What was kept holds whatever is picked of it by now.
    found = cache.known(asked) if query.pick is None else None
    if found is None:
        found = _searched(connection, cache, query, embedding, learning)
        if not found.picked:
            cache.keep(asked, found)
    return found if found.learning == learning else replace(found, learning=learning)


def _searched(
    connection: Connection,
    cache: AgentCache,
    query: Query,
    embedding: EmbeddingIdentity | None,
    learning: LearningState,
) -> Found:
    admitted = cache.admitted(connection, query.filter)
    compared = _compared(connection, cache, query, embedding)
    signals, bounds = _signals(connection, cache, query, compared)
    chosen = [_choose(connection, cache, each, each.where or query.filter, signals) for each in query.slices]
    found = Found(
        slices=(),
        lexical_bound=bounds.get("lexical", 0.0),
        window_bound=bounds.get("window_lexical", 0.0),
        stored=cache.columns.used - cache.columns.dead,
        admitted=int(np.count_nonzero(admitted)),
        by_relevance=bool(signals),
        learning=learning,
    )
    picked = _picked(connection, cache, query, chosen, signals=signals, found=found)
    if picked is not None:
        return replace(found, slices=(picked,), picked=True)
    return replace(found, slices=_gathered(connection, cache, chosen, signals))


def _signals(
    connection: Connection, cache: AgentCache, query: Query, compared: Cosines | None
) -> tuple[list[Signal], dict[str, float]]:
    """The signals that the query asks for, and the bounds of the lexical ones.

    They score all the agent's memories: each slice admits its own. A window holds only what the query's
    filter admits; how many memories have a term is counted over all that the agent has.
    """
    sessions, turns = cache.sessions(connection, query.filter), cache.columns.turns
    signals: list[Signal] = []
    bounds: dict[str, float] = {}
    if query.terms:
        hashes = [term_hash(term) for term in query.terms]
        informative = sorted({term_hash(term) for term in query.informative})
        postings = cache.postings(connection, [*hashes, *informative])
        scores = postings.score(hashes)
        signals.append(Lexical("lexical", scores))
        bounds["lexical"] = scores.bound
        if sessions is not None:
            windows = sessions.score(postings.of_terms(hashes))
            signals.append(Lexical("window_lexical", windows, turns))
            bounds["window_lexical"] = windows.bound
        if query.informative:
            shares = shares_of(np.array(informative, dtype=np.uint32))
            signals.append(Coverage(shares, postings.of_terms(informative), cache.columns.used))
    if compared is not None:
        signals.append(Semantic(compared))
        if sessions is not None:
            signals.append(WindowSemantic(compared, sessions, turns))
    return signals, bounds


def _compared(
    connection: Connection, cache: AgentCache, query: Query, embedding: EmbeddingIdentity | None
) -> Cosines | None:
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
    return cache.compared(connection, query.vector)


def _choose(
    connection: Connection, cache: AgentCache, part: Slice, where: Filter, signals: Sequence[Signal]
) -> NDArray[np.int64]:
    """The ordinals of one slice, ascending by id."""
    columns = cache.columns
    if part.order is not None or not signals:
        return cache.first(connection, part, where)
    mask = cache.of_slice(connection, part, where)
    near = [signal.nearest(mask, part.limit) for signal in signals]
    chosen = _distinct([columns.best(ordinals, values, part.limit) for ordinals, values in near])
    return chosen[np.argsort(columns.ids[chosen])]


def _picked(
    connection: Connection,
    cache: AgentCache,
    query: Query,
    chosen: Sequence[NDArray[np.int64]],
    *,
    signals: Sequence[Signal],
    found: Found,
) -> Slate | None:
    """The candidates that the query picks; None where it wants them all, or that can't be asked of it."""
    if query.pick is None or not signals or any(part.order is not None for part in query.slices):
        return None
    ordinals = _distinct(chosen)
    columns = {signal.name: signal.values(ordinals) for signal in signals}
    places = query.pick(
        Seen(
            signals=columns,
            created=cache.columns.created[ordinals],
            ids=cache.columns.ids[ordinals],
            lexical_bound=found.lexical_bound,
            admitted=found.admitted,
            learning=found.learning,
        )
    )
    if places is None:
        return None
    wanted: list[int] = ordinals[places].tolist()
    records = cache.records(connection, wanted)
    return Slate(
        tuple(map(records.__getitem__, wanted)), {name: column[places] for name, column in columns.items()}
    )


def _gathered(
    connection: Connection,
    cache: AgentCache,
    chosen: Sequence[NDArray[np.int64]],
    signals: Sequence[Signal],
) -> tuple[Sequence[Candidate], ...]:
    """The candidates of each slice, with each signal that the query asks for.

    They stay columns until they are looked at: most are judged by their signals alone.
    """
    together = _distinct(chosen)
    values = {signal.name: signal.values(together) for signal in signals}
    records = cache.records(connection, together.tolist())
    slices: list[Sequence[Candidate]] = []
    for each in chosen:
        places = np.searchsorted(together, each)
        columns = {name: column[places] for name, column in values.items()}
        slices.append(Slate(tuple(map(records.__getitem__, each.tolist())), columns))
    return tuple(slices)


def _distinct(several: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Every ordinal once, ascending. As `np.unique`, which imports all of numpy's masked arrays."""
    ordered = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *several]))
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered
