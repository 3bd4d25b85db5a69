"""An embedder of a model of the sentence-transformers library.

Level: embedders. The library is imported when the model is first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from germane.embedders.returned import as_vectors
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra
from germane.forking import renewed

__all__ = ["SentenceTransformersEmbedder"]

_BATCH = 32


class SentenceTransformersEmbedder:
    """Embeds with a model of sentence-transformers, given by name or as the loaded object.

    A model given by name is loaded at the first text, or when `dimension` is first asked for;
    that raises MissingExtra when the library isn't installed, EmbeddingFailed when it can't load the model.
    A loaded model needs a `name`, which is stored with its vectors. Memories are embedded in the
    background unless `eager` is set to True.
    """

    def __init__(
        self,
        model: str | SentenceModel,
        *,
        name: str | None = None,
        device: str | None = None,
        batch: int = _BATCH,
    ) -> None:
        known = name if name is not None or not isinstance(model, str) else model
        if known is None or not known.strip():
            raise InvalidInput(
                f"A model {type(model).__name__} came without a name. Give name=...; "
                "it is stored with its vectors."
            )
        if batch < 1:
            raise InvalidInput(f"A batch of {batch} texts embeds nothing. Give 1 or more.")
        self.name = known
        self.eager = False
        self._wanted = model
        self._device = device
        self._batch = batch
        self._model: SentenceModel | None = None if isinstance(model, str) else model
        self._loading = renewed(Lock())

    @property
    def dimension(self) -> int:
        model = self._loaded()
        # The library renamed the method in its fifth version, and warns of the older name.
        for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
            answer = getattr(model, method, lambda: None)()
            if isinstance(answer, int):
                return answer
        raise EmbeddingFailed(
            f"Model {self.name!r} doesn't say how long its vectors are. "
            "Wrap it with CallableEmbedder(model.encode, name=..., dimension=...)."
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = self._loaded()
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            returned = model.encode(
                list(texts), batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True
            )
        except Exception as error:
            raise EmbeddingFailed(
                f"Embedder {self.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
            ) from error
        return as_vectors(returned, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"SentenceTransformersEmbedder({self.name!r})"

    def _loaded(self) -> SentenceModel:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> SentenceModel:
        try:
            library = importlib.import_module("sentence_transformers")
        except ImportError as missing:
            raise MissingExtra(
                feature=f"Embedding with {self.name!r}", extra="sentence-transformers"
            ) from missing
        try:
            model: SentenceModel = library.SentenceTransformer(self._wanted, device=self._device)
        except Exception as error:
            raise EmbeddingFailed(
                f"sentence-transformers can't load {self._wanted!r}: {type(error).__name__}: {error}. "
                "Check the name, or give the folder that holds the model."
            ) from error
        return model


class SentenceModel(Protocol):
    """What is used of a loaded model; its method that tells the dimension has had two names."""

    def encode(
        self, sentences: list[str], *, batch_size: int, show_progress_bar: bool, convert_to_numpy: bool
    ) -> object: ...
