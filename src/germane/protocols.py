"""The protocols that users implement. Structural: an object with these members fits, nothing to inherit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from germane.model.query import Candidate, Filter, Order, Query, SearchResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from germane.ledger import StoreStats
    from germane.model.change import Applied, Change
    from germane.model.conversation import Message
    from germane.model.extraction import Proposal
    from germane.model.memory import Memory
    from germane.model.plan import Frame

__all__ = [
    "Candidate",
    "Clock",
    "Embedder",
    "Extractor",
    "FrameSelector",
    "Query",
    "Reranker",
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
    `least_cosine` is the cosine above which two texts are more than randomly alike: 0.18 unless it says.
    One whose attribute `instant` is True embeds a thousand short texts in some ten milliseconds and without
    a network: a search asks it for the vectors of passages of long memories as well.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, in order: float32 of shape (len(texts), dimension), any length of vector."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores texts by how well they answer a question. `name` stands in the records of what it ranked.

    A query waits for it as many seconds as its attribute `timeout` says, 2 unless it says, and goes on
    without it then. It is called in a thread of its own, by several threads at once if they share an engine.
    """

    @property
    def name(self) -> str: ...

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One finite score per text, in order: more is better, on any scale."""
        ...


@runtime_checkable
class Summarizer(Protocol):
    """Shortens a text, by a language model for instance."""

    def summarize(self, text: str, tokens: int) -> str:
        """The text in about `tokens` tokens or fewer."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Proposes what to learn from messages. `name` stands in the log of what it proposed.

    It decides nothing: `Engine.learn_from` refuses what the messages don't support, and matches the rest with
    what is known. One that calls a model returns an `Extraction`, which has each call; one with an attribute
    `max_tokens` isn't called any more in a run whose calls took that many tokens.
    """

    @property
    def name(self) -> str: ...

    def extract(self, messages: Sequence[Message], known: Sequence[Memory]) -> Sequence[Proposal]:
        """The proposals, in the order of the messages; each quotes the messages that support it, by id.

        `known` are the memories that may be related: a proposal may name the id of one in `replaces`.
        """
        ...


@runtime_checkable
class Store(Protocol):
    """Stores memories: six methods, all but `close` for one agent.

    Every implementation has to pass `germane.testing.contract.StoreContract`, which says what each method
    promises. A store may also have sub-stores as attributes: `conversations`, `feedback`, `learning`,
    `ledger`, `lifecycle`, `maintenance`, `notifications`, `spaces` and `working_sets`. What needs a sub-store
    that the store doesn't have, or that is None, raises InvalidInput and names it.
    """

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in one transaction, in order, or none of them."""
        ...

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        """The memories of these ids in any status, in the order of `ids`; None where there is none."""
        ...

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
        now: datetime | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass the filter, in order; `after` is the last id of the page before.

        What has expired by `now` is left out; nothing for None.
        """
        ...

    def search(self, agent: str, query: Query) -> SearchResult:
        """The candidates for a query, from one snapshot of the store."""
        ...

    def stats(self, agent: str) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
        ...


Scorer: TypeAlias = Callable[[Candidate, Query, datetime], float]
"""Scores one candidate for a query at a moment. Must be pure: same arguments, same score."""

FrameSelector: TypeAlias = Callable[[str, "Sequence[Frame]"], "Frame | str"]
"""Chooses a frame for a text, a model for instance: one of the frames given, or its name.

Where it raises, or names none of them, words choose instead, and the trace says so.
"""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, aware. Read once per call of the engine."""
