"""WordPiece: a text as the pieces of words that a vocabulary has.

Level: embedders (imports only protocols and errors). Pure.

Two ways to cut a text into words stand here, both as quick as Python is: BERT's own, which MiniLM
needs, and the plain one of the bundled embedder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from unicodedata import category, normalize

import regex

__all__ = ["WordPieces", "bert_words", "plain_words"]

_REMEMBERED = 1 << 16
_LONGEST_WORD = 100  # BERT's limit: a longer word is unknown.
_PLAIN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
_ASCII_BERT = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# BERT takes all ASCII symbols for punctuation, and of the others only what Unicode calls so.
_MARKS = r"\p{P}$+<=>\^`|~"
_ANY_BERT = regex.compile(rf"[{_MARKS}]|[^\s{_MARKS}]+")
_ANY_CONTROLS = regex.compile(r"(?V1)[[\p{Cc}\p{Cf}\p{Co}\ufffd]--[\t\n\r]]")
_IDEOGRAPHS = regex.compile(
    r"[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class WordPieces(dict[str, tuple[int, ...]]):
    """The ids of each word's pieces, made when first asked for and remembered.

    Greedy, the longest piece first; pieces within a word are written `##piece`. A word that can't be
    made of pieces is `unknown`: by default nothing. Threads may share it: at worst a word is done twice.
    """

    __slots__ = ("_unknown", "_vocabulary")

    def __init__(self, vocabulary: Mapping[str, int], *, unknown: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._unknown = unknown

    def ids(self, words: list[str], limit: int) -> list[int]:
        """The ids of the words' pieces in order, at most `limit` of them."""
        found: list[int] = []
        for word in words:
            found += self[word]
            if len(found) >= limit:
                return found[:limit]
        return found

    def __missing__(self, word: str) -> tuple[int, ...]:
        found = self._pieces(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _REMEMBERED:
                # Starting over is cheaper than keeping track of use, and needs no lock.
                self.clear()
            self[word] = found
        return found

    def _pieces(self, word: str) -> tuple[int, ...]:
        whole = self._vocabulary.get(word)
        if whole is not None:
            return (whole,)
        if len(word) > _LONGEST_WORD:
            return self._unknown
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._vocabulary.get(mark + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return self._unknown
        return tuple(found)


def plain_words(text: str) -> list[str]:
    """Runs of letters, runs of digits and single marks, in lower case and without accents."""
    if not text.isascii():
        text = _without_accents(text)
    return _PLAIN.findall(text.lower())


def bert_words(text: str) -> list[str]:
    """The words that BERT's uncased tokenizer cuts a text into.

    Special tokens written out in the text ("[SEP]") are words like any other, never commands.
    """
    if not text.isascii():
        found: list[str] = _ANY_BERT.findall(
            _without_accents(_IDEOGRAPHS.sub(r" \g<0> ", _ANY_CONTROLS.sub("", text))).lower()
        )
        return found
    return _ASCII_BERT.findall(_ASCII_CONTROLS.sub("", text).lower())


def _without_accents(text: str) -> str:
    return "".join(character for character in normalize("NFD", text) if category(character) != "Mn")
