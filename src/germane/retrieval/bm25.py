"""BM25 over the records of one agent, and how well the turns around a memory match.

Pure: no clock, no I/O; what it holds is a cache.

Scores are integers, so the order in which terms, documents and merges are added up can't show:
an index grown by additions and removals scores bit for bit like one built at once, and a database
that adds up `contributions` itself does too. The formula is Lucene's BM25 (Robertson and
Zaragoza, 2009, with the idf that is never negative).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.retrieval.tokenizer import Forward

K1 = 0.9
B = 0.5
UNIT = 1 << 20
"""The fixed point: a score of `UNIT` is 1.0 in BM25 units."""

_BOUND = 0.95  # Half of k1 + 1: what a term reaches that occurs about once in a memory of usual length.

# A posting is one integer: the term's hash, the document's slot, the frequency. Sorting the
# integers sorts by term and then by slot, and is far faster than sorting arrays side by side.
_HASH_SHIFT = np.uint64(32)
_SLOT_SHIFT = np.uint64(8)
_SLOT_MASK = np.uint64(0xFFFFFF)
_FREQUENCY_MASK = np.uint64(0xFF)
_MOST_SLOTS = 1 << 24

_TAIL_SHARE = 10
_SMALLEST_TAIL = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """The documents that share a term with the question, ascending by ordinal.

    `scores` are positive and in units of 2**-20. `bound` is in BM25 units: what a document of
    usual length would score that holds every term of the question about once. `weights` are the terms' idf
    by their hashes, and `average` is how many terms a document has.
    """

    ordinals: NDArray[np.int64]
    scores: NDArray[np.int64]
    bound: float
    weights: Mapping[int, float] = field(default_factory=dict)
    average: float = 1.0


def idf(documents: int, having: int) -> float:
    """How much a term says that `having` of `documents` documents hold; positive, natural log."""
    return math.log(1.0 + (documents - having + 0.5) / (having + 0.5))


def bound(documents: int, having: Sequence[int]) -> float:
    """0.95 times the summed idf of the question's distinct terms; `having` counts each one's documents.

    A term that no document holds counts as one that a single document holds: the index can't say
    more of it than that it is rare. 0.0 for an empty index.
    """
    if not documents:
        return 0.0
    return _BOUND * math.fsum(idf(documents, max(each, 1)) for each in having)


def contributions(
    weight: float | NDArray[np.float64],
    frequencies: NDArray[np.uint8],
    lengths: NDArray[np.int64] | NDArray[np.int32],
    *,
    documents: int,
    tokens: int,
) -> NDArray[np.int64]:
    """What one term of idf `weight` adds to the score of each document that holds it, in 2**-20.

    For postings of several terms `weight` has one number for each posting. `documents` and `tokens`
    count the whole index. Only operations that IEEE 754 defines to the last bit are used, so every
    machine gets the same integers.
    """
    average = tokens / documents if tokens else 1.0
    scale = weight * (K1 + 1.0) * UNIT
    often = frequencies.astype(np.float64)
    damped = often + (K1 * (1.0 - B) + (K1 * B / average) * lengths.astype(np.float64))
    return np.rint(scale * often / damped).astype(np.int64)


def summed(keys: NDArray[np.int64], values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys, ascending, each with the sum of its values, for keys of any int64."""
    if not keys.size:
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[starts], np.add.reduceat(values, starts)


class PostingsBlock:
    """The postings of consecutive documents, each in 2 bytes, or up to 5 with many documents.

    Documents are numbered from 0 in the order of `lengths`, the number of terms of each. A hash is stored
    once. Slot and frequency share 16 bits where they fit: `bits` of these are the frequency's, and 0 says
    that `_frequencies` holds them.
    """

    def __init__(self, lengths: NDArray[np.int32], bits: int, arrays: Sequence[NDArray[Any]]) -> None:
        """The arrays are the hashes, where the postings of each start, the slots and the frequencies."""
        self.lengths, self.bits, self.arrays = lengths, bits, tuple(arrays)
        self._terms, self._starts, self._slots, self._frequencies = arrays

    @classmethod
    def of_postings(cls, postings: NDArray[np.uint64], lengths: NDArray[np.int32]) -> PostingsBlock:
        """The block of postings that ascend, packed as by `_packed`."""
        hashes = (postings >> _HASH_SHIFT).astype(np.uint32)
        slots = (postings >> _SLOT_SHIFT) & _SLOT_MASK
        differs = np.ones(hashes.size, dtype=np.bool_)
        differs[1:] = hashes[1:] != hashes[:-1]
        firsts = np.flatnonzero(differs)
        most = np.iinfo(np.uint16).max
        starts = np.append(firsts, hashes.size).astype(np.uint16 if hashes.size <= most else np.uint32)
        frequencies = postings & _FREQUENCY_MASK
        last, bits = int(slots.max(initial=0)), int(frequencies.max(initial=0)).bit_length()
        bits = bits if (last + 1) << bits <= most else 0
        if bits:
            slots, frequencies = slots << np.uint64(bits) | frequencies, frequencies[:0]
        slots = slots.astype(np.uint16 if last <= most else np.uint32)
        return cls(lengths, bits, (hashes[firsts], starts, slots, frequencies.astype(np.uint8)))

    @classmethod
    def of_records(
        cls,
        lengths: NDArray[np.int32],
        counts: NDArray[np.int64],
        hashes: NDArray[np.uint32],
        frequencies: NDArray[np.uint8],
    ) -> PostingsBlock:
        """The block of forward records laid end to end; `counts` says how many terms each document has."""
        slots = np.repeat(np.arange(len(lengths), dtype=np.uint64), counts)
        return cls.of_postings(np.sort(_packed(hashes, slots, frequencies)), lengths)

    @property
    def size(self) -> int:
        """How many postings there are."""
        return self._slots.size

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(each.nbytes for each in self.arrays)

    def of(self, hashes: NDArray[np.uint64], first: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The packed postings of these terms in turn, without their hashes, and how many each has.

        `first` is the slot of the first document.
        """
        wanted = hashes.astype(np.uint32)
        starts = self._starts[np.searchsorted(self._terms, wanted)].astype(np.int64)
        stops = self._starts[np.searchsorted(self._terms, wanted, side="right")].astype(np.int64)
        return self._packed(_slices(starts, stops), first), stops - starts

    def all(self, first: int) -> NDArray[np.uint64]:
        """All of them, packed."""
        hashes = np.repeat(self._terms, np.diff(self._starts)).astype(np.uint64)
        return self._packed([slice(None)], first) | hashes << _HASH_SHIFT

    def _packed(self, parts: Sequence[slice], first: int) -> NDArray[np.uint64]:
        slots: NDArray[np.uint64] = _joined(self._slots, parts).astype(np.uint64)
        frequencies: NDArray[Any] = _joined(self._frequencies, parts)
        if self.bits:
            frequencies = slots & np.uint64((1 << self.bits) - 1)
            slots >>= np.uint64(self.bits)
        slots += np.uint64(first)
        slots <<= _SLOT_SHIFT
        slots |= frequencies
        return slots


class TermPostings(NamedTuple):
    """The postings of some terms, those of the first term first: parallel arrays, and how many terms."""

    ordinals: NDArray[np.int64]
    frequencies: NDArray[np.int64]
    terms: NDArray[Any]
    distinct: int


class Postings:
    """The inverted index of one agent. Threads may share it; each call is one at a time.

    Ordinals are the caller's numbers for documents: 0 or more, each document its own. At most
    16,777,216 documents fit; more raise InvalidInput.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: tuple[PostingsBlock, ...] = ()
        self._firsts: list[int] = []  # The slot of the first document of each block.
        self._tail = np.empty(0, dtype=np.uint64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._waiting_size = 0
        self._ordinals = np.empty(0, dtype=np.int64)
        self._lengths = np.empty(0, dtype=np.int32)
        self._alive = np.empty(0, dtype=np.bool_)
        self._settled = 0  # How many slots, from the first, stand in ascending order of their ordinals.
        self._used = 0  # How many slots are taken; the arrays above have space for more.
        self._late: dict[int, int] = {}  # The slots of ordinals that came after the last merge.
        self._documents = 0
        self._tokens = 0

    @classmethod
    def build(cls, ordinals: NDArray[np.int64], forwards: Sequence[Forward]) -> Postings:
        """An index of these documents; `ordinals` are distinct and stand beside `forwards`."""
        empty = np.empty(0, dtype=np.uint32)
        return cls.from_arrays(
            ordinals,
            np.array([each.length for each in forwards], dtype=np.int64),
            np.array([each.hashes.size for each in forwards], dtype=np.int64),
            np.concatenate([empty, *(each.hashes for each in forwards)]),
            np.concatenate([empty.astype(np.uint8), *(each.frequencies for each in forwards)]),
        )

    @classmethod
    def from_arrays(
        cls,
        ordinals: NDArray[np.int64],
        lengths: NDArray[np.int64],
        counts: NDArray[np.int64],
        hashes: NDArray[np.uint32],
        frequencies: NDArray[np.uint8],
        *,
        whole: tuple[int, int] | None = None,
    ) -> Postings:
        """The same from forward records laid end to end.

        The first three arrays have a row per document; `counts` says how many of the entries of
        `hashes` and `frequencies` are its own. `whole` counts the documents and terms of the index that
        these are a part of: all the documents that hold any of the terms of the query. Raises
        InvalidInput when the arrays don't match.
        """
        documents = len(ordinals)
        _check_arrays(ordinals, lengths, counts, hashes, frequencies)
        order = np.argsort(ordinals, kind="stable")
        slots = np.empty(documents, dtype=np.uint64)
        slots[order] = np.arange(documents, dtype=np.uint64)
        ordinals = np.asarray(ordinals, dtype=np.int64)[order]
        if np.any(ordinals[1:] == ordinals[:-1]):
            raise InvalidInput("Two documents have the same ordinal; give each document its own.")
        postings = np.sort(_packed(hashes, np.repeat(slots, counts), frequencies))
        made = cls()
        made._take(
            [PostingsBlock.of_postings(postings, np.asarray(lengths, dtype=np.int32)[order])], ordinals
        )
        if whole is not None:
            made._documents, made._tokens = whole
        return made

    @classmethod
    def of_blocks(cls, blocks: Sequence[PostingsBlock]) -> Postings:
        """An index of the documents of several blocks, whose ordinals count from 0 through all of them."""
        made = cls()
        made._take(blocks, np.arange(sum(len(each.lengths) for each in blocks), dtype=np.int64))
        return made

    @property
    def documents(self) -> int:
        """How many documents the index holds."""
        return self._documents

    @property
    def tokens(self) -> int:
        """The summed length of all documents."""
        return self._tokens

    @property
    def nbytes(self) -> int:
        """About how much memory the index takes, in bytes."""
        arrays = (self._tail, self._ordinals, self._lengths, self._alive)
        blocks = sum(each.nbytes for each in self._blocks)
        return blocks + sum(each.nbytes for each in arrays) + 8 * self._waiting_size + 100 * len(self._late)

    def add(self, ordinal: int, forward: Forward) -> None:
        """Add a document. One that has this ordinal already is replaced.

        Raises InvalidInput for a negative ordinal.
        """
        if ordinal < 0:
            raise InvalidInput(f"The ordinal {ordinal} is negative; ordinals are 0 or more.")
        with self._lock:
            self._remove(ordinal)
            if self._used == len(self._ordinals):
                self._grow()
            slot = self._used
            self._ordinals[slot], self._lengths[slot], self._alive[slot] = ordinal, forward.length, True
            self._late[ordinal] = slot
            self._used += 1
            self._documents += 1
            self._tokens += forward.length
            slots = np.full(forward.hashes.size, slot, dtype=np.uint64)
            self._waiting.append(_packed(forward.hashes, slots, forward.frequencies))
            self._waiting_size += forward.hashes.size

    def remove(self, ordinal: int) -> None:
        """Remove a document. An ordinal that the index doesn't hold is no error."""
        with self._lock:
            self._remove(ordinal)

    def score(self, hashes: Sequence[int]) -> Scores:
        """Score every document against the distinct terms of these hashes."""
        with self._lock:
            self._settle()
            postings, terms, count = self._of_terms(hashes)
            having = np.bincount(terms, minlength=count).tolist()
            weights = [idf(self._documents, each) for each in having]
            slots = _slots(postings)
            values = contributions(
                np.array(weights)[terms],
                (postings & _FREQUENCY_MASK).astype(np.uint8),
                self._lengths[slots],
                documents=self._documents,
                tokens=self._tokens,
            )
            ordinals, scores = self._summed(slots, values)
            return Scores(
                ordinals=ordinals,
                scores=scores,
                bound=bound(self._documents, having),
                weights=dict(zip(dict.fromkeys(hashes), weights, strict=True)),
                average=self._tokens / self._documents if self._tokens else 1.0,
            )

    def of_terms(self, hashes: Sequence[int]) -> TermPostings:
        """The postings of each distinct term."""
        with self._lock:
            self._settle()
            postings, terms, count = self._of_terms(hashes)
            if len(self._blocks) + bool(self._tail.size) > 1:
                order = np.argsort(terms, kind="stable")
                postings, terms = postings[order], terms[order]
            frequencies = (postings & _FREQUENCY_MASK).astype(np.int64)
            return TermPostings(self._ordinals[_slots(postings)], frequencies, terms, count)

    def _of_terms(self, hashes: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[Any], int]:
        """The postings of the distinct terms but those of dead documents, the term of each, and the count."""
        distinct = np.array(list(dict.fromkeys(hashes)), dtype=np.uint64)
        several = [each.of(distinct, first) for each, first in zip(self._blocks, self._firsts, strict=True)]
        if self._tail.size or not several:
            several.append(_between(self._tail, distinct << _HASH_SHIFT))
        numbers = np.arange(distinct.size, dtype=np.min_scalar_type(distinct.size))
        postings = np.concatenate([each for each, _ in several])
        terms = np.concatenate([np.repeat(numbers, counts) for _, counts in several])
        if self._documents < self._used:
            alive = self._alive[_slots(postings)]
            postings, terms = postings[alive], terms[alive]
        return postings, terms, distinct.size

    def _summed(
        self, slots: NDArray[np.int64], values: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # The sums are of integers below 2**26, the largest contribution being
        # UNIT * (K1 + 1) * ln(2 + 2 * 2**24): far below 2**53, so floats hold them exactly, in any order.
        sums = np.bincount(slots, weights=values)
        having = np.flatnonzero(sums)
        ordinals, scores = self._ordinals[having], sums[having].astype(np.int64)
        if self._settled < self._used:
            order = np.argsort(ordinals, kind="stable")
            ordinals, scores = ordinals[order], scores[order]
        return ordinals, scores

    def _remove(self, ordinal: int) -> None:
        slot = self._late.pop(ordinal, None)
        if slot is None:
            settled = self._ordinals[: self._settled]
            place = int(np.searchsorted(settled, ordinal))
            if place == self._settled or settled[place] != ordinal or not self._alive[place]:
                return
            slot = place
        self._alive[slot] = False
        self._documents -= 1
        self._tokens -= int(self._lengths[slot])

    def _grow(self) -> None:
        if self._used >= _MOST_SLOTS:
            self._merge()
        if self._used >= _MOST_SLOTS:
            raise InvalidInput(
                f"An index in memory holds at most {_MOST_SLOTS:,} documents of one agent. "
                "Keep larger agents on PostgreSQL, or divide the memories among several agents."
            )
        spare = max(64, self._used // 8)
        self._ordinals = np.concatenate([self._ordinals, np.zeros(spare, dtype=np.int64)])
        self._lengths = np.concatenate([self._lengths, np.zeros(spare, dtype=np.int32)])
        self._alive = np.concatenate([self._alive, np.zeros(spare, dtype=np.bool_)])

    def _settle(self) -> None:
        """Sort what waits into the tail; merge when tail or dead documents have become many."""
        dead = self._used - self._documents
        late = self._waiting_size + self._tail.size
        settled = sum(each.size for each in self._blocks)
        if late > max(_SMALLEST_TAIL, settled // _TAIL_SHARE) or dead > max(64, self._used // _TAIL_SHARE):
            self._merge()
        elif self._waiting:
            self._tail = np.sort(np.concatenate([self._tail, *self._waiting]))
            self._waiting, self._waiting_size = [], 0

    def _merge(self) -> None:
        alive = self._alive[: self._used]
        live = np.flatnonzero(alive)
        order = live[np.argsort(self._ordinals[live], kind="stable")]
        renamed = np.zeros(self._used, dtype=np.uint64)
        renamed[order] = np.arange(order.size, dtype=np.uint64)
        settled = [each.all(first) for each, first in zip(self._blocks, self._firsts, strict=True)]
        postings = np.concatenate([*settled, self._tail, *self._waiting])
        slots = _slots(postings)
        remaining = alive[slots]
        postings, slots = postings[remaining], slots[remaining]
        keep_ends = ~(_SLOT_MASK << _SLOT_SHIFT)
        postings = np.sort((postings & keep_ends) | (renamed[slots] << _SLOT_SHIFT))
        self._take([PostingsBlock.of_postings(postings, self._lengths[order])], self._ordinals[order])

    def _take(self, blocks: Sequence[PostingsBlock], ordinals: NDArray[np.int64]) -> None:
        """Hold the documents of these blocks and no others; `ordinals` ascend."""
        self._blocks, self._firsts = tuple(blocks), _starts(blocks)
        self._tail = np.empty(0, dtype=np.uint64)
        self._waiting, self._waiting_size, self._late = [], 0, {}
        self._ordinals = ordinals
        self._lengths = np.concatenate([np.empty(0, dtype=np.int32), *(each.lengths for each in blocks)])
        self._alive = np.ones(ordinals.size, dtype=np.bool_)
        self._settled = self._used = self._documents = ordinals.size
        self._tokens = int(self._lengths.sum())


def _starts(blocks: Sequence[PostingsBlock]) -> list[int]:
    """The slot of the first document of each block."""
    return list(accumulate((len(each.lengths) for each in blocks), initial=0))[:-1]


def _packed(
    hashes: NDArray[np.uint32], slots: NDArray[np.uint64], frequencies: NDArray[np.uint8]
) -> NDArray[np.uint64]:
    postings: NDArray[np.uint64] = hashes.astype(np.uint64) << _HASH_SHIFT
    postings |= slots << _SLOT_SHIFT
    postings |= frequencies.astype(np.uint64)
    return postings


def _between(
    postings: NDArray[np.uint64], firsts: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The runs of ascending postings of the terms whose first posting each would be, and their lengths."""
    starts = np.searchsorted(postings, firsts)
    stops = np.searchsorted(postings, firsts | np.uint64(0xFFFFFFFF), side="right")
    return _joined(postings, _slices(starts, stops)), stops - starts


def _slices(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[slice]:
    return list(map(slice, starts.tolist(), stops.tolist()))


def _joined(array: NDArray[Any], parts: Sequence[slice]) -> NDArray[Any]:
    return np.concatenate([array[:0], *(array[part] for part in parts)])


def _slots(postings: NDArray[np.uint64]) -> NDArray[np.int64]:
    return ((postings >> _SLOT_SHIFT) & _SLOT_MASK).astype(np.int64)


def _check_arrays(
    ordinals: NDArray[np.int64],
    lengths: NDArray[np.int64],
    counts: NDArray[np.int64],
    hashes: NDArray[np.uint32],
    frequencies: NDArray[np.uint8],
) -> None:
    if not len(ordinals) == len(lengths) == len(counts):
        raise InvalidInput(
            f"{len(ordinals)} ordinals, {len(lengths)} lengths and {len(counts)} counts can't describe the "
            "same documents; give one of each per document."
        )
    if not int(np.sum(counts)) == len(hashes) == len(frequencies):
        raise InvalidInput(
            f"The counts sum to {int(np.sum(counts))}, but there are {len(hashes)} hashes and "
            f"{len(frequencies)} frequencies; each document needs as many of both as it counts."
        )
    if len(ordinals) > _MOST_SLOTS:
        raise InvalidInput(
            f"{len(ordinals):,} documents are more than an index in memory holds ({_MOST_SLOTS:,}). "
            "Keep larger agents on PostgreSQL, or divide the memories among several agents."
        )
    if len(ordinals) and int(np.min(ordinals)) < 0:
        raise InvalidInput(f"The ordinal {int(np.min(ordinals))} is negative; ordinals are 0 or more.")
