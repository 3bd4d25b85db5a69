"""Stand-ins for what costs money, time or certainty: embedder, clock, counter, summarizer, a damaged store.

Level: testing (may import everything below integrations). All of it is deterministic.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.ids import IdSequence
from germane.model.change import Applied, Change
from germane.model.memory import Memory
from germane.model.query import Filter, Found, Order, Query
from germane.model.stats import StoreStats
from germane.protocols import Store

__all__ = [
    "FailingEmbedder",
    "FailingStore",
    "FirstSentenceSummarizer",
    "FixedClock",
    "HashEmbedder",
    "WordCounter",
    "seeded_ids",
]

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r".+?(?:[.!?。！？](?=\s|$|[^\x00-\x7f])|\n|$)", re.DOTALL)
_GRAM = 3
_GRAM_WEIGHT = 0.5


class HashEmbedder:
    """Embeds by hashing words and their character trigrams, so that texts that share words are near.

    The same on every machine and in every process. Vectors have length 1; a text without a
    letter or digit gives zeros.
    """

    def __init__(self, dimension: int = 64, *, name: str | None = None) -> None:
        if dimension < 1:
            raise InvalidInput(f"A dimension of {dimension} is none. Give 1 or more.")
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for feature, weight in _features(text):
                hashed = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                # The lowest bit is the sign, so that unrelated features cancel instead of adding up.
                vectors[row, (hashed >> 1) % self.dimension] += weight if hashed & 1 else -weight
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors

    def __repr__(self) -> str:
        return f"HashEmbedder(dimension={self.dimension})"


class FailingEmbedder:
    """Embeds like HashEmbedder `after` times, then raises `error` for ever."""

    def __init__(
        self, error: Exception | None = None, *, dimension: int = 64, after: int = 0, name: str = "failing"
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.calls = 0
        self._error = error or RuntimeError("this embedder always fails")
        self._after = after
        self._inner = HashEmbedder(dimension)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        if self.calls > self._after:
            raise self._error
        return self._inner.embed(texts)


class FailingStore:
    """A store whose searches for any of some kinds raise `error`, as a part of one may that is damaged.

    Everything else is the inner store's. A search that asks for several sections at once fails whole.
    """

    def __init__(self, inner: Store, kinds: Iterable[str], error: Exception | None = None) -> None:
        self._inner, self._kinds = inner, frozenset(kinds)
        self._error = error or RuntimeError("this part of the store always fails")

    def search(self, agent: str, query: Query) -> Found:
        if any(self._kinds.intersection(part.kinds) for part in query.slices):
            raise self._error
        return self._inner.search(agent, query)

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        return self._inner.apply(agent, changes)

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        return self._inner.get(agent, ids)

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[Memory, ...]:
        return self._inner.find(agent, where, order=order, limit=limit, after=after)

    def stats(self, agent: str) -> StoreStats:
        return self._inner.stats(agent)

    def close(self) -> None:
        self._inner.close()


class FixedClock:
    """A clock that says `start` first, and `step` later at each further reading; `advance` moves it on."""

    def __init__(self, start: datetime, step: timedelta = timedelta(0)) -> None:
        if start.tzinfo is None:
            raise InvalidInput(f"{start!r} has no time zone. Give an aware time, in UTC for instance.")
        self._next = start
        self._step = step

    def __call__(self) -> datetime:
        now = self._next
        self._next += self._step
        return now

    def advance(self, by: timedelta) -> None:
        """Let `by` pass before the next reading."""
        self._next += by


def seeded_ids(seed: int = 0) -> IdSequence:
    """Ids that are the same in each run, for the `ids` of `germane.open`, so that a test can show them.

    They hold the moment of their making, so a test gives a FixedClock as well. Each engine on a store
    needs a seed of its own, since two that make ids alike would refuse each other's memories.
    """
    return IdSequence(random.Random(seed).getrandbits)  # noqa: S311 - test data have to repeat, not to be secret.


class WordCounter:
    """Counts words between white space, so that a test can count by hand; `margin` is settable."""

    def __init__(self, *, margin: float = 0.0, name: str = "words") -> None:
        self.name = name
        self.margin = margin

    def count(self, text: str) -> int:
        return len(text.split())


class FirstSentenceSummarizer:
    """Summarizes to the first sentence, cut after `tokens` words."""

    def summarize(self, text: str, tokens: int) -> str:
        first = _SENTENCE.match(text.strip())
        words = first[0].split() if first else []
        return " ".join(words[: max(0, tokens)])


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in _WORD.findall(text.casefold()):
        yield word, 1.0
        for start in range(len(word) - _GRAM + 1):
            yield f"#{word[start : start + _GRAM]}", _GRAM_WEIGHT
