"""How well contexts do over time: figures made of what was recorded, fed back and stored.

Level: model (imports nothing of the package). docs/explanation/metrics.md defines each figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Final

__all__ = ["TARGETS", "Day", "Metrics"]

TARGETS: Final[Mapping[str, tuple[float | None, float | None]]] = MappingProxyType(
    {
        "relevance": (0.6, None),
        "budget_use": (0.5, 0.9),
        "refreshes_per_turn": (None, 0.3),
        "recall_precision": (0.4, None),
        "cold_start": (None, 0.5),
        "memory_growth": (None, None),
        "fact_confirmation": (0.2, None),
    }
)
"""What the note on context management aims at: at least and at most. Nothing is padded to meet them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day in UTC: what was assembled and stored on it, and the figures of its assemblies alone."""

    date: date
    assemblies: int = 0
    added: int = 0
    relevance: float | None = None
    budget_use: float | None = None
    recall_precision: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures from `since` until `until`; None where there is nothing that one could be made of.

    `relevance`, `budget_use`, `recall_precision` and `fact_confirmation` are shares from 0 to 1,
    `refreshes_per_turn` is contexts made for each turn of the user, `cold_start` seconds, `memory_growth`
    memories a day. `assemblies` are those recorded, `judged` those of them that feedback spoke of, `cold`
    those that were an engine's first; `turns` of the user and `facts` are counted too. `per_day` has every
    day, the first day first.
    """

    since: datetime
    until: datetime
    relevance: float | None = None
    budget_use: float | None = None
    refreshes_per_turn: float | None = None
    recall_precision: float | None = None
    cold_start: float | None = None
    memory_growth: float | None = None
    fact_confirmation: float | None = None
    assemblies: int = 0
    judged: int = 0
    cold: int = 0
    turns: int = 0
    facts: int = 0
    per_day: tuple[Day, ...] = ()

    def figures(self) -> dict[str, float | None]:
        """The seven figures by name, in the order of the documentation."""
        return {name: getattr(self, name) for name in TARGETS}

    def on_target(self, name: str) -> bool | None:
        """Whether a figure is where it should be; None for one that is unknown or has no target."""
        value, (least, most) = self.figures()[name], TARGETS[name]
        if value is None or least is most is None:
            return None
        return (least is None or value >= least) and (most is None or value <= most)
