"""Other systems that rank, where they are installed. None of them is needed.

Level: evaluation. Each is imported only when it is asked to rank. Vectors come from the embedder
of the run, so that systems are compared and not models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from germane.evaluation.corpus import Corpus, Order
from germane.protocols import Embedder

__all__ = ["PEERS", "best_first", "missing"]

_MODULES = {"bm25s": "bm25s", "chroma": "chromadb", "lancedb-fts": "lancedb", "lancedb-hybrid": "lancedb"}
_NEED_VECTORS = ("chroma", "lancedb-hybrid")
_CANDIDATES = 200


def missing(name: str, embedder: Embedder | None) -> str | None:
    """Why a peer can't run here; None when it can."""
    module = _MODULES.get(name)
    if module is not None and find_spec(module) is None:
        return f"the package {module} isn't installed."
    if name in _NEED_VECTORS and embedder is None:
        return "it needs vectors, and its own embedder would download a model; pass an embedder."
    return None


def best_first(places: Any, scores: Any) -> list[int]:
    """Places by falling score; ties fall to the newer."""
    return [int(each) for each in places[np.lexsort((-places, -scores))]]


def _bm25s(corpus: Corpus) -> Order:
    bm25s: Any = import_module("bm25s")
    stem = import_module("Stemmer").Stemmer("english") if find_spec("Stemmer") else None

    def tokenize(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(
            list(texts), stopwords="en", stemmer=stem, return_ids=False, show_progress=False
        )

    index = bm25s.BM25(method="lucene")
    index.index(tokenize(corpus.texts), show_progress=False)

    def order(question: str) -> Sequence[int]:
        terms = tokenize([question])[0]
        if not terms:
            return ()
        scores = np.asarray(index.get_scores(terms))
        found = np.flatnonzero(scores > 0)
        return best_first(found, scores[found])

    return order


def _chroma(corpus: Corpus) -> Order:
    chromadb: Any = import_module("chromadb")
    embedder = _embedder_of(corpus)
    client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
    # An ephemeral client shares its collections with every other one in the process.
    if "evaluation" in [getattr(each, "name", each) for each in client.list_collections()]:
        client.delete_collection("evaluation")
    collection = client.create_collection(
        "evaluation", embedding_function=None, metadata={"hnsw:space": "cosine"}
    )
    vectors = embedder.embed(corpus.texts)
    collection.add(ids=[str(place) for place in range(len(corpus.ids))], embeddings=vectors)

    def order(question: str) -> Sequence[int]:
        found = collection.query(
            query_embeddings=embedder.embed([question]), n_results=min(_CANDIDATES, len(corpus.ids))
        )
        return [int(each) for each in found["ids"][0]]

    return order


def _lancedb_fts(corpus: Corpus) -> Order:
    rows = [{"place": place, "text": text} for place, text in enumerate(corpus.texts)]
    table, words = _lance_table(rows)

    def order(question: str) -> Sequence[int]:
        return _places(table.search(words(question), query_type="fts"))

    return order


def _lancedb_hybrid(corpus: Corpus) -> Order:
    embedder = _embedder_of(corpus)
    vectors = embedder.embed(corpus.texts)
    rows = [
        {"place": place, "text": text, "vector": vector}
        for place, (text, vector) in enumerate(zip(corpus.texts, vectors, strict=True))
    ]
    table, words = _lance_table(rows)

    def order(question: str) -> Sequence[int]:
        search = table.search(query_type="hybrid", vector_column_name="vector")
        vector = embedder.embed([question])[0]
        return _places(search.vector(vector).distance_type("cosine").text(words(question)))

    return order


def _lance_table(rows: list[dict[str, Any]]) -> tuple[Any, Callable[[str], Any]]:
    """A table with an index of its words, and how a question is put so that it can't be syntax."""
    # It warns, from Rust, of every table that it makes anew.
    os.environ.setdefault("LANCEDB_LOG", "error")
    lancedb: Any = import_module("lancedb")
    match: Any = import_module("lancedb.query").MatchQuery
    table = lancedb.connect("memory://").create_table("turns", data=rows, mode="overwrite")
    # As its manual advises for English: stems, and no word that says nothing.
    words: Any = import_module("lancedb.index").FTS
    table.create_index("text", config=words(stem=True, remove_stop_words=True))
    return table, lambda question: match(question, "text")


def _places(search: Any) -> list[int]:
    return [int(row["place"]) for row in search.limit(_CANDIDATES).to_list()]


def _embedder_of(corpus: Corpus) -> Embedder:
    if corpus.embedder is None:
        raise AssertionError("A peer that needs vectors was asked to run without an embedder.")
    return corpus.embedder


PEERS: Mapping[str, Callable[[Corpus], Order]] = {
    "bm25s": _bm25s,
    "chroma": _chroma,
    "lancedb-fts": _lancedb_fts,
    "lancedb-hybrid": _lancedb_hybrid,
}
"""How each peer ranks a corpus, by name."""
