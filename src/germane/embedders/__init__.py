"""The embedder that comes with the package, MiniLM as an extra, and adapters of what a user has.

Importing this package imports no optional dependency, and an adapter only when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.embedders.adapters import (
        CallableEmbedder,
        HttpEmbedder,
        OnnxEmbedder,
        SentenceTransformersEmbedder,
    )
    from germane.embedders.static import StaticEmbedder

__all__ = [
    "CallableEmbedder",
    "HttpEmbedder",
    "OnnxEmbedder",
    "SentenceTransformersEmbedder",
    "StaticEmbedder",
]

_HOMES = {
    "CallableEmbedder": "adapters",
    "HttpEmbedder": "adapters",
    "OnnxEmbedder": "adapters",
    "SentenceTransformersEmbedder": "adapters",
    "StaticEmbedder": "static",
}

if not TYPE_CHECKING:  # A checker that saw this function would let every misspelt name pass.

    def __getattr__(name: str) -> object:
        """The embedder, from the module that has it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
