"""Figures and findings about a store.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

__all__ = ["EmbeddingIdentity", "Finding", "StoreStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingIdentity:
    """Which model made the vectors of a store; vectors of two models can't be compared."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Figures about one agent's memories and the store that holds them.

    `tokens` sums the stored counts of the full renditions; `bytes` is the size of the whole store
    on disk (0 in memory). `pending` counts the memories that wait for a vector, forgotten ones
    aside; it is 0 while nobody has named a model. `language` is that of the agent's words.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found wrong, with its remedy."""

    code: str
    text: str
    remedy: str
