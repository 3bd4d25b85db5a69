"""How a process serves many agents by one handle: questions to agents in random order, and what that takes.

    python bench/agents.py [--agents 1000] [--memories 1000] [--rounds 2000] [--keep FOLDER]
                           [--database postgresql://… | --server]

One process writes the memories, and another, new one asks: first one question about each agent (cold), then
about agents in random order (warm), by turns with as many about a single agent, and at last as many about
that agent alone, whose caches then stay. Each question is new. Prints
medians and 95th percentiles in milliseconds, and the connections, threads and resident memory at the end.
`--server` starts a PostgreSQL server for it; `--keep` leaves the file there, and uses the one that is there.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from corpus import NOW, drafts, questions

import germane

__all__ = ["main"]

_PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--agents", type=int, default=1000)
    arguments.add_argument("--memories", type=int, default=1000)
    arguments.add_argument("--rounds", type=int, default=2000)
    arguments.add_argument("--database")
    arguments.add_argument("--server", action="store_true")
    arguments.add_argument("--keep", type=Path)
    arguments.add_argument("--ask", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.ask:
        print(json.dumps(_measured(given.ask, given.agents, given.rounds)))
        return
    with _location(given) as location:
        _write(location, given.agents, given.memories)
        command = [sys.executable, __file__, "--ask", location]
        command += ["--agents", str(given.agents), "--rounds", str(given.rounds)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - It is this file.
        figures = json.loads(done.stdout)
    print(f"{given.agents:,} agents of {given.memories:,} memories, {given.rounds:,} questions each way")
    for name, value in figures.items():
        print(f"{name:<44} {value}")


@contextmanager
def _location(given: argparse.Namespace) -> Iterator[str]:
    with ExitStack() as stack:
        if given.database:
            yield given.database
        elif given.server:
            sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
            from support.postgres_server import Server  # noqa: PLC0415 - The tests' own server.

            server = Server()
            stack.callback(server.stop)
            server.create()
            server.start()
            yield server.url(server.fresh())
        else:
            folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder.mkdir(parents=True, exist_ok=True)
            yield str(folder / f"agents-{given.agents}-{given.memories}.db")


def _write(location: str, agents: int, memories: int) -> None:
    """Store the memories of each agent that has none yet; all agents share a few thousand texts."""
    texts = list(drafts(4 * memories, seed=1))
    with germane.connect(location, durability="relaxed") as store:
        known = {each.name for each in store.agents()}
        for number in range(agents):
            if f"agent-{number}" not in known:
                chosen = random.Random(number).sample(texts, memories)
                store.agent(f"agent-{number}").remember_many(chosen, quality="mark")
            if sys.stderr.isatty():
                print(f"\rwritten: {number + 1} of {agents} agents", end="", file=sys.stderr)


def _measured(location: str, agents: int, rounds: int) -> dict[str, str]:
    """Every figure, from a process without earlier queries."""
    queries = iter(questions(agents + 3 * rounds + 20, seed=3))
    chance = random.Random(4)
    with germane.connect(location, clock=lambda: NOW) as store:
        start = time.perf_counter()
        engines = [store.agent(f"agent-{number}") for number in range(agents)]
        making = (time.perf_counter() - start) / agents
        # What is loaded once in a process, whoever asks.
        store.agent("nobody").recall(next(queries))
        cold = [_seconds(engine, next(queries)) for engine in chance.sample(engines, agents)]
        gc.collect()
        many: list[float] = []
        one: list[float] = []
        for _ in range(rounds):
            many.append(_seconds(chance.choice(engines), next(queries)))
            one.append(_seconds(engines[0], next(queries)))
        alone = [_seconds(engines[0], next(queries)) for _ in range(rounds)]
        usage = store.stats()
        return {
            "store.agent(...), µs": f"{making * 1e6:.1f}",
            "first question about an agent, ms": _shown(cold),
            "agents in random order, warm, ms": _shown(many),
            "one agent asked again, warm, ms": _shown(one),
            "one agent asked alone, warm, ms": _shown(alone),
            "ratio of the medians, by turns": f"{statistics.median(many) / statistics.median(one):.2f}",
            "ratio to the agent asked alone": f"{statistics.median(many) / statistics.median(alone):.2f}",
            "connections": f"{usage.connections} of {usage.most_connections or 'no limit'}",
            "threads": str(threading.active_count()),
            "agents in the cache": f"{usage.caches.entries:,} in {usage.caches.bytes / 2**20:.0f} MiB",
            "hits and misses": f"{usage.caches.hits:,} and {usage.caches.misses:,}",
            "resident memory, MiB": f"{_resident() / 2**20:.0f}",
        }


def _seconds(engine: germane.Engine, question: str) -> float:
    start = time.perf_counter()
    engine.recall(question)
    return time.perf_counter() - start


def _shown(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {statistics.median(ordered) * 1e3:.2f}, p95 {ordered[int(len(ordered) * 0.95)] * 1e3:.2f}"


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


if __name__ == "__main__":
    main()
