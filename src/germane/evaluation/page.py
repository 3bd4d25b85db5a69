"""The report as one page of HTML that needs nothing else: no script, no font, no other file.

Level: evaluation. Pure but for `write_page`, which writes the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from germane.evaluation.columns import percent, points
from germane.evaluation.comparison import Difference
from germane.evaluation.gate import Judged
from germane.evaluation.plot import curve
from germane.evaluation.report import Report
from germane.evaluation.result import DEPTHS, Figures, Result

__all__ = ["page", "write_page"]

_STYLE = """
:root { color-scheme: light dark; color: var(--ink); background: var(--paper);
  --paper: #fcfcfb; --ink: #1f2328; --faint: #636c76; --line: #e3e5e8; --rule: #c9cdd2;
  --good: #00684a; --bad: #a63c00; }
@media screen and (prefers-color-scheme: dark) { :root {
  --paper: #16191d; --ink: #e6e8eb; --faint: #9aa3ad; --line: #30363d; --rule: #545d68;
  --good: #4cc79d; --bad: #ff9a66; } }
body { font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; }
body { max-width: 72rem; margin: 2rem auto 4rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .25rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
p { max-width: 44rem; margin: .3rem 0; } .faint { color: var(--faint); }
.wide { overflow-x: auto; } .wide:focus-visible { outline: 2px solid var(--rule); }
/* A narrow screen scrolls the curve instead of making its words too small to read. */
svg { display: block; max-width: 100%; min-width: 40rem; height: auto; margin: .6rem 0; }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; }
table { font-size: .92rem; margin-top: .4rem; }
th, td { padding: .28rem .7rem; text-align: right; white-space: nowrap; }
td { border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 2px solid var(--rule); }
/* The names stay in view while the figures scroll. */
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
tr.first td { border-top: 1px solid var(--rule); }
.good { color: var(--good); } .bad { color: var(--bad); }
@media (max-width: 40rem) {
  body { margin-top: 1rem; } th, td { padding: .25rem .5rem; }
  th:first-child, td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 6.5rem; } }
"""

_Row = Sequence[str]


def write_page(path: str | Path, report: Report, *, gate: Sequence[Judged] = ()) -> None:
    """Write the page, replacing one that is there."""
    Path(path).write_text(page(report, gate=gate), encoding="utf-8")


def page(report: Report, *, gate: Sequence[Judged] = ()) -> str:
    """The page: the curve, then a table for each way to look at the figures."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Evidence recall</title><style>{_STYLE}</style></head><body>",
        "<h1>Evidence recall</h1>",
        f'<p class="faint">{escape(_data(report))}</p>',
        *_gate(gate),
        _scrolling(curve(report), "The curve of evidence recall"),
        *_overall(report.results),
        *_split("By category", "Evidence recall in per cent.", report.results, _by_category),
        *_split("By half of the data", _HALVES, report.results, _by_half),
        *_split("By number of evidence turns", _COUNTS, report.results, _by_count),
        *_differences("Compared in pairs", report.comparisons),
        *_differences("Without each part", report.ablation),
        *_oddities(report),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


_HALVES = "Evidence recall in per cent. A difference that only one half shows is likely chance."
_COUNTS = "Evidence recall, and the share of questions with all of their evidence, in per cent."
_POINTS = (
    "Points of evidence recall, the second minus the first, question by question. The interval is the "
    "bootstrap's 95 % over questions, and over whole conversations beside it. Grey is not told from chance."
)


def _data(report: Report) -> str:
    what = (
        f"{len(report.conversations):,} conversations, {report.turns:,} turns"
        if report.conversations
        else f"{report.turns:,} memories"
    )
    return (
        f"{what}, {report.questions:,} questions; {report.adversarial:,} adversarial and "
        f"{report.without_evidence:,} without evidence left out. "
        f"Tokens by {report.counter}; seed {report.seed}."
    )


def _gate(gate: Sequence[Judged]) -> list[str]:
    return [f'<p class="{"good" if each.passed else "bad"}">{escape(str(each))}</p>' for each in gate]


def _overall(results: Sequence[Result]) -> list[str]:
    phrases = any(result.overall.answer_recall is not None for result in results)
    head = ("retriever", "budget", "evidence", "95 %", "all", "shown", *(["answer"] if phrases else []),
            *(f"R@{k}" for k in DEPTHS), "MRR", "tokens", "over", "p50 ms", "p95 ms")  # fmt: skip
    rows = [
        (
            result.retriever,
            f"{result.budget:,}",
            percent(result.overall.evidence_recall),
            "–".join(percent(end) for end in result.overall.interval),
            percent(result.overall.all_evidence),
            percent(result.overall.shown_recall),
            *([percent(result.overall.answer_recall or 0.0)] if phrases else []),
            *(percent(result.overall.recall_at[k]) for k in DEPTHS),
            percent(result.overall.mrr),
            f"{result.tokens:,.0f}",
            str(result.over_budget),
            f"{result.p50_ms:.1f}",
            f"{result.p95_ms:.1f}",
        )
        for result in results
    ]
    said = (
        "Share of the evidence that stands whole in the context; of questions with all of it; and of the "
        "evidence in the context at any length. In per cent."
    )
    return ["<h2>Overall</h2>", f"<p>{said}</p>", _table("Overall", head, rows)]


def _split(
    title: str, said: str, results: Sequence[Result], groups_of: Callable[[Result], Mapping[str, str]]
) -> list[str]:
    """A column for each group of questions that any result has."""
    every = [groups_of(result) for result in results]
    names = list(dict.fromkeys(name for groups in every for name in groups))
    if not names:
        return []
    rows = [
        (result.retriever, f"{result.budget:,}", *(groups.get(name, "-") for name in names))
        for result, groups in zip(results, every, strict=True)
    ]
    return [
        f"<h2>{escape(title)}</h2>",
        f"<p>{escape(said)}</p>",
        _table(title, ("retriever", "budget", *names), rows),
    ]


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
    def said(figures: Figures) -> tuple[str, str]:
        return percent(figures.evidence_recall), percent(figures.all_evidence)

    counts = {name: (each.questions, *said(each)) for name, each in result.by_evidence.items()}
    recall = {f"{name} ({questions})": share for name, (questions, share, _) in counts.items()}
    return recall | {f"all of {name}": whole for name, (_, _, whole) in counts.items()}


def _differences(title: str, several: Sequence[Difference]) -> list[str]:
    if not several:
        return []
    head = ("second", "first", "budget", "points", "95 %", "over conversations", "half 1", "half 2", "all",
            "won", "lost")  # fmt: skip
    rows = [
        (
            each.second,
            each.first,
            f"{each.budget:,}",
            points(each.evidence_recall),
            _between(each.interval),
            "-" if each.over_conversations is None else _between(each.over_conversations),
            *("-" if half is None else points(half) for half in each.halves),
            points(each.all_evidence),
            str(each.wins),
            str(each.losses),
        )
        for each in several
    ]
    marks = [_mark(each) for each in several]
    return [f"<h2>{escape(title)}</h2>", f"<p>{_POINTS}</p>", _table(title, head, rows, marks)]


def _mark(each: Difference) -> str:
    if not each.told_from_chance:
        return "faint"
    return "good" if each.evidence_recall > 0 else "bad"


def _between(interval: tuple[float, float]) -> str:
    return " … ".join(points(end) for end in interval)


def _oddities(report: Report) -> list[str]:
    said = [f"{name} was skipped: {why}" for name, why in report.skipped.items()]
    for what, ids in (
        ("were repaired", report.evidence.repaired),
        ("could not be read", report.evidence.unreadable),
        ("point to nothing", report.evidence.missing),
    ):
        if ids:
            said.append(f"Evidence ids that {what}: {', '.join(ids)}")
    return ["<h2>About the data</h2>", *(f"<p>{escape(each)}</p>" for each in said)] if said else []


def _table(title: str, head: _Row, rows: Iterable[_Row], marks: Sequence[str] | None = None) -> str:
    """Cells are escaped. A row begins a group where its first cell changes; `marks` are classes of rows."""
    written = ["<tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head) + "</tr>"]
    before: str | None = None
    for place, row in enumerate(rows):
        classes = [marks[place]] if marks is not None else []
        if before is not None and row[0] != before:
            classes.append("first")
        before = row[0]
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        written.append(f'<tr class="{" ".join(classes)}">{cells}</tr>')
    return _scrolling("<table>\n" + "\n".join(written) + "\n</table>", title)


def _scrolling(inner: str, title: str) -> str:
    """What may be wider than the screen: the keyboard reaches it and scrolls it too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">{inner}</div>'
