"""germane beside its peers on the same memories and questions: time to search, and memories written a second.

    python bench/peers.py [--size 10000] [--questions 100] [--rounds 5] [--json]

Each question goes to one after the other, and so does each batch that is written, so that whatever else
the machine does burdens all alike. Each round has questions of its own; the figures are the median over the
rounds of each round's median, and of its ratio to germane's, with the least and the greatest. What isn't
installed is named and left out (`pip install --group peers` has all); LangGraph's store and sqlite-vec need
a Python whose sqlite3 loads extensions. Chroma, sqlite-vec and LangGraph's store rank by vectors alone, bm25s
by words alone, LanceDB and germane by both. All are given ready vectors but germane, which makes its own.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from corpus import NOW, drafts, questions
from numpy.typing import NDArray

import germane
from germane.embedders import StaticEmbedder

_BUDGET = 8000
_LIMIT = 20
_WARM_UP = 20
_BATCH = 500
_WRITTEN = 8
"""Batches that are written for the second table."""
_RECALL, _WRITE = f"germane recall({_LIMIT})", "germane remember_many"

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Peer:
    """One system: how it stores texts with their vectors, and how it answers a question with its vector."""

    name: str
    add: Callable[[Sequence[str], Vectors], object]
    search: Callable[[str, Vectors], object]


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=100, help="questions of each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        measured = _measured(Path(folder), opened, given.size, given.questions, given.rounds)
    absent = [module for module in _PEERS if not _is_there(module)]
    if given.json:
        print(json.dumps({"size": given.size, "absent": absent, **measured}))
        return
    print(_table(measured["search"], f"search, {given.size:,} memories", "p50 ms", "times recall"))
    print()
    print(_table(measured["write"], f"write, batches of {_BATCH}", "a second", "times germane"))
    if absent:
        print(f"\nNot installed, so left out: {', '.join(absent)}")


def _measured(
    folder: Path, opened: ExitStack, size: int, questions_a_round: int, rounds: int
) -> dict[str, Any]:
    memories = list(drafts(size + _BATCH * _WRITTEN * rounds))
    contents = [draft.content for draft in memories]
    embedder = StaticEmbedder()
    vectors = np.asarray(embedder.embed(contents), dtype=np.float32)
    engine = opened.enter_context(
        germane.open(folder / "germane.db", agent="bench", clock=lambda: NOW, embedder=embedder)
    )
    peers = [
        peer
        for module, make in _PEERS.items()
        if _is_there(module)
        for peer in make(folder, opened, contents[:size])
    ]
    engine.remember_many(memories[:size])
    for peer in peers:
        peer.add(contents[:size], vectors[:size])
    every = questions(_WARM_UP + questions_a_round * rounds)
    posed = list(zip(every, np.asarray(embedder.embed(every), dtype=np.float32), strict=True))
    takers: dict[str, Callable[[str, Vectors], object]] = {
        _RECALL: lambda question, _: engine.recall(question, limit=_LIMIT),
        f"germane assemble({_BUDGET})": lambda question, _: engine.assemble(question, budget=_BUDGET),
        **{peer.name: peer.search for peer in peers},
    }
    for question, vector in posed[:_WARM_UP]:
        for ask in takers.values():
            ask(question, vector)
    searched: list[dict[str, float]] = []
    for number in range(rounds):
        start = _WARM_UP + number * questions_a_round
        searched.append(_by_turns(takers, posed[start : start + questions_a_round]))
    written = list(_writing(engine, peers, memories[size:], vectors[size:], rounds))
    return {"search": _rows(searched, _RECALL), "write": _rows(written, _WRITE)}


def _by_turns(
    takers: Mapping[str, Callable[[str, Vectors], object]], posed: Sequence[tuple[str, Vectors]]
) -> dict[str, float]:
    """The median milliseconds of each over these questions."""
    taken: dict[str, list[float]] = {name: [] for name in takers}
    for question, vector in posed:
        for name, ask in takers.items():
            before = perf_counter()
            ask(question, vector)
            taken[name].append(1000 * (perf_counter() - before))
    return {name: median(times) for name, times in taken.items()}


def _writing(
    engine: germane.Engine,
    peers: Sequence[Peer],
    memories: Sequence[germane.Draft],
    vectors: Vectors,
    rounds: int,
) -> Iterator[dict[str, float]]:
    """The median memories a second of each, round by round; what ranks by words alone stores no more."""
    starts = iter(range(0, len(memories), _BATCH))
    for _ in range(rounds):
        taken: dict[str, list[float]] = {}
        for _, start in zip(range(_WRITTEN), starts, strict=False):
            part = slice(start, start + _BATCH)
            texts = [draft.content for draft in memories[part]]
            before = perf_counter()
            engine.remember_many(memories[part])
            taken.setdefault(_WRITE, []).append(len(texts) / (perf_counter() - before))
            for peer in peers:
                if peer.name.startswith("bm25s"):
                    continue
                before = perf_counter()
                peer.add(texts, vectors[part])
                name = peer.name.split(" ")[0]
                taken.setdefault(name, []).append(len(texts) / (perf_counter() - before))
        yield {name: median(rates) for name, rates in taken.items()}


# The peers, each with the calls that its own documentation shows for this.


def _bm25s(_: Path, __: ExitStack, contents: Sequence[str]) -> Iterator[Peer]:
    """An index of words in memory, with English stop words."""
    bm25s: Any = import_module("bm25s")
    stem = import_module("Stemmer").Stemmer("english") if find_spec("Stemmer") else None

    def tokenize(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stem, show_progress=False)

    index = bm25s.BM25()

    def search(question: str, _: Vectors) -> object:
        terms = tokenize([question])
        return index.retrieve(terms, corpus=list(contents), k=_LIMIT, show_progress=False, n_threads=0)

    yield Peer("bm25s retrieve", lambda texts, _: index.index(tokenize(texts), show_progress=False), search)


def _chroma(folder: Path, _: ExitStack, __: Sequence[str]) -> Iterator[Peer]:
    chromadb: Any = import_module("chromadb")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings)
    collection = client.create_collection("bench", embedding_function=None, metadata={"hnsw:space": "cosine"})
    numbers = count()

    def add(texts: Sequence[str], vectors: Vectors) -> None:
        for start in range(0, len(texts), _BATCH):
            part = slice(start, start + _BATCH)
            ids = [str(next(numbers)) for _ in texts[part]]
            collection.add(ids=ids, documents=list(texts[part]), embeddings=vectors[part])

    def search(_: str, vector: Vectors) -> object:
        return collection.query(query_embeddings=vector[np.newaxis], n_results=_LIMIT)

    yield Peer("chroma query", add, search)


def _lancedb(folder: Path, _: ExitStack, __: Sequence[str]) -> Iterator[Peer]:
    os.environ.setdefault("LANCEDB_LOG", "error")
    lancedb: Any = import_module("lancedb")
    match: Any = import_module("lancedb.query").MatchQuery
    words: Any = import_module("lancedb.index").FTS
    database = lancedb.connect(folder / "lancedb")
    tables: list[Any] = []

    def add(texts: Sequence[str], vectors: Vectors) -> None:
        rows = [{"text": text, "vector": vector} for text, vector in zip(texts, vectors, strict=True)]
        if tables:
            tables[0].add(rows)
            return
        tables.append(database.create_table("bench", data=rows))
        tables[0].create_index("text", config=words(stem=True, remove_stop_words=True))

    def search(question: str, vector: Vectors) -> object:
        found = tables[0].search(query_type="hybrid", vector_column_name="vector").vector(vector)
        return found.distance_type("cosine").text(match(question, "text")).limit(_LIMIT).to_list()

    yield Peer("lancedb hybrid", add, search)


def _langgraph(folder: Path, opened: ExitStack, __: Sequence[str]) -> Iterator[Peer]:
    """LangGraph's own store in a file, whose embedding function looks ready vectors up."""
    module: Any = import_module("langgraph.store.sqlite")
    put: Any = import_module("langgraph.store.base").PutOp
    ready: dict[str, Vectors] = {}
    index = {
        "dims": StaticEmbedder().dimension,
        "embed": lambda texts: [ready[each].tolist() for each in texts],
    }
    path = str(folder / "langgraph.db")
    store = opened.enter_context(
        module.SqliteStore.from_conn_string(path, index={**index, "text_fields": ["text"]})
    )
    store.setup()
    numbers = count()

    def add(texts: Sequence[str], vectors: Vectors) -> None:
        ready.update(zip(texts, vectors, strict=True))
        for start in range(0, len(texts), _BATCH):
            store.batch(
                [
                    put(namespace=("bench",), key=str(next(numbers)), value={"text": text})
                    for text in texts[start : start + _BATCH]
                ]
            )

    def search(question: str, vector: Vectors) -> object:
        ready[question] = vector
        return store.search(("bench",), query=question, limit=_LIMIT)

    yield Peer("langgraph SqliteStore", add, search)


def _sqlite_vec(folder: Path, opened: ExitStack, __: Sequence[str]) -> Iterator[Peer]:
    module: Any = import_module("sqlite_vec")
    database = sqlite3.connect(folder / "vec.db", isolation_level=None)
    opened.callback(database.close)
    database.enable_load_extension(True)
    module.load(database)
    dimension = StaticEmbedder().dimension
    database.execute(
        f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{dimension}] distance_metric=cosine)"
    )
    database.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT)")

    def add(texts: Sequence[str], vectors: Vectors) -> None:
        database.execute("BEGIN")
        for text, vector in zip(texts, vectors, strict=True):
            number = database.execute("INSERT INTO texts (text) VALUES (?)", (text,)).lastrowid
            database.execute("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", (number, vector.tobytes()))
        database.execute("COMMIT")

    def search(_: str, vector: Vectors) -> object:
        query = (
            "SELECT text, distance FROM (SELECT rowid, distance FROM vectors WHERE vector MATCH ? AND k = ?) "
            "AS near JOIN texts ON texts.id = near.rowid ORDER BY distance"
        )
        return database.execute(query, (vector.tobytes(), _LIMIT)).fetchall()

    yield Peer("sqlite-vec match", add, search)


_PEERS: Mapping[str, Callable[[Path, ExitStack, Sequence[str]], Iterator[Peer]]] = {
    "bm25s": _bm25s,
    "chromadb": _chroma,
    "lancedb": _lancedb,
    "langgraph.store.sqlite": _langgraph,
    "sqlite_vec": _sqlite_vec,
}


def _is_there(module: str) -> bool:
    if module in ("langgraph.store.sqlite", "sqlite_vec") and not hasattr(
        sqlite3.Connection, "enable_load_extension"
    ):
        return False
    parent = module.partition(".")[0]
    return find_spec(parent) is not None and find_spec(module) is not None


def _rows(rounds: Sequence[Mapping[str, float]], reference: str) -> list[dict[str, Any]]:
    rows = []
    for name in rounds[0]:
        ratios = [each[name] / each[reference] for each in rounds]
        rows.append(
            {
                "call": name,
                "value": round(median(each[name] for each in rounds), 3),
                "ratio": round(median(ratios), 2),
                "least": round(min(ratios), 2),
                "greatest": round(max(ratios), 2),
            }
        )
    return rows


def _table(rows: Sequence[Mapping[str, Any]], title: str, unit: str, ratio: str) -> str:
    lines = [f"{title:<30}{unit:>12}{ratio:>16}{'least to greatest':>22}"]
    for row in rows:
        spread = f"{row['least']:.2f} to {row['greatest']:.2f}"
        lines.append(f"{row['call']:<30}{row['value']:>12,.2f}{row['ratio']:>16.2f}{spread:>22}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
