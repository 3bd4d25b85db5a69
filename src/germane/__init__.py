"""Germane: the best context that provably fits a token budget, with an account of what was left out.

The only public door. `germane.open` gives an engine; everything else here is what its methods
take, return and raise. `germane.aio` offers the same with await; `germane.testing`,
`germane.importers` and `germane.evaluation` are imported by name.

A name's module is imported when the name is first asked for, so that `import germane` costs next to
nothing. A new public name stands three times: in the imports for type checkers, in `germane.exports` and
in `__all__`; a test holds them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from germane.exports import HOMES as _HOMES
from germane.exports import RENAMED as _RENAMED

if TYPE_CHECKING:
    from germane.conversation.formats import Payload
    from germane.conversation.layout import RequestShares
    from germane.conversation.views import RecallLimits, Tiers
    from germane.engine import Engine
    from germane.engine import open_engine as open  # noqa: A004 - `germane.open` is what it is.
    from germane.engine.space import Space
    from germane.errors import (
        AssemblyNotFound,
        BudgetTooSmall,
        DuplicateMember,
        EmbedderMismatch,
        EmbeddingFailed,
        GermaneError,
        InvalidInput,
        InvalidPlan,
        LastActive,
        MessageNotFound,
        MissingExtra,
        NotAllowed,
        NotAMember,
        NotFound,
        NotInWorkingSet,
        NotWorthKeeping,
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
    from germane.kinds import Kind, TemplatePart
    from germane.model.change import UsageHistory
    from germane.model.context import (
        Context,
        EmptyReason,
        Entry,
        Fused,
        Item,
        Question,
        Ranked,
        Reason,
        RefreshReason,
        RefreshResult,
        SectionUsage,
        Trace,
        TraceNote,
    )
    from germane.model.conversation import (
        Anchored,
        Compaction,
        ConversationInfo,
        DerivedQuery,
        Group,
        LeftOut,
        Message,
        MessageRole,
        OpaquePart,
        Provider,
        Selection,
        TextPart,
        ToolCall,
        ToolResult,
    )
    from germane.model.learning import (
        DecisionCalibration,
        Example,
        Feedback,
        Impressions,
        LearningReport,
        LearningStatus,
        ObserveResult,
        OutcomeHistory,
        OutcomeRecord,
        OutcomeResult,
        Weights,
    )
    from germane.model.ledger import (
        AgentFigures,
        Assembly,
        AssemblyDiff,
        DatabaseStatus,
        Day,
        EmbeddingIdentity,
        Erasure,
        Finding,
        LargeMemory,
        LedgerEntry,
        MemoryChange,
        MemoryChangeKind,
        Metrics,
        Reconcile,
        Replay,
        StoreStats,
        Upkeep,
        UpkeepStep,
        UpkeepTask,
        ValueChange,
        VectorIndex,
    )
    from germane.model.memory import (
        GLOBAL,
        Cause,
        Draft,
        Level,
        LifecycleEvent,
        LifecycleSignal,
        LifecycleState,
        Memory,
        Outcome,
        QualityFlag,
        RememberResult,
        Rendition,
        Renditions,
        Scope,
        Stage,
        Status,
        Trust,
        diff,
    )
    from germane.model.plan import (
        Frame,
        FrameChoice,
        KindPriority,
        Overflow,
        Plan,
        RollOver,
        Section,
        Share,
        Style,
        TaskContext,
    )
    from germane.model.query import Candidate, Filter, Order, Query, TimeRange
    from germane.model.request import PartUsage, Request, TokenCalibration
    from germane.model.space import Member, Right, Role, SpaceEvent, SpaceEventKind, SpaceInfo
    from germane.model.working_set import (
        AddResult,
        AgeBasis,
        Evicted,
        Eviction,
        WorkingSetEvent,
        WorkingSetEventKind,
        WorkingSetItem,
    )
    from germane.operations.conversation import Conversation
    from germane.operations.ledger import Ledger
    from germane.operations.search import RecallResult
    from germane.operations.setup import reembed
    from germane.operations.stores import (
        CopyReport,
        Removal,
        copy_store,
        distribute_store,
        erase_purged,
        index_vectors,
        migrate_store,
        reindex_store,
        remove_agent,
        store_agents,
        store_status,
        vacuum_store,
    )
    from germane.operations.working_set import WorkingSet
    from germane.plans.scoped import Profile, ScopedPlan
    from germane.protocols import (
        Clock,
        Embedder,
        FrameSelector,
        Scorer,
        Store,
        Summarizer,
        TokenCounter,
    )
    from germane.ranking.eviction import Decay
    from germane.ranking.signals import fuse_ranks, fuse_scores
    from germane.stores.relational.agents import AgentCopy
    from germane.tokens import get_counter, register_counter

__all__ = [
    "GLOBAL",
    "AddResult",
    "AgeBasis",
    "AgentCopy",
    "AgentFigures",
    "Anchored",
    "Assembly",
    "AssemblyDiff",
    "AssemblyNotFound",
    "BudgetTooSmall",
    "Candidate",
    "Cause",
    "Clock",
    "Compaction",
    "Context",
    "Conversation",
    "ConversationInfo",
    "CopyReport",
    "DatabaseStatus",
    "Day",
    "Decay",
    "DecisionCalibration",
    "DerivedQuery",
    "Draft",
    "DuplicateMember",
    "Embedder",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "EmbeddingIdentity",
    "EmptyReason",
    "Engine",
    "Entry",
    "Erasure",
    "Evicted",
    "Eviction",
    "Example",
    "Feedback",
    "Filter",
    "Finding",
    "Frame",
    "FrameChoice",
    "FrameSelector",
    "Fused",
    "GermaneError",
    "Group",
    "Impressions",
    "InvalidInput",
    "InvalidPlan",
    "Item",
    "Kind",
    "KindPriority",
    "LargeMemory",
    "LastActive",
    "LearningReport",
    "LearningStatus",
    "Ledger",
    "LedgerEntry",
    "LeftOut",
    "Level",
    "LifecycleEvent",
    "LifecycleSignal",
    "LifecycleState",
    "Member",
    "Memory",
    "MemoryChange",
    "MemoryChangeKind",
    "Message",
    "MessageNotFound",
    "MessageRole",
    "Metrics",
    "MissingExtra",
    "NotAMember",
    "NotAllowed",
    "NotFound",
    "NotInWorkingSet",
    "NotWorthKeeping",
    "ObserveResult",
    "OpaquePart",
    "Order",
    "Outcome",
    "OutcomeHistory",
    "OutcomeRecord",
    "OutcomeResult",
    "Overflow",
    "PartUsage",
    "Payload",
    "Plan",
    "Profile",
    "Provider",
    "PurgeNotConfirmed",
    "QualityFlag",
    "Query",
    "Question",
    "Ranked",
    "Reason",
    "RecallLimits",
    "RecallResult",
    "Reconcile",
    "RefreshReason",
    "RefreshResult",
    "RememberResult",
    "Removal",
    "Rendition",
    "Renditions",
    "Replay",
    "Request",
    "RequestShares",
    "RequestTooLarge",
    "Right",
    "Role",
    "RollOver",
    "SchemaTooNew",
    "Scope",
    "ScopedPlan",
    "Scorer",
    "Section",
    "SectionUsage",
    "Selection",
    "Share",
    "Space",
    "SpaceError",
    "SpaceEvent",
    "SpaceEventKind",
    "SpaceInfo",
    "SpaceTaken",
    "Stage",
    "StaleRevision",
    "Status",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreStats",
    "StoreUnavailable",
    "Style",
    "Summarizer",
    "TaskContext",
    "TemplatePart",
    "TextPart",
    "Tiers",
    "TimeRange",
    "TokenCalibration",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "Trace",
    "TraceNote",
    "Trust",
    "UnknownKind",
    "UnknownSpace",
    "UnreadableSource",
    "Upkeep",
    "UpkeepStep",
    "UpkeepTask",
    "UsageHistory",
    "ValueChange",
    "VectorIndex",
    "Weights",
    "WorkingSet",
    "WorkingSetEvent",
    "WorkingSetEventKind",
    "WorkingSetItem",
    "__version__",
    "copy_store",
    "diff",
    "distribute_store",
    "erase_purged",
    "fuse_ranks",
    "fuse_scores",
    "get_counter",
    "index_vectors",
    "migrate_store",
    "open",
    "reembed",
    "register_counter",
    "reindex_store",
    "remove_agent",
    "store_agents",
    "store_status",
    "vacuum_store",
]

__version__ = "0.1.0"


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
