"""How long a working set takes: to be filled, to be put in order, and to be made a text of.

    python bench/working.py [--items 200 10000] [--runs 30]

The set lies in a file. Each figure is the median of the runs, the first, which fills caches, apart. Every
strategy makes a text of all that the set may hold, by the exact counter; `after a touch` is the
default one after another process's change, so that part of the set has to be read anew.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

import germane
from germane import Engine, WorkingSet
from germane.testing.fakes import make_memories

_STRATEGIES = ("balanced", "recent", "important", "frequent", "smart", "clustered")


def main() -> None:
    """Print a row for each size of the set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[200, 10_000])
    parser.add_argument("--runs", type=int, default=30)
    given = parser.parse_args()
    for count in given.items:
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder) / "agent.db", count, given.runs)


def _measure(path: Path, count: int, runs: int) -> None:
    chance = Random(7)
    with germane.open(path, agent="tester", embedder=None) as engine:
        engine.remember_many(
            {"content": each.content, "importance": each.importance, "created_at": each.created_at}
            for each in make_memories(count)
        )
        memories = engine.memories()
        working_set = engine.working_set(max_tokens=128_000)
        working_set.resize(10_000_000)
        seconds = _timed(lambda: working_set.add_many(memories))
        working_set.resize(128_000)
        print(
            f"{count:,} memories, {working_set.tokens:,} tokens, entered at once in {1000 * seconds:.0f} ms"
        )
        items = working_set.items()
        _row("touch", lambda: working_set.touch(chance.choice(items)), runs)
        _row("tokens", lambda: working_set.tokens, runs)
        for strategy in _STRATEGIES:
            _row(strategy, lambda s=strategy: working_set.assemble(strategy=s), runs)  # type: ignore[misc] # mypy can't infer a lambda's default.
        _row("8,000 tokens of it", lambda: working_set.assemble(budget=8000), runs)
        _row("with a question", lambda: working_set.assemble("Which cache keeps the session?"), runs)
        _row("whole trace read", lambda: list(working_set.assemble().trace.entries), runs)
        with germane.open(path, agent="tester", embedder=None) as other:
            _after_a_touch(working_set, other, runs)


def _after_a_touch(working_set: WorkingSet, other: Engine, runs: int) -> None:
    theirs, times = other.working_set(), []
    for one in working_set.items()[:runs]:
        theirs.touch(one)
        times.append(_timed(working_set.assemble))
    _print("after a touch", times[0], times)


def _row(name: str, call: Callable[[], object], runs: int) -> None:
    first = _timed(call)
    _print(name, first, [_timed(call) for _ in range(runs)])


def _print(name: str, first: float, times: list[float]) -> None:
    slowest = sorted(times)[int(0.95 * (len(times) - 1))]
    print(
        f"  {name:<18} {1000 * median(times):8.2f} ms   p95 {1000 * slowest:8.2f}   first {1000 * first:8.2f}"
    )


def _timed(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


if __name__ == "__main__":
    main()
