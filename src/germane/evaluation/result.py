"""What was measured of one retriever at one budget.

Level: evaluation. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["DEPTHS", "Answer", "Figures", "Result"]

DEPTHS = (5, 10, 20)
"""How many of the best memories `recall_at` looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one question at one budget: `held` of its `evidence` pieces stood whole in the context.

    `shown` counts the pieces in the context at any length; of a retriever that doesn't report its items,
    those that stood whole. Of its `phrases` that answer it, `phrases_held` stood in the context.

    `number` names the question within the run, `corpus` what it was about, `half` the half of the
    data that belongs to.
    """

    number: int
    corpus: int
    half: int
    category: int | str
    evidence: int
    held: int
    shown: int
    tokens: int
    seconds: float
    recall_at: Mapping[int, float]
    reciprocal: float
    phrases: int = 0
    phrases_held: int = 0

    @property
    def share(self) -> float:
        """The share of the evidence that stood whole in the context."""
        return self.held / self.evidence

    @property
    def shown_share(self) -> float:
        """The share of the evidence in the context at any length."""
        return self.shown / self.evidence

    @property
    def whole(self) -> bool:
        """Whether all of it did."""
        return self.held == self.evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured over a set of questions, each a share from 0 to 1.

    `evidence_recall` is the mean over the questions of the share of their evidence that stands
    whole in the context, `interval` its bootstrap 95 % interval; `all_evidence` is the share of
    questions with all of it, and `shown_recall` counts evidence in the context at any length: whole or
    shortened. `answer_recall` is the mean share of a question's answer phrases that stand in the text, None
    where no question names any. `evidence` counts the evidence turns and `found` those that stood
    there. `recall_at` and `mrr` judge the ranking before anything is packed.
    """

    questions: int
    evidence: int
    found: int
    evidence_recall: float
    shown_recall: float
    all_evidence: float
    interval: tuple[float, float]
    recall_at: Mapping[int, float]
    mrr: float
    answer_recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One retriever at one budget.

    `tokens` is the mean length of its contexts and `fill` that over the budget; `over_budget`
    counts contexts longer than the budget by an independent count. Latencies are of making one
    context, in milliseconds. `halves` parts the conversations, in the order of the file;
    `by_evidence` the questions by how many turns answer them: "1", "2" and "3+". `answers` holds
    each question's own outcome, in the order of the questions.
    """

    retriever: str
    budget: int
    overall: Figures
    categories: Mapping[int | str, Figures]
    halves: tuple[Figures, Figures]
    tokens: float
    fill: float
    over_budget: int
    p50_ms: float
    p95_ms: float
    by_evidence: Mapping[str, Figures] = field(default_factory=dict)
    answers: tuple[Answer, ...] = field(default=(), repr=False)
