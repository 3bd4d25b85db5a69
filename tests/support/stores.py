"""The stores that come with the package, and queries for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import germane
from germane.protocols import Query

if TYPE_CHECKING:
    from germane.stores import PostgresStore, SqliteStore

__all__ = ["TablesStore", "query_of", "terms_of"]

TablesStore: TypeAlias = "SqliteStore | PostgresStore"
"""A store that has every sub-store as an attribute."""


def terms_of(text: str, *, language: str = "english") -> tuple[str, ...]:
    """The terms for which an engine of that language searches when it recalls the text."""
    if not text:
        return ()
    with germane.open(":memory:", language=language, embedder=None) as engine:
        return engine.recall(text).question.terms


def query_of(text: str) -> Query:
    """A query by the words of a text."""
    return Query(text=text, terms=terms_of(text))
