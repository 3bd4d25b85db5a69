"""The figures of each day as a picture: small curves, one below the other, over the same days.

Level: evaluation. Pure. Drawn by hand as `plot` draws its curve, light or dark as its reader is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from germane.model.metrics import TARGETS, Day, Metrics

__all__ = ["trend"]

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
