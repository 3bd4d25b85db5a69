"""Files that changed since they were imported: edits, moves, removals, and what people did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, InvalidInput, Memory, Status
from germane.importers import Gone, import_source, read_markdown

FILLER = "The quick brown fox jumps over the lazy dog and runs on and on. " * 14
"""So long that each section is a memory of its own."""


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    return tmp_path / "app"


def write(path: Path, *sections: tuple[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"## {head}\n\n{text} {FILLER}".strip() for head, text in sections]
    path.write_text("\n\n".join(["# Guide", *parts, ""]), encoding="utf-8")
    return path


def texts(memories: Sequence[Memory]) -> list[str]:
    """The first words of each section."""
    return sorted(memory.content.split("\n")[2].partition(". ")[0] for memory in memories)


def named(engine: Engine, text: str) -> Memory:
    (found,) = (memory for memory in engine.memories() if text in memory.content)
    return found


def test_an_edited_section_is_the_next_version_and_the_others_stay(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    before = {memory.id: memory for memory in engine.memories()}
    use = named(engine, "Call it.")

    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    report = import_source(engine, str(app))

    assert (report.read, report.created, report.known, report.revised, report.gone) == (2, 0, 1, 1, ())
    new = named(engine, "Call it twice.")
    assert (new.id, new.version, new.source) == (use.id, 2, "app/guide.md#use")
    assert [(written.id, written.source, written.revised) for written in report.written] == [
        (new.id, "app/guide.md#use", True)
    ]
    assert [memory.content[:25] for memory in engine.history(new.id)] == [use.content[:25], new.content[:25]]
    unchanged = named(engine, "Install it.")
    assert unchanged == before[unchanged.id]


def test_a_text_put_back_is_a_version_again(app: Path, engine: Engine) -> None:
    for text in ("One.", "Two.", "One."):
        write(app / "guide.md", ("Use", text), ("Setup", "Install it."))
        import_source(engine, str(app))
    assert [memory.content.split("\n")[2][:4] for memory in engine.history(named(engine, "One.").id)] == [
        "One.",
        "Two.",
        "One.",
    ]


def test_a_section_that_comes_before_others_of_its_name_leaves_their_history_alone(
    app: Path, engine: Engine
) -> None:
    path = write(app / "guide.md", ("Use", "Old."), ("Setup", "Install it."))
    import_source(engine, str(app))
    old = named(engine, "Old.")

    write(path, ("Use", "New."), ("Use", "Old."), ("Setup", "Install it."))
    report = import_source(engine, str(app))

    assert (report.created, report.revised, report.gone) == (1, 1, ())
    assert (named(engine, "Old.").id, named(engine, "Old.").source) == (old.id, "app/guide.md#use-1")
    assert named(engine, "New.").version == 1


def test_what_is_gone_is_reported_and_only_pruning_forgets_it(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    use = named(engine, "Call it.")
    write(path, ("Setup", "Install it."), ("More", "More of it."))

    report = import_source(engine, str(app))
    assert (report.gone, report.pruned) == ((Gone(id=use.id, source="app/guide.md#use"),), False)
    assert texts(engine.memories()) == ["Call it", "Install it", "More of it"]

    report = import_source(engine, str(app), prune=True)
    assert (report.gone, report.pruned) == ((Gone(id=use.id, source="app/guide.md#use"),), True)
    assert texts(engine.memories()) == ["Install it", "More of it"]
    assert import_source(engine, str(app), prune=True).gone == ()

    (forgotten,) = engine.memories(Filter(statuses=(Status.FORGOTTEN,)))
    assert (forgotten.id, forgotten.metadata["origin"]["gone"]) == (use.id, True)
    assert engine.restore(forgotten.id).status is Status.ACTIVE


def test_a_renamed_file_keeps_the_history_of_its_texts(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    use = named(engine, "Call it.")
    (app / "docs").mkdir()
    path.rename(app / "docs" / "manual.md")

    report = import_source(engine, str(app))

    assert (report.created, report.revised, report.gone) == (0, 2, ())
    moved = named(engine, "Call it.")
    assert (moved.id, moved.version, moved.source) == (use.id, 2, "app/docs/manual.md#use")


def test_only_what_is_imported_can_be_gone(app: Path, engine: Engine) -> None:
    write(app / "docs" / "a.md", ("Use", "Call it."), ("Setup", "Install it."))
    other = write(app / "b.md", ("More", "More of it."))
    (app / ".git").mkdir()
    import_source(engine, str(app))
    other.unlink()
    assert import_source(engine, str(app / "docs"), prune=True).gone == ()
    assert import_source(engine, str(app / "docs" / "a.md"), prune=True).known == 2
    assert len(import_source(engine, str(app), prune=True).gone) == 1


def test_a_single_file_and_its_folder_are_known_to_each_other(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(path))
    assert import_source(engine, str(app)).known == 2
    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    assert import_source(engine, str(path)).revised == 1


def test_projects_of_one_agent_stay_apart(tmp_path: Path, engine: Engine) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        write(tmp_path / name / "README.md", ("Use", f"Call {name}."), ("Setup", f"Install {name}."))
        report = import_source(engine, str(tmp_path / name), prune=True)
        assert (report.created, report.revised, report.gone) == (2, 0, ())
    write(tmp_path / "one" / "README.md", ("Use", "Call one twice."), ("More", "More of one."))
    report = import_source(engine, str(tmp_path / "one"), prune=True, project="one")
    assert (report.created, report.revised, len(report.gone)) == (1, 1, 1)
    assert texts(engine.memories()) == ["Call one twice", "Call two", "Install two", "More of one"]


def test_what_a_person_changed_stays_until_the_source_says_something_else(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    own = engine.revise(named(engine, "Call it.").id, importance=9, tags=["mine"])
    report = import_source(engine, str(app))
    assert (report.known, report.revised) == (2, 0)
    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    import_source(engine, str(app))
    new = named(engine, "Call it twice.")
    assert (new.supersedes, new.version, new.importance) == (own.version_id, 3, 9.0)


def test_an_edit_of_what_a_person_has_forgotten_is_a_memory_of_its_own(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    engine.forget(named(engine, "Call it.").id)
    assert import_source(engine, str(app), prune=True).created == 0
    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    assert import_source(engine, str(app), prune=True).created == 1
    assert named(engine, "Call it twice.").version == 1


def test_memories_of_an_import_without_origins_are_continued(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    engine.remember_many(read_markdown(path))
    use = named(engine, "Call it.")
    report = import_source(engine, str(app), prune=True)
    assert (report.created, report.known, report.revised) == (0, 2, 0)
    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    assert import_source(engine, str(app), prune=True).revised == 1
    assert named(engine, "Call it twice.").id == use.id


def test_a_text_whose_digest_another_version_noted_is_known_until_it_changes(
    app: Path, engine: Engine
) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    for memory in engine.memories():
        noted = {**memory.metadata["origin"], "digest": "0123456789abcdef"}
        engine.revise(memory.id, metadata={**memory.metadata, "origin": noted})
    assert import_source(engine, str(app)).known == 2
    write(path, ("Use", "Call it twice."), ("Setup", "Install it."))
    report = import_source(engine, str(app))
    assert (report.known, report.revised) == (1, 1)
    assert named(engine, "Install it.").version == 2


def test_a_file_that_outgrows_one_memory_is_continued_by_its_first_section(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."))
    import_source(engine, str(app))
    (whole,) = engine.memories()
    write(path, ("Use", "Call it."), ("Setup", "Install it."))
    report = import_source(engine, str(app))
    assert (report.created, report.revised, report.gone) == (1, 1, ())
    assert named(engine, "Call it.").id == whole.id
    write(path, ("Use", "Call it."))
    report = import_source(engine, str(app), prune=True)
    assert (report.created, report.revised, len(report.gone)) == (0, 1, 1)
    assert [memory.id for memory in engine.memories()] == [whole.id]


def test_a_note_that_becomes_a_record_keeps_its_history(app: Path, engine: Engine) -> None:
    path = app / "0001-queue.md"
    path.write_text("# A queue\n\nWe need one.\n", encoding="utf-8")
    import_source(engine, str(app))
    path.write_text("# A queue\n\nStatus: accepted\n\n## Decision\n\nRedis.\n", encoding="utf-8")
    import_source(engine, str(app))
    (record,) = engine.memories()
    assert (record.kind, record.version, record.metadata["status"]) == ("adr", 2, "accepted")


def test_a_changelog_that_names_a_version_twice_is_two_memories(app: Path, engine: Engine) -> None:
    (app / "CHANGELOG.md").write_text("# Changes\n\n## 1.0.0\n\nA.\n\n## 1.0.0\n\nB.\n", encoding="utf-8")
    assert import_source(engine, str(app)).created == 2
    assert import_source(engine, str(app)).known == 2
    assert sorted(str(memory.source) for memory in engine.memories()) == [
        "app/CHANGELOG.md#1.0.0",
        "app/CHANGELOG.md#1.0.0~2",
    ]


def test_an_unreadable_file_takes_nothing_with_it(app: Path, engine: Engine) -> None:
    path = write(app / "guide.md", ("Use", "Call it."), ("Setup", "Install it."))
    import_source(engine, str(app))
    path.write_bytes(b"\xff\xfe\x00")
    report = import_source(engine, str(app), prune=True)
    assert (len(report.skipped), report.gone) == (1, ())
    assert texts(engine.memories()) == ["Call it", "Install it"]


def test_what_only_projects_have_is_refused_elsewhere(tmp_path: Path, engine: Engine) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="prune=True goes with a project's files"):
        import_source(engine, str(path), prune=True)
    with pytest.raises(InvalidInput, match="project='x' goes with"):
        import_source(engine, str(path), project="x")
    assert engine.memories() == ()
