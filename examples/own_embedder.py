"""Use your own embedder: any function from texts to vectors, with a name that is stored with the vectors.

This function counts letters. It captures little meaning, but needs no other package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import germane
from germane.embedders import CallableEmbedder

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return one row of letter counts per text."""
    return np.array([[text.lower().count(letter) for letter in LETTERS] for text in texts], np.float32)


def main() -> None:
    embedder = CallableEmbedder(letters, name="letters", dimension=len(LETTERS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        with germane.open(path, embedder=embedder) as engine:
            engine.remember("The invoices are printed on Mondays.")
            engine.remember("A zebra crossed the road.")
            for found in engine.recall("invoicing"):
                parts = ", ".join(f"{name} {value:.2f}" for name, value in sorted(found.parts.items()))
                print(f"{found.score:.2f} = {parts}: {found.content}")
            print(f"Vectors made by {engine.stats().embedding}.")
        try:
            germane.open(path, embedder=CallableEmbedder(letters, name="other", dimension=len(LETTERS)))
        except germane.EmbedderMismatch as error:
            print(f"Refused: {error.given} isn't {error.stored}.")
        with germane.open(path) as engine:
            words_alone = engine.recall("invoices")
            print(f"Without an embedder words still find: {words_alone[0].content}")


if __name__ == "__main__":
    main()
