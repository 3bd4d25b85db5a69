"""Why there is nothing to show, and what is said where a question asks for nothing.

Level: ranking (imports model only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.model.memory import Memory
from germane.model.query import Found, TimeRange
from germane.model.trace import Emptiness, Note, Ranked

__all__ = ["RECENCY", "emptiness_of", "nothing_then"]

RECENCY = Note(
    code="recency", text="The question names nothing to look for, so the newest memories come first."
)
"""What a trace says of a question without a term."""


def nothing_then(
    when: TimeRange | None, shown: Sequence[Memory], others: Sequence[Memory] | None
) -> Note | None:
    """What to say where a time was named, and nothing that relevance brought is of it; else None.

    `others` are those that were gathered and aren't shown, None where these aren't known.
    """
    if when is None or any(memory.created_at in when for memory in shown):
        return None
    said = [f"Nothing shown is of the time named, {when}."]
    if others is not None:
        count = sum(memory.created_at in when for memory in others)
        few = {0: "No memory that was found is of it.", 1: "The 1 memory of it that was found isn't shown."}
        said.append(few.get(count, f"The {count} memories of it that were found aren't shown."))
    if shown:
        one = "The 1 memory shown is of another time."
        said.append(one if len(shown) == 1 else f"The {len(shown)} memories shown are of other times.")
    return Note(code="nothing_then", text=" ".join(said))


def emptiness_of(found: Found, ranked: Sequence[Sequence[Ranked]]) -> Emptiness:
    """Why nothing is shown: the first of the reasons that holds."""
    if found.stored == 0:
        return Emptiness.NOTHING_STORED
    if found.admitted == 0:
        return Emptiness.FILTERED
    if not any(ranked):
        return Emptiness.NOTHING_RELEVANT
    return Emptiness.OVER_BUDGET
