"""How often a read or a write waits for the answer of a PostgreSQL server, and how long it takes.

    python bench/turns.py [repetitions] [--json]

Whatever the machine, each turn costs at least one way to the server and back. They are counted on a socket
that passes on the traffic; the times are taken without it, on a database whose disk is synchronised as a
real one's. `processor` is the time that this process computes for one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

import germane
from germane.stores.location import open_store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.
from support.proxy import Way
from support.reads import reads
from support.writes import writes

REPETITIONS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", type=int, nargs="?", default=REPETITIONS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report = run(given.repetitions)
    if given.json:
        print(json.dumps(report, indent=2))
        return
    for name, row in report.items():
        print(
            f"{name:<28} {row['turns']:4.0f} turns, p50 {row['p50']:7.2f} ms, "
            f"processor {row['processor']:7.2f} ms"
        )


def run(repetitions: int) -> dict[str, dict[str, float]]:
    """By the sort of read or write: turns, and milliseconds in the median and of the processor."""
    server = Server(settings={"fsync": "on", "full_page_writes": "on"})
    report: dict[str, dict[str, float]] = {}
    try:
        server.create()
        server.start()
        way = Way(server.folder)
        with _acts(way.url(server.fresh()), way.url(server.fresh())) as acts:
            for name, act in acts.items():
                for _ in range(5):
                    act()
                before = way.turns
                act()
                report[name] = {"turns": way.turns - before}
        way.close()
        with _acts(server.url(server.fresh()), server.url(server.fresh())) as acts:
            for name, act in acts.items():
                report[name] |= _timed(act, 5 if "1,000" in name else repetitions)
    finally:
        server.stop()
    return report


@contextmanager
def _acts(written: str, read: str) -> Iterator[dict[str, Callable[[], object]]]:
    """What is counted and timed, in two databases that are empty."""
    with closing(open_store(written, embedding=None)) as store:
        engine = germane.open(read, agent="reader", embedder=None, counter="bytes_div_4_floor")
        with engine:
            yield writes(store) | reads(engine)


def _timed(act: Callable[[], object], repetitions: int) -> dict[str, float]:
    for _ in range(5):
        act()
    times: list[float] = []
    before = time.process_time()
    for _ in range(repetitions):
        start = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - start))
    return {"p50": median(times), "processor": 1000 * (time.process_time() - before) / repetitions}


if __name__ == "__main__":
    main()
