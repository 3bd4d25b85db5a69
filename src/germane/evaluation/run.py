"""Runs retrievers over questions and measures what of the evidence each context holds.

Reads the clock to time contexts; everything else follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from germane.errors import InvalidInput
from germane.evaluation.material import (
    COUNTER,
    Corpus,
    EvaluationQuestion,
    Material,
    Reader,
    Records,
    Retriever,
    Stored,
    drawn,
    found_pieces,
    read_material,
)
from germane.evaluation.report import Report
from germane.evaluation.result import (
    DEPTHS,
    Answer,
    EvaluationFigures,
    Needle,
    PairedDifference,
    Result,
    bootstrap_interval,
    differences,
    holds,
    holds_phrase,
    mean,
    percentile,
    recall_at,
    reciprocal_rank,
)
from germane.evaluation.retrievers import (
    BUNDLED,
    GATE,
    GROUPING,
    Configuration,
    GermaneReader,
    configured,
    retrievers_of,
)
from germane.operations.inputs import checked_count
from germane.protocols import Embedder
from germane.tokens import get_counter

__all__ = ["BUDGETS", "contained_pieces", "each_question", "evaluate"]

BUDGETS = (500, 1000, 2000, 4000)
_RANKED = 100  # How deep the reciprocal rank looks.
_MANY = 3  # Pieces of evidence from which on questions are reported together.
_Reader = TypeVar("_Reader", bound=Reader)


def evaluate(
    path: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    retrievers: Sequence[str | Configuration] | Mapping[str, Retriever] | None = None,
    conversations: Sequence[str] | None = None,
    questions_limit: int | None = None,
    seed: int = 7,
    embedder: Embedder | None = BUNDLED,
    ablate: bool = False,
    stored: Stored | None = None,
    records: Records | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """How much of the evidence for each question its context contains in full.

    `path` is a file in LoCoMo's layout, where every turn is a memory and every question with
    readable evidence, the adversarial ones aside, an assembly at each budget; or JSON lines: with
    questions about `records`, which are imported for the run, or about the store `stored`, or with
    probes. Tokens are o200k. `retrievers` are names of
    `RETRIEVERS` (all that can run here unless given), configurations or their texts, or retrievers
    of your own by name. `embedder` is the bundled one unless given, and for a store then the one it
    is opened with. `conversations` are sample ids; `questions_limit` draws that many questions by
    the seed. `ablate` runs the first of the configurations again without each of its parts.
    `progress` receives how many questions of how many are done. Raises UnreadableSource or
    InvalidInput.
    """
    budgets = sorted({checked_count(budget, name="budget", least=1) for budget in budgets})
    taking_part, skipped = retrievers_of(retrievers, embedder)
    material = read_material(
        path, embedder=embedder, conversations=conversations, stored=stored, records=records
    )
    material = drawn(material, questions_limit, seed)
    if not material.questions or not budgets or not taking_part:
        raise InvalidInput(
            f"There is nothing to measure: {len(material.questions)} questions with evidence, {len(budgets)} "
            f"budgets, {len(taking_part)} retrievers. Each of them has to be at least 1."
        )
    run = _Run(material, budgets, seed, progress)
    run.expect(len(taking_part))
    results = {name: run.results(name, retriever) for name, retriever in taking_part.items()}
    ablation = _ablated(run, results) if ablate else ()
    return Report(
        results=tuple(chain.from_iterable(results.values())),
        conversations=material.names,
        turns=sum(len(corpus.ids) for corpus in material.corpora),
        questions=len(material.questions),
        adversarial=material.adversarial,
        without_evidence=material.without_evidence,
        counter=COUNTER,
        seed=seed,
        evidence=material.evidence,
        skipped=skipped,
        ablation=ablation,
    )


def contained_pieces(text: str, case: EvaluationQuestion, needles: Mapping[str, Needle]) -> list[bool]:
    """Whether a context contains each piece of a question's evidence in full."""
    return [
        any(holds(text, [needles[each] for each in piece.ids if each in needles])) for piece in case.pieces
    ]


def each_question(
    material: Material, retriever: Callable[[Corpus], _Reader]
) -> Iterator[tuple[_Reader, EvaluationQuestion, Mapping[str, Needle]]]:
    """Each question with an open reader of its corpus, and the needles of its turns by their ids."""
    for place, corpus in enumerate(material.corpora):
        questions = [case for case in material.questions if case.corpus == place]
        if questions:
            with closing(retriever(corpus)) as reader:
                needles = dict(zip(corpus.ids, corpus.turns, strict=True))
                for case in questions:
                    yield reader, case, needles


class _Run:
    """The questions, put to one retriever after another; the progress; which parts were seen."""

    def __init__(
        self,
        material: Material,
        budgets: Sequence[int],
        seed: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.seed = seed
        self.parts: dict[str, set[str]] = {}
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
        """Whether any memory belongs to a session."""
        drafts = (draft for corpus in self._material.corpora for draft in corpus.drafts)
        return any(str(draft.scope).startswith("session") for draft in drafts)

    def results(self, name: str, retriever: Retriever) -> list[Result]:
        """A result for each budget, in order."""
        answers = self._answers(name, retriever)
        return [_result(name, budget, answers[budget], self.seed) for budget in self._budgets]

    def _answers(self, name: str, retriever: Retriever) -> dict[int, list[Answer]]:
        answers: dict[int, list[Answer]] = {budget: [] for budget in self._budgets}
        for reader, case, needles in each_question(self._material, retriever):
            for budget, answer in _answered(reader, case, needles, self._budgets).items():
                answers[budget].append(answer)
            if isinstance(reader, GermaneReader):
                self.parts.setdefault(name, set()).update(reader.parts)
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
        return answers


def _ablated(run: _Run, results: Mapping[str, Sequence[Result]]) -> tuple[PairedDifference, ...]:
    """The first configuration beside itself without each of its parts, and without any vector.

    The parts are those that were seen in its scores. Raises InvalidInput when nothing is a configuration.
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
    baseline = run.results(name, configured(whole, by_plan=True))
    return tuple(
        one
        for variant in variants
        for one in differences(
            baseline, run.results(str(variant), configured(variant, by_plan=True)), seed=run.seed
        )
    )


def _answered(
    reader: Reader, case: EvaluationQuestion, needles: Mapping[str, Needle], budgets: Sequence[int]
) -> Mapping[int, Answer]:
    """One question at every budget. Each context is assembled separately, as a caller's would be."""
    ranking = found_pieces(reader.recall(case.question, _RANKED), case.pieces)
    wanted = [piece.name for piece in case.pieces]
    depths = {depth: recall_at(ranking, wanted, depth) for depth in DEPTHS}
    # Not the counter that packed: a count that went wrong there must show here.
    count = get_counter(COUNTER).count
    answers = {}
    for budget in budgets:
        started = perf_counter()
        text = reader.assemble(case.question, budget)
        seconds = perf_counter() - started
        whole = contained_pieces(text, case, needles)
        shown = reader.shown if isinstance(reader, GermaneReader) else frozenset()
        answers[budget] = Answer(
            number=case.number,
            corpus=case.corpus,
            half=case.half,
            category=case.category,
            evidence=len(case.pieces),
            contained=sum(whole),
            shown=sum(
                held or not shown.isdisjoint(piece.ids)
                for held, piece in zip(whole, case.pieces, strict=True)
            ),
            phrases=len(case.phrases),
            phrases_contained=sum(holds_phrase(text, phrase) for phrase in case.phrases),
            tokens=count(text),
            seconds=seconds,
            recall_at=depths,
            reciprocal=reciprocal_rank(ranking, wanted),
        )
    return answers


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
    """The answers by group, numbers before names."""
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
        all_evidence=mean([float(each.whole) for each in answers]),
        interval=bootstrap_interval(shares, seed=seed),
        recall_at={depth: mean([each.recall_at[depth] for each in answers]) for depth in DEPTHS},
        mrr=mean([each.reciprocal for each in answers]),
    )
