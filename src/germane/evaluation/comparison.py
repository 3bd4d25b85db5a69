"""Two configurations that answered the same questions, compared in pairs.

Level: evaluation. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from germane.evaluation.columns import points, table
from germane.evaluation.metrics import bootstrap_interval, cluster_interval, mean
from germane.evaluation.result import Result

__all__ = ["Difference", "differences", "differences_text"]

_PLACES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What `second` found more than `first` at one budget: shares from -1 to 1, `second` minus `first`.

    `evidence_recall` and `all_evidence` are mean differences over the questions. `interval` is the
    bootstrap 95 % interval of the first over questions, `over_conversations` that over whole
    conversations (None for fewer than two). `halves` are the differences in each half of the data,
    None for a half without questions. A question is won where `second` found more of its evidence.
    """

    first: str
    second: str
    budget: int
    questions: int
    evidence_recall: float
    all_evidence: float
    interval: tuple[float, float]
    over_conversations: tuple[float, float] | None
    halves: tuple[float | None, float | None]
    wins: int
    losses: int

    @property
    def told_from_chance(self) -> bool:
        """Whether the interval over questions leaves zero out."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def as_dict(self) -> dict[str, Any]:
        """The difference as JSON will hold it."""
        over = self.over_conversations
        return {
            "first": self.first,
            "second": self.second,
            "budget": self.budget,
            "questions": self.questions,
            "evidence_recall": round(self.evidence_recall, _PLACES),
            "all_evidence": round(self.all_evidence, _PLACES),
            "interval": [round(end, _PLACES) for end in self.interval],
            "interval_over_conversations": None if over is None else [round(end, _PLACES) for end in over],
            "halves": [None if half is None else round(half, _PLACES) for half in self.halves],
            "wins": self.wins,
            "losses": self.losses,
        }


def differences(first: Sequence[Result], second: Sequence[Result], *, seed: int) -> tuple[Difference, ...]:
    """One difference per budget. Both have to hold the same questions at the same budgets."""
    return tuple(_difference(one, other, seed) for one, other in zip(first, second, strict=True))


def differences_text(several: Sequence[Difference], *, title: str) -> str:
    """A table for people, in points: per cent of the evidence, `second` minus `first`."""
    head = (title, "budget", "points", "95 %", "over conv.", "half 1", "half 2", "all", "won", "lost")
    return table([head, *(_row(each) for each in several)])


def _difference(first: Result, second: Result, seed: int) -> Difference:
    pairs = list(zip(first.answers, second.answers, strict=True))
    if first.budget != second.budget or any(one.number != other.number for one, other in pairs):
        raise AssertionError(f"{first.retriever} and {second.retriever} did not answer the same questions.")
    gains = [other.share - one.share for one, other in pairs]
    halves = [
        [gain for gain, (one, _) in zip(gains, pairs, strict=True) if one.half == half] for half in (0, 1)
    ]
    return Difference(
        first=first.retriever,
        second=second.retriever,
        budget=first.budget,
        questions=len(pairs),
        evidence_recall=mean(gains),
        all_evidence=mean([float(other.whole) - float(one.whole) for one, other in pairs]),
        interval=bootstrap_interval(gains, seed=seed),
        over_conversations=cluster_interval(gains, [one.corpus for one, _ in pairs], seed=seed),
        halves=(mean(halves[0]) if halves[0] else None, mean(halves[1]) if halves[1] else None),
        wins=sum(gain > 0 for gain in gains),
        losses=sum(gain < 0 for gain in gains),
    )


def _row(each: Difference) -> tuple[str, ...]:
    over = each.over_conversations
    return (
        each.second,
        str(each.budget),
        points(each.evidence_recall) + ("" if each.told_from_chance else " ~"),
        _between(each.interval),
        "-" if over is None else _between(over),
        *("-" if half is None else points(half) for half in each.halves),
        points(each.all_evidence),
        str(each.wins),
        str(each.losses),
    )


def _between(interval: tuple[float, float]) -> str:
    return " … ".join(points(end) for end in interval)
