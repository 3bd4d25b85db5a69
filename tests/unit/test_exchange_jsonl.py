"""JSON lines: hand-written ones become drafts, each mistake is named with its line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane import Draft, Memory
from germane.errors import UnreadableSource
from germane.importers import export_jsonl, import_source, memory_to_json, read_jsonl, read_memories
from germane.lifecycle import LifecycleState, Stage
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import make_id

WHEN = datetime(2024, 5, 1, 10, tzinfo=UTC)
RENDITION = Rendition(text="Said.", tokens=2)
RENDITIONS = Renditions(micro=RENDITION, summary=RENDITION, full=RENDITION, counter="words")
MEMORY = Memory(
    id=make_id("m1"),
    agent="ann",
    kind="fact",
    content="Said.",
    renditions=RENDITIONS,
    created_at=WHEN,
    updated_at=WHEN,
    content_hash="h1",
    source="a.md",
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_shortest_line_is_a_content(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"content": "One"}', "", '{"text": "Two\\u2028lines"}')
    source = f"{tmp_path.name}/x.jsonl"
    assert list(read_jsonl(path)) == [
        Draft(content="One", scope="global", trust="external", source=source),
        Draft(content="Two\u2028lines", scope="global", trust="external", source=source),
    ]


def test_every_field_is_read(tmp_path: Path) -> None:
    fields = {
        "content": "Chose SQLite",
        "kind": "decision",
        "subject": "storage",
        "tags": ["db", "db:sqlite"],
        "scope": "task:T-1",
        "importance": 8,
        "confidence": 0.9,
        "outcome": "success",
        "trust": "owner",
        "source": "meeting",
        "created_at": "2024-05-01T12:00:00+02:00",
        "pinned": True,
        "metadata": {"reasons": ["one file"]},
    }
    (draft,) = read_jsonl(write(tmp_path / "x.jsonl", json.dumps(fields)))
    expected = {**fields, "tags": ("db", "db:sqlite"), "created_at": WHEN}
    assert {name: getattr(draft, name) for name in fields} == expected


def test_lines_are_read_as_they_are_requested(tmp_path: Path) -> None:
    drafts = read_jsonl(write(tmp_path / "x.jsonl", '{"content": "One"}', "broken"))
    assert next(drafts).content == "One"
    with pytest.raises(UnreadableSource, match=r"x\.jsonl, line 2: it is no JSON"):
        next(drafts)


def test_an_exported_line_is_accepted_as_a_draft(tmp_path: Path) -> None:
    (draft,) = read_jsonl(write(tmp_path / "x.jsonl", json.dumps(memory_to_json(MEMORY))))
    assert (draft.content, draft.kind, draft.source, draft.trust) == ("Said.", "fact", "a.md", "agent")
    assert draft.created_at == WHEN


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"kind": "fact"}', "'content' must be a text that isn't blank, and is None"),
        ('{"content": "  "}', "'content' must be a text that isn't blank"),
        ('{"content": "a", "improtance": 3}', "unknown field 'improtance'; did you mean 'importance'?"),
        ('{"content": "a", "colour": 3}', "unknown field 'colour'. Fields of your own go under 'metadata'"),
        ('{"content": "a", "importance": "3"}', "'importance' must be a number, and is '3'"),
        ('{"content": "a", "importance": NaN}', "NaN is no number in JSON"),
        ('{"content": "a", "importance": 1e999}', "'importance' must be a finite number"),
        ('{"content": "a", "created_at": "2024-05-01T10:00:00"}', "'created_at' has no time zone"),
        ('{"content": "a", "created_at": "soon"}', "'created_at' must be a date or time"),
        ('{"content": "a", "kind": ["fact"]}', "'kind' must be a text"),
        ('{"content": "a", "metadata": []', "it is no JSON"),
        ('{"content": "a", "metadata": [1]}', "'metadata' must be an object"),
        ('["a"]', 'one JSON object was expected, and this is ["a"]'),
        ("[" * 100_000, "it is no JSON"),
        ('{"content": "a\0"}', "it holds a NUL byte"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "x.jsonl", '{"content": "fine"}', line)
    with pytest.raises(UnreadableSource) as caught:
        list(read_jsonl(path))
    assert f"{path}, line 2: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"germane": None}, "an exported memory was expected, with the field 'germane': 1"),
        ({"germane": 2}, "a newer germane wrote it (format 2, and this one reads up to 1). Upgrade germane"),
        ({"germane": "1"}, "'germane' must be the format's number 1"),
        ({"id": 7}, "'id' must be a text"),
        ({"created_at": None}, "'created_at' is missing"),
        ({"version": -1}, "'version' must be a count"),
        ({"status": "asleep"}, "'status' must be one of active, superseded, archived, forgotten"),
        ({"scope": "task:"}, "is no scope"),
        ({"tags": "a"}, "'tags' must be a list of texts"),
        ({"pinned": 1}, "'pinned' must be true or false"),
        ({"renditions": {"micro": 1}}, "'micro' must be an object"),
        ({"metadata": 1}, "'metadata' must be an object"),
        ({"life": []}, "'life' must be an object"),
        ({"life": {"confirmations": -1}}, "'confirmations' must be a count"),
        ({"life": {"triggers": 1, "false_alarms": 2}}, "must be among the 1 'triggers', and is 2"),
        ({"life": {"doubts": 1}}, "'life' has an unknown field 'doubts'"),
    ],
)
def test_a_damaged_export_is_named_with_its_line(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    good = memory_to_json(MEMORY)
    path = write(tmp_path / "x.jsonl", json.dumps(good), json.dumps({**good, **changes}))
    with pytest.raises(UnreadableSource) as caught:
        list(read_memories(path, agent="ann"))
    assert f"{path}, line 2: " in str(caught.value)
    assert message in str(caught.value)


def test_an_episode_revised_with_its_own_text_is_restored_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    with germane.open(":memory:", agent="ada", embedder=None) as engine:
        episode = engine.remember("Deployed the new cache.", kind="episode")
        engine.revise(episode.id, "Deployed the new cache.")
        exported = engine.history(episode.id)
        with file.open("w", encoding="utf-8") as out:
            export_jsonl(exported, out)
    with germane.open(":memory:", agent="ada", embedder=None) as elsewhere:
        import_source(elsewhere, str(file))
        assert elsewhere.history(episode.id) == exported


def test_a_line_of_before_lives_were_exported_has_none(tmp_path: Path) -> None:
    fields = {name: value for name, value in memory_to_json(MEMORY).items() if name not in ("life", "stage")}
    path = write(tmp_path / "x.jsonl", json.dumps(fields))
    assert list(read_memories(path, agent="ann")) == [MEMORY]
    with germane.open(":memory:", agent="ann", embedder=None) as engine:
        import_source(engine, str(path))
        (memory,) = engine.memories()
        assert memory.id == MEMORY.id
        assert engine.lifecycle_state(memory.id) == LifecycleState(stage=Stage.NEW)


def test_renditions_that_were_left_out_are_made_anew(tmp_path: Path) -> None:
    fields = {name: value for name, value in memory_to_json(MEMORY).items() if name != "renditions"}
    path = write(tmp_path / "x.jsonl", json.dumps(fields))
    (memory,) = read_memories(path, agent="ann", renditions_of=lambda _: RENDITIONS)
    assert memory == MEMORY
    with pytest.raises(UnreadableSource, match="'renditions' is missing"):
        list(read_memories(path, agent="ann"))
