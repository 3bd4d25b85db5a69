"""Embedding for the verbs: whatever the embedder does wrong becomes one clear error.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed
from germane.model.query import LEAST_COSINE
from germane.model.vector import NOWHERE, Vector
from germane.protocols import Embedder
from germane.retrieval.vectors import validate
from germane.verbs.checks import checked_number

__all__ = ["embed_texts", "is_eager", "least_cosine_of", "vectors_to_store"]


def is_eager(embedder: Embedder) -> bool:
    """Whether a write waits for the embedder: unless its attribute `eager` says no.

    The vectors of one that isn't eager follow later, so that no write waits for a network or a model.
    """
    return bool(getattr(embedder, "eager", True))


def least_cosine_of(embedder: Embedder | None) -> float:
    """The cosine below which the embedder tells no likeness from chance: its attribute, or the usual 0.18.

    Raises InvalidInput for one that is no cosine of 0 or more.
    """
    least = getattr(embedder, "least_cosine", None)
    if embedder is None or least is None:
        return LEAST_COSINE
    return checked_number(least, 0, 1, name=f"least_cosine of the embedder {embedder.name!r}")


def vectors_to_store(embedder: Embedder | None, texts: Sequence[str]) -> list[Vector | None]:
    """What a write stores beside each text: its vector, or None where it shall wait for one.

    Raises EmbeddingFailed.
    """
    if embedder is None or not is_eager(embedder):
        return [None] * len(texts)
    try:
        return [NOWHERE if vector is None else vector for vector in embed_texts(embedder, texts)]
    except EmbeddingFailed as error:
        raise EmbeddingFailed(
            f"{error} Nothing was stored; try again, or open the store without an embedder."
        ) from error


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
        several = "a text" if len(texts) == 1 else f"{len(texts)} texts"
        said = str(error).rstrip(".")
        raise EmbeddingFailed(f"The embedder {embedder.name!r} failed on {several}: {said}.") from error
    return _unit_vectors(vectors, rows=len(texts), dimension=embedder.dimension)


def _unit_vectors(vectors: NDArray[np.float32], *, rows: int, dimension: int) -> list[Vector | None]:
    """The rows at unit length; a row of zeros, which points nowhere, becomes None."""
    meant: list[bool] = [True] * rows
    if np.shape(vectors) == (rows, dimension):
        counts: NDArray[np.intp] = np.count_nonzero(np.asarray(vectors), axis=1)
        meant = (counts > 0).tolist()
        if not all(meant):
            vectors = np.asarray(vectors)[meant]
            rows = sum(meant)
    unit = iter(validate(vectors, rows=rows, dimension=dimension))
    return [next(unit) if has_meaning else None for has_meaning in meant]
