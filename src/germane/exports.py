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
            BudgetTooSmall DuplicateMember EmbedderMismatch EmbeddingFailed GermaneError InvalidInput
            InvalidPlan LastActive MissingExtra NotAMember NotAllowed NotFound NotHeld NotRecorded NotSaid
            NotWorthKeeping PurgeNotConfirmed RequestTooLarge SchemaTooNew SpaceError SpaceTaken StaleRevision
            StoreBusy StoreError StoreUnavailable UnknownKind UnknownSpace UnreadableSource
        """,
        "germane.kinds": "Kind Piece",
        "germane.model.change": "Experience",
        "germane.model.context": """
            Context Emptiness Entry Fused Item Note Question Ranked Reason RefreshReason Refreshed SectionUse
            Trace
        """,
        "germane.model.conversation": """
            Anchored Compaction ConversationInfo DerivedQuery Group LeftOut Message MessageRole OpaquePart
            Provider Selection TextPart ToolCall ToolResult
        """,
        "germane.model.learning": """
            Attested Evidence Example Feedback Judgement LearningState Lessons Observed Shown Validation
            Weights
        """,
        "germane.model.ledger": """
            AgentFigures Alteration Altered Assembly Changed DatabaseStatus Day Difference EmbeddingIdentity
            Erasure Finding LargeMemory LedgerEntry Metrics Reconcile Replay StoreStats Upkeep UpkeepStep
            UpkeepTask VectorIndex
        """,
        "germane.model.memory": """
            Cause Doubt Draft GLOBAL Level LifeEvent Memory Outcome Remembered Rendition Renditions Scope Sign
            Stage Standing Status Trust diff
        """,
        "germane.model.plan": "Frame FrameChoice KindsFirst Overflow Plan RollOver Section Share Style Work",
        "germane.model.query": "Candidate Filter Order Query TimeRange",
        "germane.model.request": "Calibration PartUse Request",
        "germane.model.space": "Happening Member Right Role SpaceEvent SpaceInfo",
        "germane.model.working_set": "Added AgeBasis Evicted Eviction Held Move MoveKind",
        "germane.operations.conversation": "Conversation",
        "germane.operations.ledger": "Ledger",
        "germane.operations.search": "Recalled",
        "germane.operations.setup": "reembed",
        "germane.operations.stores": """
            CopyReport Removal copy_store distribute_store erase_purged index_vectors migrate_store
            reindex_store remove_agent store_agents store_status vacuum_store
        """,
        "germane.operations.working_set": "WorkingSet",
        "germane.plans.scoped": "Profile Scoped",
        "germane.protocols": """
            Checkable Clock Conversing Embedder FrameSelector Holding Learning Living Multilingual Recording
            Scorer Sharing Store Summarizer TokenCounter Validating
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
