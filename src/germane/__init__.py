"""Germane: the best context that provably fits a token budget, with an account of what was left out.

The only public door. `germane.open` gives an engine; everything else here is what its methods
take, return and raise. `germane.aio` offers the same with await; `germane.testing`,
`germane.exchange` and `germane.evaluation` are imported by name.
"""

from __future__ import annotations

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
