"""Where evidence is lost on its way into a context: the stage, how far it came, and what would help.

stored -> admitted -> gathered -> past the gate -> ranked and fitted -> shown whole
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from germane.errors import GermaneError, InvalidInput
from germane.evaluation.material import (
    EvaluationQuestion,
    EvidencePiece,
    Records,
    Stored,
    drawn,
    read_material,
)
from germane.evaluation.result import Needle, as_json, fields_as_json
from germane.evaluation.retrievers import (
    BUNDLED,
    Configuration,
    GermaneReader,
    contained_pieces,
    each_question,
    spoken_by,
)
from germane.model.context import Entry, Ranked, Reason, Trace
from germane.model.memory import Status
from germane.model.text import counted, cut, line_of
from germane.operations.inputs import checked_count
from germane.protocols import Embedder

_EVERYTHING = 1_000_000
"""More memories than any recall returns."""
_LABEL = 70


class LossStage(StrEnum):
    """The stage at which a piece of evidence was lost, in the order of the stages."""

    NOT_STORED = "not_stored"  # No memory has that id or source.
    NOT_ADMITTED = "not_admitted"  # It was superseded or forgotten, or the plan doesn't show its kind.
    NOT_GATHERED = "not_gathered"  # No signal put it among its candidates.
    GATED = "gated"  # The gate judged it irrelevant to the question.
    OUTRANKED = "outranked"  # Higher-ranked memories took the tokens.
    CUT = "cut"  # The context contains it, but not in full.


_ORDER = tuple(LossStage)
_REMEDIES = {
    LossStage.NOT_STORED: "import it, or mend the evidence: no memory has that id or source",
    LossStage.NOT_ADMITTED: "restore it, name its successor as evidence, or use a plan that shows its kind",
    LossStage.NOT_GATHERED: "the question shares too little with it: put it in words that a question "
    "would use, "
    "use an embedder, or gather more (the limit of the plan's section)",
    LossStage.GATED: "put it in words that a question would use, or use a plan without the gate",
    LossStage.OUTRANKED: "raise the budget, or see which part of its score is low",
    LossStage.CUT: "raise the section's share, or use a plan whose sections show memories at full length",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A piece of evidence that a context doesn't contain in full.

    `ranks` has its rank by each signal among all memories, from 1; signals without a value for it are
    absent. `rank` is its rank among the `candidates` of the context, `parts` are the parts of its score, and
    `short_by` is the number of missing tokens.
    """

    evidence: str
    stage: LossStage
    label: str = ""
    detail: str = ""
    ranks: Mapping[str, int] = field(default_factory=dict)
    rank: int | None = None
    candidates: int = 0
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    short_by: int = 0

    @property
    def remedy(self) -> str:
        """What would make the context contain it."""
        return _REMEDIES[self.stage]

    def as_dict(self) -> dict[str, Any]:
        """The piece as a JSON object."""
        return fields_as_json(self) | {"remedy": self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The evidence that one question lost. `fitted` is the rank of the last candidate in the context."""

    number: int
    question: str
    where: str
    category: int | str
    evidence: int
    fitted: int
    lost: tuple[Lost, ...]

    def as_dict(self) -> dict[str, Any]:
        """The question as a JSON object."""
        return {
            **fields_as_json(self, "fitted", "lost"),
            "contained": self.evidence - len(self.lost),
            "last_rank_that_fitted": self.fitted,
            "lost": as_json(self.lost),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The evidence that the questions of a run lost at one budget, in the order of the questions."""

    configuration: str
    budget: int
    questions: tuple[Loss, ...]

    @property
    def by_stage(self) -> dict[LossStage, int]:
        """The number of pieces that each stage lost, 0 included."""
        counts = Counter(piece.stage for each in self.questions for piece in each.lost)
        return {stage: counts[stage] for stage in LossStage}

    def worst(self, count: int) -> Losses:
        """The `count` questions that lost the most pieces; of equal ones, the first."""
        losing = [each for each in self.questions if each.lost]
        losing.sort(key=lambda each: -len(each.lost))
        return Losses(configuration=self.configuration, budget=self.budget, questions=tuple(losing[:count]))

    def as_dict(self) -> dict[str, Any]:
        """The losses as a JSON object."""
        evidence = sum(each.evidence for each in self.questions)
        return {
            **fields_as_json(self, "questions"),
            "evidence": evidence,
            "stages": as_json(self.by_stage),
            "questions": as_json(self.questions),
        }

    def to_text(self) -> str:
        """The losses as text: totals, then each question with its lost pieces and their remedies."""
        total = sum(each.evidence for each in self.questions)
        lost = sum(self.by_stage.values())
        stages = ", ".join(f"{stage} {count}" for stage, count in self.by_stage.items() if count)
        head = (
            f"{self.configuration} at {self.budget} tokens: {lost} of {total} pieces of evidence lost"
            f"{f' ({stages})' if stages else ''}."
        )
        return "\n\n".join([head, *("\n".join(_loss_lines(each)) for each in self.questions)])


def losses(
    path: str | Path,
    *,
    budget: int,
    question: str | None = None,
    configuration: Configuration | None = None,
    conversations: Sequence[str] | None = None,
    questions_limit: int | None = None,
    speaker: str | None = None,
    seed: int = 7,
    embedder: Embedder | None = BUNDLED,
    stored: Stored | None = None,
    records: Records | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Losses:
    """Find the evidence that each question of a file loses at a budget, and the stage of each loss.

    `question` selects one question: by its number in the order of `evaluate`, by its text, or by a part of
    its text that no other question has. The other arguments are those of `evaluate`. Raises
    UnreadableSource or InvalidInput.
    """
    checked_count(budget, name="budget", least=1)
    configuration = configuration or Configuration()
    material = read_material(
        path, embedder=embedder, conversations=conversations, stored=stored, records=records
    )
    material = drawn(material if speaker is None else spoken_by(material, speaker), questions_limit, seed)
    selected = material.questions if question is None else (_named(material.questions, question),)
    found: list[Loss] = []
    readers = each_question(
        replace(material, questions=selected), lambda corpus: GermaneReader(corpus, configuration)
    )
    for reader, each, needles in readers:
        where = material.names[each.corpus] if material.names else ""
        found.append(_loss(reader, each, needles, budget, where))
        if progress is not None:
            progress(len(found), len(selected))
    return Losses(configuration=str(configuration), budget=budget, questions=tuple(found))


def _named(questions: Sequence[EvaluationQuestion], question: str) -> EvaluationQuestion:
    wanted = question.strip()
    if wanted.isdecimal():
        found = [each for each in questions if each.number == int(wanted)]
    else:
        exact = [each for each in questions if each.question.casefold() == wanted.casefold()]
        found = exact or [each for each in questions if wanted.casefold() in each.question.casefold()]
    if not wanted or not found:
        raise InvalidInput(
            f"No question with evidence is {question!r}. Give its number, from 1 to "
            f"{max((each.number for each in questions), default=0)}, or a part of its text."
        )
    if len(found) > 1:
        numbers = ", ".join(str(each.number) for each in found[:10])
        raise InvalidInput(f"{question!r} is in {len(found)} questions: {numbers}. Give one of the numbers.")
    return found[0]


def _loss(
    reader: GermaneReader, case: EvaluationQuestion, needles: Mapping[str, Needle], budget: int, where: str
) -> Loss:
    context = reader.context(case.question, budget)
    contained = contained_pieces(context.text, case, needles)
    missing = [piece for piece, there in zip(case.pieces, contained, strict=True) if not there]
    ranking = _Ranking(reader, case, context.trace)
    return Loss(
        number=case.number,
        question=case.question,
        where=where,
        category=case.category,
        evidence=len(case.pieces),
        fitted=ranking.fitted,
        lost=tuple(ranking.lost(piece) for piece in missing),
    )


class _Ranking:
    """The ranks of memories for one question, in the trace of the context and by each signal."""

    def __init__(self, reader: GermaneReader, case: EvaluationQuestion, trace: Trace) -> None:
        self._reader = reader
        self._question = case.question
        self._memories = {own: stored for stored, own in reader.ids.items()}
        self._entries = sorted(trace.entries, key=lambda entry: -entry.score)
        self._places = {entry.memory_id: place for place, entry in enumerate(self._entries, 1)}
        self._signals: dict[str, dict[str, int]] | None = None

    @property
    def fitted(self) -> int:
        """The rank of the last candidate in the context; 0 for none."""
        places = (place for place, entry in enumerate(self._entries, 1) if entry.included)
        return max(places, default=0)

    def lost(self, piece: EvidencePiece) -> Lost:
        """The piece at the latest stage that any of its memories reached; of several, the best ranked."""
        if not piece.ids:
            return Lost(evidence=piece.name, stage=LossStage.NOT_STORED)
        several = [self._lost(piece.name, self._memories.get(each, each)) for each in piece.ids]
        return max(several, key=lambda one: (_ORDER.index(one.stage), -(one.rank or 0)))

    def _lost(self, name: str, memory_id: str) -> Lost:
        try:
            memory = self._reader.engine.get(memory_id)
        except GermaneError:
            return Lost(evidence=name, stage=LossStage.NOT_STORED)
        label = cut(line_of(memory.content[: 4 * _LABEL]), _LABEL)
        place = self._places.get(memory_id)
        if place is not None:
            return self._ranked(name, label, place)
        if memory.status is not Status.ACTIVE or not self._reader.shows(memory.kind):
            why = memory.status if memory.status is not Status.ACTIVE else f"of kind {memory.kind}"
            return Lost(evidence=name, stage=LossStage.NOT_ADMITTED, label=label, detail=f"it is {why}")
        return Lost(
            evidence=name,
            stage=LossStage.NOT_GATHERED,
            label=label,
            detail=f"outside the best {self._reader.gathered} of every signal",
            ranks=self._ranks(memory_id),
            candidates=len(self._entries),
        )

    def _ranked(self, name: str, label: str, place: int) -> Lost:
        entry = self._entries[place - 1]
        stage, detail = _stage_of(entry)
        return Lost(
            evidence=name,
            stage=stage,
            label=label,
            detail=detail,
            ranks=self._ranks(entry.memory_id),
            rank=place,
            candidates=len(self._entries),
            score=entry.score,
            parts=entry.parts,
            short_by=entry.short_by,
        )

    def _ranks(self, memory_id: str) -> dict[str, int]:
        """The rank of a memory by each signal among all memories; signals that don't match it are absent."""
        if self._signals is None:
            every = self._reader.engine.recall(self._question, limit=_EVERYTHING, gate=False)
            self._signals = _places_by_signal(every)
        return {name: of[memory_id] for name, of in self._signals.items() if memory_id in of}


def _places_by_signal(ranked: Sequence[Ranked]) -> dict[str, dict[str, int]]:
    # Coverage scores the candidates of other signals and adds none.
    names = dict.fromkeys(name for one in ranked for name in one.candidate.signals if name != "coverage")
    places = {}
    for name in names:
        having = [one for one in ranked if one.candidate.signals.get(name, 0.0) > 0]
        having.sort(key=lambda one: -one.candidate.signals[name])
        places[name] = {one.memory.id: place for place, one in enumerate(having, 1)}
    return places


def _stage_of(entry: Entry) -> tuple[LossStage, str]:
    """The stage at which a candidate was lost, and what happened there."""
    if entry.included:
        return LossStage.CUT, f"shown at its {entry.level} length"
    if entry.reason is Reason.OVER_BUDGET:
        return LossStage.OUTRANKED, f"{counted(entry.short_by, 'token')} short"
    gated = entry.reason is Reason.NOT_RELEVANT
    return LossStage.GATED if gated else LossStage.OUTRANKED, f"left out: {entry.reason}"


def _loss_lines(loss: Loss) -> list[str]:
    contained = loss.evidence - len(loss.lost)
    place = f"{loss.where}, " if loss.where else ""
    lines = [f"{loss.number}. {loss.question}  ({place}category {loss.category})"]
    lines.append(
        f"   {contained} of {loss.evidence} pieces contained; the last that fitted has rank {loss.fitted}."
    )
    for each in loss.lost:
        rank = "" if each.rank is None else f", rank {each.rank} of {each.candidates}"
        lines.append(f"   {each.evidence}: {each.stage}{rank}" + (f"; {each.detail}" if each.detail else ""))
        if each.label:
            lines.append(f"      {each.label}")
        if each.parts:
            parts = " + ".join(f"{name} {value:.2f}" for name, value in each.parts.items())
            lines.append(f"      score {each.score:.2f} = {parts}")
        if each.ranks:
            lines.append(
                "      by signal: " + ", ".join(f"{name} {rank}" for name, rank in each.ranks.items())
            )
        lines.append(f"      {each.remedy}.")
    return lines
