"""How long the layered plan takes, cold and warm, over a memory as the note on context management has it.

2,000 decisions, 5,000 facts, 1,500 episodes, 200 procedures and 100 constraints in a file. The first context
of a process comes with all that has to be imported and read for it, compiled before as in a package that is
installed; cold is to open the file again in that process and assemble once; warm is the same engine with
more questions, one at a time. Times are the median of the runs, in milliseconds, each run a process.

    nice -n -15 python bench/layered.py [--runs 7] [--words]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import germane
from germane import Draft, Outcome

__all__ = ["main"]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
COUNTS = {"decision": 2000, "fact": 5000, "episode": 1500, "procedure": 200, "constraint": 100}
QUESTIONS = (
    "Should we use Redis for caching in Newton?",
    "Why is the deploy to the staging cluster failing?",
    "Which index does the invoice query use?",
    "What did we decide about the retry queue?",
    "Set up the dashboard for token budgets",
)
_WORDS = """
postgres redis cache index query schema migration release rollback deploy timeout retry queue worker token
budget context memory agent session prompt answer evidence ranking vector embedding file folder parser lexer
compiler network socket certificate login password customer invoice refund order shipment warehouse report
dashboard metric alert incident review branch commit merge test coverage staging cluster region latency
""".split()  # noqa: SIM905 - a list of quoted words would take sixty lines.
_WARM_ROUNDS = 20


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--words", action="store_true", help="without an embedder")
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once is not None:
        print(*_once(given.once, words=given.words))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.db"
        _fill(file, words=given.words)
        command = [sys.executable, __file__, "--once", str(file), *(["--words"] if given.words else [])]
        _figures(command, folder)  # It compiles, and what it says is thrown away.
        runs = [_figures(command, folder) for _ in range(given.runs)]
    names = ("first of the process", "cold: open and assemble", "warm: p50", "warm: p95")
    for name, figures in zip(names, zip(*runs, strict=True), strict=True):
        print(f"{name:<24}{statistics.median(figures):8.1f} ms  ({min(figures):.1f} to {max(figures):.1f})")


def _figures(command: list[str], compiled: str) -> list[float]:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603 - This very file.
    return list(map(float, done.stdout.split()))


def _once(file: Path, *, words: bool) -> list[float]:
    """Milliseconds: of the first context, of one from a file opened again, of those after it p50 and p95."""
    first = _timed(lambda: _ask(_opened(file, words=words)))
    begun = time.perf_counter()
    with _opened(file, words=words) as engine:
        engine.assemble(QUESTIONS[0], frame="auto")
        cold = time.perf_counter() - begun
        warm = [
            _timed(lambda question=question: engine.assemble(question, frame="auto"))  # type: ignore[misc] # mypy can't infer a lambda's default.
            for _ in range(_WARM_ROUNDS)
            for question in QUESTIONS
        ]
    return [
        1000 * each for each in (first, cold, statistics.median(warm), statistics.quantiles(warm, n=20)[18])
    ]


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _ask(engine: germane.Engine) -> None:
    with engine:
        engine.assemble(QUESTIONS[0], frame="auto")


def _opened(file: Path, *, words: bool) -> germane.Engine:
    return germane.open(
        file, agent="newton", embedder=None if words else "bundled", clock=lambda: NOW, durability="relaxed"
    )


def _fill(file: Path, *, words: bool) -> None:
    with _opened(file, words=words) as engine:
        engine.remember_many(list(_drafts()))


def _drafts() -> Iterator[Draft]:
    chance = random.Random(1)
    for kind, count in COUNTS.items():
        for number in range(count):
            words = chance.choices(_WORDS, k=chance.randrange(10, 35))
            yield Draft(
                content=f"{' '.join(words).capitalize()}, case {kind} {number}.",
                kind=kind,
                subject=chance.choice(_WORDS),
                confidence=chance.uniform(0.5, 1),
                outcome=chance.choice((None, *Outcome)) if kind == "decision" else None,
                metadata={"action": "warn" if number % 20 else "block"} if kind == "constraint" else {},
                created_at=NOW - timedelta(hours=chance.randrange(1, 5000)),
            )


if __name__ == "__main__":
    main()
