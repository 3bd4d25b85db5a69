"""What is compared: germane itself, simple baselines, and peers where they are installed.

Level: evaluation.

A retriever is a callable that reads a corpus and gives a reader; adding one is a line in
`RETRIEVERS`, or an entry of the mapping that `evaluate` is given. One that only ranks is made by
`ranked_by`, which packs as every ranking peer is packed: greedily, in its order, leaving out what
doesn't fit, at the text's tokens and one for the line's end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

import numpy as np

from germane.engine import Engine, open_engine
from germane.evaluation.metrics import Needle
from germane.model.draft import Draft
from germane.packing.render import fence
from germane.protocols import Embedder, TokenCounter
from germane.retrieval.postings import Postings
from germane.retrieval.terms import index_terms, query_terms, term_hash

__all__ = ["RETRIEVERS", "Corpus", "Order", "Reader", "Retriever", "missing", "ranked_by"]

_PEERS = {"bm25s": "bm25s", "chroma": "chromadb"}
_DENSE_CANDIDATES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One conversation, oldest turn first; `ids`, `turns` and `drafts` stand side by side.

    A draft is the turn as germane imports it, a text of `texts` the turn with its day, as every
    other retriever is given it. `now` is a moment after the last turn: when the questions are asked.
    """

    ids: tuple[str, ...]
    turns: tuple[Needle, ...]
    drafts: tuple[Draft, ...]
    now: datetime
    counter: TokenCounter
    embedder: Embedder | None = None

    @property
    def texts(self) -> list[str]:
        """Each turn as "day speaker: what was said"."""
        return [f"{turn.day} {turn.said}" for turn in self.turns]


class Reader(Protocol):
    """Answers questions about one corpus."""

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The ids of the `limit` best memories, best first; fewer where it finds fewer."""
        ...

    def assemble(self, question: str, budget: int) -> str:
        """The context for a question: text that should keep within `budget` tokens."""
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


Retriever: TypeAlias = Callable[[Corpus], Reader]
Order: TypeAlias = Callable[[str], Sequence[int]]
"""For a question, the places of memories in the corpus, best first."""


def ranked_by(order_of: Callable[[Corpus], Order]) -> Retriever:
    """A retriever from a way to rank a corpus: its order, packed greedily."""
    return lambda corpus: _Ranking(corpus, order_of(corpus))


def missing(name: str, embedder: Embedder | None) -> str | None:
    """Why a retriever of `RETRIEVERS` can't run here; None when it can."""
    module = _PEERS.get(name)
    if module is not None and find_spec(module) is None:
        return f"the package {module} isn't installed."
    if name == "chroma" and embedder is None:
        return "it needs vectors, and its own embedder would download a model; pass an embedder."
    return None


class _Germane:
    """Every conversation is one agent in a store of its own, asked by the relevance plan."""

    def __init__(self, corpus: Corpus) -> None:
        self._engine: Engine = open_engine(
            ":memory:",
            agent="evaluation",
            embedder=corpus.embedder,
            counter=corpus.counter,
            clock=lambda: corpus.now,
        )
        stored = self._engine.remember_many(corpus.drafts)
        self._ids = {each.memory.id: own for each, own in zip(stored, corpus.ids, strict=True)}

    def recall(self, question: str, limit: int) -> Sequence[str]:
        return [self._ids[each.memory.id] for each in self._engine.recall(question, limit=limit)]

    def assemble(self, question: str, budget: int) -> str:
        return self._engine.assemble(question, budget=budget, plan="relevance").text

    def close(self) -> None:
        self._engine.close()


class _Ranking:
    """Packs what an order puts first. Lines are fenced as germane's are, so both are read alike."""

    def __init__(self, corpus: Corpus, order: Order) -> None:
        self._ids = corpus.ids
        self._lines = ["\n".join(fence(text)) for text in corpus.texts]
        self._costs = [corpus.counter.count(line) + 1 for line in self._lines]
        self._order = order

    def recall(self, question: str, limit: int) -> Sequence[str]:
        return [self._ids[place] for place in self._order(question)[:limit]]

    def assemble(self, question: str, budget: int) -> str:
        room, taken = budget, []
        for place in self._order(question):
            if self._costs[place] <= room:
                room -= self._costs[place]
                taken.append(self._lines[place])
        return "\n".join(taken)

    def close(self) -> None:
        pass


def _recency(corpus: Corpus) -> Order:
    newest_first = range(len(corpus.ids) - 1, -1, -1)
    return lambda _: newest_first


def _bm25(corpus: Corpus) -> Order:
    postings = Postings.build(
        np.arange(len(corpus.ids), dtype=np.int64), [index_terms(text) for text in corpus.texts]
    )

    def order(question: str) -> Sequence[int]:
        scores = postings.score([term_hash(term) for term in query_terms(question)])
        return _best_first(scores.ordinals, scores.scores)

    return order


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
        return _best_first(found, scores[found])

    return order


def _chroma(corpus: Corpus) -> Order:
    chromadb: Any = import_module("chromadb")
    embedder = corpus.embedder
    if embedder is None:
        raise AssertionError(missing("chroma", None))
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
            query_embeddings=embedder.embed([question]), n_results=min(_DENSE_CANDIDATES, len(corpus.ids))
        )
        return [int(each) for each in found["ids"][0]]

    return order


def _best_first(places: Any, scores: Any) -> list[int]:
    """Places by falling score; ties fall to the newer."""
    return [int(each) for each in places[np.lexsort((-places, -scores))]]


RETRIEVERS: Mapping[str, Retriever] = {
    "germane": _Germane,
    "recency": ranked_by(_recency),
    "bm25": ranked_by(_bm25),
    "bm25s": ranked_by(_bm25s),
    "chroma": ranked_by(_chroma),
}
"""The retrievers that can be asked for by name."""
