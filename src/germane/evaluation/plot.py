"""The curve of evidence recall against budget, as an SVG written by hand, light or dark as its reader is.

Level: evaluation. Pure but for `plot`, which writes the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from germane.evaluation.report import Report
from germane.evaluation.result import Result
from germane.model.columns import cut

__all__ = ["curve", "plot"]

_WIDTH, _HEIGHT = 860, 520
_SIZE = f'width="{_WIDTH}" height="{_HEIGHT}"'
_VIEW = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
_LEFT, _TOP, _BOTTOM = 76, 88, 74
_LABEL_GAP, _LABEL_INDENT, _FEWEST_LETTERS, _MOST_LETTERS = 17.0, 14, 15, 34
_LETTER = 8.4  # The width of a letter of a label, taken wide.
_INKS = {
    "paper": ("#fcfcfb", "#16191d"),
    "ink": ("#1f2328", "#e6e8eb"),
    "faint": ("#636c76", "#9aa3ad"),
    "grid": ("#e3e5e8", "#30363d"),
    # Okabe and Ito's colours, which people with any colour vision tell apart, some darker for words;
    # the first is germane's. On dark paper they are as far apart, and lighter.
    "c0": ("#0072b2", "#5cb3ee"),
    "c1": ("#d55e00", "#ff9350"),
    "c2": ("#00875f", "#35c79c"),
    "c3": ("#b8578c", "#e59bc4"),
    "c4": ("#8a6d00", "#d9b93b"),
    "c5": ("#2f8fc9", "#a8a4ff"),
    "c6": ("#4d4d4d", "#b8bec6"),
}
"""What things are drawn with, on light paper and on dark."""
_LINES = [name for name in _INKS if name.startswith("c")]
_DARK = "".join(f".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}" for name, (_, dark) in _INKS.items())
_STYLE = f"<style>@media screen and (prefers-color-scheme: dark){{{_DARK}}}</style>"
_FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


def plot(report: Report, path: str | Path) -> None:
    """Write the curve as an SVG file, replacing one that is there."""
    Path(path).write_text(curve(report), encoding="utf-8")


def curve(report: Report) -> str:
    """The curve as an SVG: budgets on a logarithmic axis, a line and a band of 95 % per retriever."""
    budgets = sorted({result.budget for result in report.results})
    names = list(dict.fromkeys(result.retriever for result in report.results))
    series = [[result for result in report.results if result.retriever == name] for name in names]
    series = [sorted(each, key=lambda result: result.budget) for each in series]
    inks = [_LINES[index % len(_LINES)] for index in range(len(series))]
    axes = _Axes(budgets, right=_room_beside(series))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {_SIZE} {_VIEW} role="img" {_FONT}>',
        "<title>Evidence recall against token budget</title>",
        f"<desc>{escape(_described(report))}</desc>",
        _STYLE,
        f"<rect {_SIZE} {_painted(fill='paper')}/>",
        _text(_LEFT, 34, "Evidence recall against token budget", size=19, weight=600),
        _text(_LEFT, 56, _described(report), size=12.5, ink="faint"),
        *axes.drawn(report.counter),
        *(_band(axes, each, ink) for each, ink in zip(series, inks, strict=True)),
        # The first retriever is drawn last, so that nothing hides it.
        *reversed([_line(axes, each, ink) for each, ink in zip(series, inks, strict=True)]),
        *_labels(axes, series, inks),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


class _Axes:
    """Where a budget and a share stand on the page."""

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
        """Grid lines every fifth of the way up, a tick per budget, and what the axes mean."""
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
        parts.append(
            _text(middle, _HEIGHT - 22, f"Budget in tokens ({escape(counter)})", size=13.5, anchor="middle")
        )
        return parts


def _described(report: Report) -> str:
    return (
        f"Share of evidence turns that stand whole in the context; {report.questions:,} questions, "
        "bands: 95 % bootstrap"
    )


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
        f"<title>{escape(_told(each))}</title></circle>"
        for (x, y), each in zip(points, results, strict=True)
    )
    return (
        f'<g><polyline points="{path}" fill="none" {_painted(stroke=ink)} stroke-width="2.4" '
        f'stroke-linejoin="round"/>{dots}</g>'
    )


def _told(result: Result) -> str:
    low, high = result.overall.interval
    return (
        f"{result.retriever}, {result.budget:,} tokens: {100 * result.overall.evidence_recall:.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f})"
    )


def _room_beside(series: Sequence[Sequence[Result]]) -> float:
    """How wide the labels beside the lines are, within what leaves room for the lines."""
    longest = max((len(_label(each[-1])) for each in series), default=0)
    return _LABEL_INDENT + _LETTER * max(longest, _FEWEST_LETTERS)


def _labels(axes: _Axes, series: Sequence[Sequence[Result]], inks: Sequence[str]) -> list[str]:
    """The names beside the ends of their lines, moved apart where lines end close together."""
    ends = [
        (axes.y(each[-1].overall.evidence_recall), each[-1], ink)
        for each, ink in zip(series, inks, strict=True)
    ]
    ends.sort(key=lambda end: end[0])
    heights = _apart([height for height, _, _ in ends], lowest=axes.y(0))
    return [
        _text(
            axes.right + _LABEL_INDENT, height + 4.5, escape(_label(result)), size=13.5, ink=ink, weight=600
        )
        for height, (_, result, ink) in zip(heights, ends, strict=True)
    ]


def _label(result: Result) -> str:
    share = f"  {100 * result.overall.evidence_recall:.1f} %"
    return cut(result.retriever, _MOST_LETTERS - len(share)) + share


def _apart(heights: Sequence[float], *, lowest: float) -> list[float]:
    """Ascending heights on the page, at least a line of text apart and none below `lowest`."""
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
        f'font-weight="{weight}">{text}</text>'
    )


def _painted(*, fill: str | None = None, stroke: str | None = None) -> str:
    """The attributes that paint: the light colours for all who know no styles, and classes for the dark."""
    names = [f"f-{fill}"] if fill else []
    colours = [f'fill="{_INKS[fill][0]}"'] if fill else []
    if stroke:
        names.append(f"s-{stroke}")
        colours.append(f'stroke="{_INKS[stroke][0]}"')
    return f'class="{" ".join(names)}" {" ".join(colours)}'
