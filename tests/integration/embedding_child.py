"""What the tests of embedding run in processes of their own: python embedding_child.py TASK PATH."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import germane
from germane.testing.fakes import HashEmbedder


class Slow(HashEmbedder):
    """Embeds in the background, a batch each `seconds`."""

    eager = False

    def __init__(self, seconds: float) -> None:
        super().__init__(16, name="slow")
        self._seconds = seconds

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(self._seconds)
        return super().embed(texts)


def write(path: Path) -> None:
    """Store memories whose vectors come too late for this process, and say so."""
    engine = germane.open(path, embedder=Slow(60))
    engine.remember_many(f"Memory number {number} about caches" for number in range(300))
    print("stored", flush=True)  # noqa: T201 - how it acknowledges.
    time.sleep(60)


def embed(path: Path) -> None:
    """Write, and wait until everything has a vector."""
    with germane.open(path, embedder=Slow(0.01)) as engine:
        for number in range(20):
            engine.remember(f"From process {sys.argv[3]} number {number}")
        deadline = time.monotonic() + 30
        while engine.stats().pending:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def leave_open(path: Path) -> None:
    """End without closing: the thread must hold nothing up."""
    engine = germane.open(path, embedder=Slow(0.01))
    engine.remember("The last words.")


if __name__ == "__main__":
    {"write": write, "embed": embed, "leave_open": leave_open}[sys.argv[1]](Path(sys.argv[2]))
