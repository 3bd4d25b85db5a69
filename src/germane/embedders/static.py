"""The bundled embedder: a vector for each piece of a word, summed over a text. No model runs.

Level: embedders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from germane.embedders.packed import PackedVectors
from germane.embedders.wordpiece import WordPieces, plain_words

__all__ = ["StaticEmbedder"]

_FILE = "static-2.bin"
_MOST_PIECES = 512
_MOST_CHARACTERS = 32 * _MOST_PIECES
_PIECES_AT_ONCE = 1 << 14


class StaticEmbedder:
    """Embeds English offline with vectors distilled from all-MiniLM-L6-v2, which the package carries.

    A text is the sum of its pieces' vectors at unit length; the first 512 pieces count. A text
    without any piece that is known (empty, or in another script) is all zeros. The same text gives
    the same numbers alone and among others. Threads may share one embedder.

        vectors = StaticEmbedder().embed(["a text", "another"])  # float32, shape (2, 256)
    """

    name = "germane-static-2"
    dimension = 256
    least_cosine = 0.158
    """A deviation above the mean of what a question and a statement have that have nothing in common."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return sums
        vectors, pieces = _loaded()
        for places, ids, starts in _groups(texts, pieces):
            if len(places) == 1:
                np.add.reduce(vectors.rows(ids), axis=0, out=sums[places[0]])
                continue
            # Several texts have many pieces in common, and each is unpacked once.
            distinct, which = np.unique(ids, return_inverse=True)
            rows = vectors.rows(distinct)
            # One text after the other, which is several times as fast as `reduceat` over all of them.
            for place, (start, end) in zip(places, pairwise([*starts, len(ids)]), strict=True):
                np.add.reduce(rows[which[start:end]], axis=0, out=sums[place])
        lengths = np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
        sums /= np.where(lengths > 0, lengths, 1)
        return sums

    def __repr__(self) -> str:
        return "StaticEmbedder()"


def _groups(
    texts: Sequence[str], pieces: WordPieces
) -> Iterator[tuple[list[int], NDArray[np.intp], list[int]]]:
    """Texts that have pieces, some thousands of pieces at once: places, all ids, where each text's begin."""
    places: list[int] = []
    ids: list[int] = []
    starts: list[int] = []
    for place, text in enumerate(texts):
        found = pieces.ids(plain_words(text[:_MOST_CHARACTERS]), _MOST_PIECES)
        if not found:
            continue
        places.append(place)
        starts.append(len(ids))
        ids += found
        if len(ids) >= _PIECES_AT_ONCE:
            yield places, np.array(ids, dtype=np.intp), starts
            places, ids, starts = [], [], []
    if places:
        yield places, np.array(ids, dtype=np.intp), starts


@cache
def _loaded() -> tuple[PackedVectors, WordPieces]:
    """The vectors and the pieces that they are of, read once a process."""
    data = files("germane.embedders").joinpath("data", _FILE).read_bytes()
    vectors = PackedVectors.from_bytes(data)
    return vectors, WordPieces({word: number for number, word in enumerate(vectors.words)})
