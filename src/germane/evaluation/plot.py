"""The curve of evidence recall against budget, as an SVG written by hand.

Level: evaluation. Pure but for `plot`, which writes the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from germane.evaluation.report import Report
from germane.evaluation.result import Result

__all__ = ["curve", "plot"]

_WIDTH, _HEIGHT = 860, 520
_SIZE = f'width="{_WIDTH}" height="{_HEIGHT}"'
_VIEW = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 150, 88, 74
_PAPER, _INK, _FAINT, _GRID = "#fcfcfb", "#1f2328", "#636c76", "#e3e5e8"
# Okabe and Ito's colours, which people with any colour vision tell apart; the first is germane's.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#4d4d4d")
_LABEL_GAP = 17.0
_FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


def plot(report: Report, path: str | Path) -> None:
    """Write the curve as an SVG file, replacing one that is there."""
    Path(path).write_text(curve(report), encoding="utf-8")


def curve(report: Report) -> str:
    """The curve as an SVG: budgets on a logarithmic axis, a line and a band of 95 % per retriever."""
    budgets = sorted({result.budget for result in report.results})
    names = list(dict.fromkeys(result.retriever for result in report.results))
    axes = _Axes(budgets)
    series = [[result for result in report.results if result.retriever == name] for name in names]
    series = [sorted(each, key=lambda result: result.budget) for each in series]
    colours = [_COLOURS[index % len(_COLOURS)] for index in range(len(series))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {_SIZE} {_VIEW} role="img" {_FONT}>',
        "<title>Evidence recall against token budget</title>",
        f"<desc>{escape(_described(report))}</desc>",
        f'<rect {_SIZE} fill="{_PAPER}"/>',
        _text(_LEFT, 34, "Evidence recall against token budget", size=19, weight=600),
        _text(_LEFT, 56, _described(report), size=12.5, colour=_FAINT),
        *axes.drawn(report.counter),
        *(_band(axes, each, colour) for each, colour in zip(series, colours, strict=True)),
        # The first retriever is drawn last, so that nothing hides it.
        *reversed([_line(axes, each, colour) for each, colour in zip(series, colours, strict=True)]),
        *_labels(axes, series, colours),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


class _Axes:
    """Where a budget and a share stand on the page."""

    def __init__(self, budgets: Sequence[int]) -> None:
        self.budgets = budgets
        logs = [math.log(max(budget, 1)) for budget in budgets] or [0.0]
        self._low, self._span = min(logs), max(logs) - min(logs)

    def x(self, budget: int) -> float:
        share = (math.log(max(budget, 1)) - self._low) / self._span if self._span else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def drawn(self, counter: str) -> list[str]:
        """Grid lines every fifth of the way up, a tick per budget, and what the axes mean."""
        right = _WIDTH - _RIGHT
        parts = []
        for tenth in range(0, 11, 2):
            y = self.y(tenth / 10)
            colour = _FAINT if tenth == 0 else _GRID
            parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{colour}"/>')
            parts.append(_text(_LEFT - 10, y + 4.5, f"{tenth * 10} %", size=13, colour=_FAINT, anchor="end"))
        for budget in self.budgets:
            x, foot = self.x(budget), self.y(0)
            parts.append(
                f'<line x1="{x:.1f}" y1="{foot:.1f}" x2="{x:.1f}" y2="{foot + 5:.1f}" stroke="{_FAINT}"/>'
            )
            parts.append(_text(x, foot + 22, f"{budget:,}", size=13, colour=_FAINT, anchor="middle"))
        middle = (_LEFT + right) / 2
        parts.append(
            _text(middle, _HEIGHT - 22, f"Budget in tokens ({escape(counter)})", size=13.5, anchor="middle")
        )
        return parts


def _described(report: Report) -> str:
    return (
        f"Share of evidence turns that stand whole in the context; {report.questions:,} questions, "
        "bands: 95 % bootstrap"
    )


def _band(axes: _Axes, results: Sequence[Result], colour: str) -> str:
    low = [f"{axes.x(each.budget):.1f},{axes.y(each.overall.interval[0]):.1f}" for each in results]
    high = [f"{axes.x(each.budget):.1f},{axes.y(each.overall.interval[1]):.1f}" for each in results]
    if len(results) == 1:
        # One budget has no band to fill, so its interval is drawn as a line.
        return (
            f'<polyline points="{low[0]} {high[0]}" fill="none" stroke="{colour}" stroke-width="2" '
            'stroke-opacity="0.6"/>'
        )
    return f'<polygon points="{" ".join([*low, *reversed(high)])}" fill="{colour}" fill-opacity="0.13"/>'


def _line(axes: _Axes, results: Sequence[Result], colour: str) -> str:
    points = [(axes.x(each.budget), axes.y(each.overall.evidence_recall)) for each in results]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" stroke="{_PAPER}" stroke-width="1.5">'
        f"<title>{escape(_told(each))}</title></circle>"
        for (x, y), each in zip(points, results, strict=True)
    )
    return (
        f'<g><polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.4" '
        f'stroke-linejoin="round"/>{dots}</g>'
    )


def _told(result: Result) -> str:
    low, high = result.overall.interval
    return (
        f"{result.retriever}, {result.budget:,} tokens: {100 * result.overall.evidence_recall:.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f})"
    )


def _labels(axes: _Axes, series: Sequence[Sequence[Result]], colours: Sequence[str]) -> list[str]:
    """The names beside the ends of their lines, moved apart where lines end close together."""
    ends = [
        (axes.y(each[-1].overall.evidence_recall), each[-1], colour)
        for each, colour in zip(series, colours, strict=True)
    ]
    ends.sort(key=lambda end: end[0])
    heights = _apart([height for height, _, _ in ends], lowest=axes.y(0))
    return [
        _text(
            _WIDTH - _RIGHT + 14,
            height + 4.5,
            f"{escape(result.retriever)}  {100 * result.overall.evidence_recall:.1f} %",
            size=13.5,
            colour=colour,
            weight=600,
        )
        for height, (_, result, colour) in zip(heights, ends, strict=True)
    ]


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
    colour: str = _INK,
    anchor: str = "start",
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{text}</text>'
    )
