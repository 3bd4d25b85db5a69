"""Stand-ins for what costs money, time or certainty, and memories with sane defaults for tests.

All of it is deterministic.
"""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.ids import IdSequence
from germane.model.conversation import Message, MessageRole, TextPart
from germane.model.memory import Memory, Outcome, Rendition, Renditions, Scope, Trust, Vector
from germane.model.query import Query, SearchResult
from germane.protocols import Store

__all__ = [
    "START",
    "FailingEmbedder",
    "FailingStore",
    "FirstSentenceSummarizer",
    "FixedClock",
    "HashEmbedder",
    "WordCounter",
    "make_id",
    "make_memories",
    "make_memory",
    "make_message",
    "make_renditions",
    "make_revision",
    "make_vector",
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
        self.apply, self.get, self.find = inner.apply, inner.get, inner.find
        self.stats, self.close = inner.stats, inner.close

    def search(self, agent: str, query: Query) -> SearchResult:
        if any(self._kinds.intersection(part.kinds) for part in query.slices):
            raise self._error
        return self._inner.search(agent, query)


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


# Memories for tests: sane defaults, ids that depend on the content alone, and no clock.

START = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
"""When the memories that the builders make begin."""

_KINDS = ("fact", "decision", "procedure", "episode", "note", "adr", "pattern", "module", "changelog")
_WORDS = """
    postgres redis cache index query schema migration release rollback deploy timeout retry queue
    worker token budget context memory agent session prompt answer evidence ranking scorer vector
    embedding file folder parser lexer compiler network socket certificate login password customer
    invoice refund order shipment warehouse report dashboard metric alert incident review branch
    commit merge test coverage
""".split()  # noqa: SIM905 - a list of sixty quoted words would take sixty lines.


def make_id(seed: str, *, at: datetime = START) -> str:
    """The UUIDv7 of a moment whose random part comes from `seed`."""
    milliseconds = int(at.timestamp() * 1000)
    rest = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:10], "big")
    number = (milliseconds << 80) | rest
    number = (number & ~(0xF << 76)) | (7 << 76)
    number = (number & ~(3 << 62)) | (2 << 62)
    return str(UUID(int=number))


def make_renditions(content: str) -> Renditions:
    """Renditions that cut the content by characters; a token is a word here."""

    def rendition(text: str) -> Rendition:
        return Rendition(text=text, tokens=len(text.split()))

    return Renditions(
        micro=rendition(content[:40]),
        summary=rendition(content[:160]),
        full=rendition(content),
        counter="words",
    )


def make_memory(content: str = "The cache lives in Redis.", **overrides: Any) -> Memory:
    """A fact of agent `tester`, remembered at START, with any field changed.

    Id, content hash and renditions follow from the other fields unless they are given.
    """
    agent = overrides.get("agent", "tester")
    created_at = overrides.get("created_at", START)
    source = overrides.get("source")
    memory_id = overrides.get("id") or make_id(f"{agent}\n{source}\n{content}", at=created_at)
    same = f"{overrides.get('kind', 'fact')}\n{source}\n{content}".encode("utf-8", "surrogatepass")
    values: dict[str, Any] = {
        "id": memory_id,
        "agent": agent,
        "kind": "fact",
        "content": content,
        "renditions": make_renditions(content),
        "created_at": created_at,
        "updated_at": created_at,
        "content_hash": hashlib.sha256(same).hexdigest(),
    }
    return Memory(**(values | overrides))


def make_revision(head: Memory, content: str, **overrides: Any) -> Memory:
    """The next version of the same memory, a minute later, with this content."""
    at = head.updated_at + timedelta(minutes=1)
    values: dict[str, Any] = {
        "agent": head.agent,
        "kind": head.kind,
        "source": head.source,
        "tags": head.tags,
        "subject": head.subject,
        "created_at": at,
        "id": head.id,
        "version": head.version + 1,
    }
    return make_memory(content, **(values | overrides))


def make_memories(count: int, *, seed: int = 0, agent: str = "tester") -> list[Memory]:
    """Different memories of every sort, about 30 words each, minutes apart; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - test data have to repeat, not to be secret.
    made: list[Memory] = []
    at = START
    for number in range(count):
        at += timedelta(seconds=chance.randrange(1, 600))
        words = chance.choices(_WORDS, k=chance.randrange(12, 50))
        content = f"{' '.join(words).capitalize()}, as seen in case {seed}-{number}."
        made.append(
            make_memory(
                content,
                agent=agent,
                created_at=at,
                kind=chance.choice(_KINDS),
                subject=chance.choice((None, "storage", "billing", "Ünïcode ☂")),
                tags=tuple(sorted(set(chance.choices(("db:sqlite", "db:postgres:ha", "ui", "ops"), k=2)))),
                scope=chance.choice((Scope(name="global"), Scope(name="task", value=f"T-{number % 7}"))),
                importance=float(chance.randrange(11)),
                confidence=chance.random(),
                outcome=chance.choice((None, *Outcome)),
                trust=chance.choice(tuple(Trust)),
                pinned=chance.random() < 0.05,  # noqa: PLR2004 - one in twenty.
                metadata={"author": chance.choice(_WORDS), "line": number},
            )
        )
    return made


def make_vector(seed: int, dimension: int = 8) -> Vector:
    """A vector of unit length that depends on the seed alone."""
    raw = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    unit: Vector = raw / np.linalg.norm(raw)
    return unit.astype(np.float32)


# Messages for tests: ids that depend on the place and the text alone, and no clock.


def make_message(text: str = "Is it raining?", *, place: int = 1, **overrides: Any) -> Message:
    """A user's message of one text, `place` minutes after START, with any field changed."""
    at = START + timedelta(minutes=place)
    values: dict[str, Any] = {
        "role": MessageRole.USER,
        "parts": (TextPart(text=text),),
        "id": make_id(f"{place}\n{text}", at=at),
        "created_at": at,
    }
    return Message(**(values | overrides))
