"""The page that a report is written to: whole, escaped, and in need of nothing else."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from inline_snapshot import snapshot

from germane.evaluation import Floor, Judged, page, write_page
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
    gate = [Judged(floor=floor, retriever="germane", reached=0.8333)]
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
