"""A file of Claude's memory tool: how a memory holds it, and how its lines and directories are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from germane.model.memory import Memory

FIELD: Final = "_memory_tool"
"""The metadata that holds the path; names that begin with an underscore aren't searched."""
_EMPTY: Final = "(empty file)"
"""The text of a memory whose file has no visible character."""
_WIDTH: Final = 6
_DEPTH: Final = 2


def content(text: str) -> str:
    """The text of the memory of a file, which needs a visible character."""
    return (
        text if text.strip() and any(each.isprintable() and not each.isspace() for each in text) else _EMPTY
    )


def metadata(path: str, text: str) -> dict[str, Any]:
    """The path of a file, and its text where the memory has another."""
    return {FIELD: {"path": path, "text": None if content(text) == text else text}}


def text_of(memory: Memory) -> str:
    """The text of the file of a memory."""
    text = memory.metadata[FIELD]["text"]
    return memory.content if text is None else str(text)


def lines_in(text: str, view_range: Sequence[int] | None) -> list[str]:
    """The lines of a text with their numbers, of a range if it has two ends; the end -1 is the last."""
    lines, first = text.split("\n"), 1
    if view_range and len(view_range) == 2:  # noqa: PLR2004 - The first line and the last.
        first = max(1, view_range[0])
        lines = lines[first - 1 : len(lines) if view_range[1] == -1 else view_range[1]]
    return numbered(lines, first)


def numbered(lines: Sequence[str], first: int) -> list[str]:
    """The lines with their numbers, from `first` on."""
    return [f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def listed(directory: str, shown: str, files: Mapping[str, str]) -> Iterator[str]:
    """The lines of the files and directories up to two levels below a directory, without hidden ones."""
    entries: dict[tuple[str, ...], list[str]] = {}
    for path, text in files.items():
        names = tuple(path.removeprefix(f"{directory}/").split("/"))
        for depth in range(1, min(len(names), _DEPTH) + 1):
            if not any(name.startswith(".") for name in names[:depth]):
                entries.setdefault((*names[:depth], *([""] if depth < len(names) else [])), []).append(text)
    for names in sorted(entries, key=lambda each: [name for name in each if name]):
        yield f"{size(entries[names])}\t{shown}/{'/'.join(names)}"


def places(text: str, part: str) -> list[int]:
    """Where a part stands in a text, also where it overlaps itself."""
    return [place for place in range(len(text)) if text.startswith(part, place)] if part else [0, 0]


def size(texts: Iterable[str]) -> str:
    """How many kilobytes these texts have."""
    return f"{sum(len(text.encode('utf-8')) for text in texts) / 1024:.1f}K"
