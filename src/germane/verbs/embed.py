"""Embedding for the verbs: whatever the embedder does wrong becomes one clear error.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed
from germane.model.vector import Vector
from germane.protocols import Embedder
from germane.retrieval.vectors import validate

__all__ = ["embed_texts"]


def embed_texts(embedder: Embedder | None, texts: Sequence[str]) -> list[Vector | None]:
    """A unit vector for each text, or None for each where there is no embedder.

    A text without any meaning to the embedder (a zero vector) gets None: it is found by its words.
    Raises EmbeddingFailed when the embedder raises, or returns what is no embedding.
    """
    if embedder is None or not texts:
        return [None] * len(texts)
    try:
        vectors = embedder.embed(texts)
    except EmbeddingFailed:
        raise
    except Exception as error:
        raise EmbeddingFailed(
            f"The embedder {embedder.name!r} failed on {len(texts)} texts: {error}. "
            "Nothing was stored; try again, or open the store without an embedder."
        ) from error
    return _unit_vectors(vectors, rows=len(texts), dimension=embedder.dimension)


def _unit_vectors(vectors: NDArray[np.float32], *, rows: int, dimension: int) -> list[Vector | None]:
    """The rows at unit length; a row of zeros, which points nowhere, becomes None."""
    meant = [True] * rows
    if np.shape(vectors) == (rows, dimension):
        meant = [bool(row.any()) for row in np.asarray(vectors)]
        vectors = np.asarray(vectors)[meant]
        rows = sum(meant)
    unit = iter(validate(vectors, rows=rows, dimension=dimension))
    return [next(unit) if has_meaning else None for has_meaning in meant]
