"""The signals of many candidates as columns, for what judges hundreds of them at once.

Level: ranking (imports model only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from germane.model.slate import Slate

__all__ = ["Signals", "signals_in", "signals_of"]

_NAMES = ("lexical", "semantic", "coverage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The signals of memories that stand alone; NaN where one doesn't have it."""

    lexical: NDArray[np.float64]
    semantic: NDArray[np.float64]
    coverage: NDArray[np.float64]

    @property
    def any(self) -> NDArray[np.bool_]:
        """Which have one at all."""
        return ~(np.isnan(self.lexical) & np.isnan(self.semantic) & np.isnan(self.coverage))

    def at(self, chosen: NDArray[np.bool_]) -> Signals:
        """Those of the memories that are chosen."""
        return Signals(
            lexical=self.lexical[chosen], semantic=self.semantic[chosen], coverage=self.coverage[chosen]
        )


def signals_of(slates: Sequence[Slate]) -> Signals | None:
    """The signals of all these candidates, one slate after the other.

    None where columns can't tell what they say: where one is infinite, or where there are others than these,
    such as turns of dialogue have.
    """
    names = {name: None for slate in slates for name in slate.signals}
    return signals_in({name: _column(slates, name) for name in names}, sum(map(len, slates)))


def signals_in(columns: Mapping[str, NDArray[np.float64]], count: int) -> Signals | None:
    """The same of `count` candidates whose signals are columns by name; NaN where one doesn't have it."""
    if any(np.isinf(column).any() for column in columns.values()):
        return None
    if any(not np.isnan(column).all() for name, column in columns.items() if name not in _NAMES):
        return None
    nothing = np.full(count, np.nan)
    lexical, semantic, coverage = (columns.get(name, nothing) for name in _NAMES)
    return Signals(lexical=lexical, semantic=semantic, coverage=coverage)


def _column(slates: Sequence[Slate], name: str) -> NDArray[np.float64]:
    nothing = np.empty(0)
    parts = [
        slate.signals[name] if name in slate.signals else np.full(len(slate), np.nan) for slate in slates
    ]
    return np.concatenate([nothing, *parts])
