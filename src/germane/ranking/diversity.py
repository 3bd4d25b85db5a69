"""Keeps one subject from filling a section: of the memories that are alike, only the best.

Level: ranking (imports model only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from germane.model.memory import Memory
from germane.model.plan import Alike
from germane.model.trace import Ranked
from germane.ranking.deferred import at_places, memories_of

__all__ = ["likeness", "of_each"]


def of_each(
    ranked: Sequence[Ranked], *, alike: Alike, most: int, exempt: Collection[str] = ()
) -> tuple[Sequence[Ranked], Sequence[Ranked]]:
    """The memories of a section with at most so many of those that are alike, and the others, in rank order.

    A memory that lacks what makes it alike is like none. What is `exempt` stays and counts as well.
    """
    memories = memories_of(ranked)
    likenesses = [likeness(one, alike) for one in memories]
    stays = [one.ref in exempt for one in memories]
    counts = Counter(shared for shared, exempted in zip(likenesses, stays, strict=True) if exempted)
    kept: list[int] = []
    over: list[int] = []
    for place, (shared, exempted) in enumerate(zip(likenesses, stays, strict=True)):
        if shared is None or exempted:
            kept.append(place)
        elif counts[shared] < most:
            counts[shared] += 1
            kept.append(place)
        else:
            over.append(place)
    return at_places(ranked, kept), at_places(ranked, over)


def likeness(memory: Memory, alike: Alike) -> str | None:
    """What a memory shares with those that it is like: its subject, its category, its first tag or its
    kind.

    By tags, what belongs to a session is like nothing.
    """
    if alike == "kind":
        return memory.kind
    if alike == "subject":
        return memory.subject.casefold() if memory.subject else None
    if alike == "tag":
        # The turns of a session are parts of one talk, and told in full or not at all.
        return memory.tags[0] if memory.tags and memory.scope.name != "session" else None
    category = memory.metadata.get("category")
    return str(category).casefold() if category else None
