"""How long whole calls of the command line take, the interpreter's start included.

    python bench/cli.py [--memories 300] [--runs 15] [--json]

Each command runs in a process of its own on a small store; p50 and p95 of the wall time, the
processes' own CPU time, and the peak memory of the largest of all. Python has to be allowed to keep
what it compiles (PYTHONDONTWRITEBYTECODE unset), as it is where the package is installed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from corpus import drafts

import germane

_QUESTION = "What did we decide about the login retry?"
_KNOWN = "ID"
"""Stands for the id of a memory that is in the store."""
_COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "db stats": ("db", "stats"),
    "recall": ("recall", _QUESTION),
    "assemble": ("assemble", _QUESTION, "--budget", "2000"),
    "context explain": ("context", "explain", _QUESTION, "--budget", "2000"),
    "remember": ("remember", "The login service retries three times."),
    "memory show": ("memory", "show", _KNOWN),
    "memory forget": ("memory", "forget", _KNOWN),
}


def main() -> None:
    """Time every command and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "small.db")
        with germane.open(store, agent="default") as engine:
            known = engine.remember_many(drafts(given.memories))[0].memory.id
        figures = {
            "(python alone)": _timed([sys.executable, "-c", "pass"], given.runs),
            **{name: _timed(_command(store, known, *words), given.runs) for name, words in _COMMANDS.items()},
        }
    peak = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)
    if given.json:
        print(json.dumps({"memories": given.memories, "ms": figures, "peak_mb": peak}))
        return
    print(f"{given.memories} memories, {given.runs} runs, ms of wall time; peak memory {peak:.0f} MB")
    print(f"{'':18}{'p50':>8}{'p95':>8}{'CPU p50':>9}")
    for name, each in figures.items():
        print(f"{name:18}{each['p50']:>8.0f}{each['p95']:>8.0f}{each['cpu_p50']:>9.0f}")


def _command(store: str, known: str, *words: str) -> list[str]:
    words = tuple(known if word == _KNOWN else word for word in words)
    shared = [] if words == ("--help",) else ["--db", store]
    return [sys.executable, "-m", "germane", *words, *shared]


def _timed(command: Sequence[str], runs: int) -> dict[str, float]:
    taken, busy = [], []
    for _ in range(runs + 1):
        before, worked = perf_counter(), _children()
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, stdout=quiet, stderr=quiet)  # noqa: S603 - this very interpreter.
        taken.append(1000 * (perf_counter() - before))
        busy.append(1000 * (_children() - worked))
    # The first run fills the file cache.
    return {
        "p50": round(float(np.percentile(taken[1:], 50)), 1),
        "p95": round(float(np.percentile(taken[1:], 95)), 1),
        "cpu_p50": round(float(np.percentile(busy[1:], 50)), 1),
    }


def _children() -> float:
    """CPU seconds of all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
