"""Importing: what is read reaches the engine once, and the report says what became of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from germane.errors import InvalidInput, UnreadableSource
from germane.exchange.detect import Layout, layout_of
from germane.exchange.exporting import export_jsonl
from germane.exchange.importing import ImportReport, Progress, import_source
from germane.model.draft import Draft, Remembered
from germane.model.memory import Memory, Rendition, Renditions
from germane.model.scope import Scope

WHEN = datetime(2024, 5, 1, tzinfo=UTC)


@dataclass(slots=True)
class Shelf:
    """The smallest thing that can be imported into: it knows a memory by its text and its source."""

    agent: str = "ann"
    held: dict[tuple[str, str | None], Memory] = field(default_factory=dict)
    transactions: list[int] = field(default_factory=list)

    def remember_many(self, drafts: Iterable[Draft], *, revive: bool) -> Sequence[Remembered]:
        assert not revive
        drafts = list(drafts)
        if any(draft.importance is not None and draft.importance > 10 for draft in drafts):
            raise InvalidInput("importance=11 is out of range.")
        return self.adopt(self.memory(draft, len(self.held) + n) for n, draft in enumerate(drafts))

    def adopt(self, memories: Iterable[Memory]) -> Sequence[Remembered]:
        done = []
        for memory in memories:
            key = (memory.content, memory.source)
            done.append(Remembered(memory=memory, created=key not in self.held))
            self.held.setdefault(key, memory)
        self.transactions.append(len(done))
        return done

    def memory(self, draft: Draft, number: int) -> Memory:
        said = Rendition(text=draft.content, tokens=1)
        return Memory(
            id=f"m{number}",
            agent=self.agent,
            kind=draft.kind,
            content=draft.content,
            renditions=Renditions(micro=said, summary=said, full=said, counter="words"),
            created_at=draft.created_at or WHEN,
            updated_at=WHEN,
            chain=f"m{number}",
            scope=Scope.parse(draft.scope),
            source=draft.source,
            metadata=draft.metadata,
        )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(count: int) -> str:
    return "".join(json.dumps({"content": f"Line {n}"}) + "\n" for n in range(count))


def test_importing_twice_creates_nothing_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", lines(7))
    shelf = Shelf()
    steps: list[Progress] = []
    assert import_source(shelf, str(path), batch=3, progress=steps.append) == ImportReport(
        read=7, created=7, known=0
    )
    assert shelf.transactions == [3, 3, 1]
    assert [step.read for step in steps] == [3, 6, 7]
    assert steps[-1] == Progress(read=7, created=7, known=0, skipped=0, source=f"{tmp_path.name}/x.jsonl")
    assert import_source(shelf, str(path)) == ImportReport(read=7, created=0, known=7)


def test_what_the_engine_refuses_costs_only_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", lines(2) + '{"content": "Bad", "importance": 11}\n')
    report = import_source(Shelf(), str(path))
    assert (report.read, report.created, report.known) == (3, 2, 0)
    assert [each.reason for each in report.skipped] == ["importance=11 is out of range."]


def test_unreadable_files_of_a_folder_are_in_the_report(tmp_path: Path) -> None:
    write(tmp_path / "notes" / "good.md", "Good.")
    write(tmp_path / "notes" / "empty.md", "")
    report = import_source(Shelf(), str(tmp_path / "notes"))
    assert report.created == 1
    assert [each.source for each in report.skipped] == [str(tmp_path / "notes" / "empty.md")]


def test_a_file_that_breaks_off_keeps_the_batches_before(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", lines(4) + "broken\n")
    shelf = Shelf()
    with pytest.raises(UnreadableSource, match="line 5"):
        import_source(shelf, str(path), batch=2)
    assert len(shelf.held) == 4
    write(path, lines(5))
    assert import_source(shelf, str(path), batch=2) == ImportReport(read=5, created=1, known=4)


def test_an_export_comes_back_byte_for_byte(tmp_path: Path) -> None:
    first, second = Shelf(), Shelf(agent="bo")
    import_source(first, str(write(tmp_path / "x.jsonl", lines(5))))
    out = io.StringIO()
    assert export_jsonl(first.held.values(), out) == 5
    path = write(tmp_path / "export.jsonl", out.getvalue())
    assert layout_of(str(path)) is Layout.EXPORT
    assert import_source(second, str(path), batch=2) == ImportReport(read=5, created=5, known=0)
    again = io.StringIO()
    export_jsonl(second.held.values(), again)
    assert again.getvalue() == out.getvalue()
    assert {memory.agent for memory in second.held.values()} == {"bo"}


def test_a_batch_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="batch=0"):
        import_source(Shelf(), str(tmp_path), batch=0)


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        ("a.md", "# T\n", Layout.MARKDOWN),
        ("a.MARKDOWN", "user: hi\n", Layout.MARKDOWN),
        ("notes.txt", "Just prose.\n", Layout.MARKDOWN),
        ("README", "Just prose.\n", Layout.MARKDOWN),
        ("a.jsonl", '{"content": "x"}\n', Layout.MEMORIES),
        ("a.ndjson", '\n{"germane": 1}\n', Layout.EXPORT),
        ("a.jsonl", '{"role": "user", "content": "x"}\n', Layout.TRANSCRIPT),
        ("a.jsonl", '{"messages": []}\n', Layout.TRANSCRIPT),
        ("export", '{"germane": 1}\n{"germane": 1}\n', Layout.EXPORT),
        ("a.json", '[{"role": "user", "content": "x"}]', Layout.TRANSCRIPT),
        ("a.json", '{"system": "s", "messages": []}', Layout.TRANSCRIPT),
        ("a.json", '[{"sample_id": "s", "conversation": {}, "qa": []}]', Layout.LOCOMO),
        ("a.txt", "user: hi\nassistant: ho\n", Layout.TRANSCRIPT),
        ("a.txt", "[2024-05-01 10:00] Ann: hi\n", Layout.TRANSCRIPT),
    ],
)
def test_the_layout_is_found(tmp_path: Path, name: str, text: str, layout: Layout) -> None:
    path = write(tmp_path / name, text)
    assert layout_of(str(path)) is layout
    if layout is not Layout.EXPORT:
        import_source(Shelf(), str(path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"name": "package"}', "JSON of a layout that isn't known"),
        ("a.json", "[1", "it is no JSON"),
        ("a.jsonl", "\n", "it is empty"),
        ("a.jsonl", "[1]", "one JSON object was expected"),
        ("a.csv", "a,b\n", "files ending in '.csv' aren't known"),
        ("a.txt", "", "it is empty"),
    ],
)
def test_what_cannot_be_imported_says_what_can(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(UnreadableSource) as caught:
        import_source(Shelf(), str(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_source_says_so(tmp_path: Path) -> None:
    for source in (tmp_path / "gone.md", tmp_path / "gone.jsonl", tmp_path / "gone"):
        with pytest.raises(UnreadableSource, match="there is no such file or folder"):
            import_source(Shelf(), str(source))


def test_metadata_that_json_cannot_hold_is_refused() -> None:
    memory = Shelf().memory(Draft(content="x", metadata={"when": WHEN}), 1)
    with pytest.raises(InvalidInput, match="can't be exported"):
        export_jsonl([memory], io.StringIO())
