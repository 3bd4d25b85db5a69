"""How fast the SQLite store takes memories in and finds them: python bench/store.py [sizes]."""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from germane.model.change import Insert, Purge
from germane.model.memory import Memory
from germane.model.query import EmbeddingIdentity, Filter, Order, Query, Slice
from germane.retrieval.tokenizer import query_terms
from germane.stores.sqlite.store import SqliteStore
from germane.testing.fakes import START, make_memories, make_memory, make_vector

BATCH = 1000
SYLLABLES = [
    f"{a}{b}{c}" for a in "klmnrstvz" for b in "aeiou" for c in ("k", "nd", "rt", "s", "lm", "vo", "ti")
]
SYLLABLES += [f"{a}{b}" for a in SYLLABLES for b in ("ra", "no")]
# Words as they are in real texts: the n-th most frequent of 30,000 stands for about 1/n of them.
VOCABULARY = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in ("a", "e", "io", "u") for c in SYLLABLES][:30_000]
QUESTIONS = [
    " ".join(VOCABULARY[rank * step] for rank in (9, 40, 130, 700, 3000)) for step in (1, 2, 3, 4, 5)
]
DIMENSION = 384
SECTIONS = ("fact", "decision", "procedure", "episode", "note", "adr", "pattern", "module", "changelog")


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 10_000, 100_000]
    for size in sizes:
        with TemporaryDirectory() as folder:
            measure(Path(folder) / "agent.db", size)


def realistic(count: int, *, seed: int = 0, agent: str = "tester") -> list[Memory]:
    """Memories of 12 to 50 words."""
    chance = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(VOCABULARY))))
    made = []
    for number, each in enumerate(make_memories(count, seed=seed, agent=agent)):
        words = chance.choices(VOCABULARY, cum_weights=weights, k=chance.randrange(12, 50))
        content = f"{' '.join(words)} in case {seed}-{number}."
        made.append(
            make_memory(content, agent=agent, kind=each.kind, tags=each.tags, created_at=each.created_at)
        )
    return made


def measure(path: Path, size: int) -> None:
    memories = realistic(size)
    store_of_writes = SqliteStore(path)
    start = time.perf_counter()
    for first in range(0, size, BATCH):
        store_of_writes.apply("tester", [Insert(memory=each) for each in memories[first : first + BATCH]])
    took = time.perf_counter() - start
    store_of_writes.close()
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
    more = iter(realistic(600, seed=1))
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
    others = realistic(size, seed=2, agent="other")
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
