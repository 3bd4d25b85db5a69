"""What a search tells of its candidates before any of their memories is read.

Level: model (imports model only). It lets a question that wants ten memories read ten, not the hundreds that
are compared for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.model.learning import LearningState

__all__ = ["Pick", "Seen"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """The candidates of a search as columns, one place for each.

    `signals` has a column for each signal, where NaN stands for a candidate that doesn't have it; `created`
    is in microseconds since 1970, `ids` are the 16 bytes of each. The rest is as in
    `germane.model.query.Found`.
    """

    signals: Mapping[str, NDArray[np.float64]]
    created: NDArray[np.int64]
    ids: NDArray[np.bytes_]
    lexical_bound: float
    admitted: int
    learning: LearningState | None


Pick: TypeAlias = Callable[[Seen], "NDArray[np.int64] | None"]
"""The places of the candidates that are wanted, in the order in which they are; None for all of them.

It may be asked more than once for one search, when a database has to begin anew.
"""
