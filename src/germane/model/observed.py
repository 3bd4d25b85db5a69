"""Which memories an answer draws on, as far as its words tell.

Level: model (imports model only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from germane.model.learning import Feedback

__all__ = ["Observed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What an answer was found to draw on.

    `used` are ids of memories, in the order in which they were shown; `scores` has for each memory shown
    how much of what it says stands in the answer, from 0 to 1. `feedback` is what counting it changed; None
    where nothing was counted.
    """

    used: tuple[str, ...]
    scores: Mapping[str, float] = field(default_factory=dict)
    feedback: Feedback | None = None
