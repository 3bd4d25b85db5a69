"""Where each public name lives, so that its module is imported when the name is first asked for.

Level: errors (imports nothing of the package).
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HOMES", "RENAMED"]

HOMES: Mapping[str, tuple[str, ...]] = {
    module: tuple(names.split())
    for module, names in {
        "germane.conversation.anchored": "RecallLimits",
        "germane.conversation.formats": "Payload",
        "germane.conversation.tiers": "Tiers",
        "germane.conversation.wanted": "RequestShares",
        "germane.engine": "Engine open",
        "germane.engine.space": "Space",
        "germane.errors": """
            BudgetTooSmall DuplicateMember EmbedderMismatch EmbeddingFailed GermaneError InvalidInput
            InvalidPlan LastActive MissingExtra NotAMember NotAllowed NotFound NotHeld NotRecorded NotSaid
            NotWorthKeeping PurgeNotConfirmed RequestTooLarge SchemaTooNew SpaceError SpaceTaken
            StaleRevision StoreBusy StoreError StoreUnavailable UnknownKind UnknownSpace UnreadableSource
        """,
        "germane.kinds": "Kind Piece",
        "germane.model.calibration": "Calibration",
        "germane.model.compaction": "Compaction",
        "germane.model.context": "Context Item",
        "germane.model.conversation": "Anchored DerivedQuery LeftOut Selection",
        "germane.model.database": "AgentFigures DatabaseStatus Erasure VectorIndex",
        "germane.model.diffs": "diff",
        "germane.model.draft": "Doubt Draft Remembered",
        "germane.model.experience": "Experience",
        "germane.model.frame": "Frame FrameChoice",
        "germane.model.held": "AgeBasis Evicted Eviction Held",
        "germane.model.holding": "Added Move MoveKind",
        "germane.model.judgement": "Judgement",
        "germane.model.learning": """
            Attested Evidence Example Feedback LearningState Lessons Shown Validation Weights
        """,
        "germane.model.ledger": "Alteration Altered Assembly Changed Difference LedgerEntry Replay",
        "germane.model.log": "ConversationInfo",
        "germane.model.memory": "Level Memory Outcome Rendition Renditions Status Trust",
        "germane.model.message": "Group Message MessageRole OpaquePart Provider TextPart ToolCall ToolResult",
        "germane.model.metrics": "Day Metrics",
        "germane.model.observed": "Observed",
        "germane.model.plan": "Overflow Plan RollOver Section Share Style",
        "germane.model.query": "Candidate Filter Order Query TimeRange",
        "germane.model.refreshed": "RefreshReason Refreshed",
        "germane.model.request": "PartUse Request",
        "germane.model.scope": "GLOBAL Scope",
        "germane.model.space": "Happening Member Right Role SpaceEvent SpaceInfo",
        "germane.model.stage": "Cause LifeEvent Sign Stage Standing",
        "germane.model.stats": "EmbeddingIdentity Finding LargeMemory StoreStats",
        "germane.model.trace": "Emptiness Entry Fused Note Question Ranked Reason SectionUse Trace",
        "germane.model.upkeep": "Reconcile Upkeep UpkeepStep UpkeepTask",
        "germane.model.work": "KindsFirst Work",
        "germane.plans.scoped": "Profile Scoped",
        "germane.protocols": """
            Checkable Clock Conversing Embedder FrameSelector Holding Learning Living Multilingual
            Recording Scorer Sharing Store Summarizer TokenCounter Validating
        """,
        "germane.ranking.decay": "Decay",
        "germane.ranking.fusion": "fuse_ranks fuse_scores",
        "germane.stores.relational.agents.copying": "AgentCopy",
        "germane.tokens": "get_counter register_counter",
        "germane.verbs.conversation": "Conversation",
        "germane.verbs.copying": "CopyReport copy_store",
        "germane.verbs.ledger": "Ledger",
        "germane.verbs.operating": """
            distribute_store erase_purged index_vectors migrate_store reindex_store store_agents store_status
            vacuum_store
        """,
        "germane.verbs.recall": "Recalled",
        "germane.verbs.reembed": "reembed",
        "germane.verbs.removing": "Removal remove_agent",
        "germane.verbs.working_set": "WorkingSet",
    }.items()
}
"""The public names by the module that has them."""

RENAMED: Mapping[str, str] = {"open": "open_engine"}
"""What a public name is called in its module, where that is something else."""
