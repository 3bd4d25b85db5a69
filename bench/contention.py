"""Eight writers and four readers on one file: python bench/contention.py [seconds] [--json].

Reports how many writes and reads there were, the longest single wait, and every error. At the
end the file is checked and the acknowledged memories are counted.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypedDict

from germane.errors import GermaneError
from germane.model.change import Insert
from germane.model.query import Query
from germane.retrieval.terms import query_terms
from germane.stores.sqlite import SqliteStore
from germane.testing.builders import make_memories, make_memory

WRITERS = 8
READERS = 4
AGENT = "tester"


@dataclass
class Worked:
    """What one process did; times in milliseconds."""

    role: str
    calls: int
    p50: float
    p95: float
    longest: float
    errors: list[str]


class Report(TypedDict):
    """What came of a run."""

    workers: list[Worked]
    errors: list[str]
    acknowledged: int
    stored: int
    findings: int


class Barrier(Protocol):
    """Lets all processes begin at once."""

    def wait(self) -> int: ...


class Results(Protocol):
    """Takes what a process did."""

    def put(self, obj: Worked) -> None: ...


Act = Callable[[int], object]


def main() -> None:
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    seconds = float(arguments[0]) if arguments else 20.0
    with TemporaryDirectory() as folder:
        report = run(Path(folder) / "agent.db", seconds)
    if "--json" in sys.argv:
        print(json.dumps(report, default=asdict))
        return
    print(f"{WRITERS} writers and {READERS} readers for {seconds:g} s")
    for role in ("write", "read"):
        workers = [each for each in report["workers"] if each.role == role]
        calls = sum(each.calls for each in workers)
        print(
            f"  {role:<6} {calls / seconds:8.0f} a second, p50 {min(w.p50 for w in workers):.2f} to "
            f"{max(w.p50 for w in workers):.2f} ms, worst p95 {max(w.p95 for w in workers):.2f} ms, "
            f"longest {max(w.longest for w in workers):.1f} ms, "
            f"calls of the busiest and idlest {max(w.calls for w in workers)} and "
            f"{min(w.calls for w in workers)}"
        )
    print(
        f"  errors {report['errors']}, acknowledged {report['acknowledged']}, stored {report['stored']}, "
        f"findings {report['findings']}"
    )


def run(path: Path, seconds: float) -> Report:
    store = SqliteStore(path)
    store.apply(AGENT, [Insert(memory=each) for each in make_memories(2000)])
    store.close()
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[Worked] = context.Queue()
    gate = context.Barrier(WRITERS + READERS)
    workers = [context.Process(target=write, args=(path, n, seconds, gate, results)) for n in range(WRITERS)]
    workers += [context.Process(target=read, args=(path, n, seconds, gate, results)) for n in range(READERS)]
    for each in workers:
        each.start()
    done = [results.get(timeout=seconds + 120) for _ in workers]
    for each in workers:
        each.join()
    store = SqliteStore(path)
    report: Report = {
        "workers": done,
        "errors": [error for each in done for error in each.errors],
        "acknowledged": sum(each.calls for each in done if each.role == "write"),
        "stored": store.stats(AGENT).memories - 2000,
        "findings": len(store.check(AGENT)),
    }
    store.close()
    return report


def write(path: Path, number: int, seconds: float, gate: Barrier, results: Results) -> None:
    store = SqliteStore(path)

    def act(call: int) -> None:
        store.apply(AGENT, [Insert(memory=make_memory(f"Writer {number} noted redis case {call}."))])

    work("write", act, seconds, gate, results)
    store.close()


def read(path: Path, number: int, seconds: float, gate: Barrier, results: Results) -> None:
    store = SqliteStore(path)
    words = ("redis cache", "postgres migration", "token budget", "writer noted case")[number % 4]
    query = Query(text=words, terms=query_terms(words))
    work("read", lambda _: store.search(AGENT, query), seconds, gate, results)
    store.close()


def work(role: str, act: Act, seconds: float, gate: Barrier, results: Results) -> None:
    taken: list[float] = []
    errors: list[str] = []
    gate.wait()
    end = time.monotonic() + seconds
    while (start := time.monotonic()) < end:
        try:
            act(len(taken))
        except GermaneError as error:
            errors.append(f"{type(error).__name__}: {error}")
        else:
            taken.append((time.monotonic() - start) * 1000)
    taken.sort()
    results.put(
        Worked(
            role=role,
            calls=len(taken),
            p50=taken[len(taken) // 2],
            p95=taken[int(len(taken) * 0.95)],
            longest=taken[-1],
            errors=errors[:5],
        )
    )


if __name__ == "__main__":
    main()
