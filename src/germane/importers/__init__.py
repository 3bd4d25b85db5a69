"""Import and export: readers turn a source into drafts, a writer feeds them to an engine."""

from __future__ import annotations

from germane.importers.dialogue import read_transcript
from germane.importers.git import changed_paths, read_git
from germane.importers.locomo import (
    DialogueTurn,
    EvidenceReport,
    LocomoConversation,
    LocomoQuestion,
    conversation_drafts,
    evidence_report,
    read_locomo,
)
from germane.importers.markdown import read_markdown
from germane.importers.project import read_project, read_scoped
from germane.importers.records import memory_from_json, memory_to_json, read_jsonl, read_memories
from germane.importers.report import Gone, ImportReport, Moved, Progress, Written
from germane.importers.secrets import Secret, find_secrets
from germane.importers.sources import Skipped
from germane.importers.sync import watch
from germane.importers.transfer import Layout, export_jsonl, import_source, layout_of, read, write_block

__all__ = [
    "DialogueTurn",
    "EvidenceReport",
    "Gone",
    "ImportReport",
    "Layout",
    "LocomoConversation",
    "LocomoQuestion",
    "Moved",
    "Progress",
    "Secret",
    "Skipped",
    "Written",
    "changed_paths",
    "conversation_drafts",
    "evidence_report",
    "export_jsonl",
    "find_secrets",
    "import_source",
    "layout_of",
    "memory_from_json",
    "memory_to_json",
    "read",
    "read_git",
    "read_jsonl",
    "read_locomo",
    "read_markdown",
    "read_memories",
    "read_project",
    "read_scoped",
    "read_transcript",
    "watch",
    "write_block",
]
