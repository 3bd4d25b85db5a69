"""Exact token counts by the public vocabularies, offline.

Level: tokens (may import protocols, model and errors). The vocabulary travels in the wheel of
`rs-bpe`; it is imported and loaded at the first count, never before, so that a process that
counts nothing pays nothing. Why this package: docs/decisions/0002-token-counting.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from threading import Lock
from typing import Protocol

from germane.forking import renewed

__all__ = ["ExactCounter", "parts_apart"]

_JOINED = ("", "/")


def parts_apart(lines: Iterable[str]) -> list[str]:
    """Lines with their line ends, joined where need be, so that `ExactCounter` counts the parts as the whole.

    Both vocabularies cut a text into pieces before they look for tokens. A piece that holds line ends ends
    with them, unless white space or slashes come next: any other line begins a part.
    """
    parts: list[str] = []
    for line in lines:
        if parts and (line[:1] in _JOINED or line[:1].isspace()):
            parts[-1] += line
        else:
            parts.append(line)
    return parts


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

    def count(self, text: str) -> int:
        if not text:
            return 0
        encoder = self._encoder
        if encoder is None:
            encoder = self._encoder = _loaded(self._vocabulary)
        try:
            return encoder.count(text)
        except UnicodeEncodeError:
            return encoder.count(_without_surrogates(text))

    def __repr__(self) -> str:
        return f"ExactCounter({self.name!r})"


class _Encoder(Protocol):
    def count(self, text: str) -> int: ...


_LOADED: dict[str, _Encoder] = {}
_LOADING = renewed(Lock())


def _loaded(vocabulary: str) -> _Encoder:
    """The encoder of the vocabulary, one for all counters of the process."""
    with _LOADING:
        if vocabulary not in _LOADED:
            # Loading takes some 70 ms, so it waits for the first text.
            _LOADED[vocabulary] = getattr(import_module("rs_bpe.bpe").openai, vocabulary)()
        return _LOADED[vocabulary]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
