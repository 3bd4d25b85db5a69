"""BM25 over the visible groups of one conversation, from the forward records of their messages.

Level: stores (imports retrieval and what is above it). Pure: what it holds is a cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.model.conversation import GroupScores
from germane.model.message import Message
from germane.retrieval.postings import UNIT, Postings
from germane.retrieval.terms import LONGEST, Forward, term_hash
from germane.stores.relational.conversations.message_lex import Record, is_indexed, record_of

__all__ = ["TalkIndex"]

_MOST_FREQUENT: Final = 0xFF

# One entry as one number, so that sorting brings together what a group's messages say of a term.
_GROUP_SHIFT: Final = np.uint64(40)
_HASH_SHIFT: Final = np.uint64(8)
_HASH_MASK: Final = np.uint64(0xFFFFFFFF)
_FREQUENCY_MASK: Final = np.uint64(0xFF)


class TalkIndex:
    """The index of a conversation in one language; what is hidden has no part in its statistics."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._postings = Postings()
        self._ordinals: dict[str, int] = {}
        self._names: list[str] = []
        self._records: dict[int, Record] = {}
        self._of_group: dict[str, list[int]] = {}

    def add(self, messages: Iterable[Message], stored: Mapping[int, Record]) -> dict[int, Record]:
        """Index messages that are new. Returns the records that had to be made, by the message's number.

        `stored` are those that needn't be, by the same.
        """
        self._records |= stored
        made: dict[int, Record] = {}
        touched: dict[str, None] = {}
        for message in messages:
            if message.hidden or not is_indexed(message):
                continue
            if message.seq not in self._records:
                self._records[message.seq] = made[message.seq] = record_of(message, self.language)
            group = str(message.group)
            self._of_group.setdefault(group, []).append(message.seq)
            touched[group] = None
        self._index(list(touched))
        return made

    def renew(self, changed: Iterable[Message], messages: Mapping[int, Message]) -> None:
        """Index the groups of what was hidden, put back or removed anew, from all messages by number."""
        renewed = set()
        for message in changed:
            if message.seq not in messages:
                self._records.pop(message.seq, None)
            if message.group is not None:
                renewed.add(message.group)
        for group in renewed & self._ordinals.keys():
            self._of_group.pop(group, None)
            self._postings.remove(self._ordinals[group])
        self.add((each for each in messages.values() if each.group in renewed), {})

    def match(self, terms: Sequence[str]) -> GroupScores:
        """How well each group matches the terms."""
        found = self._postings.score([term_hash(term) for term in terms])
        scores = {
            self._names[ordinal]: score
            for ordinal, score in zip(found.ordinals.tolist(), found.scores.tolist(), strict=True)
        }
        return GroupScores(scores=scores, bound=round(found.bound * UNIT))

    def _index(self, groups: Sequence[str]) -> None:
        if not groups:
            return
        is_first = not self._names
        for group in groups:
            if group not in self._ordinals:
                self._ordinals[group] = len(self._names)
                self._names.append(group)
        documents = [[self._records[seq] for seq in self._of_group[group]] for group in groups]
        ordinals = np.array([self._ordinals[group] for group in groups], dtype=np.int64)
        lengths, counts, hashes, frequencies = _joined(documents)
        if is_first:
            self._postings = Postings.from_arrays(ordinals, lengths, counts, hashes, frequencies)
            return
        end = 0
        for ordinal, length, count in zip(ordinals.tolist(), lengths.tolist(), counts.tolist(), strict=True):
            own = slice(end, end := end + count)
            forward = Forward(hashes=hashes[own], frequencies=frequencies[own], length=length)
            self._postings.add(ordinal, forward)


_Arrays: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]


def _joined(documents: Sequence[Sequence[Record]]) -> _Arrays:
    """The records of each document as one: lengths, numbers of terms, and all hashes and frequencies."""
    records = list(chain.from_iterable(documents))
    of_record = np.repeat(np.arange(len(documents)), [len(each) for each in documents])
    lengths = np.zeros(len(documents), dtype=np.int64)
    np.add.at(lengths, of_record, [each.length for each in records])
    of_entry = np.repeat(of_record, [len(each.frequencies) for each in records])
    entries = of_entry.astype(np.uint64) << _GROUP_SHIFT
    hashes = np.frombuffer(b"".join(each.hashes for each in records), dtype="<u4")
    entries |= hashes.astype(np.uint64) << _HASH_SHIFT
    entries |= np.frombuffer(b"".join(each.frequencies for each in records), dtype=np.uint8)
    entries.sort()
    terms = entries >> _HASH_SHIFT
    firsts = np.flatnonzero(np.diff(terms, prepend=~terms[:1]))
    often = np.add.reduceat((entries & _FREQUENCY_MASK).astype(np.int64), firsts) if len(firsts) else firsts
    terms = terms[firsts]
    return (
        np.minimum(lengths, LONGEST),
        np.bincount((entries[firsts] >> _GROUP_SHIFT).astype(np.int64), minlength=len(documents)),
        (terms & _HASH_MASK).astype(np.uint32),
        np.minimum(often, _MOST_FREQUENT).astype(np.uint8),
    )
