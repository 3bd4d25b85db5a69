"""Draws how importance loses weight with age, from the formulas that rank by it.

python tools/decay_curve.py            writes docs/explanation/decay.svg
python tools/decay_curve.py --check    ends with 1 if it isn't up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from germane.ranking import Decay

__all__ = ["PAGE", "main", "picture"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "decay.svg"

_WIDTH, _HEIGHT = 640, 380
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 46, 150, 56
_MOST_AGE = 8.0
_STEPS = 160
_MARKED = (1.0, 2.0, 3.0)

_TEXT = (
    "The weight of a memory by its age. Hyperbolic: 1/2 at the half-value age, 1/3 at twice that, 1/4 at "
    "three times. Exponential: 1/2, 1/4, 1/8. None: always 1."
)

_STYLE = """
    svg { font: 13px system-ui, sans-serif; background: #ffffff; }
    text { fill: #3d3d3a; } .title { font-size: 15px; font-weight: 600; } .faint { fill: #73726c; }
    .grid { stroke: #e3e2dc; } .axis { stroke: #9b9a93; }
    .curve { fill: none; stroke-width: 2.5; }
    .hyperbolic { stroke: #1f6fb2; } .exponential { stroke: #b4501e; }
    .none { stroke: #73726c; stroke-dasharray: 5 4; }
    text.hyperbolic, circle.hyperbolic { fill: #1f6fb2; stroke: none; }
    text.exponential, circle.exponential { fill: #b4501e; stroke: none; }
    text.none { fill: #73726c; stroke: none; }
    @media (prefers-color-scheme: dark) {
      svg { background: #1f1f1d; } text { fill: #deddd6; } .faint { fill: #a3a29b; }
      .grid { stroke: #3a3a37; } .axis { stroke: #7d7c76; }
      .hyperbolic { stroke: #6db3ea; } .exponential { stroke: #e9986a; } .none { stroke: #a3a29b; }
      text.hyperbolic, circle.hyperbolic { fill: #6db3ea; }
      text.exponential, circle.exponential { fill: #e9986a; }
      text.none { fill: #a3a29b; }
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
        sys.stderr.write(f"{PAGE.name} is out of date: run `python tools/decay_curve.py`.\n")
    return 0 if current else 1


def picture() -> str:
    """The picture as it should be."""
    shapes = (Decay(shape="none"), Decay(), Decay(shape="exponential"))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
    lines = [
        opening + ' aria-labelledby="title what">',
        '  <title id="title">How importance loses weight with age</title>',
        f'  <desc id="what">{_TEXT}</desc>',
        f"  <style>{_STYLE}  </style>",
        f'  <text class="title" x="{_LEFT}" y="24">What is left of a memory\'s importance as it ages</text>',
        *_grid(),
        *(line for decay in shapes for line in _curve(decay)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _grid() -> Iterable[str]:
    right = _x(_MOST_AGE)
    for weight, name in ((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (0.75, "3/4"), (1.0, "1")):
        y = _y(weight)
        kind = "axis" if weight == 0 else "grid"
        yield f'  <line class="{kind}" x1="{_LEFT}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>'
        yield f'  <text class="faint" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
    for age in range(int(_MOST_AGE) + 1):
        x = _x(age)
        yield f'  <text class="faint" x="{x:.1f}" y="{_y(0) + 20:.1f}" text-anchor="middle">{age}</text>'
    middle = (_LEFT + right) / 2
    yield (
        f'  <text x="{middle:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">'
        "age, in multiples of the half-value age (Decay.hours)</text>"
    )


def _curve(decay: Decay) -> Iterable[str]:
    ages = [_MOST_AGE * step / _STEPS for step in range(_STEPS + 1)]
    points = " ".join(f"{_x(age):.1f},{_y(decay.weight(age)):.1f}" for age in ages)
    yield f'  <polyline class="curve {decay.shape}" points="{points}"/>'
    if decay.shape != "none":
        for age in _MARKED:
            place = f'cx="{_x(age):.1f}" cy="{_y(decay.weight(age)):.1f}"'
            yield f'  <circle class="{decay.shape}" {place} r="3.5"/>'
    end = decay.weight(_MOST_AGE)
    name = decay.shape + (" (default)" if decay == Decay() else "")
    yield f'  <text class="{decay.shape}" x="{_x(_MOST_AGE) + 8:.1f}" y="{_y(end) + 4:.1f}">{name}</text>'


def _x(age: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * age / _MOST_AGE


def _y(weight: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - weight)


if __name__ == "__main__":
    sys.exit(main())
