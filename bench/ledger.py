"""What the ledger costs: an assembly with and without a record, and making one again from the store of then.

A file with so many memories, an assembly that is recorded, then a tenth as many memories more, so that the
replay has something to undo. Times are the median of the runs, in milliseconds; the record's size is what
the file grows by for each, over a hundred of them.

    nice -n -15 python bench/ledger.py [--memories 1000 10000 100000] [--runs 5]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import germane
from germane import Draft

__all__ = ["main"]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
QUESTION = "Should we use redis for the retry queue?"
_KINDS = ("fact", "decision", "episode", "note")
_WORDS = """
postgres redis cache index query schema migration release rollback deploy timeout retry queue worker token
budget context memory agent session prompt answer evidence ranking vector embedding file folder parser lexer
""".split()  # noqa: SIM905 - A list of quoted words would take thirty lines.
_RECORDS = 100


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print(f"{'memories':>9}{'assemble':>11}{'and record':>12}{'replay':>11}{'KB a record':>13}  the same")
    for count in given.memories:
        with tempfile.TemporaryDirectory() as folder:
            print(_line(Path(folder) / "agent.db", count, given.runs))


def _line(file: Path, count: int, runs: int) -> str:
    with germane.open(file, agent="newton", clock=lambda: NOW, durability="relaxed") as engine:
        engine.remember_many(list(_drafts(count, seed=1)), force=True)
        engine.assemble(QUESTION)
        plain = _median(lambda: engine.assemble(QUESTION), runs)
        with_record = _median(lambda: engine.assemble(QUESTION, record=True), runs)
        before = engine.stats().bytes
        for _ in range(_RECORDS):
            engine.assemble(QUESTION, record=True)
        size = (engine.stats().bytes - before) / _RECORDS / 1000
        (recorded,) = engine.ledger().list(limit=1)
        engine.remember_many(list(_drafts(count // 10, seed=2)), force=True)
        same: list[bool] = []
        again = _median(lambda: same.append(engine.ledger().replay(recorded.id).same), runs)
    return f"{count:9,}{plain:8.1f} ms{with_record:9.1f} ms{again:8.0f} ms{size:13.1f}  {all(same)}"


def _median(work: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return 1000 * statistics.median(times)


def _drafts(count: int, *, seed: int) -> Iterator[Draft]:
    chance = random.Random(seed)
    for number in range(count):
        words = chance.choices(_WORDS, k=chance.randrange(10, 35))
        yield Draft(
            content=f"{' '.join(words).capitalize()}, case {seed} {number}.",
            kind=chance.choice(_KINDS),
            created_at=NOW - timedelta(hours=chance.randrange(1, 5000)),
        )


if __name__ == "__main__":
    main()
