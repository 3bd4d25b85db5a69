"""Packs the trained vectors into a file of the format that the package carries, which `fit.py` starts from.

python tools/distil/export.py --work FOLDER --out FOLDER/static-1.bin
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np

from germane.embedders.static import PackedVectors

_NAME = "germane-static-1"
_RECIPE = "distil-1"


def main() -> None:
    """Pack, write, and tell the checksum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    words = tuple((given.work / "words.txt").read_text(encoding="utf-8").splitlines())
    vectors = np.load(given.work / "student.npy")
    packed = PackedVectors.pack(vectors, words=words, name=_NAME, recipe=_RECIPE)
    data = packed.to_bytes()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(data)
    cosines = _cosines(vectors, packed.rows(np.arange(len(words))))
    print(f"{len(words)} rows, {len(data):,} bytes, mean cosine of a row {cosines.mean():.4f}")
    print(f"sha256 {hashlib.sha256(data).hexdigest()}")


def _cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one * other).sum(axis=1) / (np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1) + 1e-9)


if __name__ == "__main__":
    main()
