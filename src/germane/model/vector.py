"""The type of an embedding.

Level: model (imports errors only).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Vector"]

Vector: TypeAlias = NDArray[np.float32]
"""One dimension, float32, of unit length."""
