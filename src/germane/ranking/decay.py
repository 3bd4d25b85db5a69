"""How a memory loses weight with age. Pure.

Level: ranking (imports model and errors; never retrieval or stores).

    hyperbolic   1 / (1 + age / hours)    half at `hours`, a third at twice that, a quarter at three times
    exponential  2 ^ (-age / hours)       half at `hours`, a quarter at twice that: a half-life
    none         1

`hours` is therefore the half-value age of both, and a half-life of the exponential shape alone. The
hyperbolic one with one hour is that of the decision record on context assembly, which calls it a
half-life.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.forms import checked_fields
from germane.model.held import AgeBasis

__all__ = ["Decay", "Shape"]

Shape: TypeAlias = Literal["hyperbolic", "exponential", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Decay:
    """The weight of a memory by its age, from 1 when it is new towards 0.

    `hours` is the age at which the weight is one half, `basis` the moment from which a held memory
    ages. Raises InvalidInput for an unknown shape or basis, and for `hours` that aren't a finite
    number above 0.
    """

    shape: Shape = "hyperbolic"
    hours: float = 1.0
    basis: AgeBasis = AgeBasis.CREATED

    def __post_init__(self) -> None:
        if not 0 < self.hours < math.inf:
            raise InvalidInput(
                f"hours={self.hours} can't be the age that halves a weight. Give a finite number above 0, "
                'or shape="none" for no decay.'
            )

    def weight(self, age_hours: float) -> float:
        """The weight at an age in hours; an age below 0 counts as 0, since clocks can run backwards."""
        age = max(age_hours, 0.0)
        if self.shape == "hyperbolic":
            return 1.0 / (1.0 + age / self.hours)
        if self.shape == "exponential":
            return math.exp2(-age / self.hours)
        return 1.0

    def weights(self, ages: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights at many ages, each the same as `weight` gives."""
        if self.shape == "hyperbolic":
            return 1.0 / (1.0 + np.maximum(ages, 0.0) / self.hours)
        return np.array([self.weight(age) for age in ages.tolist()], dtype=np.float64)
