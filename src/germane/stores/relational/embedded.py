"""Vectors as they are stored.

Level: stores (imports model and errors).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from germane.errors import InvalidInput
from germane.model.change import Change, Insert, Revise, SetVector
from germane.model.stats import EmbeddingIdentity
from germane.model.vector import NOWHERE, Vector

__all__ = ["has_vector", "packed_vector"]

_UNIT_LENGTH_TOLERANCE = 0.01


def packed_vector(vector: Vector, embedding: EmbeddingIdentity | None) -> bytes:
    """A vector as it is stored: float16, little endian; nothing for NOWHERE.

    Raises InvalidInput for what is no embedding.
    """
    if embedding is None:
        raise InvalidInput(
            "A vector can't be stored without knowing which model made it. "
            "Open the store with embedding=EmbeddingIdentity(name=..., dimension=...)."
        )
    if vector.shape == NOWHERE.shape:
        return b""
    if vector.shape != (embedding.dimension,):
        raise InvalidInput(
            f"A vector of shape {vector.shape} is none of {embedding}; "
            f"its shape has to be ({embedding.dimension},)."
        )
    length = float(np.linalg.norm(vector))
    # Written so that NaN fails as well.
    if not abs(length - 1.0) <= _UNIT_LENGTH_TOLERANCE:
        raise InvalidInput(
            f"A vector of length {length:g} can't be stored: vectors have unit length and finite numbers. "
            "Divide it by its length, or give no vector for a text that has none."
        )
    return vector.astype("<f2").tobytes()


def has_vector(changes: Sequence[Change]) -> bool:
    """Whether any of the changes brings a vector."""
    return any(
        isinstance(each, SetVector) or (isinstance(each, Insert | Revise) and each.vector is not None)
        for each in changes
    )
