"""How well an agent judges: what its confidence was worth.

Level: model (imports nothing of the package).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Judgement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The confidence of decisions beside what became of them.

    `count` is how many have both; `brier` the mean squared error, from 0 (best) to 1; `bias` the mean of
    confidence minus outcome, above 0 for the over-confident; `success` the share that came true. They are
    None without any decision. `advice` says it in one sentence, which can stand in a context.
    """

    count: int
    brier: float | None
    bias: float | None
    success: float | None
    advice: str
