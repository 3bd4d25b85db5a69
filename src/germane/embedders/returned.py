"""Checks what an embedder returned before anything is stored or compared.

Level: embedders (here: imports only errors).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed

__all__ = ["as_vectors"]


def as_vectors(returned: object, *, name: str, texts: int, dimension: int) -> NDArray[np.float32]:
    """`returned` as float32 of shape (texts, dimension): a copy, contiguous, every number finite.

    Raises EmbeddingFailed naming the embedder and what was wrong: not numbers, rows of unequal
    length, another count or dimension, a number that is NaN, infinite or too large for float32.
    """
    rows = list(returned) if isinstance(returned, Iterator) else returned
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} that is no table of numbers: {error}. "
            "Every text needs one vector, all of the same length."
        ) from error
    if array.dtype.kind not in "fiu":
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} of {array.dtype} where numbers are "
            "needed. Every text needs one vector of numbers."
        )
    if array.ndim != 2:  # noqa: PLR2004 - a table has two axes.
        raise EmbeddingFailed(
            f"Embedder {name!r} returned numbers of shape {array.shape} for {texts} texts. "
            f"The shape has to be ({texts}, {dimension}), for a single text too."
        )
    if array.shape[0] != texts:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {array.shape[0]} vectors for {texts} texts. "
            "Every text needs one vector, in the order of the texts."
        )
    if array.shape[1] != dimension:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned vectors of {array.shape[1]} numbers, and declares a dimension of "
            f"{dimension}. Declare the dimension that the model has."
        )
    return _finite(array, name)


def _finite(array: NDArray[np.generic], name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.array(array, dtype=np.float32, order="C")
    wrong = ~np.isfinite(vectors).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise EmbeddingFailed(
            f"Embedder {name!r} returned NaN, an infinite number or one beyond float32 in vector {row} "
            f"({int(wrong.sum())} of {len(vectors)} vectors are affected). Nothing was stored."
        )
    return vectors
