"""The reports of evaluations as values, JSON and tables; the gate for continuous integration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from germane.errors import InvalidInput
from germane.evaluation.result import (
    DEPTHS,
    PairedDifference,
    Result,
    TurnLengths,
    as_json,
    differences,
    fields_as_json,
    percent,
    percentile,
    points,
)
from germane.importers.locomo import EvidenceReport
from germane.model.text import counted, table

if TYPE_CHECKING:
    from germane.evaluation.material import EvaluationQuestion

_NAMED_IDS = 10
_NAMED_SPEAKERS = 6
_LEAST_FALL = 0.0005  # Less isn't seen in the table.


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The measurements of one run. `skipped` has the reason for each retriever that didn't run.

    `conversations` is empty if the questions were about a store or probes; `turns` then counts memories.
    `cases` are the questions. `left_out` has the reason for each invalid line or turn, `repeated` counts
    turns that repeat an earlier one, and `lengths` are the lengths of turns. `ablation` compares the first
    configuration with itself without each of its parts.
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
    cases: tuple[EvaluationQuestion, ...] = ()
    left_out: tuple[str, ...] = ()
    repeated: int = 0
    lengths: tuple[TurnLengths, ...] = ()

    def of(self, retriever: str) -> tuple[Result, ...]:
        """The results of one retriever, by budget."""
        return tuple(each for each in self.results if each.retriever == retriever)

    def comparing(self, first: str, second: str) -> Report:
        """This report with the paired difference of two retrievers among its comparisons.

        Raises KeyError for a retriever that didn't run.
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
        """The report as a JSON object."""
        data = ("conversations", "turns", "questions", "adversarial", "without_evidence", "left_out",
                "repeated", "lengths")  # fmt: skip
        return {
            "results": as_json(self.results),
            "skipped": [{"retriever": name, "reason": why} for name, why in self.skipped.items()],
            "data": {
                **{name: as_json(getattr(self, name)) for name in data},
                "evidence_ids": as_json(self.evidence),
            },
            **fields_as_json(self, "results", "skipped", "evidence", "cases", *data),
            "per_question": [self._question(case) for case in self.cases],
            "notes": self.oddities(),
        }

    def _question(self, case: EvaluationQuestion) -> dict[str, Any]:
        """One question as a JSON object, with its outcome for each retriever and budget."""
        place = case.number
        outcomes = [
            {
                "retriever": result.retriever,
                "budget": result.budget,
                "tokens": answer.tokens,
                "share": as_json(answer.share),
                "word_share": as_json(answer.words),
                "contained": as_json(answer.contained_names),
                "shown": as_json(answer.shown_names),
            }
            for result in self.results
            for answer in result.answers
            if answer.number == place
        ]
        return {
            "number": case.number,
            "question": case.question,
            "category": case.category,
            "conversation": self.conversations[case.corpus] if self.conversations else None,
            "evidence": [piece.name for piece in case.pieces],
            "outcomes": outcomes,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as a JSON text; shares are rounded to four places."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=indent)

    def to_text(self) -> str:
        """The report as text: its tables, then the problems in the data."""
        parts = [self.data(), *map(str, self.tables()), "\n".join(self.oddities())]
        return "\n\n".join(part for part in parts if part) + "\n"

    def data(self) -> str:
        """The number of memories and questions, the counter and the seed, in one paragraph."""
        memories = counted(self.turns, "memory")
        if self.conversations:
            memories = f"{counted(len(self.conversations), 'conversation')}, {counted(self.turns, 'turn')}"
        return (
            f"{memories}, {counted(self.questions, 'question')}; {self.adversarial:,} adversarial and "
            f"{self.without_evidence:,} without evidence left out. "
            f"Tokens by {self.counter}; seed {self.seed}." + self._lengths()
        )

    def _lengths(self) -> str:
        """The lengths of turns, overall and of the most frequent speakers; empty if unknown."""
        shown = [
            f"{each.speaker or 'all'} {each.median:,.0f} / {each.p90:,.0f}"
            for each in self.lengths[: _NAMED_SPEAKERS + 1]
        ]
        more = ", …" if len(self.lengths) > len(shown) else ""
        return f" Tokens of a turn (median / p90): {', '.join(shown)}{more}." if shown else ""

    def tables(self) -> Iterator[ReportTable]:
        """The figures overall, by category, half and number of evidence turns, and of each comparison."""
        yield _overall(self.results)
        for title, note, groups_of in (
            ("By category", "Evidence recall in per cent.", _by_category),
            ("By half of the data", _HALVES, _by_half),
            ("By number of evidence turns", _COUNTS, _by_count),
        ):
            groups = [groups_of(result) for result in self.results]
            names = tuple(dict.fromkeys(name for each in groups for name in each))
            rows = tuple(
                (result.retriever, f"{result.budget:,}", *(each.get(name, "-") for name in names))
                for result, each in zip(self.results, groups, strict=True)
            )
            if names:
                yield ReportTable(title=title, note=note, head=("retriever", "budget", *names), rows=rows)
        for title, several in (
            ("Compared in pairs", self.comparisons),
            ("Without each part", self.ablation),
        ):
            if several:
                yield _differences(title, several)

    def oddities(self) -> list[str]:
        """A line for each skipped retriever, each fall of recall, and each kind of problem in the data."""
        found = [f"{name} was skipped: {why}" for name, why in self.skipped.items()]
        found += self._falls()
        if self.repeated:
            found.append(f"Turns that occur again and count once: {self.repeated}")
        if self.left_out:
            first = self.left_out[:_NAMED_IDS]
            rest = ["…"] if len(self.left_out) > len(first) else []
            found += [f"Left out because they don't fit: {len(self.left_out)}", *first, *rest]
        for what, ids in (
            ("were malformed and repaired", self.evidence.repaired),
            ("could not be read", self.evidence.unreadable),
            ("point to no turn", self.evidence.missing),
        ):
            if ids:
                more = ", …" if len(ids) > _NAMED_IDS else ""
                found.append(f"Evidence ids that {what}: {len(ids)} ({', '.join(ids[:_NAMED_IDS])}{more})")
        return found

    def _falls(self) -> Iterator[str]:
        """A warning for each budget at which a retriever has less evidence than at the next smaller one."""
        for less, more in pairwise(self.results):
            fall = less.overall.evidence_recall - more.overall.evidence_recall
            if less.retriever == more.retriever and fall > _LEAST_FALL:
                pairs = zip(less.answers, more.answers, strict=True)
                losing = sum(larger.contained < smaller.contained for smaller, larger in pairs)
                yield (
                    f"Evidence recall of {more.retriever} falls by {100 * fall:.1f} points from "
                    f"{less.budget:,} to {more.budget:,} tokens: {losing} questions lose evidence"
                )


# The tables of a report, for its text and its page.

_HALVES = "Evidence recall in per cent. A difference that only one half shows is likely chance."
_COUNTS = "Evidence recall, and the share of questions with all of their evidence, in per cent."
_OVERALL = (
    "Share of the evidence that the context contains in full; of the pairs of neighbouring content words of "
    "the answer, or else of the evidence, that it contains; of questions with all of their evidence; and of "
    "the evidence in the context at any length. In per cent."
)
_POINTS = (
    "Points of evidence recall, the second minus the first, question by question. The interval is the "
    "bootstrap's 95 % over questions, and over whole conversations beside it; ~ marks a difference that "
    "may be chance."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table. `marks`, if any, judge each row: good, bad, or faint for a difference by chance."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...] | None = None

    def __str__(self) -> str:
        lines = table([self.head, *self.rows], right=range(1, len(self.head)))
        return "\n".join([self.title, self.note, "", *lines])


def _overall(results: Sequence[Result]) -> ReportTable:
    phrases = any(result.overall.answer_recall is not None for result in results)
    head = ("retriever", "budget", "evidence", "95 %", "words", "all", "shown",
            *(["answer"] if phrases else []), *(f"R@{k}" for k in DEPTHS), "MRR",
            "tokens", "fill", "over", "p50 ms", "p95 ms")  # fmt: skip
    rows = tuple(
        (
            result.retriever,
            f"{result.budget:,}",
            percent(result.overall.evidence_recall),
            "–".join(percent(end) for end in result.overall.interval),
            percent(result.overall.word_recall),
            percent(result.overall.all_evidence),
            percent(result.overall.shown_recall),
            *([percent(result.overall.answer_recall or 0.0)] if phrases else []),
            *(percent(result.overall.recall_at[k]) for k in DEPTHS),
            percent(result.overall.mrr),
            f"{result.tokens:,.0f}",
            f"{result.fill:.0%}",
            str(result.over_budget),
            f"{result.p50_ms:.1f}",
            f"{result.p95_ms:.1f}",
        )
        for result in results
    )
    return ReportTable(title="Overall", note=_OVERALL, head=head, rows=rows)


def _by_category(result: Result) -> Mapping[str, str]:
    return {
        f"{name} ({each.questions})": percent(each.evidence_recall)
        for name, each in result.categories.items()
    }


def _by_half(result: Result) -> Mapping[str, str]:
    return {
        f"half {number} ({half.questions})": percent(half.evidence_recall)
        for number, half in enumerate(result.halves, 1)
        if half.questions
    }


def _by_count(result: Result) -> Mapping[str, str]:
    counts = result.by_evidence.items()
    recall = {f"{name} ({each.questions})": percent(each.evidence_recall) for name, each in counts}
    return recall | {f"all of {name}": percent(each.all_evidence) for name, each in counts}


def _differences(title: str, several: Sequence[PairedDifference]) -> ReportTable:
    head = ("second", "first", "budget", "points", "95 %", "over conversations", "half 1", "half 2", "all",
            "words", "95 %", "won", "lost")  # fmt: skip
    rows = tuple(
        (
            each.second,
            each.first,
            f"{each.budget:,}",
            points(each.evidence_recall) + ("" if each.is_significant else " ~"),
            interval_text(each.interval),
            interval_text(each.interval_over_conversations),
            *("-" if half is None else points(half) for half in each.halves),
            points(each.all_evidence),
            points(each.word_recall),
            interval_text(each.words_interval),
            str(each.wins),
            str(each.losses),
        )
        for each in several
    )
    marks = tuple(
        "faint" if not each.is_significant else "good" if each.evidence_recall > 0 else "bad"
        for each in several
    )
    return ReportTable(title=title, note=_POINTS, head=head, rows=rows, marks=marks)


def interval_text(ends: tuple[float, float] | None) -> str:
    """An interval of differences in points, or a dash for none."""
    return "-" if ends is None else " … ".join(points(end) for end in ends)


# Several kinds of data beside each other.

DEFAULT_CALL = "germane"
_KINDS_SHARES = (
    "Share of the evidence that the context contains in full, and (words) of its pairs of neighbouring "
    "content words, in per cent; the median time of a context in milliseconds. Each question went to all in "
    "turn."
)
_BEST = (
    "Points of the default call over the peer with the highest evidence recall at that budget, question by "
    "question, with the bootstrap's 95 % intervals over questions, and over whole conversations. ~ marks a "
    "difference that may be chance."
)
_KINDS_COUNTS = "Evidence recall of the default call in per cent, by how many turns answer a question."


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
        """The reports as a JSON object."""
        return {
            "kinds": [{"name": each.name, **each.report.as_dict()} for each in self.kinds],
            "skipped": [{"name": name, "reason": why} for name, why in self.skipped.items()],
            "counter": self.kinds[0].report.counter,
            "seed": self.seed,
        }

    def to_text(self) -> str:
        """The comparison as text: the data, the tables and the notes."""
        data = [f"{each.name}: {each.report.data()}" for each in self.kinds]
        notes = [f"{name} was skipped: {why}" for name, why in self.skipped.items()]
        notes += [f"{each.name}: {note}" for each in self.kinds for note in each.report.oddities()]
        return "\n\n".join(filter(None, ["\n".join(data), *map(str, self.tables()), "\n".join(notes)])) + "\n"

    def tables(self) -> Iterator[ReportTable]:
        """Shares of all retrievers, differences from the best peer, and recall by number of turns."""
        budgets = [f"{result.budget:,}" for result in self.kinds[0].report.of(DEFAULT_CALL)]
        head = ("data", "retriever", *budgets, *(f"words {each}" for each in budgets), "ms")
        rows = tuple(row for each in self.kinds for row in _kind_shares(each))
        yield ReportTable(title="All kinds", note=_KINDS_SHARES, head=head, rows=rows)
        if any(each.report.comparisons for each in self.kinds):
            head = ("data", "budget", "best peer", "evidence", "95 %", "over conversations", "words", "95 %",
                    "won", "lost")  # fmt: skip
            rows = tuple(
                _kind_difference(each.name, one) for each in self.kinds for one in each.report.comparisons
            )
            yield ReportTable(title="Over the best peer", note=_BEST, head=head, rows=rows)
        head = ("data", "turns", "questions", *budgets)
        rows = tuple(row for each in self.kinds for row in _kind_by_count(each))
        yield ReportTable(title="By number of evidence turns", note=_KINDS_COUNTS, head=head, rows=rows)


def _kind_shares(kind: Kind) -> Iterator[tuple[str, ...]]:
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


def _kind_difference(name: str, one: PairedDifference) -> tuple[str, ...]:
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


def _kind_by_count(kind: Kind) -> Iterator[tuple[str, ...]]:
    results = kind.report.of(DEFAULT_CALL)
    for turns, figures in results[0].by_evidence.items():
        recalls = (percent(result.by_evidence[turns].evidence_recall) for result in results)
        yield kind.name, turns, f"{figures.questions:,}", *recalls


# A gate for continuous integration: minimum values of figures.

Gauge: TypeAlias = Literal["evidence_recall", "all_evidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The minimum of a figure at a budget, a share from 0 to 1."""

    gauge: Gauge
    budget: int
    least: float

    @classmethod
    def parse(cls, text: str, *, gauge: Gauge, name: str) -> Floor:
        """The floor in a text such as `1000=0.84`; `name` is the option in errors. Raises InvalidInput."""
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
    """A floor and the value that a retriever reached."""

    floor: Floor
    retriever: str
    reached: float

    @property
    def passed(self) -> bool:
        """Whether the value is at least the floor."""
        return self.reached >= self.floor.least

    def as_dict(self) -> dict[str, Any]:
        """The result as a JSON object."""
        floor = fields_as_json(self.floor)
        return {**floor, **fields_as_json(self, "floor"), "passed": self.passed}

    def __str__(self) -> str:
        what = self.floor.gauge.replace("_", " ")
        return (
            f"{'passed' if self.passed else 'MISSED'}: {what} of {self.retriever} at {self.floor.budget} "
            f"tokens is {percent(self.reached)} %, and at least {percent(self.floor.least)} % is required."
        )


def check_floors(report: Report, floors: Iterable[Floor], *, retriever: str) -> tuple[GateResult, ...]:
    """Compare a retriever with each floor. Raises InvalidInput for a budget that wasn't measured."""
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
