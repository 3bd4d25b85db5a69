"""The figures of an evaluation as values, JSON and a table; the gate for continuous integration; days
as curves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias
from xml.sax.saxutils import escape

from germane.errors import InvalidInput
from germane.evaluation.result import (
    DEPTHS,
    EvaluationFigures,
    PairedDifference,
    Result,
    differences,
    differences_text,
    percent,
    table,
)
from germane.importers.locomo import EvidenceReport
from germane.ledger import TARGETS, Day, Metrics

__all__ = ["Floor", "GateResult", "Gauge", "Report", "check_floors", "trend"]

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
    comparisons: tuple[PairedDifference, ...] = ()
    ablation: tuple[PairedDifference, ...] = ()

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


def _figures(figures: EvaluationFigures) -> dict[str, Any]:
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


# A gate for continuous integration: figures that a change must not push below a floor.

Gauge: TypeAlias = Literal["evidence_recall", "all_evidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that a figure may be at a budget, a share from 0 to 1."""

    gauge: Gauge
    budget: int
    least: float

    @classmethod
    def parse(cls, text: str, *, gauge: Gauge, name: str) -> Floor:
        """The floor of a text such as `1000=0.84`; `name` is what asked for it. Raises InvalidInput."""
        budget, _, least = text.partition("=")
        try:
            floor = cls(gauge=gauge, budget=int(budget.replace("_", "")), least=float(least))
        except ValueError:
            floor = None
        if floor is None or not 0 <= floor.least <= 1:
            raise InvalidInput(
                f"{name} {text!r} is no floor. Write BUDGET=SHARE, such as 1000=0.84, with a share of 0 to 1."
            )
        return floor


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """A floor and what one retriever reached."""

    floor: Floor
    retriever: str
    reached: float

    @property
    def passed(self) -> bool:
        """Whether the figure is at its floor or above."""
        return self.reached >= self.floor.least

    def as_dict(self) -> dict[str, Any]:
        """The judgement as JSON will hold it."""
        return {
            "retriever": self.retriever,
            "budget": self.floor.budget,
            "gauge": self.floor.gauge,
            "least": self.floor.least,
            "reached": round(self.reached, _PLACES),
            "passed": self.passed,
        }

    def __str__(self) -> str:
        what = self.floor.gauge.replace("_", " ")
        return (
            f"{'passed' if self.passed else 'MISSED'}: {what} of {self.retriever} at {self.floor.budget} "
            f"tokens is {percent(self.reached)} %, and at least {percent(self.floor.least)} % was asked for."
        )


def check_floors(report: Report, floors: Iterable[Floor], *, retriever: str) -> tuple[GateResult, ...]:
    """What one retriever reached beside each floor. Raises InvalidInput for a budget that wasn't measured."""
    of = {result.budget: result.overall for result in report.of(retriever)}
    found = []
    for floor in floors:
        if floor.budget not in of:
            raise InvalidInput(
                f"A floor at {floor.budget} tokens can't be judged: {retriever} was measured at "
                f"{', '.join(map(str, of)) or 'no budget'}. Add it to --budgets."
            )
        reached = getattr(of[floor.budget], floor.gauge)
        found.append(GateResult(floor=floor, retriever=retriever, reached=reached))
    return tuple(found)


# The figures of each day as a picture: small curves, one below the other, over the same days.
#
# Drawn by hand as `plot` draws its curve, light or dark as its reader is.

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _HIGH = 860, 190, 96, 84, 112, 72
_INKS: Final = {
    "paper": ("#fcfcfb", "#16191d"),
    "ink": ("#1f2328", "#e6e8eb"),
    "faint": ("#636c76", "#9aa3ad"),
    "grid": ("#e3e5e8", "#30363d"),
    "line": ("#0072b2", "#5cb3ee"),
    "aim": ("#d5efe3", "#153d2f"),
}
_DARK = "".join(f".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}" for name, (_, dark) in _INKS.items())
_STYLE = f"<style>@media screen and (prefers-color-scheme: dark){{{_DARK}}}</style>"
_FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""
_ROWS: Final = (
    ("relevance", "Relevance"),
    ("budget_use", "Budget used"),
    ("recall_precision", "Shown and used"),
    ("added", "New memories"),
)


def trend(metrics: Metrics) -> str:
    """The days as an SVG: three shares with the range aimed at, and how many memories were new."""
    height = _TOP + _ROW * len(_ROWS) + 26
    size = f'width="{_WIDTH}" height="{height}"'
    said = (
        f"{metrics.since:%Y-%m-%d} until {metrics.until:%Y-%m-%d}, {metrics.assemblies:,} assemblies recorded"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {height}" role="img" {_FONT}>',
        "<title>How well contexts do, day by day</title>",
        f"<desc>{escape(said)}</desc>",
        _STYLE,
        f'<rect {size} class="f-paper" fill="{_INKS["paper"][0]}"/>',
        _text(24, 34, "How well contexts do, day by day", size=19, weight=600),
        _text(24, 56, said, size=12.5, ink="faint"),
    ]
    for number, (name, title) in enumerate(_ROWS):
        parts += _row(metrics, name, title, top=_TOP + number * _ROW)
    foot = _TOP + _ROW * len(_ROWS) - 6
    if metrics.per_day:
        parts.append(_text(_LEFT, foot, metrics.per_day[0].date.isoformat(), size=12, ink="faint"))
        last = metrics.per_day[-1].date.isoformat()
        parts.append(_text(_WIDTH - _RIGHT, foot, last, size=12, ink="faint", anchor="end"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(metrics: Metrics, name: str, title: str, *, top: float) -> list[str]:
    values = [_value(day, name) for day in metrics.per_day]
    known = [value for value in values if value is not None]
    counts = name == "added"
    most = max([*known, 1.0]) if counts else 1.0
    whole = metrics.memory_growth if counts else metrics.figures()[name]
    shown = "unknown" if whole is None else (f"{whole:.1f} a day" if counts else f"{whole:.0%}")
    foot, right = top + _HIGH, _WIDTH - _RIGHT
    parts = [
        _text(24, top + 30, title, size=14, weight=600),
        _text(24, top + 50, shown, size=13, ink="faint"),
        *_aim(name, top, foot),
        f'<line x1="{_LEFT}" y1="{foot}" x2="{right}" y2="{foot}" {_stroke("grid")}/>',
        f'<line x1="{_LEFT}" y1="{top}" x2="{right}" y2="{top}" {_stroke("grid")}/>',
        _text(right + 8, top + 5, f"{most:,.0f}" if counts else "100 %", size=12, ink="faint"),
        _text(right + 8, foot + 4, "0", size=12, ink="faint"),
    ]
    return parts + _drawn(values, most=most, top=top, foot=foot)


def _value(day: Day, name: str) -> float | None:
    found = getattr(day, name)
    return None if found is None else float(found)


def _aim(name: str, top: float, foot: float) -> list[str]:
    least, most = TARGETS.get(name, (None, None))
    if least is most is None:
        return []
    high, low = foot - (foot - top) * (most or 1.0), foot - (foot - top) * (least or 0.0)
    width = _WIDTH - _RIGHT - _LEFT
    place = f'x="{_LEFT}" y="{high:.1f}" width="{width}" height="{low - high:.1f}"'
    return [f'<rect {place} class="f-aim" fill="{_INKS["aim"][0]}"/>']


def _drawn(values: Sequence[float | None], *, most: float, top: float, foot: float) -> list[str]:
    """A line through the days that are known, broken where one isn't, with a dot on each."""
    step = (_WIDTH - _RIGHT - _LEFT) / max(len(values) - 1, 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((_LEFT + place * step, foot - (foot - top) * min(value / most, 1.0)))
    lines = [
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}" fill="none" '
        f'stroke-width="2" {_stroke("line")}/>'
        for run in runs
        if len(run) > 1
    ]
    ink = _INKS["line"][0]
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" class="f-line" fill="{ink}"/>'
        for run in runs
        for x, y in run
    ]
    return lines + dots


def _stroke(ink: str) -> str:
    return f'class="s-{ink}" stroke="{_INKS[ink][0]}"'


def _text(
    x: float, y: float, text: str, *, size: float, ink: str = "ink", weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'class="f-{ink}" fill="{_INKS[ink][0]}">{escape(text)}</text>'
    )
