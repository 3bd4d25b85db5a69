"""Run an evaluation: every question to every retriever at every budget.

Level: evaluation. It reads a clock, to time what it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import numpy as np

from germane.errors import InvalidInput
from germane.evaluation.metrics import (
    Needle,
    bootstrap_interval,
    holds,
    mean,
    percentile,
    recall_at,
    reciprocal_rank,
)
from germane.evaluation.report import DEPTHS, Figures, Report, Result
from germane.evaluation.retrievers import RETRIEVERS, Corpus, Reader, Retriever, missing
from germane.exchange.locomo import (
    ADVERSARIAL,
    Conversation,
    Question,
    conversation_drafts,
    evidence_report,
    read_locomo,
)
from germane.model.days import day_in_words
from germane.protocols import Embedder, TokenCounter
from germane.tokens import CachedCounter, get_counter
from germane.verbs.checks import checked_count

__all__ = ["BUDGETS", "evaluate"]

BUDGETS = (500, 1000, 2000, 4000)
_COUNTER = "o200k"
_RANKED = 100  # How deep the reciprocal rank looks.


def evaluate(
    path: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    retrievers: Sequence[str] | Mapping[str, Retriever] | None = None,
    conversations: Sequence[str] | None = None,
    questions_limit: int | None = None,
    seed: int = 7,
    embedder: Embedder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """How much of the evidence for each question stands whole in its context, on LoCoMo-layout data.

    Every turn is a memory and every question with readable evidence, the adversarial ones aside, an
    assembly at each budget; tokens are o200k. `retrievers` are names of `RETRIEVERS` (all that can
    run here unless given) or retrievers of your own by name. `conversations` are sample ids;
    `questions_limit` draws that many questions by the seed. `progress` is told how many questions
    of how many are done. Raises UnreadableSource or InvalidInput.
    """
    budgets = sorted({checked_count(budget, name="budget", least=1) for budget in budgets})
    every = read_locomo(Path(path))
    chosen = _chosen(every, conversations)
    asked = _drawn(_asked(chosen), questions_limit, seed)
    taking_part, skipped = _retrievers(retrievers, embedder)
    if not asked or not budgets or not taking_part:
        raise InvalidInput(
            f"There is nothing to measure: {len(asked)} questions with evidence, {len(budgets)} budgets, "
            f"{len(taking_part)} retrievers. Each of them has to be at least 1."
        )
    counter = CachedCounter(get_counter(_COUNTER))
    corpora = [_corpus(conversation, counter, embedder) for conversation in chosen]
    told = _Progress(progress, total=len(asked) * len(taking_part))
    results: list[Result] = []
    for name, retriever in taking_part.items():
        outcomes = _run(retriever, corpora, asked, budgets, told)
        middle = (len(chosen) + 1) // 2
        results.extend(
            _result(name, budget, [each[budget] for each in outcomes], middle, seed) for budget in budgets
        )
    return _report(chosen, results, questions=len(asked), seed=seed, skipped=skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question of the conversation at that place."""

    conversation: int
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of one question at one budget."""

    asked: _Asked
    budget: int
    held: int
    tokens: int
    seconds: float
    recall_at: Mapping[int, float]
    reciprocal: float

    @property
    def share(self) -> float:
        return self.held / len(self.asked.question.evidence)


class _Progress:
    def __init__(self, told: Callable[[int, int], None] | None, *, total: int) -> None:
        self._told = told
        self._total = total
        self._done = 0

    def step(self) -> None:
        self._done += 1
        if self._told is not None:
            self._told(self._done, self._total)


def _report(
    conversations: Sequence[Conversation],
    results: Sequence[Result],
    *,
    questions: int,
    seed: int,
    skipped: Mapping[str, str],
) -> Report:
    every = [question for conversation in conversations for question in conversation.questions]
    return Report(
        results=tuple(results),
        conversations=tuple(each.sample_id for each in conversations),
        turns=sum(len(each.turns) for each in conversations),
        questions=questions,
        adversarial=sum(each.category == ADVERSARIAL for each in every),
        without_evidence=sum(not each.evidence and each.category != ADVERSARIAL for each in every),
        counter=_COUNTER,
        seed=seed,
        evidence=evidence_report(conversations),
        skipped=skipped,
    )


def _chosen(every: Sequence[Conversation], names: Sequence[str] | None) -> list[Conversation]:
    if names is None:
        return list(every)
    known = [each.sample_id for each in every]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidInput(
            f"No conversation is named {', '.join(unknown)}. The file holds {', '.join(known)}."
        )
    return [each for each in every if each.sample_id in names]


def _asked(conversations: Sequence[Conversation]) -> list[_Asked]:
    return [
        _Asked(conversation=place, question=question)
        for place, conversation in enumerate(conversations)
        for question in conversation.questions
        if question.category != ADVERSARIAL and question.evidence
    ]


def _drawn(asked: list[_Asked], limit: int | None, seed: int) -> list[_Asked]:
    """At most `limit` of the questions, drawn over all of them and left in order."""
    if limit is None or len(asked) <= checked_count(limit, name="questions_limit", least=1):
        return asked
    places = np.random.default_rng(seed).choice(len(asked), size=limit, replace=False)
    return [asked[place] for place in sorted(places.tolist())]


def _retrievers(
    given: Sequence[str] | Mapping[str, Retriever] | None, embedder: Embedder | None
) -> tuple[Mapping[str, Retriever], dict[str, str]]:
    """Who takes part, and why others don't. One asked for by name that can't is refused."""
    if isinstance(given, Mapping):
        return given, {}
    absent = {name: why for name in RETRIEVERS if (why := missing(name, embedder)) is not None}
    if given is None:
        return {name: each for name, each in RETRIEVERS.items() if name not in absent}, absent
    for name in given:
        if name not in RETRIEVERS:
            raise InvalidInput(f"Unknown retriever {name!r}. Known retrievers: {', '.join(RETRIEVERS)}.")
        if name in absent:
            raise InvalidInput(f"The retriever {name!r} can't run here: {absent[name]}")
    return {name: RETRIEVERS[name] for name in given}, {}


def _corpus(conversation: Conversation, counter: TokenCounter, embedder: Embedder | None) -> Corpus:
    """A conversation as memories, asked about on the day after it ended."""
    last = max((turn.session_at for turn in conversation.turns), default=None)
    if last is None:
        raise InvalidInput(f"Conversation {conversation.sample_id!r} has no turns to ask about.")
    return Corpus(
        ids=tuple(turn.dia_id for turn in conversation.turns),
        turns=tuple(
            Needle(day_in_words(turn.session_at), f"{turn.speaker}: {turn.text}")
            for turn in conversation.turns
        ),
        drafts=tuple(conversation_drafts(conversation)),
        now=last + timedelta(days=1),
        counter=counter,
        embedder=embedder,
    )


def _run(
    retriever: Retriever,
    corpora: Sequence[Corpus],
    asked: Sequence[_Asked],
    budgets: Sequence[int],
    told: _Progress,
) -> list[Mapping[int, _Outcome]]:
    outcomes: list[Mapping[int, _Outcome]] = []
    for place, corpus in enumerate(corpora):
        reader = retriever(corpus)
        try:
            needles = dict(zip(corpus.ids, corpus.turns, strict=True))
            for one in asked:
                if one.conversation == place:
                    outcomes.append(_answered(reader, one, needles, budgets))
                    told.step()
        finally:
            reader.close()
    return outcomes


def _answered(
    reader: Reader, asked: _Asked, needles: Mapping[str, Needle], budgets: Sequence[int]
) -> Mapping[int, _Outcome]:
    """One question at every budget. Each context is made anew, as a caller's would be."""
    wanted = asked.question.evidence
    ranking = reader.recall(asked.question.question, _RANKED)
    depths = {depth: recall_at(ranking, wanted, depth) for depth in DEPTHS}
    # Not the counter that packed: a count that went wrong there must show here.
    count = get_counter(_COUNTER).count
    outcomes = {}
    for budget in budgets:
        started = perf_counter()
        text = reader.assemble(asked.question.question, budget)
        seconds = perf_counter() - started
        outcomes[budget] = _Outcome(
            asked=asked,
            budget=budget,
            held=sum(holds(text, [needles[each] for each in wanted])),
            tokens=count(text),
            seconds=seconds,
            recall_at=depths,
            reciprocal=reciprocal_rank(ranking, wanted),
        )
    return outcomes


def _result(name: str, budget: int, outcomes: Sequence[_Outcome], middle: int, seed: int) -> Result:
    """`middle` is the first conversation of the second half."""
    categories = sorted({each.asked.question.category for each in outcomes})
    tokens = [each.tokens for each in outcomes]
    milliseconds = [1000 * each.seconds for each in outcomes]
    return Result(
        retriever=name,
        budget=budget,
        overall=_figures(outcomes, seed),
        categories={
            category: _figures([each for each in outcomes if each.asked.question.category == category], seed)
            for category in categories
        },
        halves=(
            _figures([each for each in outcomes if each.asked.conversation < middle], seed),
            _figures([each for each in outcomes if each.asked.conversation >= middle], seed),
        ),
        tokens=mean(tokens),
        fill=mean(tokens) / budget,
        over_budget=sum(each > budget for each in tokens),
        p50_ms=percentile(milliseconds, 50),
        p95_ms=percentile(milliseconds, 95),
    )


def _figures(outcomes: Sequence[_Outcome], seed: int) -> Figures:
    shares = [each.share for each in outcomes]
    return Figures(
        questions=len(outcomes),
        evidence=sum(len(each.asked.question.evidence) for each in outcomes),
        found=sum(each.held for each in outcomes),
        evidence_recall=mean(shares),
        all_evidence=mean([float(share == 1.0) for share in shares]),
        interval=bootstrap_interval(shares, seed=seed),
        recall_at={depth: mean([each.recall_at[depth] for each in outcomes]) for depth in DEPTHS},
        mrr=mean([each.reciprocal for each in outcomes]),
    )
