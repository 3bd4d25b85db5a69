"""What is compared: germane itself, simple baselines, and peers where they are installed.

Level: evaluation.

A retriever is a callable that reads a corpus and gives a reader; adding one is a line in
`RETRIEVERS`, or an entry of the mapping that `evaluate` is given. One that only ranks is made by
`ranked_by`, which packs as every ranking peer is packed: greedily, in its order, leaving out what
doesn't fit, at the text's tokens and one for the line's end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from germane.errors import InvalidInput
from germane.evaluation.configuration import Configuration, configured
from germane.evaluation.corpus import Corpus, Order, Retriever
from germane.evaluation.greedy import Ranking
from germane.evaluation.peers import PEERS, best_first, missing
from germane.protocols import Embedder
from germane.retrieval.postings import Postings
from germane.retrieval.terms import index_terms, query_terms, term_hash

__all__ = ["RETRIEVERS", "ranked_by", "retrievers_of"]


def ranked_by(order_of: Callable[[Corpus], Order]) -> Retriever:
    """A retriever from a way to rank a corpus: its order, packed greedily."""
    return lambda corpus: Ranking(corpus, order_of(corpus))


def retrievers_of(
    given: Sequence[str | Configuration] | Mapping[str, Retriever] | None, embedder: Embedder | None
) -> tuple[dict[str, Retriever], dict[str, str]]:
    """Who takes part by name, and why others don't. One asked for by name that can't is refused.

    A name is one of `RETRIEVERS` or the text of a configuration. Raises InvalidInput.
    """
    if isinstance(given, Mapping):
        return dict(given), {}
    absent = {name: why for name in RETRIEVERS if (why := missing(name, embedder)) is not None}
    if given is None:
        return {name: each for name, each in RETRIEVERS.items() if name not in absent}, absent
    found: dict[str, Retriever] = {}
    for name in given:
        if name in absent:
            raise InvalidInput(f"The retriever {name!r} can't run here: {absent[str(name)]}")
        if isinstance(name, str) and name in RETRIEVERS:
            found[name] = RETRIEVERS[name]
        else:
            configuration = _configuration(name)
            found[str(configuration)] = configured(configuration)
    return found, {}


def _configuration(name: str | Configuration) -> Configuration:
    if isinstance(name, Configuration):
        return name
    try:
        return Configuration.parse(name)
    except InvalidInput as error:
        raise InvalidInput(
            f"Unknown retriever {name!r}. Known retrievers: {', '.join(RETRIEVERS)}. {error}"
        ) from None


def _recency(corpus: Corpus) -> Order:
    newest_first = range(len(corpus.ids) - 1, -1, -1)
    return lambda _: newest_first


def _bm25(corpus: Corpus) -> Order:
    postings = Postings.build(
        np.arange(len(corpus.ids), dtype=np.int64), [index_terms(text) for text in corpus.texts]
    )

    def order(question: str) -> Sequence[int]:
        scores = postings.score([term_hash(term) for term in query_terms(question)])
        return best_first(scores.ordinals, scores.scores)

    return order


RETRIEVERS: Mapping[str, Retriever] = {
    "germane": configured(Configuration()),
    "recency": ranked_by(_recency),
    "bm25": ranked_by(_bm25),
    **{name: ranked_by(order_of) for name, order_of in PEERS.items()},
}
"""The retrievers that can be asked for by name."""
