"""The language of an agent's words.

Level: verbs.
"""

from __future__ import annotations

from germane.errors import InvalidInput
from germane.protocols import Multilingual, Store

__all__ = ["settled_language"]

_ENGLISH = "english"


def settled_language(store: Store, agent: str, given: str | None) -> str:
    """The language that an agent's words are in from now on: the one given, or the one that the store keeps.

    Raises InvalidInput for a language without a stemmer, or that the store can't index.
    """
    if isinstance(store, Multilingual):
        return store.settle_language(agent, given)
    if given not in {None, _ENGLISH}:
        raise InvalidInput(
            f"language={given!r} can't be had from {type(store).__name__}, which indexes in English. "
            "Leave the language out, or give the store a method settle_language (germane.Multilingual)."
        )
    return _ENGLISH
