"""How much of what a question is about a memory has, by how rare each word is in English at large.

Level: retrieval (imports errors only). Pure: it reads nothing but a table that the package carries.

The weights are those of a fixed table, never of the store: an agent with three memories has no
statistics to speak of, and the same memory must count the same in every store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.retrieval.terms import term_hash

__all__ = ["IdfTable", "coverage", "coverages", "english_idf", "information", "shares_of"]

_FILE = "idf-1.bin"
_FORMAT = b"germane idf 1\n"
_STEP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdfTable:
    """Inverse document frequencies of terms: ln((texts + 1) / (texts with the term + 0.5)).

    `hashes` are uint32, ascending; `levels`, in the same order, are the frequencies in steps of
    0.05; a term that isn't listed has `rarest`.
    """

    hashes: NDArray[np.uint32]
    levels: NDArray[np.uint8]
    rarest: int

    @classmethod
    def of_counts(cls, hashes: NDArray[np.uint32], often: NDArray[np.int64], *, texts: int) -> IdfTable:
        """The table of terms that stand in so many of `texts` texts. Unlisted ones count as in none."""
        order = np.argsort(hashes)
        levels = np.rint(np.log((texts + 1) / (often[order] + 0.5)) / _STEP)
        rarest = min(round(float(np.log((texts + 1) / 0.5)) / _STEP), 255)
        return cls(hashes=hashes[order], levels=np.clip(levels, 0, 255).astype(np.uint8), rarest=rarest)

    def of(self, hashes: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The inverse document frequency of each term, in the order given."""
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        listed = self.hashes[places] == hashes
        return np.where(listed, self.levels[places], self.rarest) * _STEP

    def to_bytes(self) -> bytes:
        """The file: a line that names the format, the rarest level, the hashes, the levels."""
        parts = [_FORMAT, bytes([self.rarest]), self.hashes.astype("<u4").tobytes(), self.levels.tobytes()]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> IdfTable:
        """What `to_bytes` wrote. Raises InvalidInput for anything else."""
        start = len(_FORMAT) + 1
        count, odd = divmod(len(data) - start, 5)
        if not data.startswith(_FORMAT) or count < 1 or odd:
            raise InvalidInput(f"No table of idf: {len(data)} bytes that begin with {data[:16]!r}.")
        return cls(
            hashes=np.frombuffer(data, dtype="<u4", count=count, offset=start),
            levels=np.frombuffer(data, dtype=np.uint8, count=count, offset=start + 4 * count),
            rarest=data[start - 1],
        )


def coverage(terms: Sequence[str], hashes: NDArray[np.uint32]) -> float:
    """The share, from 0 to 1, of the question's information that stands in one memory.

    `terms` are those of `query_terms`, `hashes` those of the memory's forward record. Each term
    weighs its inverse document frequency in English; a question without terms is covered by nothing.
    """
    return float(coverages(terms, [hashes])[0])


def coverages(terms: Sequence[str], memories: Sequence[NDArray[np.uint32]]) -> NDArray[np.float64]:
    """The `coverage` of a question by each of several memories, in their order."""
    if not terms or not memories:
        return np.zeros(len(memories))
    asked = np.array(sorted({term_hash(term) for term in terms}), dtype=np.uint32)
    shares = shares_of(asked)
    joined = np.concatenate(memories)
    places = np.minimum(np.searchsorted(asked, joined), len(asked) - 1)
    held = np.where(asked[places] == joined, shares[places], 0.0)
    # A memory without terms has no place in the joined array, so it stays out of the sums.
    sizes = np.array([len(hashes) for hashes in memories])
    covered = np.zeros(len(memories))
    having = np.flatnonzero(sizes)
    if len(having):
        covered[having] = np.add.reduceat(held, (np.cumsum(sizes) - sizes)[having])
    return covered


def information(terms: Sequence[str]) -> float:
    """What a question's distinct terms say together, in nats: the sum of their idf in English.

    As if words came independently, a text of English at large has all of them by chance once in e to
    this power.
    """
    hashes = np.array(sorted({term_hash(term) for term in terms}), dtype=np.uint32)
    return float(english_idf().of(hashes).sum())


def shares_of(hashes: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How much of a question's information each of its distinct terms holds; they sum to 1."""
    weights = english_idf().of(hashes)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


@cache
def english_idf() -> IdfTable:
    """The table that the package carries: 40,000 stems of some 280,000 sentences."""
    return IdfTable.from_bytes(files("germane.retrieval").joinpath("data", _FILE).read_bytes())
