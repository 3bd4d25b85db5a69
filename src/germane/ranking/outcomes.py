"""What success and failure say of the memories that were shown.

Level: ranking (imports model; never retrieval or stores). Pure.

Each outcome is a vote for or against a memory, by its worth and its weight, that halves every 90 days. With
s votes for and f against, the chance that the next work succeeds is (s + 1) / (s + f + 2), Laplace's
rule of succession; a leaning is how far that is from even, from -1 to 1. So one failure says little, no
number of outcomes says everything, later ones outweigh earlier ones, and what nobody confirms fades.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from germane.model.learning import Attested

__all__ = ["HALF_LIFE", "NAMED", "SHOWN", "leanings"]

HALF_LIFE = timedelta(days=90)
"""After so long an outcome counts half."""

NAMED, SHOWN = 1.0, 0.25
"""What an outcome says of a memory that was named with it, and of one that was merely shown."""

_LEAST = 1e-3


def leanings(attested: Iterable[Attested], *, now: datetime) -> Mapping[str, float]:
    """How work turned out with each memory, from -1 to 1, by id; nothing for what leans neither way.

    The order of what is attested doesn't matter.
    """
    votes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in attested:
        weight = one.weight * 0.5 ** (max(now - one.at, timedelta(0)) / HALF_LIFE)
        votes[one.memory_id].append((weight * one.worth, weight * (1.0 - one.worth)))
    found = {memory_id: _leaning(its) for memory_id, its in sorted(votes.items())}
    return {memory_id: lean for memory_id, lean in found.items() if abs(lean) >= _LEAST}


def _leaning(votes: Iterable[tuple[float, float]]) -> float:
    given = list(votes)
    success = math.fsum(each[0] for each in given)
    failure = math.fsum(each[1] for each in given)
    return 2.0 * (success + 1.0) / (success + failure + 2.0) - 1.0
