"""The report as an HTML page, and figures as SVG. Only `write_page` and `plot` write files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from germane.evaluation.report import GateResult, Report, ReportTable
from germane.evaluation.result import Result
from germane.ledger import TARGETS, Metrics
from germane.model.text import cut

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


def write_page(path: str | Path, report: Report, *, gate: Sequence[GateResult] = ()) -> None:
    """Write the page to a file, replacing an existing file."""
    Path(path).write_text(page(report, gate=gate), encoding="utf-8")


def page(report: Report, *, gate: Sequence[GateResult] = ()) -> str:
    """The report as HTML: the curve, then the tables."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Evidence recall</title><style>{_STYLE}</style></head><body>",
        "<h1>Evidence recall</h1>",
        f'<p class="faint">{escape(report.data())}</p>',
        *(f'<p class="{"good" if each.passed else "bad"}">{escape(str(each))}</p>' for each in gate),
        _scrolling(curve(report), "The curve of evidence recall"),
        *map(_table, report.tables()),
        *(["<h2>About the data</h2>"] if report.oddities() else []),
        *(f"<p>{escape(each)}</p>" for each in report.oddities()),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(table: ReportTable) -> str:
    """A table as HTML; a new first cell begins a group of rows."""
    written = ["<tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head) + "</tr>"]
    before: str | None = None
    for place, row in enumerate(table.rows):
        classes = [table.marks[place]] if table.marks is not None else []
        if before is not None and row[0] != before:
            classes.append("first")
        before = row[0]
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        written.append(f'<tr class="{" ".join(classes)}">{cells}</tr>')
    cells = _scrolling("<table>\n" + "\n".join(written) + "\n</table>", table.title)
    return f"<h2>{escape(table.title)}</h2>\n<p>{escape(table.note)}</p>\n{cells}"


def _scrolling(inner: str, title: str) -> str:
    """Content that can be wider than the screen, scrollable by keyboard too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">{inner}</div>'


# The curve of evidence recall against budget, as an SVG with a light and a dark colour scheme.

_WIDTH, _HEIGHT = 860, 520
_LEFT, _TOP, _BOTTOM = 76, 88, 74
_LABEL_GAP, _LABEL_INDENT, _FEWEST_LETTERS, _MOST_LETTERS = 17.0, 14, 15, 34
_LETTER = 8.4  # An upper estimate of the width of a letter.
_INKS = {
    "paper": ("#fcfcfb", "#16191d"),
    "ink": ("#1f2328", "#e6e8eb"),
    "faint": ("#636c76", "#9aa3ad"),
    "grid": ("#e3e5e8", "#30363d"),
    # Okabe and Ito's colours, distinguishable with any colour vision, some darker for text; the first is
    # germane's. The dark scheme has lighter colours at the same distances.
    "c0": ("#0072b2", "#5cb3ee"),
    "c1": ("#d55e00", "#ff9350"),
    "c2": ("#00875f", "#35c79c"),
    "c3": ("#b8578c", "#e59bc4"),
    "c4": ("#8a6d00", "#d9b93b"),
    "c5": ("#2f8fc9", "#a8a4ff"),
    "c6": ("#4d4d4d", "#b8bec6"),
    "target": ("#d5efe3", "#153d2f"),
}
"""The colours of the light and the dark scheme."""
_LINES = [name for name in _INKS if name[1:].isdigit()]
_DARK = "".join(f".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}" for name, (_, dark) in _INKS.items())
_PLOT_STYLE = f"<style>@media screen and (prefers-color-scheme: dark){{{_DARK}}}</style>"
_FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


def plot(report: Report, path: str | Path) -> None:
    """Write the curve to an SVG file, replacing an existing file."""
    Path(path).write_text(curve(report), encoding="utf-8")


def curve(report: Report) -> str:
    """The curve as an SVG: budgets on a logarithmic axis, a line and a band of 95 % per retriever."""
    budgets = sorted({result.budget for result in report.results})
    names = list(dict.fromkeys(result.retriever for result in report.results))
    series = [[result for result in report.results if result.retriever == name] for name in names]
    series = [sorted(each, key=lambda result: result.budget) for each in series]
    inks = [_LINES[index % len(_LINES)] for index in range(len(series))]
    axes = _Axes(budgets, right=_label_width(series))
    parts = [
        *axes.drawn(report.counter),
        *(_band(axes, each, ink) for each, ink in zip(series, inks, strict=True)),
        # The first retriever is drawn last, so that nothing hides it.
        *reversed([_line(axes, each, ink) for each, ink in zip(series, inks, strict=True)]),
        *_labels(axes, series, inks),
    ]
    subtitle = (
        f"Share of evidence turns that the context contains in full; {report.questions:,} questions, "
        "bands: 95 % bootstrap"
    )
    return _drawing("Evidence recall against token budget", subtitle, parts, left=_LEFT, height=_HEIGHT)


def _drawing(title: str, subtitle: str, parts: Iterable[str], *, left: float, height: int) -> str:
    """An SVG with a title and a subtitle, in the colour scheme of the reader."""
    size = f'width="{_WIDTH}" height="{height}"'
    opening = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {height}" role="img" {_FONT}>',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(subtitle)}</desc>",
        _PLOT_STYLE,
        f"<rect {size} {_painted(fill='paper')}/>",
        _text(left, 34, title, size=19, weight=600),
        _text(left, 56, subtitle, size=12.5, ink="faint"),
    ]
    return "\n".join([*opening, *parts, "</svg>"]) + "\n"


class _Axes:
    """The coordinates of budgets and shares."""

    def __init__(self, budgets: Sequence[int], *, right: float) -> None:
        self.budgets = budgets
        self.right = _WIDTH - right
        logs = [math.log(max(budget, 1)) for budget in budgets] or [0.0]
        self._low, self._span = min(logs), max(logs) - min(logs)

    def x(self, budget: int) -> float:
        share = (math.log(max(budget, 1)) - self._low) / self._span if self._span else 0.5
        return _LEFT + share * (self.right - _LEFT)

    def y(self, share: float) -> float:
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def drawn(self, counter: str) -> list[str]:
        """Five grid lines above the axis, a tick per budget, and the labels of the axes."""
        parts = []
        for tenth in range(0, 11, 2):
            y = self.y(tenth / 10)
            drawn = _painted(stroke="faint" if tenth == 0 else "grid")
            parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{self.right:.1f}" y2="{y:.1f}" {drawn}/>')
            parts.append(_text(_LEFT - 10, y + 4.5, f"{tenth * 10} %", size=13, ink="faint", anchor="end"))
        for budget in self.budgets:
            x, foot = self.x(budget), self.y(0)
            parts.append(
                f'<line x1="{x:.1f}" y1="{foot:.1f}" x2="{x:.1f}" y2="{foot + 5:.1f}" '
                f"{_painted(stroke='faint')}/>"
            )
            parts.append(_text(x, foot + 22, f"{budget:,}", size=13, ink="faint", anchor="middle"))
        middle = (_LEFT + self.right) / 2
        parts.append(_text(middle, _HEIGHT - 22, f"Budget in tokens ({counter})", size=13.5, anchor="middle"))
        return parts


def _band(axes: _Axes, results: Sequence[Result], ink: str) -> str:
    low = [f"{axes.x(each.budget):.1f},{axes.y(each.overall.interval[0]):.1f}" for each in results]
    high = [f"{axes.x(each.budget):.1f},{axes.y(each.overall.interval[1]):.1f}" for each in results]
    if len(results) == 1:
        # One budget has no band to fill, so its interval is drawn as a line.
        return (
            f'<polyline points="{low[0]} {high[0]}" fill="none" {_painted(stroke=ink)} stroke-width="2" '
            'stroke-opacity="0.6"/>'
        )
    edge = " ".join([*low, *reversed(high)])
    return f'<polygon points="{edge}" {_painted(fill=ink)} fill-opacity="0.13"/>'


def _line(axes: _Axes, results: Sequence[Result], ink: str) -> str:
    points = [(axes.x(each.budget), axes.y(each.overall.evidence_recall)) for each in results]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {_painted(fill=ink, stroke="paper")} stroke-width="1.5">'
        f"<title>{escape(_result_line(each))}</title></circle>"
        for (x, y), each in zip(points, results, strict=True)
    )
    return (
        f'<g><polyline points="{path}" fill="none" {_painted(stroke=ink)} stroke-width="2.4" '
        f'stroke-linejoin="round"/>{dots}</g>'
    )


def _result_line(result: Result) -> str:
    low, high = result.overall.interval
    return (
        f"{result.retriever}, {result.budget:,} tokens: {100 * result.overall.evidence_recall:.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f})"
    )


def _label_width(series: Sequence[Sequence[Result]]) -> float:
    """The width of the labels beside the lines."""
    longest = max((len(_label(each[-1])) for each in series), default=0)
    return _LABEL_INDENT + _LETTER * max(longest, _FEWEST_LETTERS)


def _labels(axes: _Axes, series: Sequence[Sequence[Result]], inks: Sequence[str]) -> list[str]:
    """The labels at the ends of the lines, moved apart if lines end close together."""
    ends = [
        (axes.y(each[-1].overall.evidence_recall), each[-1], ink)
        for each, ink in zip(series, inks, strict=True)
    ]
    ends.sort(key=lambda end: end[0])
    heights = _apart([height for height, _, _ in ends], lowest=axes.y(0))
    return [
        _text(
            axes.right + _LABEL_INDENT,
            height + 4.5,
            _label(result),
            size=13.5,
            ink=ink,
            weight=600,
        )
        for height, (_, result, ink) in zip(heights, ends, strict=True)
    ]


def _label(result: Result) -> str:
    share = f"  {100 * result.overall.evidence_recall:.1f} %"
    return cut(result.retriever, _MOST_LETTERS - len(share)) + share


def _apart(heights: Sequence[float], *, lowest: float) -> list[float]:
    """The ascending heights at least one line of text apart, none below `lowest`."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + _LABEL_GAP) if placed else height)
    for index in range(len(placed) - 1, -1, -1):
        below = placed[index + 1] - _LABEL_GAP if index + 1 < len(placed) else lowest
        placed[index] = min(placed[index], below)
    return placed


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: float,
    ink: str = "ink",
    anchor: str = "start",
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" {_painted(fill=ink)} text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _painted(*, fill: str | None = None, stroke: str | None = None) -> str:
    """The colour attributes: the light scheme as attributes, and classes for the dark scheme."""
    names = [f"f-{fill}"] if fill else []
    colours = [f'fill="{_INKS[fill][0]}"'] if fill else []
    if stroke:
        names.append(f"s-{stroke}")
        colours.append(f'stroke="{_INKS[stroke][0]}"')
    return f'class="{" ".join(names)}" {" ".join(colours)}'


# The metrics of each day as small curves, one below the other.

_PLOT_LEFT, _PLOT_RIGHT, _PLOT_TOP, _ROW, _ROW_HEIGHT = 190, _WIDTH - 96, 84, 112, 72
_ROWS = {
    "relevance": "Relevance",
    "budget_use": "Budget used",
    "recall_precision": "Shown and used",
    "added": "New memories",
}


def trend(metrics: Metrics) -> str:
    """The metrics per day as an SVG: three shares with their target ranges, and the new memories."""
    subtitle = (
        f"{metrics.since:%Y-%m-%d} until {metrics.until:%Y-%m-%d}, {metrics.assemblies:,} assemblies recorded"
    )
    end = _PLOT_TOP + _ROW * len(_ROWS)
    parts = [
        part for place, name in enumerate(_ROWS) for part in _row(metrics, name, _PLOT_TOP + place * _ROW)
    ]
    if metrics.per_day:
        first, last = metrics.per_day[0].date.isoformat(), metrics.per_day[-1].date.isoformat()
        parts.append(_text(_PLOT_LEFT, end - 6, first, size=12, ink="faint"))
        parts.append(_text(_PLOT_RIGHT, end - 6, last, size=12, ink="faint", anchor="end"))
    return _drawing("How well contexts do, day by day", subtitle, parts, left=24, height=end + 26)


def _row(metrics: Metrics, name: str, top: float) -> list[str]:
    values = [getattr(day, name) for day in metrics.per_day]
    counts = name == "added"
    most = max([value for value in values if value is not None] + [1.0]) if counts else 1.0
    whole = metrics.memory_growth if counts else metrics.figures()[name]
    shown = "unknown" if whole is None else f"{whole:.1f} a day" if counts else f"{whole:.0%}"
    foot = top + _ROW_HEIGHT
    least, limit = TARGETS.get(name, (None, None))
    target = []
    if not least is limit is None:
        high, low = foot - _ROW_HEIGHT * (limit or 1.0), foot - _ROW_HEIGHT * (least or 0.0)
        place = (
            f'x="{_PLOT_LEFT}" y="{high:.1f}" width="{_PLOT_RIGHT - _PLOT_LEFT}" height="{low - high:.1f}"'
        )
        target = [f"<rect {place} {_painted(fill='target')}/>"]
    return [
        _text(24, top + 30, _ROWS[name], size=14, weight=600),
        _text(24, top + 50, shown, size=13, ink="faint"),
        *target,
        *(
            f'<line x1="{_PLOT_LEFT}" y1="{y}" x2="{_PLOT_RIGHT}" y2="{y}" {_painted(stroke="grid")}/>'
            for y in (foot, top)
        ),
        _text(_PLOT_RIGHT + 8, top + 5, f"{most:,.0f}" if counts else "100 %", size=12, ink="faint"),
        _text(_PLOT_RIGHT + 8, foot + 4, "0", size=12, ink="faint"),
        *_days(values, most=most, foot=foot),
    ]


def _days(values: Sequence[float | None], *, most: float, foot: float) -> list[str]:
    """A line with a dot per day, interrupted where a value is unknown."""
    step = (_PLOT_RIGHT - _PLOT_LEFT) / max(len(values) - 1, 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((_PLOT_LEFT + place * step, foot - _ROW_HEIGHT * min(value / most, 1.0)))
    lines = [
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}" fill="none" '
        f'stroke-width="2" {_painted(stroke="c0")}/>'
        for run in runs
        if len(run) > 1
    ]
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" {_painted(fill="c0")}/>' for run in runs for x, y in run
    ]
    return lines + dots
