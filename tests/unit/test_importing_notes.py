"""Notes of Obsidian and Basic Memory: links, tags, observations and relations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import Draft, Engine, Memory
from germane.importers import ImportReport, import_source, read

FILES = Path(__file__).parents[1] / "imports"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="bea", embedder=None) as opened:
        yield opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FILES / "obsidian", tmp_path / "vault"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FILES / "basic_memory" / "notes", tmp_path / "notes"))


def left_out(report: ImportReport) -> set[str]:
    return {each.reason.removeprefix("not taken over: ") for each in report.passed_over}


def at(engine: Engine, source: str) -> Memory:
    return next(memory for memory in engine.memories() if memory.source == source)


def counts(report: ImportReport) -> tuple[int, int, int]:
    return report.created, report.revised, report.known


@pytest.mark.parametrize("name", ["obsidian", "basic_memory/notes"])
def test_a_second_import_changes_nothing(engine: Engine, name: str) -> None:
    first = import_source(engine, str(FILES / name))
    assert (first.skipped, first.created) == ((), first.read)
    assert counts(import_source(engine, str(FILES / name))) == (0, 0, first.read)


def test_a_note_of_obsidian_has_its_links_tags_and_aliases(engine: Engine, vault: Path) -> None:
    report = import_source(engine, str(vault))
    tea = at(engine, "vault/Tea.md")
    assert (tea.kind, tea.subject, tea.importance) == ("note", "Tea", 1.0)
    assert set(tea.tags) == {"drinks", "drinks/hot", "morning"}
    assert tea.metadata["links"] == ["people/Ann", "Coffee", "Japan", "leaves.png", "Brewing"]
    assert tea.metadata["aliases"] == ["Chai", "Green tea"]
    assert (tea.metadata["importance"], tea.metadata["created"]) == ("high", "[[2026-03-01]]")
    assert tea.created_at == datetime(2026, 3, 1, tzinfo=UTC)
    ann = at(engine, "vault/people/Ann.md")
    assert (ann.tags, ann.metadata["links"]) == (("garden/herbs",), ["Tea"])
    assert left_out(report) == {
        "attachments of type '.canvas' (1)",
        "attachments of type '.png' (1)",
        "notes without a text (1)",
    }


def test_one_note_of_a_vault_is_the_same_alone(engine: Engine, vault: Path) -> None:
    import_source(engine, str(vault))
    assert counts(import_source(engine, str(vault / "people" / "Ann.md"))) == (0, 0, 1)


def test_an_edited_note_is_the_next_version(engine: Engine, vault: Path) -> None:
    import_source(engine, str(vault))
    before = at(engine, "vault/Tea.md")
    path = vault / "Tea.md"
    path.write_text(path.read_text().replace("[[Coffee#Beans]]", "[[Cocoa]]"))
    assert counts(import_source(engine, str(vault))) == (0, 1, 1)
    after = at(engine, "vault/Tea.md")
    assert "Cocoa" in after.metadata["links"]
    assert [each.id for each in engine.history(after.id)] == [before.id, after.id]


def test_the_same_marks_outside_a_vault_stay_in_the_text(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Tea\n\nSee [[Ann]]. #drinks\n")
    import_source(engine, str(tmp_path))
    (stored,) = engine.memories()
    assert (stored.tags, "links" in stored.metadata) == ((), False)


def test_a_note_of_a_long_page_has_the_links_of_its_own_part(engine: Engine, vault: Path) -> None:
    parts = [f"## Part {number}\n\n{'Words. ' * 150}[[Note {number}]]\n" for number in range(4)]
    (vault / "Long.md").write_text("\n".join(parts))
    import_source(engine, str(vault / "Long.md"))
    long = sorted(memory.metadata["links"] for memory in engine.memories())
    assert long == [["Note 0"], ["Note 1"], ["Note 2"], ["Note 3"]]


def test_more_links_than_a_memory_has_are_counted(engine: Engine, vault: Path) -> None:
    (vault / "All.md").write_text(" ".join(f"[[Note {number}]]" for number in range(1200)))
    report = import_source(engine, str(vault / "All.md"))
    (stored,) = engine.memories()
    assert len(stored.metadata["links"]) == 1000
    assert left_out(report) == {"links of notes with more than 1,000 (200)"}


def test_statements_are_those_that_basic_memory_finds(notes: Path) -> None:
    drafts = [*read(str(notes))]
    expected = json.loads((FILES / "basic_memory" / "expected.json").read_text()).values()
    relations = [each for note in expected for each in note["relations"]]
    assert [_observation(draft) for draft in drafts if "category" in draft.metadata] == [
        _observation_there(each) for note in expected for each in note["observations"]
    ]
    assert [
        (draft.metadata["relation"], draft.metadata["object"], draft.metadata.get("context"))
        for draft in drafts
        if "relation" in draft.metadata
    ] == [(each["type"], each["target"], each["context"]) for each in relations if each["type"] != "links_to"]
    linked = {link for draft in drafts for link in draft.metadata.get("links", ())}
    assert linked == {each["target"] for each in relations}


def _observation(draft: Draft) -> tuple[object, ...]:
    context = draft.metadata.get("context")
    words = draft.content.partition(": ")[2].removesuffix(f" ({context})")
    tags = [tag for tag in draft.tags if f"#{tag}" in words]
    days = [str(time)[:10] if time else None for time in (draft.valid_from, draft.valid_until)]
    return draft.metadata["category"], words, context, tags, days


def _observation_there(each: dict[str, Any]) -> tuple[object, ...]:
    times = [time["valid_during"] for time in each["temporal"]] or [{"lower": None, "upper": None}]
    days = [times[0]["lower"], times[0]["upper"]]
    return each["category"], each["content"], each["context"], each["tags"] or [], days


def test_a_note_of_basic_memory_keeps_the_rest_of_its_text(engine: Engine, notes: Path) -> None:
    report = import_source(engine, str(notes))
    coffee = at(engine, "notes/drinks/Coffee.md")
    assert (coffee.kind, coffee.tags) == ("note", ("drinks", "morning"))
    assert coffee.metadata["permalink"] == "main/drinks/coffee"
    assert "Ann brews it" in coffee.content
    assert "served at the [[Office]]" in coffee.content
    assert "Pour over" not in coffee.content
    assert "contrasts_with" not in coffee.content
    decision = at(engine, "notes/drinks/Coffee.md#decision")
    assert (decision.kind, decision.subject) == ("decision", "Coffee")
    assert decision.content == "Coffee: The office buys beans from [[Acme]]."
    assert decision.valid_until == datetime(2026, 6, 1, tzinfo=UTC)
    works = at(engine, "notes/people/Ann.md#relation")
    assert (works.content, works.metadata["role"]) == ("Ann works at Acme", "engineer")
    assert not [memory for memory in engine.memories() if memory.source == "notes/people/Ann.md"]
    assert report.passed_over == ()


def test_an_edited_observation_is_the_next_version_and_the_others_stay(engine: Engine, notes: Path) -> None:
    first = import_source(engine, str(notes))
    path = notes / "drinks" / "Coffee.md"
    path.write_text(path.read_text().replace("No sugar", "A little sugar"))
    assert counts(import_source(engine, str(notes))) == (0, 1, first.read - 1)
    assert at(engine, "notes/drinks/Coffee.md#preference").content == "Coffee: A little sugar"


def test_a_page_of_a_website_is_no_note(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "about.md").write_text(
        "---\npermalink: /about/\ntype: page\n---\n# About\n\n- [who] Ann writes here\n"
    )
    import_source(engine, str(tmp_path))
    (stored,) = engine.memories()
    assert (stored.kind, "category" in stored.metadata) == ("note", False)


def test_memory_folders_of_two_projects_of_claude_code_stay_apart(engine: Engine, tmp_path: Path) -> None:
    folders = [tmp_path / ".claude" / "projects" / name / "memory" for name in ("-srv-app", "-srv-site")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "MEMORY.md").write_text(f"# Index of {folder.parent.name}\n\n- [Tests](tests.md)\n")
        (folder / "tests.md").write_text(
            "---\nname: tests\ndescription: How tests run\ntype: feedback\n---\nRun the tests with make.\n"
        )
        assert counts(import_source(engine, str(folder))) == (2, 0, 0)
    again = import_source(engine, str(folders[0]), prune=True)
    assert (counts(again), again.gone) == ((0, 0, 2), ())
    note = at(engine, "-srv-app/memory/tests.md")
    assert (note.kind, note.metadata["type"], note.metadata["name"]) == ("note", "feedback", "tests")
    assert counts(import_source(engine, str(folders[1] / "MEMORY.md"))) == (0, 0, 1)
