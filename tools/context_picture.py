"""Draws a context of the demo: its sections in the budget, what is in, and what was left out and why.

python tools/context_picture.py            writes docs/context.svg
python tools/context_picture.py --check    ends with 1 if it isn't up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

import germane
from germane.demo import DEMO_NOW, demo_drafts
from germane.ledger import Entry

__all__ = ["PAGE", "main", "picture"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "context.svg"

_QUESTION = "Should we use Redis for caching in Newton?"
_BUDGET = 1000
_WIDTH, _LEFT, _TOP, _ROW, _ROWS = 900, 24, 92, 22, 11
_MOST = 42
_COLUMN = (_WIDTH - 3 * _LEFT) / 2
_COLOURS = ("#1f6fb2", "#b4501e", "#2f7d4f", "#8a4fa3", "#a3781f", "#4c5fb0", "#b03a5b", "#3a8a8a")

_STYLE = """
    svg { font: 13px system-ui, sans-serif; background: #ffffff; }
    text { fill: #3d3d3a; } .title { font-size: 16px; font-weight: 600; } .faint { fill: #73726c; }
    .head { font-weight: 600; } .figure { font: 12px ui-monospace, monospace; fill: #73726c; }
    .free { fill: #e9e8e2; } .on { fill: #ffffff; font-size: 12px; }
    @media (prefers-color-scheme: dark) {
      svg { background: #1f1f1d; } text { fill: #deddd6; } .faint, .figure { fill: #a3a29b; }
      .free { fill: #3a3a37; } .on { fill: #ffffff; }
    }
"""


def main() -> int:
    """Write the picture, or compare it; 1 if it was found to be out of date."""
    text = picture()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not current:
        sys.stderr.write(f"{PAGE.name} is out of date: run `python tools/context_picture.py`.\n")
    return 0 if current else 1


def picture() -> str:
    """The picture as it should be."""
    with germane.open(":memory:", agent="newton", clock=lambda: DEMO_NOW) as engine:
        engine.remember_many(demo_drafts())
        context = engine.assemble(_QUESTION, budget=_BUDGET)
        texts = {memory.id: memory.content for memory in engine.memories()}
    trace = context.trace
    used = [section for section in trace.sections if section.used]
    colours = {section.name: _COLOURS[place % len(_COLOURS)] for place, section in enumerate(used)}
    words = f"{len(trace.included)} of {len(trace.entries)} memories that could matter are in"
    height = _TOP + 60 + _ROW * _ROWS
    rest = _BUDGET - context.tokens
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
    counted = f"{context.tokens:,} of {_BUDGET:,} tokens, counted as a whole. {words}."
    lines = [
        f'{opening} aria-labelledby="title what">',
        '  <title id="title">A context in its budget</title>',
        f'  <desc id="what">{words}; each of the others has a reason, and the tokens that it lacked.</desc>',
        f"  <style>{_STYLE}  </style>",
        f'  <text class="title" x="{_LEFT}" y="30">{escape(_QUESTION)}</text>',
        f'  <text class="faint" x="{_LEFT}" y="52">{counted}</text>',
        *_bar([(section.name, section.used, colours[section.name]) for section in used], rest),
        *_rows(_LEFT, "In the context", _included(trace.included, colours, texts)),
        *_rows(2 * _LEFT + _COLUMN, "Left out, and what it lacked", _excluded(trace.excluded, texts)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bar(parts: Sequence[tuple[str, int, str]], free: int) -> Iterable[str]:
    """The sections beside each other, as wide as their tokens; what is free comes last."""
    scale, x = (_WIDTH - 2 * _LEFT) / (sum(used for _, used, _ in parts) + free), float(_LEFT)
    for name, used, colour in parts:
        wide = used * scale
        yield f'  <rect x="{x:.1f}" y="66" width="{wide - 1.5:.1f}" height="30" fill="{colour}"/>'
        if wide > 8 * len(name):
            yield f'  <text class="on" x="{x + 6:.1f}" y="85">{escape(name)}</text>'
        x += wide
    yield f'  <rect class="free" x="{x:.1f}" y="66" width="{free * scale:.1f}" height="30"/>'


def _included(
    entries: Iterable[Entry], colours: Mapping[str, str], texts: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """The best of each section: its colour, its tokens and the beginning of its text."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for entry in entries:
        text = texts[entry.memory_id.partition("@")[0]]
        row = (colours[entry.section], f"{entry.tokens:>4} {entry.level}", text)
        found.setdefault(entry.section, []).append(row)
    most = max(1, _ROWS // len(found))
    spare = _ROWS - sum(min(most, len(rows)) for rows in found.values())
    shown = []
    for rows in found.values():
        extra = min(spare, max(0, len(rows) - most))
        spare -= extra
        shown += rows[: most + extra]
    return shown


def _excluded(entries: Iterable[Entry], texts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The best of those that were left out, with the reason."""
    best = sorted(entries, key=lambda entry: (-entry.score, texts[entry.memory_id.partition("@")[0]]))
    near = [entry for entry in best if entry.short_by][: _ROWS - 3]
    far = [entry for entry in best if not entry.short_by][:3]
    return [
        (
            "",
            f"-{entry.short_by} tokens" if entry.short_by else str(entry.reason).replace("_", " "),
            texts[entry.memory_id.partition("@")[0]],
        )
        for entry in (*near, *far)
    ]


def _rows(x: float, head: str, rows: Iterable[tuple[str, str, str]]) -> Iterable[str]:
    yield f'  <text class="head" x="{x:.1f}" y="{_TOP + 38}">{head}</text>'
    for place, (colour, figure, text) in enumerate(rows):
        y = _TOP + 62 + place * _ROW
        if colour:
            yield f'  <rect x="{x:.1f}" y="{y - 10}" width="10" height="10" fill="{colour}"/>'
        yield f'  <text class="figure" x="{x + 18:.1f}" y="{y}" xml:space="preserve">{figure}</text>'
        line = " ".join(text.split())
        shown = line if len(line) <= _MOST else f"{line[: _MOST - 1].rstrip()}…"
        yield f'  <text x="{x + 112:.1f}" y="{y}">{escape(shown)}</text>'


if __name__ == "__main__":
    sys.exit(main())
