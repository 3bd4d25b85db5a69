"""The figures of an evaluation, as values, as JSON and as a table.

Level: evaluation. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from germane.evaluation.columns import percent, table
from germane.evaluation.comparison import Difference, differences, differences_text
from germane.evaluation.result import DEPTHS, Figures, Result
from germane.exchange.locomo import EvidenceReport

__all__ = ["Report"]

_PLACES = 4
_NAMED_IDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that one run measured. `skipped` says of each retriever that took no part why.

    `conversations` is empty when the questions were about a store or probes, whose memories `turns`
    counts. `ablation` sets the first configuration beside itself without each of its parts.
    """

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
    comparisons: tuple[Difference, ...] = ()
    ablation: tuple[Difference, ...] = ()

    def of(self, retriever: str) -> tuple[Result, ...]:
        """The results of one retriever, by budget."""
        return tuple(each for each in self.results if each.retriever == retriever)

    def comparing(self, first: str, second: str) -> Report:
        """This report with the paired difference of two retrievers among its comparisons.

        Raises KeyError for one that took no part.
        """
        for name in (first, second):
            if not self.of(name):
                raise KeyError(name)
        found = differences(self.of(first), self.of(second), seed=self.seed)
        return replace(self, comparisons=(*self.comparisons, *found))

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
            "comparisons": [each.as_dict() for each in self.comparisons],
            "ablation": [each.as_dict() for each in self.ablation],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as a JSON text; shares are rounded to four places."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=indent)

    def to_text(self) -> str:
        """The report as tables for people: overall, by category, half and number of evidence turns.

        Then what was compared and ablated, and what was odd in the data.
        """
        parts = [
            self._data(),
            _overall(self.results),
            _by_group(self.results),
            _by_evidence(self.results),
            *self._differences(),
            *self._oddities(),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _data(self) -> str:
        things = [("conversations", len(self.conversations)), ("turns", self.turns)]
        rows = [
            *(things if self.conversations else [("memories", self.turns)]),
            ("questions", self.questions),
            ("adversarial, left out", self.adversarial),
            ("without evidence, left out", self.without_evidence),
        ]
        counts = "; ".join(f"{name}: {count:,}" for name, count in rows)
        return f"{counts}\nTokens by {self.counter}; bootstrap of seed {self.seed}."

    def _differences(self) -> list[str]:
        """A table for each pair that was compared, and one for the ablation."""
        pairs = dict.fromkeys((each.first, each.second) for each in self.comparisons)
        told = [
            differences_text(
                [each for each in self.comparisons if (each.first, each.second) == pair],
                title=f"beside {pair[0]}",
            )
            for pair in pairs
        ]
        if self.ablation:
            told.append(differences_text(self.ablation, title=f"{self.ablation[0].first} without"))
        if told:
            told.append(
                "Points of evidence recall, in pairs; ~ marks what its interval doesn't tell from chance."
            )
        return told

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
        "by_evidence": {name: _figures(each) for name, each in result.by_evidence.items()},
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "evidence_recall": round(figures.evidence_recall, _PLACES),
        "all_evidence": round(figures.all_evidence, _PLACES),
        "shown_recall": round(figures.shown_recall, _PLACES),
        "answer_recall": None if figures.answer_recall is None else round(figures.answer_recall, _PLACES),
        "interval": [round(end, _PLACES) for end in figures.interval],
        "questions": figures.questions,
        "evidence": figures.evidence,
        "found": figures.found,
        **{f"recall@{depth}": round(share, _PLACES) for depth, share in figures.recall_at.items()},
        "mrr": round(figures.mrr, _PLACES),
    }


def _overall(results: Sequence[Result]) -> str:
    phrases = any(result.overall.answer_recall is not None for result in results)
    head = (
        "retriever",
        "budget",
        "evidence",
        "95 %",
        "all",
        "shown",
        *(["answer"] if phrases else []),
        *(f"R@{k}" for k in DEPTHS),
        "MRR",
        "tokens",
        "fill",
    )
    rows = [
        (
            result.retriever,
            str(result.budget),
            percent(result.overall.evidence_recall),
            "–".join(percent(end) for end in result.overall.interval),
            percent(result.overall.all_evidence),
            percent(result.overall.shown_recall),
            *([percent(result.overall.answer_recall or 0.0)] if phrases else []),
            *(percent(result.overall.recall_at[k]) for k in DEPTHS),
            percent(result.overall.mrr),
            f"{result.tokens:.0f}",
            f"{result.fill:.0%}",
            str(result.over_budget),
            f"{result.p50_ms:.1f}",
            f"{result.p95_ms:.1f}",
        )
        for result in results
    ]
    return table([(*head, "over", "p50 ms", "p95 ms"), *rows])


def _by_group(results: Sequence[Result]) -> str:
    """Evidence recall by category and by half of the conversations."""
    categories = list(dict.fromkeys(category for result in results for category in result.categories))
    head = ("evidence by", "budget", *(f"cat {each}" for each in categories), "half 1", "half 2")
    rows = [
        (
            result.retriever,
            str(result.budget),
            *(
                percent(result.categories[each].evidence_recall) if each in result.categories else "-"
                for each in categories
            ),
            *(percent(half.evidence_recall) if half.questions else "-" for half in result.halves),
        )
        for result in results
    ]
    return table([head, *rows])


def _by_evidence(results: Sequence[Result]) -> str:
    """Evidence recall and all evidence, by how many turns answer a question."""
    counts = list(dict.fromkeys(count for result in results for count in result.by_evidence))
    if not counts:
        return ""
    head = ("by evidence turns", "budget", *counts, *(f"all of {count}" for count in counts))
    asked = next(result.by_evidence for result in results if result.by_evidence)
    sizes = ("questions", "", *(str(asked[count].questions) for count in counts), *("" for _ in counts))
    rows = [
        (
            result.retriever,
            str(result.budget),
            *(percent(result.by_evidence[count].evidence_recall) for count in counts),
            *(percent(result.by_evidence[count].all_evidence) for count in counts),
        )
        for result in results
    ]
    return table([head, sizes, *rows])
