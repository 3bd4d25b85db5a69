"""Run retrievers over questions and measure how much of the evidence each context contains.

The clock is read to time contexts; all other results depend on the seed only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.embedders import CallableEmbedder, OnnxEmbedder
from germane.errors import GermaneError, InvalidInput, MissingExtra, UnreadableSource
from germane.evaluation.material import (
    COUNTER,
    Corpus,
    EvaluationQuestion,
    Material,
    Order,
    Reader,
    Records,
    Retriever,
    Stored,
    drawn,
    found_pieces,
    read_material,
)
from germane.evaluation.messages import LINES
from germane.evaluation.report import DEFAULT_CALL, Kind, KindsReport, Report
from germane.evaluation.result import (
    DEPTHS,
    Answer,
    EvaluationFigures,
    Needle,
    PairedDifference,
    Result,
    TurnLengths,
    WordPairs,
    bootstrap_interval,
    differences,
    holds_phrase,
    mean,
    pair_share,
    pairs_in,
    percentile,
    recall_at,
    reciprocal_rank,
    turn_lengths,
    word_pairs,
)
from germane.evaluation.retrievers import (
    BUNDLED,
    GATE,
    GROUPING,
    PEERS,
    RETRIEVERS,
    Configuration,
    GermaneReader,
    best_first,
    configured,
    contained_pieces,
    each_question,
    embedder_of,
    missing,
    ranked_by,
    retrievers_of,
    spoken_by,
)
from germane.operations.inputs import checked_count
from germane.protocols import Embedder
from germane.tokens import get_counter

BUDGETS = (500, 1000, 2000, 4000)
_RANKED = 100  # The depth of the reciprocal rank.
_MANY = 3  # Questions with so many or more pieces of evidence are reported together.
_EXAMPLES = 3  # The number of invalid lines in an error.


def evaluate(
    path: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    retrievers: Sequence[str | Configuration] | Mapping[str, Retriever] | None = None,
    conversations: Sequence[str] | None = None,
    questions_limit: int | None = None,
    speaker: str | None = None,
    seed: int = 7,
    embedder: Embedder | None = BUNDLED,
    ablate: bool = False,
    stored: Stored | None = None,
    records: Records | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Measure how much of the evidence for each question its context contains in full.

    `path` is a file in the LoCoMo format, in which every turn is a memory and every question with readable
    evidence, except adversarial ones, is assembled at each budget; or JSON lines with probes, or with
    questions about messages in the file, about `records`, which are imported for the run, or about the store
    `stored`. Invalid lines and turns are skipped and reported. Tokens are o200k. `retrievers` are names of
    `RETRIEVERS` (default: all that can run), configurations or their texts, or your own retrievers by name.
    The default `embedder` is the bundled one, or the store's own for `stored`. `conversations` are sample
    ids; `questions_limit` draws so many questions by the seed. With `speaker`, such as "user", only the turns
    of that speaker or role are stored, and only evidence in them counts. `ablate` repeats the first
    configuration without each of its parts. `progress` receives the number of finished questions and the
    total. Raises UnreadableSource or InvalidInput.
    """
    sizes = checked_budgets(budgets)
    taking_part, skipped = retrievers_of(retrievers, embedder)
    material = read_material(
        path, embedder=embedder, conversations=conversations, stored=stored, records=records
    )
    material = drawn(material if speaker is None else spoken_by(material, speaker), questions_limit, seed)
    if not material.questions and (misfits := _misfits(material, Path(path).name)):
        raise UnreadableSource(f"No question of {path} can be measured. {misfits}")
    if not material.questions or not sizes or not taking_part:
        raise InvalidInput(
            f"There is nothing to measure: {len(material.questions)} questions with evidence, {len(sizes)} "
            f"budgets, {len(taking_part)} retrievers. Each of them has to be at least 1."
        )
    report = measured(material, taking_part, budgets=sizes, seed=seed, ablate=ablate, progress=progress)
    return replace(report, skipped=skipped)


def checked_budgets(budgets: Sequence[int]) -> list[int]:
    """The distinct budgets in ascending order. Raises InvalidInput."""
    return sorted({checked_count(budget, name="budget", least=1) for budget in budgets})


def measured(
    material: Material,
    retrievers: Mapping[str, Retriever],
    *,
    budgets: Sequence[int],
    seed: int,
    ablate: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """The report of retrievers over a material; each question goes to all retrievers in turn."""
    run = _Run(material, budgets, seed, progress)
    run.expect(len(retrievers))
    results = run.results(retrievers)
    ablation = _ablated(run, results) if ablate else ()
    return Report(
        results=tuple(chain.from_iterable(results.values())),
        conversations=material.names,
        turns=sum(len(corpus.ids) for corpus in material.corpora),
        questions=len(material.questions),
        cases=material.questions,
        left_out=(*material.left_out, *run.refused),
        repeated=material.repeated,
        lengths=_lengths(material),
        adversarial=material.adversarial,
        without_evidence=material.without_evidence,
        counter=COUNTER,
        seed=seed,
        evidence=material.evidence,
        ablation=ablation,
    )


def _misfits(material: Material, name: str) -> str:
    """The first evidence ids that name nothing, and the first invalid lines, those of the file first."""
    evidence = material.evidence
    turns = ", ".join(chain.from_iterable(corpus.ids[:_EXAMPLES] for corpus in material.corpora[:1]))
    found = [f"Evidence {each} can't be read." for each in evidence.unreadable]
    found += [f"Evidence {each} names none; there are such as {turns}." for each in evidence.missing]
    found += sorted(material.left_out, key=lambda each: not each.startswith(name))
    more = len(found) - _EXAMPLES
    return " ".join(found[:_EXAMPLES]) + (f" There are {more} more such lines." if more > 0 else "")


def _lengths(material: Material) -> tuple[TurnLengths, ...]:
    tokens: dict[str, list[int]] = {}
    for corpus in material.corpora:
        for turn in corpus.turns:
            tokens.setdefault(turn.speaker, []).append(corpus.counter.count(turn.texts))
    return turn_lengths(tokens)


class _Run:
    """Puts the questions to all retrievers in turn, and collects progress and score parts."""

    def __init__(
        self,
        material: Material,
        budgets: Sequence[int],
        seed: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.seed = seed
        self.parts: dict[str, set[str]] = {}
        self.refused: dict[str, None] = {}
        self._material = material
        self._budgets = budgets
        self._progress = progress
        self._total = 0
        self._done = 0

    def expect(self, retrievers: int) -> None:
        """Add the questions of so many retrievers to the total."""
        self._total += retrievers * len(self._material.questions)

    @property
    def grouped(self) -> bool:
        """Whether any memory is in the scope of a session."""
        drafts = (draft for corpus in self._material.corpora for draft in corpus.drafts)
        return any(str(draft.scope).startswith("session") for draft in drafts)

    def results(self, retrievers: Mapping[str, Retriever]) -> dict[str, list[Result]]:
        """The results of each retriever, by budget.

        Each question goes to one retriever after the other, so that other load on the machine affects all of
        them equally.
        """
        answers: dict[str, dict[int, list[Answer]]] = {
            name: {budget: [] for budget in self._budgets} for name in retrievers
        }
        for together, case, needles in each_question(
            self._material, lambda each: _Together(each, retrievers)
        ):
            for name, reader in together.readers.items():
                for budget, answer in _answered(reader, case, needles, self._budgets).items():
                    answers[name][budget].append(answer)
                if isinstance(reader, GermaneReader):
                    self.parts.setdefault(name, set()).update(reader.parts)
                    self.refused |= dict.fromkeys(reader.refused)
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, self._total)
        return {
            name: [_result(name, budget, by_budget[budget], self.seed) for budget in self._budgets]
            for name, by_budget in answers.items()
        }


class _Together:
    """An open reader of each retriever over one corpus."""

    def __init__(self, corpus: Corpus, retrievers: Mapping[str, Retriever]) -> None:
        with ExitStack() as opened:
            self.readers = {
                name: opened.enter_context(closing(retriever(corpus)))
                for name, retriever in retrievers.items()
            }
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()


def _ablated(run: _Run, results: Mapping[str, Sequence[Result]]) -> tuple[PairedDifference, ...]:
    """The first configuration compared with itself without each part of its scores, and without vectors.

    Raises InvalidInput if no retriever is a configuration.
    """
    name = next((name for name in results if name in run.parts), None)
    if name is None:
        raise InvalidInput(
            f"Nothing here can be ablated: {', '.join(results)} have no parts. Name a configuration."
        )
    whole = Configuration.parse(name)
    parts = sorted(run.parts[name] - set(whole.without))
    if run.grouped and GROUPING not in whole.without:
        parts.append(GROUPING)
    if whole.plan_of().gate:
        parts.append(GATE)
    variants = [whole.leaving_out(part) for part in parts]
    if "semantic" in parts:
        variants.append(replace(whole, embedder="none"))
    run.expect(1 + len(variants))
    baseline = run.results({name: configured(whole, by_plan=True)})[name]
    others = (run.results({str(each): configured(each, by_plan=True)})[str(each)] for each in variants)
    return tuple(one for other in others for one in differences(baseline, other, seed=run.seed))


def _answered(
    reader: Reader, case: EvaluationQuestion, needles: Mapping[str, Needle], budgets: Sequence[int]
) -> Mapping[int, Answer]:
    """The answers to one question by budget; each context is assembled by a separate call."""
    ranking = found_pieces(reader.recall(case.question, _RANKED), case.pieces)
    wanted = [piece.name for piece in case.pieces]
    depths = {depth: recall_at(ranking, wanted, depth) for depth in DEPTHS}
    words = _wanted_words(case, needles)
    # A separate counter reveals wrong counts of the counter that packed.
    count = get_counter(COUNTER).count
    answers = {}
    for budget in budgets:
        started = perf_counter()
        text = reader.assemble(case.question, budget)
        seconds = perf_counter() - started
        whole = contained_pieces(text, case, needles)
        shown_words = _words_shown(text, words)
        items = reader.shown if isinstance(reader, GermaneReader) else frozenset()
        pairs = list(zip(case.pieces, whole, strict=True))
        contained = tuple(piece.name for piece, present in pairs if present)
        shown = tuple(piece.name for piece, present in pairs if present or not items.isdisjoint(piece.ids))
        answers[budget] = Answer(
            number=case.number,
            corpus=case.corpus,
            half=case.half,
            category=case.category,
            evidence=len(case.pieces),
            contained=len(contained),
            shown=len(shown),
            contained_names=contained,
            shown_names=shown,
            phrases=len(case.phrases),
            phrases_contained=sum(holds_phrase(text, phrase) for phrase in case.phrases),
            words=sum(whole) / len(whole) if shown_words is None else shown_words,
            tokens=count(text),
            seconds=seconds,
            recall_at=depths,
            reciprocal=reciprocal_rank(ranking, wanted),
        )
    return answers


def _wanted_words(
    case: EvaluationQuestion, needles: Mapping[str, Needle]
) -> tuple[tuple[WordPairs, ...], ...]:
    """The pairs of words of each answer phrase, or else of the memories of each piece of evidence.

    Texts without content words, such as "so is it", are skipped; a piece that isn't stored is empty.
    """
    if case.phrases:
        several = [[word_pairs(phrase)] for phrase in case.phrases]
    else:
        several = [
            [needles[each].word_pairs for each in piece.ids if each in needles] for piece in case.pieces
        ]
    return tuple(tuple(filter(None, each)) for each in several if not each or any(each))


def _words_shown(text: str, wanted: Sequence[Sequence[WordPairs]]) -> float | None:
    """The mean share of the wanted pairs of words in a context; of several memories, the largest share.

    None if there are no content words.
    """
    context = pairs_in(text)
    shares = [max((pair_share(words, context) for words in each), default=0.0) for each in wanted]
    return mean(shares) if shares else None


def _result(name: str, budget: int, answers: Sequence[Answer], seed: int) -> Result:
    tokens = [each.tokens for each in answers]
    milliseconds = [1000 * each.seconds for each in answers]
    by_category = _grouped(answers, lambda each: each.category)
    by_evidence = _grouped(answers, lambda each: each.evidence if each.evidence < _MANY else f"{_MANY}+")
    return Result(
        retriever=name,
        budget=budget,
        overall=_figures(answers, seed),
        categories={group: _figures(each, seed) for group, each in by_category.items()},
        halves=(
            _figures([each for each in answers if each.half == 0], seed),
            _figures([each for each in answers if each.half == 1], seed),
        ),
        tokens=mean(tokens),
        fill=mean(tokens) / budget,
        over_budget=sum(each > budget for each in tokens),
        p50_ms=percentile(milliseconds, 50),
        p95_ms=percentile(milliseconds, 95),
        by_evidence={str(group): _figures(each, seed) for group, each in by_evidence.items()},
        answers=tuple(answers),
    )


def _grouped(
    answers: Sequence[Answer], group_of: Callable[[Answer], int | str]
) -> dict[int | str, list[Answer]]:
    """The answers by group, numbers first."""
    groups: list[Any] = sorted(
        {group_of(each) for each in answers}, key=lambda group: (isinstance(group, str), group)
    )
    return {group: [each for each in answers if group_of(each) == group] for group in groups}


def _figures(answers: Sequence[Answer], seed: int) -> EvaluationFigures:
    shares = [each.share for each in answers]
    phrases = [each.phrases_contained / each.phrases for each in answers if each.phrases]
    return EvaluationFigures(
        questions=len(answers),
        evidence=sum(each.evidence for each in answers),
        found=sum(each.contained for each in answers),
        evidence_recall=mean(shares),
        shown_recall=mean([each.shown_share for each in answers]),
        answer_recall=mean(phrases) if phrases else None,
        word_recall=mean([each.words for each in answers]),
        all_evidence=mean([float(each.whole) for each in answers]),
        interval=bootstrap_interval(shares, seed=seed),
        recall_at={depth: mean([each.recall_at[depth] for each in answers]) for depth in DEPTHS},
        mrr=mean([each.reciprocal for each in answers]),
    )


# Several data files in one run: the default call compared with peers, question by question.
#
# A change that helps one kind of conversation can harm another, so all are measured in one run.

MINILM = "minilm"
PEER_NAMES = ("bm25", MINILM, "lancedb-fts", "lancedb-hybrid")
"""The peers of `compare_kinds`, if installed."""
_SUFFIXES = (".json", *LINES)


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
    """Compare the default call with peers on every data file of a folder; each question goes to all in turn.

    The files are files of `evaluate` with their own conversations or messages: the LoCoMo format (.json) and
    JSON lines. `peers` are names of PEER_NAMES, by default all; a peer that isn't installed is skipped with
    the reason. Peers that need vectors use MiniLM if the extra `onnx` is installed, otherwise `embedder`,
    which is the embedder of the default call. `questions_limit` is per file, and `speaker` as in `evaluate`.
    Raises InvalidInput for a folder without such files and for an unknown peer.
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

    The best peer is chosen by the same questions, so chance favours the peer.
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


# The peers; those that need vectors share them.


def _retrievers(
    names: Sequence[str], embedder: Embedder | None
) -> tuple[dict[str, Retriever], dict[str, str]]:
    """The default call and the peers that can run, by name, and the reason for each other peer."""
    unknown = sorted(set(names) - set(PEER_NAMES))
    if unknown:
        raise InvalidInput(
            f"Unknown peers: {', '.join(map(repr, unknown))}. Known peers: {', '.join(PEER_NAMES)}, or none."
        )
    minilm, skipped = None, {}
    try:
        minilm = _once_per_corpus(OnnxEmbedder())
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


def _once_per_corpus(embedder: Embedder) -> Embedder:
    """An embedder that caches the vectors of the last corpus, which two peers embed."""
    of_corpus = lru_cache(maxsize=1)(embedder.embed)
    return CallableEmbedder(
        lambda texts: of_corpus(tuple(texts)) if len(texts) > 1 else embedder.embed(texts),
        name=embedder.name,
        dimension=embedder.dimension,
    )


def _cosine(corpus: Corpus, embedder: Embedder | None) -> Order:
    embedder = embedder_of(replace(corpus, embedder=embedder))
    vectors = _unit(embedder.embed(corpus.texts))
    places = np.arange(len(corpus.ids))
    return lambda question: best_first(places, vectors @ _unit(embedder.embed([question]))[0])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit
