"""The type of an embedding.

Level: model (imports errors only).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOWHERE", "Vector"]

Vector: TypeAlias = NDArray[np.float32]
"""One dimension, float32, of unit length."""

NOWHERE: Final[Vector] = np.empty(0, dtype=np.float32)
"""In a change: the model has seen the text and gives it no direction, since it knows none of its words.

A memory without any vector waits for one; with this it doesn't, and is found by its words.
"""
