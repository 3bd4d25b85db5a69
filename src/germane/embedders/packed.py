"""Vectors of words in four bits a number, and the file that holds them.

Level: embedders (imports only errors). Pure.

The file: a line that names the format, a line of JSON (what is meant by the vectors and how many
there are), the words one a line, a float16 scale for each, and the numbers: two in a byte, the even
one in the low half, each stored as value + 8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput

__all__ = ["PackedVectors"]

_FORMAT = b"germane packed vectors 1\n"
_LARGEST = 7  # Four bits hold -8 to 7; -8 stays unused, so that the range is symmetrical.
_ZERO = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedVectors:
    """A vector for each of `words`.

    `numbers` has the shape (words, dimension / 2), `scales` (words,). `recipe` says how they were made.
    `least_cosine` is what two texts have to have to be told from chance, where it was measured.
    """

    name: str
    recipe: str
    words: tuple[str, ...]
    scales: NDArray[np.float16]
    numbers: NDArray[np.uint8]
    least_cosine: float | None = None

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return 2 * int(self.numbers.shape[1])

    @classmethod
    def pack(
        cls, vectors: NDArray[np.float32], *, words: tuple[str, ...], name: str, recipe: str
    ) -> PackedVectors:
        """Round each number to one of 15 levels between minus and plus the largest of its row."""
        scales = (np.abs(vectors).max(axis=1) / _LARGEST).astype(np.float16)
        steps = np.where(scales > 0, scales, 1).astype(np.float32)[:, None]
        levels = np.clip(np.rint(vectors / steps), -_LARGEST, _LARGEST).astype(np.int8) + _ZERO
        numbers = (levels[:, 0::2] | (levels[:, 1::2] << 4)).astype(np.uint8)
        return cls(name=name, recipe=recipe, words=words, scales=scales, numbers=numbers)

    def rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """The vectors of these words, float32 of shape (ids, dimension)."""
        packed = self.numbers[ids]
        vectors = np.empty((len(ids), self.dimension), dtype=np.float32)
        vectors[:, 0::2] = packed & 15
        vectors[:, 1::2] = packed >> 4
        vectors -= _ZERO
        vectors *= self.scales[ids].astype(np.float32)[:, None]
        return vectors

    def to_bytes(self) -> bytes:
        """The file."""
        words = "\n".join(self.words).encode()
        head = {
            "name": self.name,
            "recipe": self.recipe,
            "dimension": self.dimension,
            "words": len(self.words),
            "word_bytes": len(words),
        }
        if self.least_cosine is not None:
            head["least_cosine"] = self.least_cosine
        scales = self.scales.astype("<f2").tobytes()
        return b"".join([_FORMAT, json.dumps(head).encode(), b"\n", words, scales, self.numbers.tobytes()])

    @classmethod
    def from_bytes(cls, data: bytes) -> PackedVectors:
        """What `to_bytes` wrote; the arrays share its memory. Raises InvalidInput for anything else."""
        head_end = data.find(b"\n", len(_FORMAT))
        if not data.startswith(_FORMAT) or head_end < 0:
            raise InvalidInput(f"No packed vectors: the data begin with {data[:32]!r}.")
        head = json.loads(data[len(_FORMAT) : head_end])
        count, width = head["words"], head["dimension"] // 2
        words_end = head_end + 1 + head["word_bytes"]
        scales_end = words_end + 2 * count
        if len(data) != scales_end + count * width:
            raise InvalidInput(
                f"Damaged packed vectors: {len(data)} bytes, where {count} words of {2 * width} numbers "
                f"take {scales_end + count * width}. Install the package again."
            )
        return cls(
            name=head["name"],
            recipe=head["recipe"],
            words=tuple(data[head_end + 1 : words_end].decode().split("\n")),
            scales=np.frombuffer(data, dtype="<f2", count=count, offset=words_end),
            numbers=np.frombuffer(data, dtype=np.uint8, offset=scales_end).reshape(count, width),
            least_cosine=head.get("least_cosine"),
        )
