"""Watching a real folder: each change is followed, whatever else happens meanwhile."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, InvalidInput, MissingExtra, Status
from germane.errors import UnreadableSource
from germane.importers import ImportReport, watch

DEADLINE = 30
"""Seconds until a report that doesn't come fails a test; it comes in a fraction of one."""


class Watched:
    """A watch on another thread, and its reports as they come."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.stop = threading.Event()
        self.reports: queue.Queue[ImportReport | Exception] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(engine, folder))
        self._thread.start()

    def _run(self, engine: Engine, folder: Path) -> None:
        try:
            for report in watch(engine, folder, stop=self.stop, settled=0.05):
                self.reports.put(report)
        except Exception as error:  # noqa: BLE001 - Whatever it is, the test on the other thread looks at it.
            self.reports.put(error)

    def until(self, holds: Callable[[ImportReport], bool]) -> ImportReport:
        """The first report of which it holds; reports before it are of steps on the way."""
        while True:
            report = self.reports.get(timeout=DEADLINE)
            if isinstance(report, Exception):
                raise report
            if holds(report):
                return report

    def end(self) -> None:
        self.stop.set()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "README.md").write_text("# App\n\nIt runs.\n", encoding="utf-8")
    return tmp_path / "app"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


@contextmanager
def watched(engine: Engine, folder: Path) -> Iterator[Watched]:
    one = Watched(engine, folder)
    try:
        yield one
    finally:
        one.end()


def contents(engine: Engine) -> list[str]:
    return sorted(memory.content for memory in engine.memories())


def test_what_is_written_edited_renamed_and_deleted_is_followed(app: Path, engine: Engine) -> None:
    with watched(engine, app) as seen:
        assert seen.until(lambda report: report.created == 1).pruned
        first = engine.memories()[0]

        (app / "docs").mkdir()
        (app / "docs" / "guide.md").write_text("A guide.\n", encoding="utf-8")
        seen.until(lambda report: report.created == 1)
        assert contents(engine) == ["# App\n\nIt runs.", "A guide."]

        (app / "README.md").write_text("# App\n\nIt runs well.\n", encoding="utf-8")
        seen.until(lambda report: report.revised == 1)
        assert contents(engine) == ["# App\n\nIt runs well.", "A guide."]

        (app / "docs").rename(app / "manual")
        seen.until(lambda report: any("manual" in written.source for written in report.written))
        guide = next(memory for memory in engine.memories() if memory.content == "A guide.")
        assert (guide.source, len(engine.history(guide.id)) >= 2) == ("app/manual/guide.md", True)

        (app / "README.md").unlink()
        seen.until(lambda report: len(report.gone) == 1)
        assert contents(engine) == ["A guide."]

        (app / "README.md").write_text("# App\n\nIt runs well.\n", encoding="utf-8")
        seen.until(lambda report: report.revised == 1)
        assert contents(engine) == ["# App\n\nIt runs well.", "A guide."]
        assert next(m for m in engine.memories() if "App" in m.content).id == first.id


def test_files_that_are_not_read_make_no_report(app: Path, engine: Engine) -> None:
    with watched(engine, app) as seen:
        seen.until(lambda report: report.created == 1)
        (app / "data.csv").write_text("a,b\n", encoding="utf-8")
        (app / "node_modules").mkdir()
        (app / "node_modules" / "README.md").write_text("# Theirs\n", encoding="utf-8")
        (app / "last.md").write_text("Last.\n", encoding="utf-8")
        report = seen.until(lambda report: report.created > 0)
        assert [written.source for written in report.written] == ["app/last.md"]
        assert seen.reports.empty()


def test_what_comes_to_be_ignored_is_forgotten(app: Path, engine: Engine) -> None:
    (app / "draft.md").write_text("A draft.\n", encoding="utf-8")
    with watched(engine, app) as seen:
        seen.until(lambda report: report.created == 2)
        (app / ".gitignore").write_text("draft.md\n", encoding="utf-8")
        seen.until(lambda report: len(report.gone) == 1)
        assert contents(engine) == ["# App\n\nIt runs."]


def test_a_folder_that_disappears_forgets_nothing(app: Path, engine: Engine) -> None:
    seen = Watched(engine, app)
    try:
        seen.until(lambda report: report.created == 1)
        app.rename(app.with_name("elsewhere"))
        with pytest.raises(UnreadableSource, match="has disappeared"):
            seen.until(lambda report: len(report.gone) > 0)
        assert contents(engine) == ["# App\n\nIt runs."]
    finally:
        seen.end()


def test_a_watch_goes_on_where_the_last_one_ended(app: Path, engine: Engine) -> None:
    with watched(engine, app) as seen:
        seen.until(lambda report: report.created == 1)
    (app / "README.md").unlink()
    (app / "new.md").write_text("New.\n", encoding="utf-8")
    with watched(engine, app) as seen:
        report = seen.until(lambda _: True)
        assert (report.created, len(report.gone)) == (1, 1)
    assert len(engine.memories(Filter(statuses=(Status.FORGOTTEN,)))) == 1


def test_what_cannot_be_watched_says_so_at_once(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreadableSource, match="only a folder can be watched"):
        watch(engine, tmp_path / "gone")
    with pytest.raises(InvalidInput, match=r"settled=0 can't be used"):
        watch(engine, tmp_path, settled=0)
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtra, match=r"pip install 'germane\[watch\]'"):
        watch(engine, tmp_path)
