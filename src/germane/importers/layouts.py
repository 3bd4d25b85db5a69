"""The formats of sources that can be imported: their detection, and the reader of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path

from germane.importers.chat_exports import export_product, is_chat_export
from germane.importers.dialogue import is_transcript, read_chat_export, read_transcript, starts_dialogue
from germane.importers.foreign import counted, is_sqlite, parsed_json, tables_of
from germane.importers.git import read_git
from germane.importers.host_files import is_instructions
from germane.importers.locomo import conversation_drafts, is_locomo, read_locomo
from germane.importers.markdown import MARKDOWN_SUFFIXES, read_markdown
from germane.importers.memory_products import (
    is_graph,
    is_letta,
    is_mcp_memory,
    is_mem0,
    read_graph,
    read_langgraph_address,
    read_langgraph_file,
    read_letta,
    read_mcp_memory,
    read_mem0,
    read_mem0_files,
)
from germane.importers.project import MANIFESTS, MODULE_SUFFIXES, read_project
from germane.importers.records import MARKER, parse_object, read_jsonl
from germane.importers.sources import OnSkip, numbered_lines, read_text, unreadable
from germane.model.memory import Draft
from germane.stores.location import is_address, location_of

_GIT = "git:"
_LINES = frozenset({".jsonl", ".ndjson"})
_READABLE = (
    "a project's folder, a file of Markdown, a manifest, JSON lines of memories, an export, a chat "
    "transcript (messages of the OpenAI or Anthropic API, or `user: text` lines), LoCoMo's layout, "
    "git:PATH, and memories of mem0, LangGraph, Letta, Graphiti, Zep, the MCP memory server, ChatGPT and "
    "Claude can be imported"
)


class Layout(StrEnum):
    """The formats that can be imported."""

    PROJECT = "project"  # A folder, or a file that only projects have.
    MARKDOWN = "markdown"  # One file.
    MEMORIES = "memories"  # Other JSON lines of memories.
    EXPORT = "export"  # JSON lines of `export`, restored without loss.
    TRANSCRIPT = "transcript"  # A chat, in any of its formats.
    LOCOMO = "locomo"  # Conversations with questions about them.
    GIT = "git"  # The commits of a repository.
    MEM0 = "mem0"  # JSON of mem0, its local Qdrant folder, or its log of changes.
    LANGGRAPH = "langgraph"  # A store of LangGraph, in SQLite or PostgreSQL.
    LETTA = "letta"  # An agent file.
    GRAPHITI = "graphiti"  # Facts, entities and episodes of Graphiti or Zep as JSON.
    MCP_MEMORY = "mcp-memory"  # JSON lines of the reference MCP memory server.
    CHAT_EXPORT = "chat-export"  # A data export of ChatGPT or Claude.


FOREIGN = frozenset(
    {Layout.MEM0, Layout.LANGGRAPH, Layout.LETTA, Layout.GRAPHITI, Layout.MCP_MEMORY, Layout.CHAT_EXPORT}
)
"""The formats of other products, whose ids identify the memories in every export."""


def read(source: str, *, on_skip: OnSkip | None = None) -> Iterator[Draft]:
    """The drafts of a source: `git:PATH`, a folder, a file in a known format, or the address of PostgreSQL.

    Skipped parts are reported to `on_skip`. Raises UnreadableSource for other sources and unreadable ones.
    """
    layout, path = layout_of(source), path_of(source)
    if layout in FOREIGN:
        return _read_foreign(layout, source, on_skip or (lambda _: None))
    if layout is Layout.LOCOMO:
        return chain.from_iterable(map(conversation_drafts, read_locomo(path)))
    if layout in (Layout.TRANSCRIPT, Layout.MEMORIES, Layout.EXPORT):
        return (read_transcript if layout is Layout.TRANSCRIPT else read_jsonl)(path)
    readers = {Layout.GIT: read_git, Layout.PROJECT: read_project, Layout.MARKDOWN: read_markdown}
    return readers[layout](path, on_skip=on_skip)


def _read_foreign(layout: Layout, source: str, on_skip: OnSkip) -> Iterator[Draft]:
    """The drafts of another product's memories; what isn't taken over is reported to `on_skip` at the end."""
    path = path_of(source)
    with counted(location_of(source), on_skip) as leave_out:
        if is_address(source):
            yield from read_langgraph_address(source, leave_out)
        elif layout is Layout.CHAT_EXPORT:
            yield from read_chat_export(path, leave_out)
        elif layout is Layout.MCP_MEMORY:
            yield from read_mcp_memory(path, leave_out)
        elif path.is_dir() or is_sqlite(path):
            yield from (read_mem0_files if layout is Layout.MEM0 else read_langgraph_file)(path, leave_out)
        else:
            readers = {Layout.MEM0: read_mem0, Layout.LETTA: read_letta, Layout.GRAPHITI: read_graph}
            yield from readers[layout](parsed_json(path), path, leave_out)


def path_of(source: str) -> Path:
    """The path of a source, with `~` expanded."""
    return Path(source.removeprefix(_GIT) or ".").expanduser()


def layout_of(source: str) -> Layout:
    """The format of a source, by its form, then by its name, then by its content.

    Raises UnreadableSource for a source that can't be imported.
    """
    if is_address(source):
        return Layout.LANGGRAPH
    path = path_of(source)
    if source.startswith(_GIT):
        if not path.is_dir():
            raise unreadable(path, "there is no such folder")
        return Layout.GIT
    return _layout_by_name(path) or _layout_of_content(path)


def _layout_by_name(path: Path) -> Layout | None:
    """The format of a folder, or of a file whose name says it."""
    if path.is_dir() and (path / "collection").is_dir() and (path / "meta.json").is_file():
        return Layout.MEM0
    if path.exists() and is_chat_export(path):
        return Layout.CHAT_EXPORT
    if (
        path.is_dir()
        or path.name in MANIFESTS
        or path.suffix.lower() in MODULE_SUFFIXES
        or is_instructions(path)
    ):
        return Layout.PROJECT
    return Layout.MARKDOWN if path.suffix.lower() in MARKDOWN_SUFFIXES else None


def _layout_of_content(path: Path) -> Layout:
    if not path.exists():
        raise unreadable(path, "there is no such file or folder")
    if is_sqlite(path):
        return _layout_of_tables(path)
    return _layout_of_lines(path) if path.suffix.lower() in _LINES else _layout_of_text(path)


def _layout_of_lines(path: Path) -> Layout:
    number, line = next(numbered_lines(path), (0, ""))
    if not number:
        raise unreadable(path, "it is empty")
    fields = parse_object(line, path, number)
    if MARKER in fields:
        return Layout.EXPORT
    if is_mcp_memory(fields):
        return Layout.MCP_MEMORY
    return Layout.TRANSCRIPT if is_transcript(fields) else Layout.MEMORIES


def _layout_of_tables(path: Path) -> Layout:
    tables = tables_of(path)
    if {"prefix", "key", "value"} <= tables.get("store", frozenset()):
        return Layout.LANGGRAPH
    if "point" in tables.get("points", ()) or "new_memory" in tables.get("history", ()):
        return Layout.MEM0
    raise unreadable(path, f"it is an SQLite file without tables of mem0 or LangGraph: {_READABLE}")


def _layout_of_json(value: object) -> Layout | None:
    if is_locomo(value):
        return Layout.LOCOMO
    if export_product(value) is not None:
        return Layout.CHAT_EXPORT
    tests = {Layout.LETTA: is_letta, Layout.MEM0: is_mem0, Layout.GRAPHITI: is_graph}
    foreign = (layout for layout, is_one in tests.items() if is_one(value))
    return next(foreign, Layout.TRANSCRIPT if is_transcript(value) else None)


def _layout_of_text(path: Path) -> Layout:
    text = read_text(path)
    if starts_dialogue(text):
        return Layout.TRANSCRIPT
    if text.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            if "\n" in text.strip() and text.lstrip().startswith("{") and path.suffix.lower() != ".json":
                return _layout_of_lines(path)
            raise unreadable(path, f"it is no JSON ({error})") from error
        if (layout := _layout_of_json(value)) is not None:
            return layout
        raise unreadable(path, f"it is JSON of a layout that isn't known: {_READABLE}")
    if path.suffix.lower() in ("", ".txt", ".text"):
        return Layout.MARKDOWN
    raise unreadable(path, f"files ending in {path.suffix!r} aren't known: {_READABLE}")
