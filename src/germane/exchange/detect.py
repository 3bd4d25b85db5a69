"""What a source is, and the reader for it.

Level: exchange (imports errors).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path

from germane.exchange.dialogue import starts_dialogue
from germane.exchange.exact import MARKER
from germane.exchange.git import read_git
from germane.exchange.jsonl import parse_object, read_jsonl
from germane.exchange.locomo import conversation_drafts, is_locomo, read_locomo
from germane.exchange.manifests import MANIFESTS
from germane.exchange.markdown import MARKDOWN_SUFFIXES, read_markdown
from germane.exchange.messages import is_message, messages_in
from germane.exchange.modules import MODULE_SUFFIXES
from germane.exchange.projects import read_project
from germane.exchange.sources import OnSkip, numbered_lines, read_text, unreadable
from germane.exchange.transcripts import read_transcript
from germane.model.draft import Draft

__all__ = ["Layout", "layout_of", "path_of", "read"]

_GIT = "git:"
_LINES = frozenset({".jsonl", ".ndjson"})
_READABLE = (
    "a project's folder, a file of Markdown, a manifest, JSON lines of memories, an export, a chat "
    "transcript (messages of the OpenAI or Anthropic API, or `user: text` lines), LoCoMo's layout and "
    "git:PATH can be imported"
)


class Layout(StrEnum):
    """What can be imported."""

    PROJECT = "project"  # A folder, or one of the files that only a project has.
    MARKDOWN = "markdown"  # One file.
    MEMORIES = "memories"  # JSON lines that a person or a script wrote.
    EXPORT = "export"  # JSON lines that `export` wrote: restored as they were.
    TRANSCRIPT = "transcript"  # A chat, in any of its layouts.
    LOCOMO = "locomo"  # Conversations with questions about them.
    GIT = "git"  # The commits of a repository.


def read(source: str, *, on_skip: OnSkip | None = None) -> Iterator[Draft]:
    """The drafts of a source: `git:PATH`, the folder of a project, or a file of any layout known.

    What a reader leaves out it tells `on_skip`. Raises UnreadableSource for what is none of them or
    can't be read.
    """
    layout, path = layout_of(source), path_of(source)
    if layout is Layout.GIT:
        return read_git(path, on_skip=on_skip)
    if layout is Layout.PROJECT:
        return read_project(path, on_skip=on_skip)
    if layout is Layout.MARKDOWN:
        return read_markdown(path, on_skip=on_skip)
    if layout is Layout.TRANSCRIPT:
        return read_transcript(path)
    if layout is Layout.LOCOMO:
        return chain.from_iterable(map(conversation_drafts, read_locomo(path)))
    return read_jsonl(path)


def path_of(source: str) -> Path:
    """The path that a source names, with `~` as the user's own folder."""
    return Path(source.removeprefix(_GIT) or ".").expanduser()


def layout_of(source: str) -> Layout:
    """What a source is, judged by its form, then its suffix, then its content.

    Raises UnreadableSource for what is nothing that can be imported.
    """
    path = path_of(source)
    if source.startswith(_GIT):
        if not path.is_dir():
            raise unreadable(path, "there is no such folder")
        return Layout.GIT
    if path.is_dir() or path.name in MANIFESTS or path.suffix.lower() in MODULE_SUFFIXES:
        return Layout.PROJECT
    if path.suffix.lower() in MARKDOWN_SUFFIXES:
        return Layout.MARKDOWN
    if not path.exists():
        raise unreadable(path, "there is no such file or folder")
    if path.suffix.lower() in _LINES:
        return _layout_of_lines(path)
    return _layout_of_text(path)


def _layout_of_lines(path: Path) -> Layout:
    number, line = next(numbered_lines(path), (0, ""))
    if not number:
        raise unreadable(path, "it is empty")
    fields = parse_object(line, path, number)
    if MARKER in fields:
        return Layout.EXPORT
    if is_message(fields) or messages_in(fields) is not None:
        return Layout.TRANSCRIPT
    return Layout.MEMORIES


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
        if is_locomo(value):
            return Layout.LOCOMO
        if is_message(value) or messages_in(value) is not None:
            return Layout.TRANSCRIPT
        raise unreadable(path, f"it is JSON of a layout that isn't known: {_READABLE}")
    if path.suffix.lower() in ("", ".txt", ".text"):
        return Layout.MARKDOWN
    raise unreadable(path, f"files ending in {path.suffix!r} aren't known: {_READABLE}")
