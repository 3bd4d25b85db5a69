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
    from germane.conversation.anchored import RecallLimits
    from germane.conversation.formats import Payload
    from germane.conversation.tiers import Tiers
    from germane.conversation.wanted import RequestShares
    from germane.engine import Engine
    from germane.engine import open_engine as open  # noqa: A004 - `germane.open` is what it is.
    from germane.engine.space import Space
    from germane.errors import (
        BudgetTooSmall,
        DuplicateMember,
        EmbedderMismatch,
        EmbeddingFailed,
        GermaneError,
        InvalidInput,
        InvalidPlan,
        LastActive,
        MissingExtra,
        NotAllowed,
        NotAMember,
        NotFound,
        NotHeld,
        NotSaid,
        PurgeNotConfirmed,
        RequestTooLarge,
        SchemaTooNew,
        SpaceError,
        SpaceTaken,
        StaleRevision,
        StoreBusy,
        StoreError,
        StoreUnavailable,
        UnknownKind,
        UnknownSpace,
        UnreadableSource,
    )
    from germane.kinds import Kind, Piece
    from germane.model.calibration import Calibration
    from germane.model.compaction import Compaction
    from germane.model.context import Context, Item
    from germane.model.conversation import Anchored, DerivedQuery, LeftOut, Selection
    from germane.model.diffs import diff
    from germane.model.draft import Draft, Remembered
    from germane.model.frame import Frame, FrameChoice
    from germane.model.held import AgeBasis, Evicted, Eviction, Held
    from germane.model.holding import Added, Move, MoveKind
    from germane.model.learning import (
        Attested,
        Evidence,
        Example,
        Feedback,
        LearningState,
        Lessons,
        Shown,
        Validation,
        Weights,
    )
    from germane.model.log import ConversationInfo
    from germane.model.memory import Level, Memory, Outcome, Rendition, Renditions, Status, Trust
    from germane.model.message import Group, Message, OpaquePart, Provider, TextPart, ToolCall, ToolResult
    from germane.model.plan import Overflow, Plan, RollOver, Section, Share, Style
    from germane.model.query import Candidate, Filter, Order, Query, TimeRange
    from germane.model.refreshed import Refreshed, RefreshReason
    from germane.model.request import PartUse, Request
    from germane.model.scope import GLOBAL, Scope
    from germane.model.space import Happening, Member, Right, Role, SpaceEvent, SpaceInfo
    from germane.model.stats import EmbeddingIdentity, Finding, LargeMemory, StoreStats
    from germane.model.trace import Emptiness, Entry, Note, Question, Ranked, Reason, SectionUse, Trace
    from germane.model.work import KindsFirst, Work
    from germane.plans.scoped import Profile, Scoped
    from germane.protocols import (
        Checkable,
        Clock,
        Conversing,
        Embedder,
        FrameSelector,
        Holding,
        Learning,
        Multilingual,
        Scorer,
        Sharing,
        Store,
        Summarizer,
        TokenCounter,
        Validating,
    )
    from germane.ranking.decay import Decay
    from germane.tokens import get_counter, register_counter
    from germane.verbs.conversation import Conversation
    from germane.verbs.recall import Recalled
    from germane.verbs.reembed import reembed
    from germane.verbs.working_set import WorkingSet

__version__ = "0.1.0"

__all__ = [
    "GLOBAL",
    "Added",
    "AgeBasis",
    "Anchored",
    "Attested",
    "BudgetTooSmall",
    "Calibration",
    "Candidate",
    "Checkable",
    "Clock",
    "Compaction",
    "Context",
    "Conversation",
    "ConversationInfo",
    "Conversing",
    "Decay",
    "DerivedQuery",
    "Draft",
    "DuplicateMember",
    "Embedder",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "EmbeddingIdentity",
    "Emptiness",
    "Engine",
    "Entry",
    "Evicted",
    "Eviction",
    "Evidence",
    "Example",
    "Feedback",
    "Filter",
    "Finding",
    "Frame",
    "FrameChoice",
    "FrameSelector",
    "GermaneError",
    "Group",
    "Happening",
    "Held",
    "Holding",
    "InvalidInput",
    "InvalidPlan",
    "Item",
    "Kind",
    "KindsFirst",
    "LargeMemory",
    "LastActive",
    "Learning",
    "LearningState",
    "LeftOut",
    "Lessons",
    "Level",
    "Member",
    "Memory",
    "Message",
    "MissingExtra",
    "Move",
    "MoveKind",
    "Multilingual",
    "NotAMember",
    "NotAllowed",
    "NotFound",
    "NotHeld",
    "NotSaid",
    "Note",
    "OpaquePart",
    "Order",
    "Outcome",
    "Overflow",
    "PartUse",
    "Payload",
    "Piece",
    "Plan",
    "Profile",
    "Provider",
    "PurgeNotConfirmed",
    "Query",
    "Question",
    "Ranked",
    "Reason",
    "RecallLimits",
    "Recalled",
    "RefreshReason",
    "Refreshed",
    "Remembered",
    "Rendition",
    "Renditions",
    "Request",
    "RequestShares",
    "RequestTooLarge",
    "Right",
    "Role",
    "RollOver",
    "SchemaTooNew",
    "Scope",
    "Scoped",
    "Scorer",
    "Section",
    "SectionUse",
    "Selection",
    "Share",
    "Sharing",
    "Shown",
    "Space",
    "SpaceError",
    "SpaceEvent",
    "SpaceInfo",
    "SpaceTaken",
    "StaleRevision",
    "Status",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreStats",
    "StoreUnavailable",
    "Style",
    "Summarizer",
    "TextPart",
    "Tiers",
    "TimeRange",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "Trace",
    "Trust",
    "UnknownKind",
    "UnknownSpace",
    "UnreadableSource",
    "Validating",
    "Validation",
    "Weights",
    "Work",
    "WorkingSet",
    "__version__",
    "diff",
    "get_counter",
    "open",
    "reembed",
    "register_counter",
]

_HOMES: dict[str, tuple[str, ...]] = {
    "germane.conversation.anchored": ("RecallLimits",),
    "germane.conversation.formats": ("Payload",),
    "germane.conversation.tiers": ("Tiers",),
    "germane.conversation.wanted": ("RequestShares",),
    "germane.engine": ("Engine", "open"),
    "germane.engine.space": ("Space",),
    "germane.errors": (
        "BudgetTooSmall",
        "DuplicateMember",
        "EmbedderMismatch",
        "EmbeddingFailed",
        "GermaneError",
        "InvalidInput",
        "InvalidPlan",
        "LastActive",
        "MissingExtra",
        "NotAMember",
        "NotAllowed",
        "NotFound",
        "NotHeld",
        "NotSaid",
        "PurgeNotConfirmed",
        "RequestTooLarge",
        "SchemaTooNew",
        "SpaceError",
        "SpaceTaken",
        "StaleRevision",
        "StoreBusy",
        "StoreError",
        "StoreUnavailable",
        "UnknownKind",
        "UnknownSpace",
        "UnreadableSource",
    ),
    "germane.kinds": ("Kind", "Piece"),
    "germane.model.calibration": ("Calibration",),
    "germane.model.compaction": ("Compaction",),
    "germane.model.context": ("Context", "Item"),
    "germane.model.conversation": ("Anchored", "DerivedQuery", "LeftOut", "Selection"),
    "germane.model.diffs": ("diff",),
    "germane.model.draft": ("Draft", "Remembered"),
    "germane.model.held": ("AgeBasis", "Evicted", "Eviction", "Held"),
    "germane.model.holding": ("Added", "Move", "MoveKind"),
    "germane.model.learning": (
        "Attested",
        "Evidence",
        "Example",
        "Feedback",
        "LearningState",
        "Lessons",
        "Shown",
        "Validation",
        "Weights",
    ),
    "germane.model.log": ("ConversationInfo",),
    "germane.model.memory": ("Level", "Memory", "Outcome", "Rendition", "Renditions", "Status", "Trust"),
    "germane.model.message": (
        "Group",
        "Message",
        "OpaquePart",
        "Provider",
        "TextPart",
        "ToolCall",
        "ToolResult",
    ),
    "germane.model.frame": ("Frame", "FrameChoice"),
    "germane.model.plan": ("Overflow", "Plan", "RollOver", "Section", "Share", "Style"),
    "germane.model.query": ("Candidate", "Filter", "Order", "Query", "TimeRange"),
    "germane.model.request": ("PartUse", "Request"),
    "germane.model.refreshed": ("RefreshReason", "Refreshed"),
    "germane.model.scope": ("GLOBAL", "Scope"),
    "germane.model.space": ("Happening", "Member", "Right", "Role", "SpaceEvent", "SpaceInfo"),
    "germane.model.stats": ("EmbeddingIdentity", "Finding", "LargeMemory", "StoreStats"),
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
    "germane.model.work": ("KindsFirst", "Work"),
    "germane.plans.scoped": ("Profile", "Scoped"),
    "germane.protocols": (
        "Checkable",
        "Clock",
        "Conversing",
        "Embedder",
        "FrameSelector",
        "Holding",
        "Learning",
        "Multilingual",
        "Scorer",
        "Sharing",
        "Store",
        "Summarizer",
        "TokenCounter",
        "Validating",
    ),
    "germane.ranking.decay": ("Decay",),
    "germane.tokens": ("get_counter", "register_counter"),
    "germane.verbs.conversation": ("Conversation",),
    "germane.verbs.recall": ("Recalled",),
    "germane.verbs.reembed": ("reembed",),
    "germane.verbs.working_set": ("WorkingSet",),
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
