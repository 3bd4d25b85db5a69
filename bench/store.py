"""How fast the SQLite store takes memories in and finds them: python bench/store.py [sizes]."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from germane.model.change import Insert, Purge
from germane.model.query import Filter, Order, Query, Slice
from germane.model.stats import EmbeddingIdentity
from germane.retrieval.terms import query_terms
from germane.stores.sqlite import SqliteStore
from germane.testing.builders import START, make_memories, make_vector

BATCH = 1000
QUESTIONS = (
    "Why did the postgres migration time out after the release?",
    "Who fixed the invoice refund report for the warehouse?",
    "token budget of the agent session",
    "rollback of the deploy when the queue worker crashed",
    "certificate of the login socket",
)
DIMENSION = 384
SECTIONS = ("fact", "decision", "procedure", "episode", "note", "adr", "pattern", "module", "changelog")


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 10_000, 100_000]
    for size in sizes:
        with TemporaryDirectory() as folder:
            measure(Path(folder) / "agent.db", size)


def measure(path: Path, size: int) -> None:
    memories = make_memories(size)
    with_store = SqliteStore(path)
    start = time.perf_counter()
    for first in range(0, size, BATCH):
        with_store.apply("tester", [Insert(memory=each) for each in memories[first : first + BATCH]])
    took = time.perf_counter() - start
    with_store.close()
    print(f"\n{size:,} memories: {size / took:,.0f} inserted a second, {path.stat().st_size / 1e6:.1f} MB")

    queries = [Query(text=each, terms=query_terms(each)) for each in QUESTIONS]
    store = SqliteStore(path)
    start = time.perf_counter()
    found = store.search("tester", queries[0])
    print(f"  first search of a new process    {(time.perf_counter() - start) * 1000:8.2f} ms")
    assert found.slices[0]
    report("search, 200 candidates", lambda number: store.search("tester", queries[number % 5]))
    sections = tuple(Slice(kinds=(kind,), limit=50) for kind in SECTIONS)
    sliced = [Query(text=each.text, terms=each.terms, slices=sections) for each in queries]
    report("search, 9 slices of 50", lambda number: store.search("tester", sliced[number % 5]))
    tagged = [Query(text=each.text, terms=each.terms, filter=Filter(tags=("db",))) for each in queries]
    report("search, with a tag filter", lambda number: store.search("tester", tagged[number % 5]))
    report("find, a page of 20", lambda _: store.find("tester", Filter(), order=Order.NEWEST, limit=20))
    more = iter(make_memories(600, seed=1))
    report("insert one", lambda _: store.apply("tester", [Insert(memory=next(more))]))

    def after_a_write(number: int) -> None:
        store.apply("tester", [Insert(memory=next(more))])
        store.search("tester", queries[number % 5])

    report("insert one, then search", after_a_write)
    start = time.perf_counter()
    store.apply("tester", [Purge(memory_id=memories[size // 2].id, at=START)])
    print(f"  purge one                        {(time.perf_counter() - start) * 1000:8.2f} ms")
    store.close()
    with_vectors(path, size)


def with_vectors(path: Path, size: int) -> None:
    store = SqliteStore(path, embedding=EmbeddingIdentity(name="bench", dimension=DIMENSION))
    others = make_memories(size, seed=2, agent="other")
    start = time.perf_counter()
    for first in range(0, size, BATCH):
        batch = others[first : first + BATCH]
        changes = [
            Insert(memory=each, vector=make_vector(n, DIMENSION)) for n, each in enumerate(batch, first)
        ]
        store.apply("other", changes)
    print(f"  inserted with vectors            {size / (time.perf_counter() - start):8,.0f} a second")
    terms = query_terms(QUESTIONS[0])
    queries = [Query(terms=terms, vector=make_vector(10**9 + n, DIMENSION)) for n in range(5)]
    start = time.perf_counter()
    store.search("other", queries[0])
    print(f"  first search with vectors        {(time.perf_counter() - start) * 1000:8.2f} ms")
    report("search, lexical and semantic", lambda number: store.search("other", queries[number % 5]))
    store.close()


def report(name: str, act: Callable[[int], object], *, times: int = 200) -> None:
    taken = []
    for number in range(times):
        start = time.perf_counter()
        act(number)
        taken.append((time.perf_counter() - start) * 1000)
    taken.sort()
    p50, p95 = statistics.median(taken), taken[int(times * 0.95)]
    print(f"  {name:<32} p50 {p50:8.2f} ms   p95 {p95:8.2f} ms")


if __name__ == "__main__":
    main()
