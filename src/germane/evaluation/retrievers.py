"""The retrievers of an evaluation: germane in a configuration, simple baselines, and installed peers.

A retriever is a callable that takes a corpus and returns a reader. To add one, add a line to `RETRIEVERS`, or
an entry to the mapping for `evaluate`. `ranked_by` makes one from a ranking. All rankings are packed in the
same way: greedily in their order, skipping texts that don't fit, at a text's tokens plus one for the end of
the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

import germane
from germane.embedders.adapters import EMBEDDERS, embedder_named
from germane.embedders.static import StaticEmbedder
from germane.errors import InvalidInput
from germane.evaluation.material import (
    Corpus,
    EvaluationQuestion,
    Material,
    Order,
    Records,
    Retriever,
    Stored,
    all_memories,
    open_records,
    record_key,
)
from germane.evaluation.result import Needle, holds
from germane.kinds import BUILT_IN
from germane.model.context import Context
from germane.model.plan import Plan
from germane.model.text import DEFAULT_FRAME
from germane.packing.render import fence
from germane.plans.layered import PLANS, plan_for
from germane.protocols import Embedder
from germane.retrieval.bm25 import Postings
from germane.retrieval.tokenizer import index_terms, query_terms, term_hash

if TYPE_CHECKING:
    from germane.engine import Engine

# A configuration of germane: the embedder, the plan, and the omitted parts.

BUNDLED: Embedder = StaticEmbedder()
"""The default embedder of a run: the bundled one."""

GROUPING = "grouping"
"""The name in `without` of the grouping of a session's turns, which isn't part of a score.

Without it a context has the same ranking, with each memory on a separate dated line.
"""

GATE = "gate"
"""The name in `without` of the gate, which excludes irrelevant memories."""

_AS_GIVEN = "default"
_ITSELF = "germane"
_WORDS_ONLY = "lexical"
_JOINT = "+"
_DEFAULT_PLAN = "layered"
"""The default plan of `Engine.assemble`; a test compares it with the method's signature."""
_ANY_BUDGET = 1000
"""A budget for rankings, which don't depend on it, large enough for the required memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A configuration of germane. Its text lists the differences from the default, joined by `+`.

    `germane` and `default` are the default: `engine.assemble(question, budget=n)` with the embedder of the
    run. `embedder=none|bundled|minilm` names another embedder (short: `lexical`, `bundled`, `minilm`),
    `plan=NAME` passes a plan to the call, and `without=PART` omits a part of every score, or with
    `without=grouping` and `without=gate` the grouping of turns and the gate:

        Configuration.parse("minilm+without=window")
    """

    embedder: str = _AS_GIVEN
    plan: str | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.embedder not in (_AS_GIVEN, *EMBEDDERS):
            raise InvalidInput(
                f"embedder={self.embedder!r} is unknown. Known embedders: {', '.join(EMBEDDERS)}."
            )
        if self.plan is not None and self.plan not in PLANS:
            raise InvalidInput(f"plan={self.plan!r} is unknown. Known plans: {', '.join(PLANS)}.")

    def __str__(self) -> str:
        words = {_AS_GIVEN: [], "none": [_WORDS_ONLY]}.get(self.embedder, [self.embedder])
        if self.plan is not None:
            words = [*words, f"plan={self.plan}"]
        return _JOINT.join([*words, *(f"without={part}" for part in self.without)]) or _ITSELF

    @classmethod
    def parse(cls, text: str) -> Configuration:
        """The configuration of that text. Raises InvalidInput."""
        short = {**{name: name for name in EMBEDDERS}, _WORDS_ONLY: "none"}
        found = cls()
        for word in text.split(_JOINT):
            name, _, value = word.strip().partition("=")
            if not value and name in (_AS_GIVEN, _ITSELF):
                continue
            if not value and name in short:
                found = replace(found, embedder=short[name])
            elif value and name == "embedder":
                found = replace(found, embedder=value)
            elif value and name == "plan":
                found = replace(found, plan=value)
            elif value and name == "without":
                found = replace(found, without=tuple(dict.fromkeys((*found.without, value))))
            else:
                raise InvalidInput(
                    f"{text!r} is no configuration: {word!r} can't be read. Write germane, lexical, bundled, "
                    "minilm, embedder=NAME, plan=NAME or without=PART, several joined by +."
                )
        return found

    def leaving_out(self, part: str) -> Configuration:
        """This configuration without another part."""
        return replace(self, without=(*self.without, part))

    def plan_of(self) -> Plan:
        """The plan without the omitted parts, and without a frame of the question."""
        plan = plan_for(self.plan or _DEFAULT_PLAN, kinds=BUILT_IN, frame=DEFAULT_FRAME)
        parts = tuple(part for part in self.without if part not in (GROUPING, GATE))
        return replace(plan, without=parts, gate=plan.gate and GATE not in self.without)


def configured(configuration: Configuration, *, by_plan: bool = False) -> Retriever:
    """The retriever that is germane in this configuration; `by_plan` as for GermaneReader."""
    return lambda corpus: GermaneReader(corpus, configuration, by_plan=by_plan)


class GermaneReader:
    """Germane over one corpus: every conversation is one agent in a store of its own, in memory.

    `parts` collects the names of the score parts that occurred, which can be omitted. `refused` lists the
    turns that the engine refused, with the reasons; all others are stored. `shown` has the corpus ids of the
    items of the last context, whole or shortened. `by_plan` passes the plan as a value even if nothing is
    omitted. Such a plan has no frame, so its contexts can differ slightly from those of the plan's name; an
    ablation compares it with itself.
    """

    def __init__(self, corpus: Corpus, configuration: Configuration, *, by_plan: bool = False) -> None:
        self.configuration = configuration
        self.parts: set[str] = set()
        self.refused: list[str] = []
        self.shown: frozenset[str] = frozenset()
        self._plan = configuration.plan_of()
        self._gated = GATE not in configuration.without
        self._by_plan = by_plan or bool(self._plan.without) or not self._gated
        self._ungrouped = Packed(corpus) if GROUPING in configuration.without else None
        self._places = {own: place for place, own in enumerate(corpus.ids)}
        self.engine = _opened(corpus, configuration)
        if isinstance(corpus.about, Stored):
            self.ids = {each: each for each in corpus.ids}
            return
        if corpus.about is not None:
            own = dict(zip(corpus.keys, corpus.ids, strict=True))
            memories = all_memories(self.engine)
            self.ids = {each.id: own[key] for each in memories if (key := record_key(each)) in own}
        else:
            self.ids = dict(self._remembered(corpus))
        if self.engine.stats().pending:
            # A slow embedder runs in the background; measuring starts when it is done.
            self.engine.embed_pending()

    def _remembered(self, corpus: Corpus) -> Iterator[tuple[str, str]]:
        """Store the turns, and yield the id of each memory with its id in the corpus."""
        try:
            stored = self.engine.remember_many(corpus.drafts)
        except InvalidInput:
            for draft, own in zip(corpus.drafts, corpus.ids, strict=True):
                try:
                    yield self.engine.remember_many([draft])[0].memory.id, own
                except InvalidInput as error:
                    self.refused.append(f"{draft.source or own}: {error}")
        else:
            yield from ((each.memory.id, own) for each, own in zip(stored, corpus.ids, strict=True))

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The ids in the corpus, best first, as the configuration ranks them."""
        found = self.engine.recall(question, limit=limit, gate=self._gated)
        for one in found:
            self.parts.update(one.parts)
        if not self._plan.without:
            return [self.ids[one.memory.id] for one in found if one.memory.id in self.ids]
        # A plan leaves parts out and a recall doesn't, so the ranking is the one of the trace.
        return self._order(question, _ANY_BUDGET)[:limit]

    def assemble(self, question: str, budget: int) -> str:
        """The context's text."""
        if self._ungrouped is None:
            context = self.context(question, budget)
            self.shown = frozenset(self.ids.get(item.memory.id, "") for item in context.items)
            return context.text
        return self._ungrouped.text([self._places[own] for own in self._order(question, budget)], budget)

    def context(self, question: str, budget: int) -> Context:
        """The context with its trace, assembled with the arguments that differ from the defaults."""
        if self._by_plan:
            return self.engine.assemble(question, budget=budget, plan=self._plan)
        if self.configuration.plan is not None:
            return self.engine.assemble(question, budget=budget, plan=self.configuration.plan)
        return self.engine.assemble(question, budget=budget)

    @property
    def gathered(self) -> int:
        """The maximum number of candidates of each signal in a context of the plan."""
        return sum(section.limit for section in self._plan.sections if section.order is None)

    def shows(self, kind: str) -> bool:
        """Whether the plan has a section for memories of that kind."""
        return any(kind in section.kinds for section in self._plan.sections)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _order(self, question: str, budget: int) -> list[str]:
        """The ids of all candidates, in rank order."""
        entries = sorted(self.context(question, budget).trace.entries, key=lambda entry: -entry.score)
        return [self.ids[entry.memory_id] for entry in entries if entry.memory_id in self.ids]


def _opened(corpus: Corpus, configuration: Configuration) -> Engine:
    named = configuration.embedder != _AS_GIVEN
    embedder = embedder_named(configuration.embedder) if named else corpus.embedder
    if isinstance(corpus.about, Records):
        return open_records(corpus.about, now=corpus.now, embedder=embedder, counter=corpus.counter)
    if corpus.about is None:
        return germane.open(
            ":memory:",
            agent="evaluation",
            embedder=embedder,
            counter=corpus.counter,
            clock=lambda: corpus.now,
        )
    opened = partial(
        germane.open,
        corpus.about.database,
        agent=corpus.about.agent,
        counter=corpus.counter,
        read_only=True,
        clock=lambda: corpus.now,
    )
    # A store is opened with its own embedder unless another is named.
    return opened() if embedder is BUNDLED else opened(embedder=embedder)


# Greedy packing of a ranking, one dated line per memory, as for every system that only ranks.


class Packed:
    """A corpus as lines with their costs, fenced like germane's contexts."""

    def __init__(self, corpus: Corpus) -> None:
        self._lines = ["\n".join(fence(text)) for text in corpus.texts]
        self._costs = [corpus.counter.count(line) + 1 for line in self._lines]

    def text(self, order: Sequence[int], budget: int) -> str:
        """The lines in this order; lines that don't fit are skipped."""
        left, taken = budget, []
        for place in order:
            if self._costs[place] <= left:
                left -= self._costs[place]
                taken.append(self._lines[place])
        return "\n".join(taken)


class RankedReader:
    """A reader that ranks by a function and packs greedily."""

    def __init__(self, corpus: Corpus, order: Order) -> None:
        self._ids = corpus.ids
        self._packed = Packed(corpus)
        self._order = order

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The first ids of the order."""
        return [self._ids[place] for place in self._order(question)[:limit]]

    def assemble(self, question: str, budget: int) -> str:
        """The lines of the order that fit."""
        return self._packed.text(self._order(question), budget)

    def close(self) -> None:
        """Nothing to close."""


# Other retrieval systems, if installed. Each is imported when it is used.
#
# Vectors come from the embedder of the run, so that systems are compared and not models.

_MODULES = {"bm25s": "bm25s", "chroma": "chromadb", "lancedb-fts": "lancedb", "lancedb-hybrid": "lancedb"}
_NEED_VECTORS = ("chroma", "lancedb-hybrid")
_CANDIDATES = 200


def missing(name: str, embedder: Embedder | None) -> str | None:
    """The reason why a peer can't run; None if it can."""
    module = _MODULES.get(name)
    if module is not None and find_spec(module) is None:
        return f"the package {module} isn't installed."
    if name in _NEED_VECTORS and embedder is None:
        return "it needs vectors, and its own embedder would download a model; pass an embedder."
    return None


def best_first(places: Any, scores: Any) -> list[int]:
    """The places by descending score; of equal scores, the newer first."""
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
    embedder = embedder_of(corpus)
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


def _lancedb(corpus: Corpus, *, hybrid: bool) -> Order:
    # It warns, from Rust, of every table that it creates.
    os.environ.setdefault("LANCEDB_LOG", "error")
    lancedb: Any = import_module("lancedb")
    # A match query has no syntax, whatever the question contains.
    match: Any = import_module("lancedb.query").MatchQuery
    words: Any = import_module("lancedb.index").FTS
    rows: list[dict[str, Any]] = [{"place": place, "text": text} for place, text in enumerate(corpus.texts)]
    if hybrid:
        for row, vector in zip(rows, embedder_of(corpus).embed(corpus.texts), strict=True):
            row["vector"] = vector
    table = lancedb.connect("memory://").create_table("turns", data=rows, mode="overwrite")
    # As its manual advises for English: stems, and no stop words.
    table.create_index("text", config=words(stem=True, remove_stop_words=True))

    def order(question: str) -> Sequence[int]:
        query = match(question, "text")
        if hybrid:
            search = table.search(query_type="hybrid", vector_column_name="vector")
            vector = embedder_of(corpus).embed([question])[0]
            search = search.vector(vector).distance_type("cosine").text(query)
        else:
            search = table.search(query, query_type="fts")
        return [int(row["place"]) for row in search.limit(_CANDIDATES).to_list()]

    return order


def embedder_of(corpus: Corpus) -> Embedder:
    """The embedder of a run with a peer that needs one."""
    if corpus.embedder is None:
        raise AssertionError("A peer that needs vectors was run without an embedder.")
    return corpus.embedder


PEERS: Mapping[str, Callable[[Corpus], Order]] = {
    "bm25s": _bm25s,
    "chroma": _chroma,
    "lancedb-fts": partial(_lancedb, hybrid=False),
    "lancedb-hybrid": partial(_lancedb, hybrid=True),
}
"""The ranking function of each peer by name."""


def ranked_by(order_of: Callable[[Corpus], Order]) -> Retriever:
    """A retriever from a function that ranks a corpus; the ranking is packed greedily."""
    return lambda corpus: RankedReader(corpus, order_of(corpus))


def retrievers_of(
    given: Sequence[str | Configuration] | Mapping[str, Retriever] | None, embedder: Embedder | None
) -> tuple[dict[str, Retriever], dict[str, str]]:
    """The retrievers to run by name, and the reason for each that can't run.

    A name is one of `RETRIEVERS` or the text of a configuration. Raises InvalidInput for a named retriever
    that can't run.
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
"""The retrievers with a name of their own."""


# The questions, each with an open reader.

_NAMES = 10  # How many speakers an error names.


class _Closable(Protocol):
    """An object that is opened for one corpus and closed after its questions."""

    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)


def spoken_by(material: Material, speaker: str) -> Material:
    """The material restricted to the turns of a speaker or role, and to the evidence in these turns.

    Case is ignored. Questions without remaining evidence are dropped. Raises InvalidInput if no turn has that
    speaker or role.
    """
    wanted = speaker.strip().casefold()
    corpora, known = [], dict[str, None]()
    for corpus in material.corpora:
        named = [
            {turn.speaker, str(draft.metadata.get("role") or turn.speaker)} - {""}
            for turn, draft in zip(corpus.turns, corpus.drafts, strict=False)
        ]
        known |= dict.fromkeys(name for names in named for name in sorted(names))
        places = [place for place, names in enumerate(named) if wanted in map(str.casefold, names)]
        corpora.append(
            replace(
                corpus,
                ids=tuple(corpus.ids[place] for place in places),
                turns=tuple(corpus.turns[place] for place in places),
                drafts=tuple(corpus.drafts[place] for place in places),
            )
        )
    if not any(corpus.ids for corpus in corpora):
        names = ", ".join(list(known)[:_NAMES]) or "none; only conversations and messages have speakers"
        raise InvalidInput(f"speaker={speaker!r} is nobody in the data. Its speakers are: {names}.")
    left = [set(corpus.ids) for corpus in corpora]
    questions = [
        replace(
            case, pieces=tuple(each for each in case.pieces if not left[case.corpus].isdisjoint(each.ids))
        )
        for case in material.questions
    ]
    usable = tuple(case for case in questions if case.pieces)
    return replace(
        material,
        corpora=tuple(corpora),
        questions=usable,
        without_evidence=material.without_evidence + len(questions) - len(usable),
    )


def contained_pieces(text: str, case: EvaluationQuestion, needles: Mapping[str, Needle]) -> list[bool]:
    """Whether a context contains each piece of a question's evidence in full."""
    return [
        any(holds(text, [needles[each] for each in piece.ids if each in needles])) for piece in case.pieces
    ]


def each_question(
    material: Material, retriever: Callable[[Corpus], _Opened]
) -> Iterator[tuple[_Opened, EvaluationQuestion, Mapping[str, Needle]]]:
    """Each question with an open reader of its corpus, and the needles of its turns by their ids."""
    for place, corpus in enumerate(material.corpora):
        questions = [case for case in material.questions if case.corpus == place]
        if questions:
            with closing(retriever(corpus)) as reader:
                needles = dict(zip(corpus.ids, corpus.turns, strict=True))
                for case in questions:
                    yield reader, case, needles
