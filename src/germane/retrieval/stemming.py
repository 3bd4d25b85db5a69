"""Snowball stems, by PyStemmer where it is installed and by the pure implementation elsewhere.

Level: retrieval (imports errors only).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, Protocol, TypeAlias

from germane.errors import InvalidInput
from germane.forking import renewed

__all__ = ["SNOWBALL", "Stem", "languages", "stemmer"]

SNOWBALL = "snowball-3"
"""The algorithms' major version. Stems are stored, so both implementations have to be of it."""

Stem: TypeAlias = Callable[[str], str]

# No word of a language is this long, and the pure stemmer is slow on what is no word.
_LONGEST_WORD = 64
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*")
_OLDER = frozenset({"dutch_porter", "porter", "lovins", "german2", "kraaij_pohlmann"})


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a stemmer, by their Snowball names; older algorithms of a language aside."""
    module: Any = import_module("snowballstemmer")
    return tuple(sorted(set(module.algorithms()) - _OLDER))


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - Snowball's own name.


@cache
def stemmer(language: str) -> Stem:
    """The stemming function of a language, by its Snowball name. Threads may share it.

    Raises InvalidInput for a language that Snowball has no stemmer for.
    """
    native: _Stemmer = _compiled(language) or _pure(language)
    lock = renewed(Lock())

    def stem(word: str) -> str:
        if len(word) > _LONGEST_WORD:
            return word
        # A stemmer keeps the word it works on, so two threads must not enter it together.
        with lock:
            return native.stemWord(word)

    return stem


def _compiled(language: str) -> _Stemmer | None:
    try:
        library: Any = import_module("Stemmer")
    except ImportError:
        return None
    version = str(getattr(library, "version", lambda: "")())
    if version.partition(".")[0] != SNOWBALL.partition("-")[2]:
        return None
    try:
        # The memo of words stands above this, so the library's own cache would only cost.
        made: _Stemmer = library.Stemmer(language, 0)
    except KeyError:
        return None
    return made


def _pure(language: str) -> _Stemmer:
    module = _module(language)
    if module is None:
        raise InvalidInput(
            f"language={language!r} has no Snowball stemmer. Known: {', '.join(languages())}. For another "
            "language take 'english': only words that are written in ASCII are then stemmed."
        )
    name = "".join(part.title() for part in language.split("_")) + "Stemmer"
    made: _Stemmer = getattr(module, name)()
    return made


def _module(language: str) -> Any:
    """The pure stemmer's module, or None where there is none of that name."""
    try:
        return import_module(f"snowballstemmer.{language}_stemmer") if _NAME.fullmatch(language) else None
    except ImportError:
        return None
