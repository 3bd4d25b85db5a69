"""A store that finds what a test says, with the signals that it says: for what a ranking makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import germane
from germane import Filter, Memory, RecallResult
from germane.protocols import Candidate, Clock, Query
from germane.stores import SearchResult, SqliteStore

__all__ = ["FoundStore", "recalled_of"]


class FoundStore:
    """Every search finds the same candidates, whatever the query; nothing is ever written.

    `bound` is the BM25 score of a full match, of a memory's words and of the windows of dialogue alike, and
    `admitted` how many memories the store says that it holds.
    """

    def __init__(
        self, candidates: Sequence[Candidate], *, bound: float = 1.0, admitted: int | None = None
    ) -> None:
        self._candidates = tuple(sorted(candidates, key=lambda one: one.memory.id))
        self._bound = bound
        self._admitted = len(candidates) if admitted is None else admitted
        self._empty = SqliteStore(":memory:")

    def search(self, agent: str, query: Query) -> SearchResult:  # noqa: ARG002 - It holds one agent's.
        return SearchResult(
            slices=tuple(self._candidates for _ in query.slices),
            lexical_bound=self._bound,
            window_bound=self._bound,
            stored=self._admitted,
            admitted=self._admitted,
        )

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:  # noqa: ARG002 - As above.
        known = {one.memory.id: one.memory for one in self._candidates}
        return tuple(known.get(each) for each in ids)

    def find(self, agent: str, where: Filter, **how: Any) -> Any:
        return self._empty.find(agent, where, **how)

    def apply(self, agent: str, changes: Sequence[Any]) -> Any:  # noqa: ARG002 - As above.
        raise AssertionError("Nothing is written to a store that only finds.")

    def stats(self, agent: str) -> Any:
        return self._empty.stats(agent)

    def close(self) -> None:
        self._empty.close()


def recalled_of(
    candidates: Sequence[Candidate],
    question: str = "What is known of this?",
    *,
    clock: Clock,
    bound: float = 1.0,
    gate: bool = False,
) -> RecallResult:
    """What a recall makes of these candidates; every one of them, unless it is gated."""
    store = FoundStore(candidates, bound=bound)
    with closing(store), germane.open(store, embedder=None, clock=clock) as engine:
        return engine.recall(question, limit=max(1, len(candidates)), gate=gate)
