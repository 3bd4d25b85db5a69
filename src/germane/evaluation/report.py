"""The figures of an evaluation, as values, as JSON and as a table.

Level: evaluation. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from germane.exchange.locomo import EvidenceReport

__all__ = ["DEPTHS", "Figures", "Report", "Result"]

DEPTHS = (5, 10, 20)
"""How many of the best memories `recall_at` looks at."""

_PLACES = 4
_NAMED_IDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured over a set of questions, each a share from 0 to 1.

    `evidence_recall` is the mean over the questions of the share of their evidence that stands
    whole in the context, `interval` its bootstrap 95 % interval; `all_evidence` is the share of
    questions with all of it. `evidence` counts the evidence turns and `found` those that stood
    there. `recall_at` and `mrr` judge the ranking before anything is packed.
    """

    questions: int
    evidence: int
    found: int
    evidence_recall: float
    all_evidence: float
    interval: tuple[float, float]
    recall_at: Mapping[int, float]
    mrr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One retriever at one budget.

    `tokens` is the mean length of its contexts and `fill` that over the budget; `over_budget`
    counts contexts longer than the budget by an independent count. Latencies are of making one
    context, in milliseconds. `halves` parts the conversations, in the order of the file.
    """

    retriever: str
    budget: int
    overall: Figures
    categories: Mapping[int, Figures]
    halves: tuple[Figures, Figures]
    tokens: float
    fill: float
    over_budget: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that one run measured. `skipped` says of each retriever that took no part why."""

    results: tuple[Result, ...]
    conversations: tuple[str, ...]
    turns: int
    questions: int
    without_evidence: int
    adversarial: int
    counter: str
    seed: int
    evidence: EvidenceReport = field(default_factory=EvidenceReport)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def result(self, retriever: str, budget: int) -> Result:
        """The result of one retriever at one budget. Raises KeyError."""
        for each in self.results:
            if (each.retriever, each.budget) == (retriever, budget):
                return each
        raise KeyError((retriever, budget))

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON will hold it."""
        return {
            "results": [_result(each) for each in self.results],
            "skipped": [{"retriever": name, "reason": why} for name, why in self.skipped.items()],
            "data": {
                "conversations": list(self.conversations),
                "turns": self.turns,
                "questions": self.questions,
                "adversarial": self.adversarial,
                "without_evidence": self.without_evidence,
                "evidence_ids": {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in asdict(self.evidence).items()
                },
            },
            "counter": self.counter,
            "seed": self.seed,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as a JSON text; shares are rounded to four places."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=indent)

    def to_text(self) -> str:
        """The report as tables for people: overall, by category, by half, and what was odd in the data."""
        parts = [self._data(), _overall(self.results), _by_group(self.results), *self._oddities()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _data(self) -> str:
        rows = [
            ("conversations", len(self.conversations)),
            ("turns", self.turns),
            ("questions", self.questions),
            ("adversarial, left out", self.adversarial),
            ("without evidence, left out", self.without_evidence),
        ]
        counts = "; ".join(f"{name}: {count:,}" for name, count in rows)
        return f"{counts}\nTokens by {self.counter}; bootstrap of seed {self.seed}."

    def _oddities(self) -> list[str]:
        said = [
            f"Evidence ids that {what}: {len(ids)} ({', '.join(ids[:_NAMED_IDS])}"
            + (", …" if len(ids) > _NAMED_IDS else "")
            + ")"
            for what, ids in (
                ("were malformed and repaired", self.evidence.repaired),
                ("could not be read", self.evidence.unreadable),
                ("point to no turn", self.evidence.missing),
            )
            if ids
        ]
        said.extend(f"{name} was skipped: {why}" for name, why in self.skipped.items())
        return ["\n".join(said)]


def _result(result: Result) -> dict[str, Any]:
    return {
        "retriever": result.retriever,
        "budget": result.budget,
        **_figures(result.overall),
        "tokens": round(result.tokens, 1),
        "fill": round(result.fill, _PLACES),
        "over_budget": result.over_budget,
        "latency_ms": {"p50": round(result.p50_ms, 3), "p95": round(result.p95_ms, 3)},
        "categories": {str(name): _figures(each) for name, each in result.categories.items()},
        "halves": [_figures(each) for each in result.halves],
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "evidence_recall": round(figures.evidence_recall, _PLACES),
        "all_evidence": round(figures.all_evidence, _PLACES),
        "interval": [round(end, _PLACES) for end in figures.interval],
        "questions": figures.questions,
        "evidence": figures.evidence,
        "found": figures.found,
        **{f"recall@{depth}": round(share, _PLACES) for depth, share in figures.recall_at.items()},
        "mrr": round(figures.mrr, _PLACES),
    }


def _overall(results: Sequence[Result]) -> str:
    head = (
        "retriever",
        "budget",
        "evidence",
        "95 %",
        "all",
        *(f"R@{k}" for k in DEPTHS),
        "MRR",
        "tokens",
        "fill",
    )
    rows = [
        (
            result.retriever,
            str(result.budget),
            _percent(result.overall.evidence_recall),
            "–".join(_percent(end) for end in result.overall.interval),
            _percent(result.overall.all_evidence),
            *(_percent(result.overall.recall_at[k]) for k in DEPTHS),
            _percent(result.overall.mrr),
            f"{result.tokens:.0f}",
            f"{result.fill:.0%}",
            str(result.over_budget),
            f"{result.p50_ms:.1f}",
            f"{result.p95_ms:.1f}",
        )
        for result in results
    ]
    return _table([(*head, "over", "p50 ms", "p95 ms"), *rows])


def _by_group(results: Sequence[Result]) -> str:
    """Evidence recall by category and by half of the conversations."""
    categories = sorted({category for result in results for category in result.categories})
    head = ("evidence by", "budget", *(f"cat {each}" for each in categories), "half 1", "half 2")
    rows = [
        (
            result.retriever,
            str(result.budget),
            *(
                _percent(result.categories[each].evidence_recall) if each in result.categories else "-"
                for each in categories
            ),
            *(_percent(half.evidence_recall) if half.questions else "-" for half in result.halves),
        )
        for result in results
    ]
    return _table([head, *rows])


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, the first to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
