"""Where each public name lives, so that its module is imported when the name is first asked for."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HOMES", "RENAMED"]

HOMES: Mapping[str, tuple[str, ...]] = {
    module: tuple(names.split())
    for module, names in {
        "germane.conversation.formats": "Payload",
        "germane.conversation.layout": "RequestShares",
        "germane.conversation.views": "RecallLimits Tiers",
        "germane.engine": "Engine open",
        "germane.engine.space": "Space",
        "germane.errors": """
            AssemblyNotFound BudgetTooSmall DuplicateMember EmbedderMismatch EmbeddingFailed GermaneError
            InvalidInput InvalidPlan LastActive MessageNotFound MissingExtra NotAMember NotAllowed NotFound
            NotInWorkingSet NotWorthKeeping PurgeNotConfirmed RequestTooLarge SchemaTooNew SpaceError
            SpaceTaken StaleRevision StoreBusy StoreError StoreUnavailable UnknownKind UnknownSpace
            UnreadableSource
        """,
        "germane.kinds": "Kind TemplatePart",
        "germane.model.change": "UsageHistory",
        "germane.model.context": """
            Context EmptyReason Entry Fused Item Question Ranked Reason RefreshReason RefreshResult
            SectionUsage Trace TraceNote
        """,
        "germane.model.conversation": """
            Anchored Compaction ConversationInfo DerivedQuery Group LeftOut Message MessageRole OpaquePart
            Provider Selection TextPart ToolCall ToolResult
        """,
        "germane.model.learning": """
            DecisionCalibration Example Feedback Impressions LearningReport LearningStatus ObserveResult
            OutcomeHistory OutcomeRecord OutcomeResult Weights
        """,
        "germane.model.ledger": """
            AgentFigures Assembly AssemblyDiff DatabaseStatus Day EmbeddingIdentity Erasure Finding
            LargeMemory LedgerEntry MemoryChange MemoryChangeKind Metrics Reconcile Replay StoreStats Upkeep
            UpkeepStep UpkeepTask ValueChange VectorIndex
        """,
        "germane.model.memory": """
            Cause Draft GLOBAL Level LifecycleEvent LifecycleSignal LifecycleState Memory Outcome QualityFlag
            RememberResult Rendition Renditions Scope Stage Status Trust diff
        """,
        "germane.model.plan": """
            Frame FrameChoice KindPriority Overflow Plan RollOver Section Share Style TaskContext
        """,
        "germane.model.query": "Candidate Filter Order Query TimeRange",
        "germane.model.request": "PartUsage Request TokenCalibration",
        "germane.model.space": "Member Right Role SpaceEvent SpaceEventKind SpaceInfo",
        "germane.model.working_set": """
            AddResult AgeBasis Evicted Eviction WorkingSetEvent WorkingSetEventKind WorkingSetItem
        """,
        "germane.operations.conversation": "Conversation",
        "germane.operations.ledger": "Ledger",
        "germane.operations.search": "RecallResult",
        "germane.operations.setup": "reembed",
        "germane.operations.stores": """
            CopyReport Removal copy_store distribute_store erase_purged index_vectors migrate_store
            reindex_store remove_agent store_agents store_status vacuum_store
        """,
        "germane.operations.working_set": "WorkingSet",
        "germane.plans.scoped": "Profile ScopedPlan",
        "germane.protocols": """
            Clock Embedder FrameSelector
            Scorer Store Summarizer TokenCounter
        """,
        "germane.ranking.eviction": "Decay",
        "germane.ranking.signals": "fuse_ranks fuse_scores",
        "germane.stores.relational.agents": "AgentCopy",
        "germane.tokens": "get_counter register_counter",
    }.items()
}
"""The public names by the module that has them."""

RENAMED: Mapping[str, str] = {"open": "open_engine"}
"""What a public name is called in its module, where that is something else."""
