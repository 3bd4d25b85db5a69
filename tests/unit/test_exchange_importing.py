"""Importing: what is read reaches the engine once, and the report says what became of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane import Engine, Order
from germane.errors import InvalidInput, UnreadableSource
from germane.importers import ImportReport, Layout, Progress, export_jsonl, import_source, layout_of

WHEN = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="ann", embedder=None, clock=lambda: WHEN) as opened:
        yield opened


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(count: int) -> str:
    return "".join(json.dumps({"content": f"Line {n}"}) + "\n" for n in range(count))


def test_importing_twice_creates_nothing_twice(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "x.jsonl", lines(7))
    steps: list[Progress] = []
    assert import_source(engine, str(path), batch=3, progress=steps.append) == ImportReport(
        read=7, created=7, known=0
    )
    assert [step.read for step in steps] == [3, 6, 7]
    assert steps[-1] == Progress(read=7, created=7, known=0, skipped=0, source=f"{tmp_path.name}/x.jsonl")
    assert import_source(engine, str(path)) == ImportReport(read=7, created=0, known=7)


def test_what_the_engine_refuses_costs_only_itself(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "x.jsonl", lines(2) + '{"content": "Bad", "importance": 11}\n')
    report = import_source(engine, str(path))
    assert (report.read, report.created, report.known) == (3, 2, 0)
    assert [each.reason.split(";")[0][:13] for each in report.skipped] == ["importance=11"]


def test_unreadable_files_of_a_folder_are_in_the_report(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path / "notes" / "good.md", "Good.")
    write(tmp_path / "notes" / "empty.md", "")
    report = import_source(engine, str(tmp_path / "notes"))
    assert report.created == 1
    assert [each.source for each in report.skipped] == [str(tmp_path / "notes" / "empty.md")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bad.md", "---\nx: " + "[" * 2_000 + "\n---\nText."),
        ("bad.md", "---\nx: " + "[" * 900 + "]" * 900 + "\n---\nText."),
        ("bad.md", "---\nx: " + '{"a": ' * 200 + "1" + "}" * 200 + "\n---\nText."),
        ("bad.md", "---\nx: &x [*x]\n---\nText."),
        ("package.json", '{"name": "x", "dependencies": ' + '{"a": ' * 140_000 + "1" + "}" * 140_000 + "}"),
    ],
    ids=["open", "closed", "objects", "alias of itself", "manifest"],
)
def test_a_file_that_is_nested_too_deeply_costs_only_itself(
    tmp_path: Path, engine: Engine, name: str, text: str
) -> None:
    write(tmp_path / "notes" / "a.md", "Good.")
    bad = write(tmp_path / "notes" / name, text)
    write(tmp_path / "notes" / "z.md", "Good as well.")
    report = import_source(engine, str(tmp_path / "notes"))
    assert report.created == 2
    assert [each.source for each in report.skipped] == [str(bad)]
    assert "nested" in report.skipped[0].reason or "alias" in report.skipped[0].reason


def test_metadata_that_is_nested_too_deeply_is_named_with_its_line(tmp_path: Path, engine: Engine) -> None:
    deep = '{"a": ' * 900 + "1" + "}" * 900
    path = write(tmp_path / "x.jsonl", lines(1) + f'{{"content": "Deep", "metadata": {deep}}}\n')
    with pytest.raises(UnreadableSource, match=r"line 2: .* more than 100 levels deep"):
        import_source(engine, str(path))


@pytest.mark.parametrize("name", ["chat.txt", "chat.json", "notes.md", "x.jsonl"])
def test_what_follows_an_unclosed_fence_is_reported(tmp_path: Path, engine: Engine, name: str) -> None:
    text = "My own words. <recalled-from-memory> and ten more"
    form = {
        ".txt": f"user: Hello\nassistant: {text}\n",
        ".json": json.dumps([{"role": "user", "content": text}]),
        ".md": text,
        ".jsonl": json.dumps({"content": text}),
    }
    report = import_source(engine, str(write(tmp_path / name, form[Path(name).suffix])))
    (skipped,) = report.skipped
    assert "the last 13 characters aren't stored" in skipped.reason
    assert all("ten more" not in memory.content for memory in engine.memories())
    assert any("My own words." in memory.content for memory in engine.memories())


def test_many_unclosed_fences_are_read_in_one_pass(tmp_path: Path, engine: Engine) -> None:
    """Each was searched to the end of the text; 4,400 took 13 seconds, and 15,000 more than a test may."""
    marks = "<recalled-from-memory>" * 15_000
    path = write(tmp_path / "chat.txt", f"user: Hello\nassistant: Own words. {marks}")
    assert import_source(engine, str(path)).created == 2


def test_a_stamp_with_much_space_after_it_is_read_in_one_pass(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "chat.txt", f"user: Hello\n2024-05-01 10:00{' ' * 90_000}x")
    assert import_source(engine, str(path)).created == 1


def test_a_file_that_breaks_off_keeps_the_batches_before(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "x.jsonl", lines(4) + "broken\n")
    with pytest.raises(UnreadableSource, match="line 5"):
        import_source(engine, str(path), batch=2)
    assert len(engine.memories()) == 4
    write(path, lines(5))
    assert import_source(engine, str(path), batch=2) == ImportReport(read=5, created=1, known=4)


def test_an_export_comes_back_byte_for_byte(tmp_path: Path, engine: Engine) -> None:
    import_source(engine, str(write(tmp_path / "x.jsonl", lines(5))))
    out = io.StringIO()
    assert export_jsonl(engine.memories(order=Order.OLDEST), out) == 5
    path = write(tmp_path / "export.jsonl", out.getvalue())
    assert layout_of(str(path)) is Layout.EXPORT
    with germane.open(":memory:", agent="bo", embedder=None) as second:
        assert import_source(second, str(path), batch=2) == ImportReport(read=5, created=5, known=0)
        again = io.StringIO()
        export_jsonl(second.memories(order=Order.OLDEST), again)
        assert again.getvalue() == out.getvalue()
        assert {memory.agent for memory in second.memories()} == {"bo"}


def test_a_batch_of_none_is_refused(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="batch=0"):
        import_source(engine, str(tmp_path), batch=0)


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        ("a.md", "# T\n", Layout.MARKDOWN),
        ("a.MARKDOWN", "user: hi\n", Layout.MARKDOWN),
        ("pyproject.toml", '[project]\nname = "x"\n', Layout.PROJECT),
        ("package.json", '{"name": "x"}', Layout.PROJECT),
        ("a.py", '"""Doc."""\n', Layout.PROJECT),
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
def test_the_layout_is_found(tmp_path: Path, engine: Engine, name: str, text: str, layout: Layout) -> None:
    path = write(tmp_path / name, text)
    assert layout_of(str(path)) is layout
    if layout is not Layout.EXPORT:
        import_source(engine, str(path))


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
def test_what_cannot_be_imported_says_what_can(
    tmp_path: Path, engine: Engine, name: str, text: str, message: str
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(UnreadableSource) as caught:
        import_source(engine, str(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_source_says_so(tmp_path: Path, engine: Engine) -> None:
    for source in (tmp_path / "gone.md", tmp_path / "gone.jsonl", tmp_path / "gone"):
        with pytest.raises(UnreadableSource, match="there is no such file or folder"):
            import_source(engine, str(source))


def test_metadata_that_json_cannot_hold_is_refused(engine: Engine) -> None:
    memory = engine.remember("x").evolve(metadata={"when": WHEN})
    with pytest.raises(InvalidInput, match="can't be exported"):
        export_jsonl([memory], io.StringIO())


@pytest.mark.parametrize("content_hash", ["", "0" * 32])
def test_a_content_hash_that_does_not_match_is_computed_anew(engine: Engine, content_hash: str) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    engine.purge(memory.id, confirm=True)
    (imported,) = engine.import_memories([memory.evolve(content_hash=content_hash)])
    assert imported.memory.content_hash == memory.content_hash
    assert engine.doctor() == ()
    assert engine.remember("The cache lives in Redis.", kind="fact").id == memory.id


def test_all_versions_are_imported_with_the_hashes_they_had(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    engine.revise(memory.id, importance=7)
    engine.revise(memory.id, "The cache lives in Valkey.")
    versions = engine.history(memory.id)
    with germane.open(":memory:", agent="bob", embedder=None) as other:
        other.import_memories(versions)
        copied = other.history(memory.id)
        assert other.doctor() == ()
    assert [each.content_hash for each in copied] == [each.content_hash for each in versions]


def test_a_memory_with_half_a_character_is_refused_by_the_name_of_its_field(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.")
    with pytest.raises(InvalidInput, match=r"^subject='\\udc80' holds half of a surrogate pair"):
        engine.import_memories([memory.evolve(subject="\udc80")])
