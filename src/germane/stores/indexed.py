"""What the lexical index reads of a memory.

Level: stores (imports model).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["indexed_text"]


def indexed_text(
    content: str, *, subject: str | None, tags: Sequence[str], metadata: Mapping[str, Any]
) -> str:
    """The content, subject, tags, and every string among the metadata's values, each on lines of its own.

    Metadata keys and the source are left out: they are the same for many memories and say nothing
    about what one of them is about.
    """
    if subject is None and not tags and not metadata:
        return content
    parts = [content, subject or "", *tags, *_strings(metadata)]
    return "\n".join(part for part in parts if part)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each)
