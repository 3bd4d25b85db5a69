"""germane beside its peers on the same memories and questions: time to rank, and time to fill a context.

    python bench/peers.py [--size 10000] [--questions 200] [--json]

Turns are interleaved: each question goes to one after the other, so that whatever else the machine
does burdens all alike. A peer that isn't installed is named and left out. bm25s ranks by words as
germane does here; Chroma is given ready vectors, so that its figures hold no time for embedding.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from corpus import NOW, drafts, questions

import germane

_BUDGET = 8000
_LIMIT = 20
_DIMENSION = 384
_WARM_UP = 20

Ask = Callable[[int, str], object]
"""Ask the question of that number and text."""


def main() -> None:
    """Measure and print the times, and each peer's over germane's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    memories = list(drafts(given.size))
    queries = questions(given.questions + _WARM_UP)
    contents = [draft.content for draft in memories]
    with germane.open(":memory:", agent="bench", clock=lambda: NOW) as engine:
        engine.remember_many(memories)
        germane_recall = f"germane recall({_LIMIT})"
        takers: dict[str, Ask] = {
            germane_recall: lambda _, question: engine.recall(question, limit=_LIMIT),
            f"germane assemble({_BUDGET})": lambda _, question: engine.assemble(question, budget=_BUDGET),
        }
        absent = []
        for name, module, make in (
            (f"bm25s retrieve({_LIMIT})", "bm25s", _bm25s),
            (f"chroma query({_LIMIT})", "chromadb", _chroma),
        ):
            if find_spec(module) is None:
                absent.append(module)
            else:
                takers[name] = make(contents, len(queries))
        taken = _interleaved(takers, queries)
    rows = _rows(taken, germane_recall)
    print(json.dumps({"size": given.size, "results": rows, "absent": absent}) if given.json else _table(rows))
    if absent and not given.json:
        print(f"Not installed, so left out: {', '.join(absent)}")


def _interleaved(takers: dict[str, Ask], queries: Sequence[str]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in takers}
    for number, question in enumerate(queries):
        for name, ask in takers.items():
            before = perf_counter()
            ask(number, question)
            if number >= _WARM_UP:
                taken[name].append(1000 * (perf_counter() - before))
    return taken


def _bm25s(contents: Sequence[str], _: int) -> Ask:
    """An index of words in memory, with English stop words, as its own documentation builds it."""
    bm25s: Any = import_module("bm25s")
    stem = import_module("Stemmer").Stemmer("english") if find_spec("Stemmer") else None

    def tokenize(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stem, show_progress=False)

    index = bm25s.BM25()
    index.index(tokenize(contents), show_progress=False)
    return lambda _, question: index.retrieve(
        tokenize([question]), corpus=contents, k=_LIMIT, show_progress=False, n_threads=0
    )


def _chroma(contents: Sequence[str], count: int) -> Ask:
    chromadb: Any = import_module("chromadb")
    random = np.random.default_rng(7)
    vectors = random.standard_normal((len(contents), _DIMENSION), dtype=np.float32)
    wanted = random.standard_normal((count, _DIMENSION), dtype=np.float32)
    client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
    collection = client.create_collection("bench", embedding_function=None)
    for start in range(0, len(contents), 1000):
        stop = min(start + 1000, len(contents))
        collection.add(
            ids=[str(place) for place in range(start, stop)],
            documents=list(contents[start:stop]),
            embeddings=vectors[start:stop],
        )
    return lambda number, _: collection.query(query_embeddings=wanted[number : number + 1], n_results=_LIMIT)


def _rows(taken: dict[str, list[float]], reference: str) -> list[dict[str, Any]]:
    median = float(np.percentile(taken[reference], 50))
    return [
        {
            "call": name,
            "p50_ms": round(float(np.percentile(times, 50)), 3),
            "p95_ms": round(float(np.percentile(times, 95)), 3),
            "times_germane_recall": round(float(np.percentile(times, 50)) / median, 2),
        }
        for name, times in taken.items()
    ]


def _table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'':24}{'p50 ms':>10}{'p95 ms':>10}{'times recall':>14}"]
    lines.extend(
        f"{row['call']:24}{row['p50_ms']:>10.2f}{row['p95_ms']:>10.2f}{row['times_germane_recall']:>14.2f}"
        for row in rows
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
