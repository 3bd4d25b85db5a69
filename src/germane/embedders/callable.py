"""An embedder of any function from texts to vectors.

Level: embedders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from germane.embedders.returned import as_vectors
from germane.errors import EmbeddingFailed, InvalidInput

__all__ = ["CallableEmbedder"]


class CallableEmbedder:
    """Embeds with `function`, which gets a list of texts and returns one vector for each, in order.

    Lists, tuples, numpy arrays and iterators of them are accepted, of any kind of real number.
    `name` is stored with the vectors: give it another name when the function's vectors change.
    An exception from the function, and anything that is no table of finite numbers, becomes
    EmbeddingFailed. Say `eager=False` for a function so slow that no write should wait for it.

        embedder = CallableEmbedder(model.encode, name="my-model-v2", dimension=384)
    """

    def __init__(
        self, function: Callable[[list[str]], object], *, name: str, dimension: int, eager: bool = True
    ) -> None:
        if not name.strip():
            raise InvalidInput("An embedder's name is empty. Name the model: vectors carry it.")
        if dimension < 1:
            raise InvalidInput(f"A dimension of {dimension} is none. Give the length of the model's vectors.")
        self.name = name
        self.dimension = dimension
        self.eager = eager
        self._function = function

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            returned = self._function(list(texts))
        except Exception as error:
            raise EmbeddingFailed(
                f"Embedder {self.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
            ) from error
        return as_vectors(returned, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"CallableEmbedder(name={self.name!r}, dimension={self.dimension})"
