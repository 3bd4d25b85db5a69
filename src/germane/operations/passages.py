"""Long memories by their passages: what a question finds in the best one, and which ones a context shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from germane.model.memory import Memory, Vector
from germane.model.query import CandidateTable, SearchResult, is_unread, read_memories
from germane.operations.inputs import embed_texts
from germane.protocols import Embedder
from germane.ranking.signals import COSINE_FLOOR
from germane.renditions.passages import LONG_TOKENS, Passage, passages, text_digest
from germane.retrieval.bm25 import K1, B
from germane.retrieval.tokenizer import index_terms

_RESCORED: Final = 40
"""Long candidates of a search, the best by their whole texts, whose passages are looked at."""
_MOST_PASSAGES: Final = 20_000
"""Passages cached in memory; with vectors of 256 numbers they take some 40 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedPassages:
    """The passages of one text with their terms: an entry of `rows` says whose the term beside it is.

    `vectors` has a row per passage, of zeros for one without a vector; None without an embedder.
    """

    passages: Sequence[Passage]
    rows: NDArray[np.int64]
    hashes: NDArray[np.uint32]
    frequencies: NDArray[np.float64]
    lengths: NDArray[np.float64]
    vectors: NDArray[np.float32] | None


class PassageCache:
    """The passages of long texts, indexed once. It saves work and changes no result; threads may share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], IndexedPassages] = {}
        self._size = 0

    def of(
        self,
        digests: Sequence[str],
        read: Callable[[Sequence[int]], Sequence[str]],
        *,
        language: str,
        embedder: Embedder | None,
    ) -> Sequence[IndexedPassages]:
        """The passages of the texts with these digests; those that are new are embedded together.

        `read` gives the texts at places in `digests`.
        """
        found = {key: each for key in digests if (each := self._known.get((language, key))) is not None}
        missing = {key: place for place, key in enumerate(digests) if key not in found}
        if missing:
            texts = zip(missing, read([*missing.values()]), strict=True)
            new = {key: passages(text) for key, text in texts}
            vectors = _vectors([part.scored for parts in new.values() for part in parts], embedder)
            start = 0
            for key, parts in new.items():
                stop = start + len(parts)
                found[key] = _indexed(parts, None if vectors is None else vectors[start:stop], language)
                start = stop
            self._size += start
            if self._size > _MOST_PASSAGES:
                # Starting over is cheaper than keeping track of use.
                self.clear()
            self._known.update({(language, key): found[key] for key in new})
        return [found[key] for key in digests]

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
        self._size = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassageSearch:
    """One question, prepared for a search in the passages of texts.

    `weights` are the inverse document frequencies of its terms in the store, by their hashes, and `average`
    is how many terms a memory has there. `scored` are the texts whose passages were searched already.
    """

    cache: PassageCache
    language: str
    embedder: Embedder | None
    vector: Vector | None
    weights: Mapping[int, float]
    average: float
    scored: dict[str, Sequence[tuple[Passage, float]]] = field(default_factory=dict)

    def rescored(self, tables: Sequence[CandidateTable]) -> list[CandidateTable]:
        """The candidates, each long one as near as its best passage is by words and by meaning, if nearer."""
        every = CandidateTable.joined(tables)
        places = np.flatnonzero(
            [
                memory.digest is not None
                if is_unread(memory)
                else memory.renditions.full.tokens > LONG_TOKENS
                for memory in every.memories
            ]
        )
        signals = {name: every.signals[name] for name in ("lexical", "semantic") if name in every.signals}
        if not len(places) or not signals:
            return list(tables)
        rough = np.zeros(len(every))
        for column in signals.values():
            rough += _shares(np.nan_to_num(column), 0.0)
        places = np.sort(places[np.argsort(-rough[places], kind="stable")[:_RESCORED]])
        indexed = self._indexed([every.memories[place] for place in places.tolist()])
        has_any = [len(each.passages) > 0 for each in indexed]
        places, indexed = places[has_any], list(compress(indexed, has_any))
        changed = {name: column.copy() for name, column in signals.items()}
        if indexed:
            together = _together(indexed)
            begins = np.cumsum([0, *(len(each.passages) for each in indexed[:-1])])
            values = {"lexical": self._lexical(together)}
            if self.vector is not None:
                values["semantic"] = self._cosines(together)
            for name in signals.keys() & values.keys():
                best = np.maximum.reduceat(np.maximum(values[name], 0.0), begins)
                changed[name][places] = np.fmax(changed[name][places], best)
        starts = np.cumsum([0, *map(len, tables)]).tolist()
        return [
            CandidateTable(
                table.memories,
                {name: changed.get(name, every.column(name))[start:stop] for name in table.signals},
            )
            for table, start, stop in zip(tables, starts, starts[1:], strict=False)
        ]

    def scores(self, text: str) -> Sequence[tuple[Passage, float]]:
        """The passages of a text with their scores: words and meaning as shares of the best, both alike."""
        if text not in self.scored:
            (indexed,) = self.cache.of(
                [text_digest(text)], lambda _: [text], language=self.language, embedder=self.embedder
            )
            total = _shares(self._lexical(indexed), 0.0) + _shares(self._cosines(indexed), COSINE_FLOOR)
            self.scored[text] = list(zip(indexed.passages, total.tolist(), strict=True))
        return self.scored[text]

    def _indexed(self, memories: Sequence[Memory]) -> Sequence[IndexedPassages]:
        def read(places: Sequence[int]) -> Sequence[str]:
            return [each.renditions.full.text for each in read_memories([memories[at] for at in places])]

        digests = [
            memory.digest
            if is_unread(memory) and memory.digest is not None
            else text_digest(memory.renditions.full.text)
            for memory in memories
        ]
        return self.cache.of(digests, read, language=self.language, embedder=self.embedder)

    def _lexical(self, indexed: IndexedPassages) -> NDArray[np.float64]:
        """BM25 of each passage, by the figures of the store."""
        scores = np.zeros(len(indexed.passages))
        if not self.weights:
            return scores
        norm = K1 * (1.0 - B + B * indexed.lengths / max(self.average, 1.0))
        hashes = np.array([*self.weights], dtype=np.int64)
        weights = np.array([*self.weights.values()])
        # In one pass, since both the query and a text may have very many terms.
        ascending = np.argsort(hashes)
        nearest = np.searchsorted(hashes[ascending], indexed.hashes)
        terms = ascending[np.minimum(nearest, len(hashes) - 1)]
        places = np.flatnonzero(hashes[terms] == indexed.hashes)
        # Sums of floats depend on the order: term by term, as the query has them.
        places = places[np.argsort(terms[places], kind="stable")]
        rows, often = indexed.rows[places], indexed.frequencies[places]
        np.add.at(scores, rows, weights[terms[places]] * (K1 + 1.0) * often / (often + norm[rows]))
        return scores

    def _cosines(self, indexed: IndexedPassages) -> NDArray[np.float64]:
        if self.vector is None or indexed.vectors is None:
            return np.zeros(len(indexed.passages))
        products = indexed.vectors * self.vector
        found: NDArray[np.float64] = np.round(products.sum(axis=1, dtype=np.float64), 6)
        return found


def by_passages(search: PassageSearch | None, found: SearchResult) -> SearchResult:
    """What was found, its long memories judged by their best passages."""
    if search is None:
        return found
    tables = {
        place: part
        for place, part in enumerate(found.slices)
        if isinstance(part, CandidateTable) and part.signals and len(part)
    }
    if not tables:
        return found
    changed = dict(zip(tables, search.rescored(tuple(tables.values())), strict=True))
    return replace(found, slices=tuple(changed.get(place, part) for place, part in enumerate(found.slices)))


def _indexed(parts: Sequence[Passage], vectors: NDArray[np.float32] | None, language: str) -> IndexedPassages:
    forwards = [index_terms(part.scored, language=language) for part in parts]
    return IndexedPassages(
        passages=parts,
        rows=np.repeat(np.arange(len(parts)), [each.hashes.size for each in forwards]),
        hashes=np.concatenate([np.empty(0, dtype=np.uint32), *(each.hashes for each in forwards)]),
        frequencies=np.concatenate(
            [np.empty(0), *(each.frequencies.astype(np.float64) for each in forwards)]
        ),
        lengths=np.array([each.length for each in forwards], dtype=np.float64),
        vectors=vectors,
    )


def _together(several: Sequence[IndexedPassages]) -> IndexedPassages:
    """The passages of several texts, one text after the other."""
    firsts = np.cumsum([0, *(len(each.passages) for each in several[:-1])]).tolist()
    vectors = [each.vectors for each in several if each.vectors is not None]
    return IndexedPassages(
        passages=[passage for each in several for passage in each.passages],
        rows=np.concatenate([each.rows + first for each, first in zip(several, firsts, strict=True)]),
        hashes=np.concatenate([each.hashes for each in several]),
        frequencies=np.concatenate([each.frequencies for each in several]),
        lengths=np.concatenate([each.lengths for each in several]),
        vectors=np.concatenate(vectors) if vectors else None,
    )


def _vectors(texts: Sequence[str], embedder: Embedder | None) -> NDArray[np.float32] | None:
    if embedder is None:
        return None
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    for place, vector in enumerate(embed_texts(embedder, texts)):
        if vector is not None:
            vectors[place] = vector
    return vectors


def _shares(values: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    most = max(floor, float(values.max(initial=0.0)))
    return np.maximum(values, 0.0) / most if most > 0 else np.zeros(len(values))
