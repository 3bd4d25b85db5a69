"""Import and export: readers turn a source into drafts, a writer feeds them to an engine.

Level: exchange (imports errors and model; knows an engine only by the protocol it needs of one).
"""

from __future__ import annotations

from germane.exchange.agents import write_block
from germane.exchange.changes import changed_paths
from germane.exchange.detect import Layout, layout_of, read
from germane.exchange.exporting import export_jsonl
from germane.exchange.git import read_git
from germane.exchange.importing import import_source
from germane.exchange.jsonl import read_jsonl, read_memories
from germane.exchange.locomo import conversation_drafts, evidence_report, read_locomo
from germane.exchange.markdown import read_markdown
from germane.exchange.projects import read_project
from germane.exchange.records import memory_from_json, memory_to_json
from germane.exchange.report import Gone, Importer, ImportReport, Keeper, Progress, Written
from germane.exchange.secrets import Secret, find_secrets
from germane.exchange.settings import read_scoped
from germane.exchange.sources import Skipped
from germane.exchange.transcripts import read_transcript
from germane.exchange.watching import watch

__all__ = [
    "Gone",
    "ImportReport",
    "Importer",
    "Keeper",
    "Layout",
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
