"""Exact token counts by the public vocabularies, offline.

Level: tokens (may import protocols, model and errors). The vocabulary travels in the wheel of
`splintr-rs`; it is imported and loaded at the first count, never before, so that a process that
counts nothing pays nothing. Why this package: docs/decisions/0002-token-counting.md.
"""

from __future__ import annotations

from threading import Lock
from typing import Protocol

__all__ = ["ExactCounter"]

_CACHED_CHARACTERS = 16_000_000


class ExactCounter:
    """Counts as OpenAI's `tiktoken` does with `encode_ordinary`: special-token texts such as
    `<|endoftext|>` are counted as the plain text that they are in a memory.

    Any `str` can be counted: half of a surrogate pair standing alone counts as U+FFFD and two
    halves in order as the character that they encode, which is tiktoken's rule too. One instance
    may serve many threads.
    """

    margin = 0.0

    def __init__(self, name: str, *, vocabulary: str) -> None:
        self.name = name
        self._vocabulary = vocabulary
        self._encoder: _Encoder | None = None
        self._counted = 0

    def count(self, text: str) -> int:
        if not text:
            return 0
        encoder = self._encoder
        if encoder is None:
            encoder = self._encoder = _loaded(self._vocabulary)
        try:
            tokens = len(encoder.encode_ordinary(text))
        except UnicodeEncodeError:
            tokens = len(encoder.encode_ordinary(_without_surrogates(text)))
        self._bound_memory(encoder, len(text))
        return tokens

    def __repr__(self) -> str:
        return f"ExactCounter({self.name!r})"

    def _bound_memory(self, encoder: _Encoder, characters: int) -> None:
        # The encoder remembers the last 65,000 words however long they are; in text without spaces
        # a "word" may be megabytes. Two threads adding at once lose a few characters of this sum,
        # which only delays the clearing.
        self._counted += characters
        if self._counted > _CACHED_CHARACTERS:
            self._counted = 0
            encoder.clear_cache()


class _Encoder(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...

    def clear_cache(self) -> None: ...


_LOADED: dict[str, _Encoder] = {}
_LOADING = Lock()


def _loaded(vocabulary: str) -> _Encoder:
    """The encoder of the vocabulary, one for all counters of the process."""
    with _LOADING:
        if vocabulary not in _LOADED:
            # Loading takes some 60 ms, so it waits for the first text.
            from splintr import Tokenizer  # noqa: PLC0415 - see the line above.

            _LOADED[vocabulary] = Tokenizer.from_pretrained(vocabulary)
        return _LOADED[vocabulary]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
