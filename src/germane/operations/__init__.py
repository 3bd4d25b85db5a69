"""What the engine can do: each operation fetches its input, calls pure functions, and applies the result.

A module holds the operations on one subject. The engine calls `operations.search.recall(...)`, for
instance, and the module is imported at its first use, so that a process loads only what it needs. A new
module that the engine calls is listed twice below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.operations import (
        access,
        assemble,
        conversation,
        drafts,
        entities,
        feedback,
        frame,
        learning,
        ledger,
        lifecycle,
        listing,
        memories,
        message_search,
        past,
        provenance,
        quarantine,
        read,
        recording,
        reflection,
        refresh,
        replies,
        request,
        search,
        session_summaries,
        spaces,
        stores,
        unlearning,
        working_set,
    )

__all__ = [
    "access",
    "assemble",
    "conversation",
    "drafts",
    "entities",
    "feedback",
    "frame",
    "learning",
    "ledger",
    "lifecycle",
    "listing",
    "memories",
    "message_search",
    "past",
    "provenance",
    "quarantine",
    "read",
    "recording",
    "reflection",
    "refresh",
    "replies",
    "request",
    "search",
    "session_summaries",
    "spaces",
    "stores",
    "unlearning",
    "working_set",
]

if not TYPE_CHECKING:  # A checker that saw this function would let every misspelt name pass.

    def __getattr__(name: str) -> object:
        """A module of operations, imported when it is first named; later it is an ordinary attribute."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
