"""The page that a report is written to: whole, escaped, and in need of nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from germane.evaluation import Floor, GateResult, curve, page, write_page
from snapshot.test_evaluation_report import LARGER, REPORT


class _Reading(HTMLParser):
    """Which elements a page opens and closes, what it loads, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.cells: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded.extend(str(value) for name, value in attrs if name in ("src", "href", "xlink:href"))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def test_the_page_holds_every_table_and_loads_nothing(tmp_path: Path) -> None:
    odd = replace(LARGER.results[0], retriever="a<b>&c")
    floor = Floor(gauge="evidence_recall", budget=1000, least=0.9)
    gate = [GateResult(floor=floor, retriever="germane", reached=0.8333)]
    write_page(tmp_path / "report.html", replace(LARGER, results=(*LARGER.results, odd)), gate=gate)
    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    reading = _Reading()
    reading.feed(written)
    reading.close()
    assert (reading.open, reading.loaded) == ([], [])
    assert "<script" not in written
    assert reading.headings == snapshot(
        [
            "Overall",
            "By category",
            "By half of the data",
            "By number of evidence turns",
            "Compared in pairs",
            "Without each part",
            "About the data",
        ]
    )
    assert {"germane", "a<b>&c", "without=window", "83.3", "-16.7"} <= set(reading.cells)
    assert "MISSED: evidence recall of germane" in written
    assert '<tr class="bad">' in written
    assert '<tr class="faint">' in written


def test_a_page_without_comparisons_leaves_their_tables_out() -> None:
    assert "Compared" not in page(REPORT)
    assert "Without each part" not in page(REPORT)


def test_what_is_wider_than_the_screen_scrolls_by_the_keyboard_too() -> None:
    written = page(LARGER)
    wide = re.findall(r'<div class="wide"[^>]*>', written)

    assert len(wide) == written.count("<table>") + written.count("<svg")
    assert all('tabindex="0" role="region" aria-label="' in each for each in wide)


def _inks(drawn: str) -> dict[str, tuple[str, str]]:
    """The colours of a curve by their names in its classes, on light paper and on dark."""
    painted = re.findall(r'class="f-(\w+)[^"]*" fill="(#\w+)"', drawn)
    painted += re.findall(r'class="[^"]*\bs-(\w+)"[^>]* stroke="(#\w+)"', drawn)
    dark = dict(re.findall(r"\.[fs]-(\w+)\{(?:fill|stroke):(#\w+)\}", drawn))
    return {name: (light, dark[name]) for name, light in painted}


_SEVEN = replace(REPORT, results=tuple(replace(REPORT.results[0], retriever=f"number {n}") for n in range(7)))
_INKS = _inks(curve(_SEVEN))


def test_each_of_seven_retrievers_has_an_ink_of_its_own() -> None:
    lines = {name: colours for name, colours in _INKS.items() if re.fullmatch(r"c\d", name)}

    assert len(lines) == len(set(lines.values())) == 7


@pytest.mark.parametrize("paper", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", sorted(_INKS.keys() - {"paper", "grid", "target"}))
def test_every_ink_of_the_curve_can_be_read_on_light_paper_and_on_dark(ink: str, paper: int) -> None:
    # The ratio of WCAG 2.1, 1.4.3: 3 is required for lines and for large words in bold.
    light, dark = sorted((_luminance(_INKS[name][paper]) for name in (ink, "paper")), reverse=True)

    assert (light + 0.05) / (dark + 0.05) >= 3


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_dark_colours_reach_all_that_is_drawn() -> None:
    drawn = curve(LARGER)
    painted = re.findall(r"<(?:rect|line|polyline|polygon|circle|text) [^>]*>", drawn)

    assert len(painted) > 20
    for each in painted:
        for what in ("fill", "stroke"):
            colour = re.search(rf' {what}="(#\w+)"', each)
            name = re.search(rf'class="[^"]*\b{what[0]}-(\w+)', each)
            assert (colour and colour[1]) == (name and _INKS[name[1]][0])
            assert name is None or f".{what[0]}-{name[1]}{{{what}:{_INKS[name[1]][1]}}}" in drawn


def test_long_names_stay_in_the_picture_and_leave_space_for_the_lines() -> None:
    long = "plan=relevance+static+without=neighbours"
    drawn = curve(replace(REPORT, results=tuple(replace(each, retriever=long) for each in REPORT.results)))
    label = re.search(r'<text x="([\d.]+)"[^>]*font-weight="600">(plan=rel[^<]*)</text>', drawn)
    assert label is not None
    start = float(label[1])

    assert re.fullmatch(r"plan=relevance[^ ]*…  \d+\.\d %", label[2])
    assert 500 < start < start + 8.2 * len(label[2]) < 860
