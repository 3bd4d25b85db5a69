"""One file for each verb: fetch what the pure rooms need, let them decide, apply what they decided.

The engine says `from germane import verbs` and calls `verbs.recall.recall(...)`: a verb's file, and all
that it stands on, is loaded when the verb is first called. So a process pays for what it does, and not
for all that it could do. A new verb that the engine calls stands twice below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.operations import (
        conversation,
        drafts,
        feedback,
        frame,
        ledger,
        lifecycle,
        memories,
        read,
        refresh,
        request,
        scoped,
        search,
        spaces,
        working_set,
    )

__all__ = [
    "conversation",
    "drafts",
    "feedback",
    "frame",
    "ledger",
    "lifecycle",
    "memories",
    "read",
    "refresh",
    "request",
    "scoped",
    "search",
    "spaces",
    "working_set",
]

if not TYPE_CHECKING:  # A checker that saw this function would let every misspelt name pass.

    def __getattr__(name: str) -> object:
        """The file of a verb, when it is first named; from then on it is an attribute as any other."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
