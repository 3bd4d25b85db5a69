"""Which text continues one whose file is gone, where it was edited on its way.

Level: exchange (imports model). Pure. It would rather miss a move than join two texts that only look alike:
what many texts have in common, as those written on one template do, counts for nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from germane.model.draft import Draft
from germane.model.memory import Memory

__all__ = ["LEAST_SHARE", "Continued", "continued"]

LEAST_SHARE = 0.6
"""The part of what only the old text says that has to stand in the new one."""

_FEWEST = 8
"""Runs of three words that only the old text has; with fewer there is too little to know it by."""
_RUN = 3
_BY_NAME = frozenset({"dependency", "changelog"})
"""Kinds that are told apart by the name of a package or version, however alike their texts are."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A memory, the draft that says most of what only it said, and how much of that, from 0 to 1."""

    head: Memory
    draft: Draft
    share: float


def continued(lost: Sequence[Memory], drafts: Sequence[Draft], known: Sequence[Memory]) -> list[Continued]:
    """The memories of `lost` that a draft of the same kind continues, in the order of the drafts.

    Measured is the share of the runs of three words that stand in no other memory of `known`. A pair has to
    be the best of both its sides: where two are as good, none is taken.
    """
    if not lost or not drafts:
        return []
    seen = Counter(run for memory in known for run in _runs(memory.content))
    own = {memory.id: {run for run in _runs(memory.content) if seen[run] <= 1} for memory in lost}
    pairs = [
        Continued(head=head, draft=draft, share=len(own[head.id] & runs) / len(own[head.id]))
        for draft in drafts
        if draft.kind not in _BY_NAME
        for runs in (_runs(draft.content),)
        for head in lost
        if head.kind == draft.kind and len(own[head.id]) >= _FEWEST
    ]
    pairs = [pair for pair in pairs if pair.share >= LEAST_SHARE]
    return [pair for pair in pairs if all(_is_better(pair, other) for other in pairs if other is not pair)]


def _is_better(pair: Continued, other: Continued) -> bool:
    """Whether a pair isn't in doubt because of another that has one of its sides."""
    shares_a_side = other.head is pair.head or other.draft is pair.draft
    return not shares_a_side or other.share < pair.share


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}
