"""Several kinds of data in one run: the default call beside peers, question by question.

A change that helps one kind of conversation may harm another, so all are measured in the same way at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.embedders.static import OnnxEmbedder
from germane.errors import GermaneError, InvalidInput, MissingExtra
from germane.evaluation.material import COUNTER, Corpus, Material, Order, Retriever, drawn, read_material
from germane.evaluation.messages import LINES
from germane.evaluation.report import Report, ReportTable, interval_text
from germane.evaluation.result import PairedDifference, differences, percent, percentile, points
from germane.evaluation.retrievers import (
    BUNDLED,
    PEERS,
    RETRIEVERS,
    best_first,
    missing,
    ranked_by,
    spoken_by,
)
from germane.evaluation.run import BUDGETS, checked_budgets, measured
from germane.protocols import Embedder

DEFAULT_CALL = "germane"
MINILM = "minilm"
PEER_NAMES = ("bm25", MINILM, "lancedb-fts", "lancedb-hybrid")
"""The peers of a comparison of kinds, where they are installed."""

_SUFFIXES = (".json", *LINES)
_SHARES = (
    "Share of the evidence that the context contains in full, and (words) of its pairs of neighbouring "
    "content words, in per cent; the median time of a context in milliseconds. Each question went to all in "
    "turn."
)
_BEST = (
    "Points of the default call over the peer with the highest evidence recall at that budget, question by "
    "question, with the bootstrap's 95 % intervals over questions, and over whole conversations. ~ marks a "
    "difference that may be chance."
)
_COUNTS = "Evidence recall of the default call in per cent, by how many turns answer a question."


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One file of a comparison. The report's `comparisons` are with the best peer at each budget."""

    name: str
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class KindsReport:
    """Every file of a folder, measured in the same way.

    `skipped` has the reason for each peer or file that was left out.
    """

    kinds: tuple[Kind, ...]
    seed: int
    skipped: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The reports as JSON will hold them."""
        return {
            "kinds": [{"name": each.name, **each.report.as_dict()} for each in self.kinds],
            "skipped": [{"name": name, "reason": why} for name, why in self.skipped.items()],
            "counter": COUNTER,
            "seed": self.seed,
        }

    def to_text(self) -> str:
        """The comparison for people: what was measured, then its tables, then what is to be noted."""
        data = [f"{each.name}: {each.report.data()}" for each in self.kinds]
        notes = [f"{name} was skipped: {why}" for name, why in self.skipped.items()]
        notes += [f"{each.name}: {note}" for each in self.kinds for note in each.report.oddities()]
        return "\n\n".join(filter(None, ["\n".join(data), *map(str, self.tables()), "\n".join(notes)])) + "\n"

    def tables(self) -> Iterator[ReportTable]:
        """The shares of all retrievers, the differences from the best peer, and those by number of turns."""
        budgets = [f"{result.budget:,}" for result in self.kinds[0].report.of(DEFAULT_CALL)]
        head = ("data", "retriever", *budgets, *(f"words {each}" for each in budgets), "ms")
        rows = tuple(row for each in self.kinds for row in _shares(each))
        yield ReportTable(title="All kinds", note=_SHARES, head=head, rows=rows)
        if any(each.report.comparisons for each in self.kinds):
            head = ("data", "budget", "best peer", "evidence", "95 %", "over conversations", "words", "95 %",
                    "won", "lost")  # fmt: skip
            rows = tuple(
                _difference(each.name, one) for each in self.kinds for one in each.report.comparisons
            )
            yield ReportTable(title="Over the best peer", note=_BEST, head=head, rows=rows)
        head = ("data", "turns", "questions", *budgets)
        rows = tuple(row for each in self.kinds for row in _by_count(each))
        yield ReportTable(title="By number of evidence turns", note=_COUNTS, head=head, rows=rows)


def _shares(kind: Kind) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys(result.retriever for result in kind.report.results):
        results = kind.report.of(name)
        seconds = [answer.seconds for result in results for answer in result.answers]
        yield (
            kind.name,
            name,
            *(percent(each.overall.evidence_recall) for each in results),
            *(percent(each.overall.word_recall) for each in results),
            f"{1000 * percentile(seconds, 50):.1f}",
        )


def _difference(name: str, one: PairedDifference) -> tuple[str, ...]:
    return (
        name,
        f"{one.budget:,}",
        one.first,
        points(one.evidence_recall) + ("" if one.is_significant else " ~"),
        interval_text(one.interval),
        interval_text(one.interval_over_conversations),
        points(one.word_recall),
        interval_text(one.words_interval),
        str(one.wins),
        str(one.losses),
    )


def _by_count(kind: Kind) -> Iterator[tuple[str, ...]]:
    results = kind.report.of(DEFAULT_CALL)
    for turns, figures in results[0].by_evidence.items():
        recalls = (percent(result.by_evidence[turns].evidence_recall) for result in results)
        yield kind.name, turns, f"{figures.questions:,}", *recalls


def compare_kinds(
    folder: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    peers: Sequence[str] | None = None,
    questions_limit: int | None = None,
    speaker: str | None = None,
    seed: int = 7,
    embedder: Embedder | None = BUNDLED,
    progress: Callable[[int, int], None] | None = None,
) -> KindsReport:
    """The default call and its peers over every data file of a folder, each question to all in turn.

    Files are those of `evaluate` that bring their own conversations or messages: LoCoMo's layout (.json) and
    JSON lines. `peers` are among PEER_NAMES: all that are installed unless given; one that isn't is skipped
    with the reason. Peers that need vectors use MiniLM where the extra `onnx` is installed, otherwise the
    `embedder`, which is the default call's. `questions_limit` is per file, and `speaker` as in `evaluate`.
    Raises InvalidInput for a folder without any such file, or for an unknown peer.
    """
    sizes = checked_budgets(budgets)
    retrievers, skipped = _retrievers(PEER_NAMES if peers is None else peers, embedder)
    materials: dict[str, Material] = {}
    for path in _files(Path(folder)):
        try:
            read = read_material(path, embedder=embedder)
            material = drawn(read if speaker is None else spoken_by(read, speaker), questions_limit, seed)
        except GermaneError as error:
            skipped[path.name] = str(error)
        else:
            if material.questions:
                materials[path.stem] = material
            else:
                skipped[path.name] = "no question of it has evidence."
    if not materials:
        reasons = " ".join(f"{name}: {why}" for name, why in skipped.items())
        raise InvalidInput(f"No file of folder={str(folder)!r} can be measured. {reasons}".rstrip())
    total = len(retrievers) * sum(len(each.questions) for each in materials.values())
    kinds: list[Kind] = []
    done = 0
    for name, material in materials.items():
        report = measured(
            material, retrievers, budgets=sizes, seed=seed, progress=_offset(progress, done, total)
        )
        done += len(retrievers) * len(material.questions)
        kinds.append(Kind(name=name, report=replace(report, comparisons=_over_the_best(report, seed))))
    return KindsReport(kinds=tuple(kinds), seed=seed, skipped=skipped)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InvalidInput(f"folder={str(folder)!r} is no folder. Name one with data files (.json, .jsonl).")
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)


def _offset(
    progress: Callable[[int, int], None] | None, before: int, total: int
) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


def _over_the_best(report: Report, seed: int) -> tuple[PairedDifference, ...]:
    """The default call minus the best peer at each budget.

    The best is chosen by the same questions, so chance favours it and never the default call.
    """
    found: list[PairedDifference] = []
    for own in report.of(DEFAULT_CALL):
        peers = [
            each for each in report.results if each.budget == own.budget and each.retriever != DEFAULT_CALL
        ]
        if peers:
            best = max(peers, key=lambda each: each.overall.evidence_recall)
            found += differences([best], [own], seed=seed)
    return tuple(found)


# The peers, those that need vectors with the same ones.


def _retrievers(
    names: Sequence[str], embedder: Embedder | None
) -> tuple[dict[str, Retriever], dict[str, str]]:
    """The default call and the peers that can run here by name, and why the others can't."""
    unknown = sorted(set(names) - set(PEER_NAMES))
    if unknown:
        raise InvalidInput(
            f"Unknown peers: {', '.join(map(repr, unknown))}. Known peers: {', '.join(PEER_NAMES)}, or none."
        )
    minilm, skipped = None, {}
    try:
        minilm = _OncePerCorpus(OnnxEmbedder())
    except MissingExtra as error:
        skipped[MINILM] = str(error)
    peers: dict[str, Retriever] = {
        "bm25": RETRIEVERS["bm25"],
        MINILM: ranked_by(lambda corpus: _cosine(corpus, minilm)),
        "lancedb-fts": RETRIEVERS["lancedb-fts"],
        "lancedb-hybrid": ranked_by(
            lambda corpus: PEERS["lancedb-hybrid"](replace(corpus, embedder=minilm or corpus.embedder))
        ),
    }
    skipped |= {each: why for each in PEER_NAMES if (why := missing(each, minilm or embedder)) is not None}
    skipped = {name: why for name, why in skipped.items() if name in names}
    chosen = {name: peers[name] for name in PEER_NAMES if name in names and name not in skipped}
    return {DEFAULT_CALL: RETRIEVERS[DEFAULT_CALL], **chosen}, skipped


class _OncePerCorpus:
    """An embedder that remembers the vectors of the last batch: two peers embed the same corpus."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.eager = True
        self._embedder = embedder
        self._last: tuple[Sequence[str], NDArray[np.float32]] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._last is not None and self._last[0] == texts:
            return self._last[1]
        vectors = self._embedder.embed(texts)
        if len(texts) > 1:
            self._last = (list(texts), vectors)
        return vectors


def _cosine(corpus: Corpus, embedder: Embedder | None) -> Order:
    if embedder is None:
        raise AssertionError("A peer that needs vectors was run without an embedder.")
    vectors = _unit(embedder.embed(corpus.texts))
    places = np.arange(len(corpus.ids))
    return lambda question: best_first(places, vectors @ _unit(embedder.embed([question]))[0])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit
