"""How long the scoped plan takes: 10,000 artifacts in 50 scopes, for a task and the paths it touches.

    python bench/scoped.py [--artifacts 10000] [--scopes 50] [--rounds 200] [--words]

Prints the median and the 95th percentile of warm assemblies, by question, the median of their processor
time, which other programs disturb less, and the time of the first. The result of a search is cached until the
store changes, since an agent at one task asks the same again and again; "in other words" asks something
else each time. With `--words` the store has no vectors.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import germane
from germane import Context, Draft, Engine

__all__ = ["main", "store"]

KINDS = ("adr", "pattern", "iplan", "module", "decision", "dependency", "changelog")
WORDS = """
    token session login password key rotate queue worker retry timeout cache redis postgres schema migration
    deploy rollback release invoice refund order shipment report dashboard metric alert review branch merge
    parser lexer compiler socket certificate customer search index vector ranking budget context prompt
""".split()  # noqa: SIM905 - A list of forty quoted words would take forty lines.
START = datetime(2026, 1, 5, tzinfo=UTC)


def store(artifacts: int, scopes: int, *, words: bool) -> Engine:
    """An engine in memory with the artifacts spread evenly: global, tasks, and folders three deep."""
    chance = random.Random(0)
    names = ["global", *(f"task:T-{number}" for number in range(scopes // 5))]
    names += [f"path:src/p{number // 5}/m{number}" for number in range(scopes - len(names))]
    engine = germane.open(":memory:", embedder=None) if words else germane.open(":memory:")
    engine.remember_many(
        Draft(
            content=f"{number}: {' '.join(chance.choices(WORDS, k=chance.randrange(10, 80)))}.",
            kind=chance.choice(KINDS),
            scope=names[number % len(names)],
            created_at=START + timedelta(minutes=number),
            metadata={"paths": [f"/src/p{number % 7}/"]} if number % 20 == 0 else {},
        )
        for number in range(artifacts)
    )
    return engine


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--artifacts", type=int, default=10_000)
    arguments.add_argument("--scopes", type=int, default=50)
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--words", action="store_true")
    options = arguments.parse_args()
    with store(options.artifacts, options.scopes, words=options.words) as engine:
        paths = ["src/p1/m7/login.py", "src/p2/m11/queue.py"]
        others = itertools.cycle(f"{first} the {second} keys" for first in WORDS for second in WORDS)
        ways: dict[str, Callable[[], Context]] = {
            "scoped, task and paths": lambda: engine.assemble(plan="scoped", task="T-3", paths=paths),
            "scoped, and in words": lambda: engine.assemble(
                "rotate the login keys", plan="scoped", task="T-3", paths=paths
            ),
            "scoped, in other words": lambda: engine.assemble(
                next(others), plan="scoped", task="T-3", paths=paths
            ),
            "scoped_estimate": lambda: engine.assemble(plan="scoped_estimate", task="T-3", paths=paths),
        }
        for name, assemble in ways.items():
            start = time.perf_counter()
            context = assemble()
            first = time.perf_counter() - start
            assert context.trace.included
            times, worked = [], []
            for _ in range(options.rounds):
                start, busy = time.perf_counter(), time.thread_time()
                context = assemble()
                times.append(time.perf_counter() - start)
                worked.append(time.thread_time() - busy)
            low, high = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            print(
                f"{name:24}  p50 {1000 * low:6.2f} ms  p95 {1000 * high:6.2f} ms  "
                f"CPU p50 {1000 * statistics.median(worked):6.2f} ms  "
                f"first {1000 * first:6.1f} ms  {len(context.trace.entries):,} looked at, "
                f"{len(context.items)} in, {context.tokens:,} tokens"
            )


if __name__ == "__main__":
    main()
