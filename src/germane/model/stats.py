"""Figures and findings about a store.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["LARGE", "EmbeddingIdentity", "Finding", "LargeMemory", "StoreStats"]

LARGE = 4000
"""Tokens: what half of a usual budget of 8,000 can just hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingIdentity:
    """Which model made the vectors of a store; vectors of two models can't be compared."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMemory:
    """A memory so long that it leaves little room for others; `label` is its shortest text."""

    id: str
    kind: str
    scope: str
    label: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Figures about one agent's memories and the store that holds them.

    `tokens` sums the stored counts of the full renditions; `bytes` is the size of the whole store
    on disk (0 in memory). `pending` counts the memories that wait for a vector, forgotten ones
    aside; it is 0 while nobody has named a model. `language` is that of the agent's words.
    `tokens_by_scope` sums the tokens of the active memories by the name of their scope; `large` are the
    longest of these, where one alone takes more than `LARGE` tokens.
    """

    location: str
    schema_version: int
    agent: str
    memories: int
    by_kind: Mapping[str, int]
    by_status: Mapping[str, int]
    tokens: int
    vectors: int
    embedding: EmbeddingIdentity | None
    bytes: int
    oldest: datetime | None = None
    newest: datetime | None = None
    pending: int = 0
    language: str = "english"
    tokens_by_scope: Mapping[str, int] = field(default_factory=dict)
    large: tuple[LargeMemory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found, with its remedy: damage, or `advice` where nothing is wrong."""

    code: str
    text: str
    remedy: str
    advice: bool = False
