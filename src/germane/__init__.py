"""Germane: the best context that provably fits a token budget, with an account of what was left out.

The only public door. `germane.open` gives an engine; everything else here is what its methods
take, return and raise. `germane.aio` offers the same with await; `germane.testing`,
`germane.exchange` and `germane.evaluation` are imported by name.

A name's module is imported when the name is first asked for, so that `import germane` costs next to
nothing. A new public name stands three times: in the imports for type checkers, in `_HOMES` and in
`__all__`; a test holds them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.engine import Engine
    from germane.engine import open_engine as open  # noqa: A004 - `germane.open` is what it is.
    from germane.errors import (
        BudgetTooSmall,
        EmbedderMismatch,
        EmbeddingFailed,
        GermaneError,
        InvalidInput,
        InvalidPlan,
        MissingExtra,
        NotFound,
        NotHeld,
        PurgeNotConfirmed,
        SchemaTooNew,
        StaleRevision,
        StoreBusy,
        StoreError,
        StoreUnavailable,
        UnknownKind,
        UnreadableSource,
    )
    from germane.kinds import Kind, Piece
    from germane.model.context import Context, Item
    from germane.model.draft import Draft, Remembered
    from germane.model.learning import Example, Feedback, LearningState, Lessons, Shown, Weights
    from germane.model.memory import Level, Memory, Outcome, Rendition, Renditions, Status, Trust
    from germane.model.plan import Frame, Overflow, Plan, RollOver, Section, Share
    from germane.model.query import Candidate, Filter, Order, Query, TimeRange
    from germane.model.scope import GLOBAL, Scope
    from germane.model.stats import EmbeddingIdentity, Finding, StoreStats
    from germane.model.trace import Emptiness, Entry, Note, Question, Ranked, Reason, SectionUse, Trace
    from germane.protocols import (
        Checkable,
        Clock,
        Embedder,
        Holding,
        Learning,
        Multilingual,
        Scorer,
        Store,
        Summarizer,
        TokenCounter,
    )
    from germane.tokens import get_counter, register_counter
    from germane.verbs.recall import Recalled
    from germane.verbs.reembed import reembed

__version__ = "0.1.0"

__all__ = [
    "GLOBAL",
    "BudgetTooSmall",
    "Candidate",
    "Checkable",
    "Clock",
    "Context",
    "Draft",
    "Embedder",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "EmbeddingIdentity",
    "Emptiness",
    "Engine",
    "Entry",
    "Example",
    "Feedback",
    "Filter",
    "Finding",
    "Frame",
    "GermaneError",
    "Holding",
    "InvalidInput",
    "InvalidPlan",
    "Item",
    "Kind",
    "Learning",
    "LearningState",
    "Lessons",
    "Level",
    "Memory",
    "MissingExtra",
    "Multilingual",
    "NotFound",
    "NotHeld",
    "Note",
    "Order",
    "Outcome",
    "Overflow",
    "Piece",
    "Plan",
    "PurgeNotConfirmed",
    "Query",
    "Question",
    "Ranked",
    "Reason",
    "Recalled",
    "Remembered",
    "Rendition",
    "Renditions",
    "RollOver",
    "SchemaTooNew",
    "Scope",
    "Scorer",
    "Section",
    "SectionUse",
    "Share",
    "Shown",
    "StaleRevision",
    "Status",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreStats",
    "StoreUnavailable",
    "Summarizer",
    "TimeRange",
    "TokenCounter",
    "Trace",
    "Trust",
    "UnknownKind",
    "UnreadableSource",
    "Weights",
    "__version__",
    "get_counter",
    "open",
    "reembed",
    "register_counter",
]

_HOMES: dict[str, tuple[str, ...]] = {
    "germane.engine": ("Engine", "open"),
    "germane.errors": (
        "BudgetTooSmall",
        "EmbedderMismatch",
        "EmbeddingFailed",
        "GermaneError",
        "InvalidInput",
        "InvalidPlan",
        "MissingExtra",
        "NotFound",
        "NotHeld",
        "PurgeNotConfirmed",
        "SchemaTooNew",
        "StaleRevision",
        "StoreBusy",
        "StoreError",
        "StoreUnavailable",
        "UnknownKind",
        "UnreadableSource",
    ),
    "germane.kinds": ("Kind", "Piece"),
    "germane.model.context": ("Context", "Item"),
    "germane.model.draft": ("Draft", "Remembered"),
    "germane.model.learning": ("Example", "Feedback", "LearningState", "Lessons", "Shown", "Weights"),
    "germane.model.memory": ("Level", "Memory", "Outcome", "Rendition", "Renditions", "Status", "Trust"),
    "germane.model.plan": ("Frame", "Overflow", "Plan", "RollOver", "Section", "Share"),
    "germane.model.query": ("Candidate", "Filter", "Order", "Query", "TimeRange"),
    "germane.model.scope": ("GLOBAL", "Scope"),
    "germane.model.stats": ("EmbeddingIdentity", "Finding", "StoreStats"),
    "germane.model.trace": (
        "Emptiness",
        "Entry",
        "Note",
        "Question",
        "Ranked",
        "Reason",
        "SectionUse",
        "Trace",
    ),
    "germane.protocols": (
        "Checkable",
        "Clock",
        "Embedder",
        "Holding",
        "Learning",
        "Multilingual",
        "Scorer",
        "Store",
        "Summarizer",
        "TokenCounter",
    ),
    "germane.tokens": ("get_counter", "register_counter"),
    "germane.verbs.recall": ("Recalled",),
    "germane.verbs.reembed": ("reembed",),
}
"""The public names by the module that has them."""
_RENAMED = {"open": "open_engine"}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # A checker that saw this function would let every misspelt name pass.

    def __getattr__(name: str) -> object:
        """The public name, from the module that has it; from then on it is an attribute as any other."""
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(module), _RENAMED.get(name, name))
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
