"""Fits the packed vectors to what the teacher says of short sentences.

    python tools/distil/fit.py --packages FOLDER --first FOLDER/static-1.bin --work FOLDER --out FILE

The sentences are the examples that WordNet has for the words of the table. Each vector moves so that
the sums over them point where the teacher points, by least squares with a ridge that holds it to what
it was. Its definitions serve to turn the teacher's space into the table's, and no vector is fitted to
them. Writes `wordnet.npy`, what the teacher says (not made again where it is there), and the file.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sources import wordnet_of

from germane.embedders.static import OnnxEmbedder, PackedVectors, WordPieces, plain_words

_NAME = "germane-static-2"
_RECIPE = "distil-2"
_LONGEST = 512
_RIDGE = 30.0
_STEPS = 30
_SHORTEST = 0.3
"""Sums shorter than this weigh no more than it, so that a text of marks alone doesn't lead."""


def main() -> None:
    """Ask the teacher, fit, pack, and tell how near it came, and the checksum."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("packages", "first", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    first = PackedVectors.from_bytes(given.first.read_bytes())
    definitions, texts = wordnet_of(given.packages / "wordnet-base", set(first.words))
    whole = [*definitions, *texts]
    teacher = embedded(given.work / "wordnet.npy", whole)
    sums = counted(whole, first.words)
    before = first.rows(np.arange(len(first.words)))
    turned = turn(teacher, unit(sums @ before))
    teacher, sums = teacher[len(definitions) :], sums[len(definitions) :]
    targets = unit(teacher @ turned)
    after = _fitted(before, sums, targets)
    packed = PackedVectors.pack(after, words=first.words, name=_NAME, recipe=_RECIPE)
    data = packed.to_bytes()
    given.out.write_bytes(data)
    rounded = packed.rows(np.arange(len(packed.words)))
    for name, vectors in (("before", before), ("fitted", after), ("packed", rounded)):
        print(f"{name}: cosine with the teacher {(unit(sums @ vectors) * targets).sum(axis=1).mean():.4f}")
    print(f"{len(texts)} sentences, {len(data):,} bytes\nsha256 {hashlib.sha256(data).hexdigest()}")


def embedded(file: Path, texts: list[str]) -> NDArray[np.float32]:
    """The teacher's vectors, at unit length but for their rounding to 16 bits."""
    if not file.exists():
        np.save(file, OnnxEmbedder().embed(texts).astype(np.float16))
    vectors = np.load(file).astype(np.float32)
    if len(vectors) != len(texts):
        raise ValueError(f"{file} has {len(vectors)} vectors of {len(texts)} texts; delete it.")
    return unit(vectors)


def counted(texts: list[str], words: tuple[str, ...]) -> sp.csr_matrix:
    """How often each piece stands in each text."""
    cut = WordPieces({word: number for number, word in enumerate(words)})
    rows = [cut.ids(plain_words(text), _LONGEST) for text in texts]
    starts = np.cumsum([0, *map(len, rows)])
    pieces = np.array([piece for row in rows for piece in row])
    ones = np.ones(len(pieces), dtype=np.float32)
    return sp.csr_matrix((ones, pieces, starts), shape=(len(texts), len(words)))


def turn(teacher: NDArray[np.float32], student: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rotation that brings the teacher's space nearest to the student's (Procrustes)."""
    left, _, right = np.linalg.svd(teacher.T @ student, full_matrices=False)
    turned: NDArray[np.float32] = left @ right
    return turned


def _fitted(
    before: NDArray[np.float32], sums: sp.csr_matrix, targets: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The vectors V that make |W(SV - |SB|T)|^2 + ridge |V - B|^2 small, by conjugate gradients.

    S counts pieces, B are the vectors before, T the targets, and W weighs a text by one over the
    length of its sum, so that long texts count no more than short ones. All columns are solved at once.
    """
    was = sums @ before
    lengths = np.linalg.norm(was, axis=1, keepdims=True)
    weights = (1 / np.maximum(lengths, _SHORTEST)).astype(np.float32)
    weighed = sp.diags(weights[:, 0]) @ sums
    moved = np.zeros_like(before)
    left = weighed.T @ ((targets * lengths - was) * weights)
    way, size = left.copy(), (left * left).sum(axis=0)
    for _ in range(_STEPS):
        image = weighed.T @ (weighed @ way) + _RIDGE * way
        step = size / np.maximum((way * image).sum(axis=0), 1e-12)
        moved += step * way
        left -= step * image
        following = (left * left).sum(axis=0)
        way = left + (following / np.maximum(size, 1e-12)) * way
        size = following
    return before + moved


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    main()
