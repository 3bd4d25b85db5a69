"""Every extension door in one file. Structural: an object with these members fits, nothing to inherit.

Level: protocols (imports model and errors).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from germane.model.change import Applied, Change
from germane.model.learning import Example, LearningState
from germane.model.memory import Memory
from germane.model.query import Candidate, Filter, Found, Order, Query
from germane.model.stats import Finding, StoreStats

__all__ = [
    "Checkable",
    "Clock",
    "Embedder",
    "Learning",
    "Multilingual",
    "Scorer",
    "Store",
    "Summarizer",
    "TokenCounter",
]


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens.

    `name` identifies the counting (it is stored beside the counts). `margin` is the error bound
    as a fraction: the true count is at most `count * (1 + margin)`. Exact counters have margin 0.
    """

    @property
    def name(self) -> str: ...

    @property
    def margin(self) -> float: ...

    def count(self, text: str) -> int:
        """How many tokens the text has; never negative, 0 for an empty text."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. `name` and `dimension` are stored with them.

    An embedder may have an attribute `eager`. Where it is False, nothing waits for the embedder that
    writes: a thread of the engine's embeds afterwards. Without it, what is stored has its vector at once.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, in order: float32 of shape (len(texts), dimension), any length of vector."""
        ...


@runtime_checkable
class Summarizer(Protocol):
    """Shortens a text, by a language model for instance."""

    def summarize(self, text: str, tokens: int) -> str:
        """The text in about `tokens` tokens or fewer."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps memories. It speaks storage, not features: six methods, all but the last per agent.

    Every implementation has to pass `germane.testing.contract.StoreContract`, which says what
    each method promises.
    """

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in one transaction, in order, or none of them."""
        ...

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        """The memories of these ids whatever their status, in the order asked; None where there is none."""
        ...

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass the filter, in order; `after` is the last id of the page before."""
        ...

    def search(self, agent: str, query: Query) -> Found:
        """The candidates for a query, from one snapshot of the store."""
        ...

    def stats(self, agent: str) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
        ...


@runtime_checkable
class Checkable(Protocol):
    """What only some stores can do: look for damage in themselves."""

    def check(self, agent: str) -> tuple[Finding, ...]:
        """What is wrong with the store or this agent's part of it; empty when nothing is."""
        ...


@runtime_checkable
class Multilingual(Protocol):
    """What only some stores can do: index the words of each agent in a language of its own."""

    def settle_language(self, agent: str, language: str | None) -> str:
        """Make this the language of the agent's words; with None leave it. Returns the one that holds.

        Raises InvalidInput for a language without a stemmer.
        """
        ...


@runtime_checkable
class Learning(Protocol):
    """What only some stores can do: keep what was used, for an agent that wants to learn from it.

    Such a store keeps an example of each `Judge` that names parts, while the agent learns. It keeps
    a bounded number for each agent, and the oldest leave; a purged memory takes its own with it.
    """

    def settle_learning(self, agent: str, on: bool | None) -> LearningState:
        """Switch an agent's learning on or off; with None leave it. Returns how it is now."""
        ...

    def examples(self, agent: str) -> tuple[Example, ...]:
        """The agent's examples, by context and then by memory, from one snapshot of the store."""
        ...

    def unlearn(self, agent: str) -> int:
        """Remove all examples of an agent, and return how many there were; uses stay counted."""
        ...


Scorer: TypeAlias = Callable[[Candidate, Query, datetime], float]
"""Scores one candidate for a query at a moment. Must be pure: same arguments, same score."""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, aware. Read once per call of the engine."""
