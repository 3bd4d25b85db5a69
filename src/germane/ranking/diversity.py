"""Keeps one subject from filling a section: of the memories that are alike, only the best.

Level: ranking (imports model only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from germane.model.memory import Memory
from germane.model.plan import Alike
from germane.model.trace import Ranked

__all__ = ["likeness", "of_each"]


def of_each(
    ranked: Sequence[Ranked], *, alike: Alike, most: int, exempt: Collection[str] = ()
) -> tuple[tuple[Ranked, ...], tuple[Ranked, ...]]:
    """The memories of a section with at most so many of those that are alike, and the others, in rank order.

    A memory that lacks what makes it alike is like none. What is `exempt` stays and counts as well.
    """
    counts: Counter[str] = Counter()
    for one in ranked:
        if one.memory.id in exempt and (shared := likeness(one.memory, alike)) is not None:
            counts[shared] += 1
    kept: list[Ranked] = []
    over: list[Ranked] = []
    for one in ranked:
        shared = likeness(one.memory, alike)
        if shared is None or one.memory.id in exempt:
            kept.append(one)
        elif counts[shared] < most:
            counts[shared] += 1
            kept.append(one)
        else:
            over.append(one)
    return tuple(kept), tuple(over)


def likeness(memory: Memory, alike: Alike) -> str | None:
    """What a memory shares with those that it is like: its subject, its category or its first tag.

    By tags, what belongs to a session is like nothing.
    """
    if alike == "subject":
        return memory.subject.casefold() if memory.subject else None
    if alike == "tag":
        # The turns of a session are parts of one talk, and told in full or not at all.
        return memory.tags[0] if memory.tags and memory.scope.name != "session" else None
    category = memory.metadata.get("category")
    return str(category).casefold() if category else None
