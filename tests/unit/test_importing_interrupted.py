"""Many files: progress is reported from the start, and an interruption keeps what was stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, Status
from germane.importers import Progress, export_jsonl, import_source
from germane.testing.fakes import FixedClock

FILES = 130


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    for number in range(FILES):
        path = folder / f"part{number // 50}" / f"note{number:03}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nRoom {number} is painted in colour {number * 7}.\n", "utf-8")
    return folder


def opened() -> Engine:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=1))
    return germane.open(":memory:", embedder=None, clock=clock)


def stored(engine: Engine) -> list[tuple[str | None, str, int, str]]:
    """Every memory in the order of storing, without what is random."""
    everything = engine.memories(Filter(statuses=tuple(Status)))
    return [(one.source, one.content, one.version, str(one.status)) for one in reversed(everything)]


def interrupt_at(read: int) -> Callable[[Progress], None]:
    def record(progress: Progress) -> None:
        if progress.read >= read:
            raise KeyboardInterrupt

    return record


def test_it_tells_from_the_start_how_many_files_there_are(app: Path) -> None:
    record: list[Progress] = []
    with opened() as engine:
        report = import_source(engine, str(app), progress=record.append, batch=50)
    assert (record[0].seen, record[0].seen_of, record[0].read, record[0].source) == (
        0,
        FILES,
        0,
        "part0/note000.md",
    )
    assert [(each.seen, each.created) for each in record] == [
        (0, 0),
        (25, 0),
        (50, 50),
        (75, 50),
        (100, 100),
        (125, 100),
        (130, 130),
    ]
    assert (report.read, report.created) == (FILES, FILES)


def test_what_was_stored_stays_and_the_next_import_goes_on(app: Path) -> None:
    with opened() as whole:
        import_source(whole, str(app), batch=20)
        expected = stored(whole)
    with opened() as engine:
        for so_far in (40, 100):
            with pytest.raises(KeyboardInterrupt):
                import_source(engine, str(app), batch=20, progress=interrupt_at(so_far))
            assert len(stored(engine)) == so_far
        report = import_source(engine, str(app), batch=20)
        assert (report.read, report.created, report.known) == (FILES, 30, 100)
        assert stored(engine) == expected
        again = import_source(engine, str(app), batch=20)
        assert (again.read, again.created, again.known, again.written) == (FILES, 0, FILES, ())


def test_new_files_between_known_ones_keep_the_order_of_paths(app: Path) -> None:
    with opened() as engine:
        import_source(engine, str(app), batch=20)
        for name in ("part2/z.md", "part0/a.md", "part1/m.md"):
            (app / name).write_text(f"# {name}\n\nA file that came later.\n", encoding="utf-8")
        assert import_source(engine, str(app)).created == 3
        assert [source for source, *_ in stored(engine)[-3:]] == [
            "app/part0/a.md",
            "app/part1/m.md",
            "app/part2/z.md",
        ]


def test_a_text_that_moved_keeps_its_history_after_an_interruption(app: Path) -> None:
    """A new file may hold what another one held, so nothing is stored before all of them are read."""
    with opened() as engine:
        with pytest.raises(KeyboardInterrupt):
            import_source(engine, str(app), batch=20, progress=interrupt_at(60))
        moved = app / "part0" / "note010.md"
        before = next(one for one in engine.memories() if one.source == "app/part0/note010.md")
        moved.rename(app / "part2" / "zzz.md")
        report = import_source(engine, str(app), batch=20)
        assert (report.created, report.known, report.revised, report.gone) == (70, 59, 1, ())
        after = next(one for one in engine.memories() if one.source == "app/part2/zzz.md")
        assert (after.id, after.version) == (before.id, 2)


def test_what_was_forgotten_by_hand_stays_forgotten_when_its_text_moves(app: Path) -> None:
    with opened() as engine:
        import_source(engine, str(app), batch=20)
        forgotten = engine.forget(engine.memories()[0].id)
        name = str(forgotten.source).removeprefix("app/")
        (app / name).rename(app / "part0" / "aaa.md")
        report = import_source(engine, str(app), batch=20)
        assert (report.created, report.known, report.revised) == (0, FILES, 0)
        assert engine.get(forgotten.id).status is Status.FORGOTTEN


def test_a_memory_that_an_older_import_brought_is_known_again(app: Path) -> None:
    """Without a note of its file it may be of any, so all of them are read first."""
    text = (app / "part1" / "note060.md").read_text("utf-8").strip()
    with opened() as engine:
        old = engine.remember(text, kind="note", source="app/part1/note060.md")
        report = import_source(engine, str(app), batch=20)
        assert (report.created, report.known + report.revised) == (FILES - 1, 1)
        assert engine.history(old.id)[-1].source == "app/part1/note060.md"


def test_what_is_left_out_is_reported_in_the_order_of_the_files(app: Path) -> None:
    """Those that can't be read first, then parts with a secret, in whichever order files were read."""
    (app / "part2" / "broken.md").write_bytes(b"\xff\xfe\x00")
    (app / "part0" / "broken.md").write_bytes(b"\xff\xfe\x00")
    text = '# Access\n\npassword = "hunter2-Ae7ieWoo"\n'
    (app / "part0" / "aaa.md").write_text(text, encoding="utf-8")
    (app / "part2" / "zzz.md").write_text(text, encoding="utf-8")
    with opened() as engine:
        for _ in range(2):
            report = import_source(engine, str(app), batch=20)
            places = [Path(one.source.partition(":")[0]) for one in report.skipped]
            assert [place.relative_to(app).as_posix() for place in places] == [
                "part0/broken.md",
                "part2/broken.md",
                "part0/aaa.md",
                "part2/zzz.md",
            ]
            assert report.read == FILES + 2


def test_the_search_of_an_export_for_secrets_is_reported(app: Path, tmp_path: Path) -> None:
    with opened() as engine:
        import_source(engine, str(app))
        with (tmp_path / "all.jsonl").open("w", encoding="utf-8") as file:
            export_jsonl(sorted(engine.memories(), key=lambda one: one.id), file)
    assert json.loads((tmp_path / "all.jsonl").read_text("utf-8").splitlines()[0])
    record: list[Progress] = []
    with opened() as engine:
        import_source(engine, str(tmp_path / "all.jsonl"), progress=record.append)
    assert [(each.seen, each.seen_of, each.read) for each in record] == [
        (100, None, 0),
        (130, None, 130),
    ]
