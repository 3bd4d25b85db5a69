"""Why there is nothing to show, and what is said where a question asks for nothing.

Level: ranking (imports model only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.model.query import Found
from germane.model.trace import Emptiness, Note, Ranked

__all__ = ["RECENCY", "emptiness_of"]

RECENCY = Note(
    code="recency", text="The question names nothing to look for, so the newest memories come first."
)
"""What a trace says of a question without a term."""


def emptiness_of(found: Found, ranked: Sequence[Sequence[Ranked]]) -> Emptiness:
    """Why nothing is shown: the first of the reasons that holds."""
    if found.stored == 0:
        return Emptiness.NOTHING_STORED
    if found.admitted == 0:
        return Emptiness.FILTERED
    if not any(ranked):
        return Emptiness.NOTHING_RELEVANT
    return Emptiness.OVER_BUDGET
