"""What the size of one agent's memory costs, as a picture: recall, assemble, and the first call of a process.

    python bench/size.py PICTURE.svg [--sizes 1000,10000,100000,1000000] [--questions 200]
                         [--from FILE.json ...]

Measures each size as `bench/engine.py` does, prints its table and draws the medians, both axes logarithmic:
processor time, and the clock's for the first call of a process. A million memories take over half an hour.
`--from` draws what `bench/engine.py --json` printed before, also size by size.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from math import log10
from pathlib import Path
from typing import Any, Final, NamedTuple

from engine import measured, table

__all__ = ["main"]

_WIDTH, _HEIGHT = 760, 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 46, 230, 56

_SECOND = 1000.0
_BETWEEN = 17
"""From one label to the next."""

_STYLE: Final = """
    svg { font: 13px system-ui, sans-serif; background: #ffffff; }
    text { fill: #3d3d3a; } .title { font-size: 15px; font-weight: 600; } .faint { fill: #73726c; }
    .grid { stroke: #e3e2dc; } polyline { fill: none; stroke-width: 2.5; }
    @media (prefers-color-scheme: dark) {
      svg { background: #1f1f1d; } text { fill: #deddd6; } .faint { fill: #a3a29b; }
      .grid { stroke: #3a3a37; }
    }
"""


class _Line(NamedTuple):
    state: str
    call: str
    label: str
    colour: str


_LINES: Final = (
    _Line("cold", "recall", "first recall, by the clock", "#8a63c9"),
    _Line("warm", "assemble layered, CPU", "assemble, default plan", "#b4501e"),
    _Line("warm", "assemble relevance, CPU", "assemble, by relevance", "#2f8f5b"),
    _Line("warm", "recall, CPU", "recall", "#1f6fb2"),
)


def main() -> None:
    """Measure or read, print the table, and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--from", dest="known", type=Path, nargs="+", default=[])
    given = parser.parse_args()
    results: list[dict[str, Any]] = []
    for file in given.known:
        results += json.loads(file.read_text(encoding="utf-8"))["results"]
    for size in () if given.known else map(int, given.sizes.split(",")):
        print(f"measuring {size:,} memories", file=sys.stderr)
        results.append(measured(size, given.questions))
    print(table(results))
    given.picture.write_text(_picture(results), encoding="utf-8")


def _picture(results: Sequence[dict[str, Any]]) -> str:
    sizes = [log10(each["memories"]) for each in results]
    medians = {line: [log10(each[line.state][line.call]["p50"]) for each in results] for line in _LINES}
    low = int(min(map(min, medians.values())) // 1)
    high = int(-(-max(map(max, medians.values())) // 1))

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (size - sizes[0]) / (sizes[-1] - sizes[0])

    def y(milliseconds: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - milliseconds) / (high - low)

    right = x(sizes[-1])

    def grid() -> Iterator[str]:
        for power in range(low, high + 1):
            height = f"{y(power):.1f}"
            yield f'  <line class="grid" x1="{_LEFT}" x2="{right:.1f}" y1="{height}" y2="{height}"/>'
            yield _text(_LEFT - 8, y(power) + 4, _shown(10.0**power), "end", kind="faint")
        for size in sizes:
            yield _text(x(size), y(low) + 20, f"{round(10**size):,}", "middle", kind="faint")
        yield _text((_LEFT + right) / 2, _HEIGHT - 12, "memories of one agent", "middle")

    def curves() -> Iterator[str]:
        place = 0.0
        for line, values in sorted(medians.items(), key=lambda each: -each[1][-1]):
            points = " ".join(
                f"{x(size):.1f},{y(value):.1f}" for size, value in zip(sizes, values, strict=True)
            )
            yield f'  <polyline stroke="{line.colour}" points="{points}"/>'
            place = max(y(values[-1]) + 4, place + _BETWEEN)  # No label on another one.
            label = f"{line.label}: {_shown(10 ** values[-1])}"
            yield _text(right + 8, place, label, colour=line.colour)

    description = "; ".join(
        f"{line.label}: "
        + ", ".join(
            f"{_shown(10**value)} at {each['memories']:,}"
            for value, each in zip(values, results, strict=True)
        )
        for line, values in medians.items()
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"',
            '  aria-labelledby="title what">',
            '  <title id="title">Processor time of a call by the number of memories</title>',
            f'  <desc id="what">Medians. {description}.</desc>',
            f"  <style>{_STYLE}  </style>",
            _text(_LEFT, 24, "Processor time of a call by the number of memories, median", kind="title"),
            *grid(),
            *curves(),
            "</svg>\n",
        ]
    )


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms" if milliseconds < _SECOND else f"{milliseconds / _SECOND:.3g} s"


def _text(x: float, y: float, text: str, anchor: str = "start", *, kind: str = "", colour: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    style += f' style="fill: {colour}"' if colour else ""
    return f'  <text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    main()
