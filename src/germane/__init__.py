"""Germane: the best context that provably fits a token budget, with an account of what was left out.

The only public door. `germane.open` gives an engine; everything else here is what its methods
take, return and raise. `germane.aio` offers the same with await; `germane.testing`,
`germane.exchange` and `germane.evaluation` are imported by name.

A name's module is imported when the name is first asked for, so that `import germane` costs next to
nothing. A new public name stands three times: in the imports for type checkers, in `germane.homes` and
in `__all__`; a test holds them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from germane.homes import HOMES as _HOMES
from germane.homes import RENAMED as _RENAMED

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
        NotRecorded,
        NotSaid,
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
    from germane.kinds import Kind, Piece
    from germane.model.calibration import Calibration
    from germane.model.compaction import Compaction
    from germane.model.context import Context, Item
    from germane.model.conversation import Anchored, DerivedQuery, LeftOut, Selection
    from germane.model.database import AgentFigures, DatabaseStatus, Erasure, VectorIndex
    from germane.model.diffs import diff
    from germane.model.draft import Doubt, Draft, Remembered
    from germane.model.experience import Experience
    from germane.model.frame import Frame, FrameChoice
    from germane.model.held import AgeBasis, Evicted, Eviction, Held
    from germane.model.holding import Added, Move, MoveKind
    from germane.model.judgement import Judgement
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
    from germane.model.ledger import Alteration, Altered, Assembly, Changed, Difference, LedgerEntry, Replay
    from germane.model.log import ConversationInfo
    from germane.model.memory import Level, Memory, Outcome, Rendition, Renditions, Status, Trust
    from germane.model.message import (
        Group,
        Message,
        MessageRole,
        OpaquePart,
        Provider,
        TextPart,
        ToolCall,
        ToolResult,
    )
    from germane.model.metrics import Day, Metrics
    from germane.model.observed import Observed
    from germane.model.plan import Overflow, Plan, RollOver, Section, Share, Style
    from germane.model.query import Candidate, Filter, Order, Query, TimeRange
    from germane.model.refreshed import Refreshed, RefreshReason
    from germane.model.request import PartUse, Request
    from germane.model.scope import GLOBAL, Scope
    from germane.model.space import Happening, Member, Right, Role, SpaceEvent, SpaceInfo
    from germane.model.stage import Cause, LifeEvent, Sign, Stage, Standing
    from germane.model.stats import EmbeddingIdentity, Finding, LargeMemory, StoreStats
    from germane.model.trace import Emptiness, Entry, Fused, Note, Question, Ranked, Reason, SectionUse, Trace
    from germane.model.upkeep import Reconcile, Upkeep, UpkeepStep, UpkeepTask
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
        Living,
        Multilingual,
        Recording,
        Scorer,
        Sharing,
        Store,
        Summarizer,
        TokenCounter,
        Validating,
    )
    from germane.ranking.decay import Decay
    from germane.ranking.fusion import fuse_ranks, fuse_scores
    from germane.stores.relational.agents.copying import AgentCopy
    from germane.tokens import get_counter, register_counter
    from germane.verbs.conversation import Conversation
    from germane.verbs.copying import CopyReport, copy_store
    from germane.verbs.ledger import Ledger
    from germane.verbs.operating import (
        distribute_store,
        erase_purged,
        index_vectors,
        migrate_store,
        reindex_store,
        store_agents,
        store_status,
        vacuum_store,
    )
    from germane.verbs.recall import Recalled
    from germane.verbs.reembed import reembed
    from germane.verbs.removing import Removal, remove_agent
    from germane.verbs.working_set import WorkingSet

__version__ = "0.1.0"

__all__ = [
    "GLOBAL",
    "Added",
    "AgeBasis",
    "AgentCopy",
    "AgentFigures",
    "Alteration",
    "Altered",
    "Anchored",
    "Assembly",
    "Attested",
    "BudgetTooSmall",
    "Calibration",
    "Candidate",
    "Cause",
    "Changed",
    "Checkable",
    "Clock",
    "Compaction",
    "Context",
    "Conversation",
    "ConversationInfo",
    "Conversing",
    "CopyReport",
    "DatabaseStatus",
    "Day",
    "Decay",
    "DerivedQuery",
    "Difference",
    "Doubt",
    "Draft",
    "DuplicateMember",
    "Embedder",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "EmbeddingIdentity",
    "Emptiness",
    "Engine",
    "Entry",
    "Erasure",
    "Evicted",
    "Eviction",
    "Evidence",
    "Example",
    "Experience",
    "Feedback",
    "Filter",
    "Finding",
    "Frame",
    "FrameChoice",
    "FrameSelector",
    "Fused",
    "GermaneError",
    "Group",
    "Happening",
    "Held",
    "Holding",
    "InvalidInput",
    "InvalidPlan",
    "Item",
    "Judgement",
    "Kind",
    "KindsFirst",
    "LargeMemory",
    "LastActive",
    "Learning",
    "LearningState",
    "Ledger",
    "LedgerEntry",
    "LeftOut",
    "Lessons",
    "Level",
    "LifeEvent",
    "Living",
    "Member",
    "Memory",
    "Message",
    "MessageRole",
    "Metrics",
    "MissingExtra",
    "Move",
    "MoveKind",
    "Multilingual",
    "NotAMember",
    "NotAllowed",
    "NotFound",
    "NotHeld",
    "NotRecorded",
    "NotSaid",
    "NotWorthKeeping",
    "Note",
    "Observed",
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
    "Reconcile",
    "Recording",
    "RefreshReason",
    "Refreshed",
    "Remembered",
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
    "Scoped",
    "Scorer",
    "Section",
    "SectionUse",
    "Selection",
    "Share",
    "Sharing",
    "Shown",
    "Sign",
    "Space",
    "SpaceError",
    "SpaceEvent",
    "SpaceInfo",
    "SpaceTaken",
    "Stage",
    "StaleRevision",
    "Standing",
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
    "Upkeep",
    "UpkeepStep",
    "UpkeepTask",
    "Validating",
    "Validation",
    "VectorIndex",
    "Weights",
    "Work",
    "WorkingSet",
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
