"""The one tokenizer: what a memory is indexed by and what a question asks for.

Level: retrieval (imports errors only). Pure: the same text gives the same terms in every process.

A term is a stemmed word, a bigram of a script written without spaces, or a compound kept whole
(an identifier, a path, a version) beside its parts. The index and the question see the same
splits, so `getUserName`, `get_user_name` and "user name" find each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from germane.retrieval.stemming import SNOWBALL, Stem, stemmer
from germane.retrieval.stopwords import CARRYING_ON, ENGLISH
from germane.retrieval.words import UNICODE, Form, forms, words

__all__ = ["LONGEST", "TOKENIZER", "Forward", "index_terms", "query_terms", "term_hash"]

TOKENIZER = f"terms-1/{SNOWBALL}/{UNICODE}"
"""Names everything that a stored term depends on; an index made under another name is made anew.

Python's own Unicode tables are absent on purpose: Unicode guarantees that normalisation and case
folding of an assigned character never change, so two versions of Python may share a store.
"""

LONGEST = 0xFFFF
"""The longest length that a forward record can state; a longer text counts as this long."""

_MOST_FREQUENT = 0xFF
_REMEMBERED_WORDS = 1 << 17
_LONGEST_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forward:
    """What the index keeps of one memory.

    `hashes` are its distinct terms' hashes, ascending; `frequencies`, in the same order, say how
    often each occurs (at most 255); `length` is the number of all terms (at most 65,535).
    """

    hashes: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    length: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forward):
            return NotImplemented
        return (
            self.length == other.length
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.frequencies, other.frequencies)
        )

    def __hash__(self) -> int:
        return hash((self.length, self.hashes.tobytes(), self.frequencies.tobytes()))


def index_terms(text: str, *, language: str = "english") -> Forward:
    """The forward record of a text. Any text has one, if only an empty one.

    `language` names a Snowball stemmer; raises InvalidInput if there is none of that name.
    """
    remembered = _hashes_of_words(language)
    hashes = list(chain.from_iterable(map(remembered.__getitem__, words(text))))
    counted = Counter(hashes)
    distinct = sorted(counted)
    often = [counted[each] for each in distinct]
    if len(hashes) > _MOST_FREQUENT:
        often = [min(each, _MOST_FREQUENT) for each in often]
    return Forward(
        hashes=np.array(distinct, dtype=np.uint32),
        frequencies=np.array(often, dtype=np.uint8),
        length=min(len(hashes), LONGEST),
    )


def query_terms(text: str, *, language: str = "english") -> tuple[str, ...]:
    """The distinct terms that a question asks the index for, in order of appearance.

    Every one of them is a term of the same text when indexed. The stop list (English only; other
    languages rely on the index's own statistics) is applied here and nowhere else, so a question
    of stop words alone has no terms. Nor has one that only carries the conversation on ("go on").
    """
    stem = stemmer(language)
    stop = ENGLISH if language == "english" else frozenset()
    # Each word once: a whole file may be asked for, and stems are dear.
    asked = [form for word in dict.fromkeys(words(text)) for form in forms(word) if not form.index_only]
    kept = [form for form in asked if form.text not in stop]
    if language == "english" and all(form.text in CARRYING_ON for form in kept):
        return ()
    return tuple(dict.fromkeys(_term(form, stem, language) for form in kept))


def term_hash(term: str) -> int:
    """The 32-bit hash (CRC-32 of UTF-8) by which the index knows a term. Two terms may share one."""
    return crc32(term.encode("utf-8", "surrogatepass"))


class _HashesOfWords(dict[str, tuple[int, ...]]):
    """Remembers the hashes of each word seen. Threads may share it: at worst a word is done twice."""

    __slots__ = ("_language", "_stem")

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._stem = stemmer(language)

    def __missing__(self, word: str) -> tuple[int, ...]:
        hashes = tuple(self._compute(word))
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED_WORDS:
                # Starting over is cheaper than keeping track of use, and needs no lock.
                self.clear()
            self[word] = hashes
        return hashes

    def _compute(self, word: str) -> Iterator[int]:
        for form in forms(word):
            yield term_hash(_term(form, self._stem, self._language))


@cache
def _hashes_of_words(language: str) -> _HashesOfWords:
    return _HashesOfWords(language)


def _term(form: Form, stem: Stem, language: str) -> str:
    # The English stemmer knows ASCII only; on other words it would cut endings that aren't English.
    if form.stemmed and (language != "english" or form.text.isascii()):
        return stem(form.text)
    return form.text
