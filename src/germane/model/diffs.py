"""What changed from one version of a memory to the next.

Level: model (imports errors only). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from germane.model.memory import Memory

__all__ = ["diff"]

_FIELDS = ("kind", "subject", "scope", "tags", "importance", "confidence", "outcome", "pinned")


def diff(before: Memory, after: Memory) -> str:
    """A unified diff of two versions: the fields that differ, then the content, line by line.

    Empty where they say the same. Each line ends in a line feed.
    """
    lines = unified_diff(
        list(_lines(before, after)),
        list(_lines(after, before)),
        fromfile=f"version {before.version}",
        tofile=f"version {after.version}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(memory: Memory, other: Memory) -> Iterator[str]:
    """The content, under the fields in which the two differ."""
    for name in _FIELDS:
        mine, theirs = getattr(memory, name), getattr(other, name)
        if mine != theirs:
            yield f"{name}: {', '.join(mine) if isinstance(mine, tuple) else mine}"
    for name in sorted({*memory.metadata, *other.metadata}):
        if memory.metadata.get(name) != other.metadata.get(name) and name in memory.metadata:
            yield f"{name}: {memory.metadata[name]}"
    yield from memory.content.splitlines()
